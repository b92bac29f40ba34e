import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { Asker } from "../../../core/controller/model/audited.ts";
import type { ControllerRequest, ControllerResponse } from "../../../core/controller/requests/requests.ts";
import { rootCell } from "../../../core/documents/cells.ts";
import type { DesiredEnrolment } from "../../../core/documents/identity.ts";
import { parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { Refusal } from "../../../model/api.ts";
import { cellName, hostName, ipv4, peerName } from "../../../model/cell/identifiers.ts";
import { type HostJoin, type HostJoining, hostJoin, type JoinsAs } from "../../../model/contract/operator/host-join.ts";
import { read as readAs } from "../../../model/contract/schema.ts";
import type { Json } from "../../../model/json/json.ts";
import { Fault } from "../../../model/json/reader.ts";
import { parseJson, readBody, sendJson, sendRefusal } from "../../http/http.ts";
import { peerRequest } from "../../http/https.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import { isMachineName } from "../../identity/join-token.ts";
import { agentPorts, type PeerBook, type ProcessConfiguration, ports } from "../../installation.ts";
import { parsePeerAddress } from "../../transport/peers.ts";
import { answerHostEnd } from "./end.ts";
import { Refused } from "./refused.ts";

/**
 * Machines join by way of the root cell's controller (decision 32): the operator's request comes through the gateway, with
 * the operator's own credential, and the enrolments are desired at the authority, which lets this controller alone do
 * so. Tokens never come here, only their hashes.
 */
interface HostContext {
  readonly configuration: ProcessConfiguration;
  /** Asks this controller itself. */
  readonly request: (request: Json) => Promise<Json>;
  readonly controller: NonNullable<ProcessConfiguration["controller"]>;
}
type RootPart = NonNullable<HostContext["controller"]["root"]>;
const tokenHours = 24;
const longestBody = 32_768;
const first = ["authority", "controller.root"] as const;

/** Of an enrolment; the birth uses the same, so that a machine that was there from the beginning can be replaced. */
const enrolmentId = (peer: string): string => `joined-${peer.replaceAll(".", "-")}`;

/** `PUT` and `DELETE /cells/root/hosts/<name>`, `GET` and `PUT …/<name>/end`. */
export const hostHandler = async (
  context: HostContext,
  incoming: PeerRequest,
  response: ServerResponse,
  { rest, byOperator, by }: { readonly rest: readonly string[]; readonly byOperator: boolean; readonly by?: Asker },
): Promise<void> => {
  try {
    const { root, cell } = context.controller;
    const [name = "", part] = rest;
    const isEnd = part === "end" && rest.length === 2;
    // A testbed whose services are processes has a root cell for this alone.
    if (isEnd ? cell !== rootCell : root === undefined)
      throw new Refused(404, "not-found", "machines join through the root cell, and this is the controller of another");
    if (!byOperator)
      throw new Refused(403, "forbidden", "machines join and leave with the operator's credential alone");
    if ((rest.length !== 1 && !isEnd) || !isMachineName(name))
      throw new Refused(
        400,
        "bad-request",
        `\`${rest.join("/")}\` cannot name a machine: use lower-case letters, digits and \`-\`, at most 53`,
      );
    if (isEnd) {
      sendJson(response, 200, await answerHostEnd(context.configuration, incoming, hostName(name)));
      return;
    }
    if (incoming.method === "DELETE") {
      for (const peer of [`host.${name}`, `agent.${name}`]) await atAuthority(context, "DELETE", peer);
      sendJson(response, 200, { removed: name });
      return;
    }
    if (incoming.method !== "PUT" || root === undefined)
      throw new Refused(404, "not-found", `there is no ${incoming.method} of hosts/${name}: see the API reference`);
    const join = await readJoin(incoming);
    const joined = await admit(context, root, { name, join, ...(by === undefined ? {} : { by }) });
    sendJson(response, 200, joined, { "cache-control": "no-store" });
  } catch (error) {
    if (error instanceof RefusedAsSaid) return sendJson(response, error.status, error.body);
    if (!(error instanceof Refused)) throw error;
    sendRefusal(response, error.status, error.code, error.message);
  }
};

/** The model's own words, with the places that they are about. */
class RefusedAsSaid extends Error {
  readonly status: number;
  readonly body: Json;
  constructor({ status, body }: ControllerResponse) {
    super(`the model is not changed: status ${status}`);
    this.status = status;
    this.body = body;
  }
}

const joinShape =
  '{"address": "<IPv4>", "host": "<SHA-256 of its token>", "agent": "<of another token>", "as": {"cluster", "tags", "flavor", "domain", "account"}}';

const readJoin = async ({ body }: PeerRequest): Promise<HostJoin> => {
  const text = await readBody(body, longestBody);
  const json = text.ok ? parseJson(text.value) : text;
  const join = json.ok ? readAs(hostJoin, json.value) : json.error;
  if (
    typeof join !== "string" &&
    !(join instanceof Fault) &&
    parseIpv4(join.address) !== null &&
    join.agent !== join.host &&
    isOne(join.as)
  )
    return join;
  const why = join instanceof Fault ? `; ${join}` : "";
  throw new Refused(
    400,
    "bad-request",
    `the body is ${joinShape}; \`agent\` and \`as\` may be absent, and each field of \`as\`, of which \`account\` is one of \`domain\`${why}`,
  );
};
const isOne = (as: JoinsAs | undefined): boolean =>
  as === undefined ||
  (Object.keys(as).some((key) => known.has(key)) && (as.account === undefined || as.domain !== undefined));
const known: ReadonlySet<string> = new Set([
  "cluster",
  "tags",
  "flavor",
  "domain",
  "account",
] satisfies (keyof JoinsAs)[]);

interface Admission {
  readonly name: string;
  readonly join: HostJoin;
  readonly by?: Asker;
}

/** What a machine joins as is in the model before anybody has its tokens; that it may be there is asked before they are enrolled. */
const write = async (
  { request }: HostContext,
  { name, join: { as }, by }: Admission,
  dryRun: boolean,
): Promise<{ readonly as?: JoinsAs }> => {
  if (as === undefined) return {};
  const { cluster, tags, flavor, domain, account } = as;
  const wished: JoinsAs = {
    ...(cluster === undefined ? {} : { cluster }),
    ...(tags === undefined ? {} : { tags }),
    ...(flavor === undefined ? {} : { flavor }),
    ...(domain === undefined ? {} : { domain }),
    ...(account === undefined ? {} : { account }),
  };
  const asked: ControllerRequest = {
    method: "PUT",
    path: `root/hosts/${name}`,
    joining: { host: name, ...wished },
    dryRun,
    ...(by === undefined ? {} : { by }),
  };
  const answer = (await request(asked as unknown as Json)) as unknown as ControllerResponse;
  if (answer.status !== 200) throw new RefusedAsSaid(answer);
  return { as: wished };
};

const admit = async (context: HostContext, root: RootPart, admission: Admission): Promise<HostJoining> => {
  const { name, join } = admission;
  const { address, host, agent } = join;
  const { peers } = JSON.parse(await readFile(context.configuration.peersFile, "utf8")) as PeerBook;
  const own = new Set([`host.${name}`, `agent.${name}`]);
  const underlay = parseNetwork(root.management);
  const number = parseIpv4(address) ?? -1;
  if (underlay === null || number <= underlay.first || number >= underlay.last)
    throw new Refused(
      409,
      "conflict",
      `${address} is not on the underlay, ${root.management}, where hosts find each other`,
    );
  const other = Object.entries(peers).find(([peer, entry]) => {
    const at = parsePeerAddress(entry);
    return !own.has(peer) && at.ok && at.value.host === address;
  });
  if (other !== undefined)
    throw new Refused(409, "conflict", `${address} is the address of ${other[0]}: ${name} needs one of its own`);
  const endsAtMs = Date.now() + tokenHours * 3_600_000;
  const desire = (role: "host" | "agent", of: string): DesiredEnrolment => ({
    hash: of,
    cell: cellName("root"),
    grants: [
      {
        name: peerName(`${role}.${name}`),
        role,
        addresses: [ipv4(address)],
        ...(role === "agent" ? { ports: agentPorts } : {}),
      },
    ],
    endsAtMs,
  });
  await write(context, admission, true);
  await atAuthority(context, "PUT", `host.${name}`, desire("host", host));
  if (agent !== undefined) await atAuthority(context, "PUT", `agent.${name}`, desire("agent", agent));
  const as = await write(context, admission, false);
  return {
    authority: `${root.authority.address}:${ports.enrolment}`,
    fingerprint: root.authority.fingerprint,
    peers: Object.fromEntries(first.flatMap((peer) => (peers[peer] === undefined ? [] : [[peer, peers[peer]]]))),
    ends: new Date(endsAtMs).toISOString(),
    replaces: Object.keys(peers).filter((peer) => own.has(peer)),
    ...as,
  };
};

const atAuthority = async (
  { configuration }: HostContext,
  method: "PUT" | "DELETE",
  peer: string,
  desire?: DesiredEnrolment,
): Promise<void> => {
  const path = `/enrolments/${enrolmentId(peer)}`;
  const body = desire === undefined ? {} : { body: JSON.stringify(desire) };
  const headers = { "content-type": "application/json" };
  const answer = await peerRequest(configuration, peerName("authority"), { method, path, headers, ...body }).catch(
    (error: Error) => {
      throw new Refused(502, "unreachable", `the authority does not answer: ${error.message}`);
    },
  );
  if (answer.status === 204) return;
  const refusal = parseJson(await answer.text());
  const why = refusal.ok ? (refusal.value as unknown as Partial<Refusal>).error?.message : refusal.error;
  throw new Refused(
    409,
    "conflict",
    `the authority does not have ${peer} enrolled: ${why ?? `status ${answer.status}`}`,
  );
};
