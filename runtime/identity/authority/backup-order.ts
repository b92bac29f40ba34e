import { mayAsk } from "../../../core/documents/permissions.ts";
import type { PeerEntries } from "../../../core/identity/peer-book.ts";
import type { Json } from "../../../model/json/json.ts";
import { signOrder } from "../../backup/order.ts";
import { isRecipient } from "../../backup/sealing.ts";
import { readBody } from "../../http/http.ts";
import type { PeerHandler } from "../../http/peer-handler.ts";
import type { RunningService } from "../../process/process.ts";
import type { Authority } from "../certificates.ts";

export const isOrderQuestion = (url: string): boolean => url === "/backup-order";
const longestBody = 4096;

/** `POST /backup-order` {recipient} of the root cell's controller → `SignedOrder` for everybody that the authority knows. */
export const answerOrder =
  (authority: Authority, { request }: Pick<RunningService, "request">): PeerHandler =>
  async ({ peer, method, url, body }, response) => {
    const respond = (status: number, answer: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    };
    const refuse = (status: number, message: string): void => respond(status, { error: { code: "refused", message } });
    if (!mayAsk("authority", peer, method, url))
      return refuse(403, `only the root cell's controller may have a backup ordered, and this is "${peer}"`);
    const text = await readBody(body, longestBody);
    let recipient: unknown = null;
    try {
      recipient = (JSON.parse(text.ok ? text.value : "null") as { readonly recipient?: unknown } | null)?.recipient;
    } catch {
      // Refused below.
    }
    if (!isRecipient(recipient)) return refuse(400, "the body is {recipient}, an X25519 public key in base64url");
    const book = (await request({ kind: "peers", known: -1 } as unknown as Json)) as unknown as { peers: PeerEntries };
    // A gateway keeps nothing.
    const peers = Object.keys(book.peers).filter((name) => name !== "gateway");
    respond(200, await signOrder(authority, { recipient, peers, nowMs: Date.now() }));
  };
