import type { ServerResponse } from "node:http";
import type { Leftovers } from "../../core/distribution/node/release.ts";
import { mayAsk } from "../../core/documents/permissions.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AuditEntry } from "../../model/contract/audit/audit.ts";
import type { RouteName } from "../../model/contract/routes.ts";
import type { PeerRequest } from "../http/peer-handler.ts";
import { askedBy } from "./asked-by.ts";

/** What an operator may see and say of documents whose client has lost its store (`core/distribution/fork.ts`). */
export interface LeftoversAccess {
  list(): Promise<Leftovers>;
  /** What the peer desires here counts again, and what is desired of it. Resolves when that is durable. */
  release(peer: PeerName, by: AuditEntry): Promise<void>;
  /** Ends documents of a client that it did not repeat, or that are kept for it; null: all that `list` names. */
  end(client: PeerName, keys: readonly string[] | null, by: AuditEntry): Promise<void>;
  /** What goes on under this key is what the client desires under another one. @returns null, or a sentence: why not */
  adopt(client: PeerName, key: string, by: AuditEntry): Promise<string | null>;
}
export const leftoversPath = "/orphans";

const answer = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

/**
 * `GET /orphans`: all that is left over here. `POST /orphans?peer=NAME` releases a peer, and with `&adopt=KEY` nothing of that, but
 * gives what goes on under that key back to the peer. `DELETE /orphans?peer=NAME` ends
 * the documents with the keys `key=…`, any number of them, or with `all=true` all that the peer did not repeat. For the
 * gateway alone, which asks for the operator's credential.
 */
export const answerLeftovers = async (
  access: LeftoversAccess | null,
  request: PeerRequest,
  response: ServerResponse,
): Promise<void> => {
  const { peer, method, url } = request;
  const refuse = (status: number, code: string, message: string): void =>
    answer(response, status, { error: { code, message } });
  if (!mayAsk("controller", peer, method, leftoversPath))
    return refuse(403, "forbidden", `only the gateway may look into a service, and this is "${peer}"`);
  if (access === null) return refuse(503, "unavailable", "the service is starting; ask again");
  const query = new URLSearchParams(url.split("?", 2)[1] ?? "");
  const about = query.get("peer") ?? "";
  if (method === "GET") return answer(response, 200, await access.list());
  if (about === "") return refuse(400, "bad-request", "say of which peer: `peer=NAME`");
  const by = (verb: RouteName, what?: string): AuditEntry =>
    askedBy(request, { verb, target: about, ...(what === undefined ? {} : { what }) });
  const adopted = query.get("adopt");
  if (method === "POST" && adopted !== null) {
    const why = await access.adopt(peerName(about), adopted, by("adoptOrphan", adopted));
    if (why !== null) return refuse(409, "orphans/refused", why);
  } else if (method === "POST") await access.release(peerName(about), by("releaseOrphans"));
  else if (method === "DELETE") {
    const keys = query.getAll("key");
    if (keys.length === 0 && query.get("all") !== "true")
      return refuse(400, "bad-request", "say which documents end: `key=KEY`, once for each, or `all=true`");
    const what = keys.length === 0 ? "all" : keys.join(" ");
    await access.end(peerName(about), keys.length === 0 ? null : keys, by("endOrphans", what));
  } else return refuse(405, "bad-request", "GET, POST and DELETE are answered here");
  answer(response, 200, await access.list());
};
