import type { FastifyInstance } from "fastify";
import { kindOf } from "../../core/documents/permissions.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AuditPart, AuditView, ServiceAuditRecord } from "../../model/contract/audit/audit.ts";
import { beginning } from "../../model/contract/audit/chain.ts";
import { inOrder } from "../../model/contract/audit/rings.ts";
import { auditPart } from "../../model/contract/audit/values.ts";
import { isAuthorized } from "../../runtime/http/bearer.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { cellOfController } from "../../runtime/identity/tickets.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { recordsPath } from "../../runtime/observation/asked-by.ts";
import { findPeer, listPeers } from "../../runtime/transport/peers.ts";
import { controllerOf } from "../requests/cell-names.ts";
import type { Way } from "../requests/forward.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { askTenancy } from "./tenants.ts";

/*
 * Who changed what, of all services: each answers for itself, and decides what whoever asks may see of it. The gateway merges.
 */
const patienceMs = 20_000;
const usual = 200;
const tenancy = peerName("tenancy");

/** Of services that have no users: what the operator has them do by no document. */
const others: readonly string[] = [
  "agent",
  "ha-manager",
  "storage-manager",
  "placer",
  "address-manager",
  "dns-manager",
  "cell-manager",
  "directory",
  "presence",
  "host",
  "network-view-manager",
];

/** @param names of the cells that a credential may see */
export function registerAudit(
  app: FastifyInstance,
  way: Way,
  names: (authorization: string) => Promise<readonly string[]>,
): void {
  const { credentialHashes = [] } = way.configuration.gateway ?? {};
  serveRoute(app, "readAudit", async ({ query, request }): Promise<AuditView> => {
    const { service, after, chain, limit = usual } = query;
    if (after !== undefined && service === undefined)
      throw refused(400, "bad-request", "after is a number of one service's records: say which, as service=tenancy");
    if (chain !== undefined && service === undefined)
      throw refused(400, "bad-request", "chain is one of a service: say of which, as service=tenancy");
    const authorization = request.headers.authorization ?? "";
    const asked = new URLSearchParams(request.url.split("?", 2)[1] ?? "");
    asked.delete("service");
    const isOperator = isAuthorized(authorization, credentialHashes);
    const all = await sources(way.configuration, () => names(authorization), isOperator);
    const wanted = service === undefined ? all : all.filter((each) => each === service);
    if (wanted.length === 0)
      throw refused(
        404,
        "not-found",
        `no service "${service}" keeps records that you may see; there are: ${all.join(", ")}`,
      );
    const answers = await Promise.all(
      wanted.map(async (each) => ({ service: each, part: await partOf(way, each, `${asked}`, authorization) })),
    );
    const told = answers.filter(
      ({ service: each, part }) => !isOther(each) || service !== undefined || !isNothing(part),
    );
    return merged(told, after === undefined ? limit : null);
  });
}

async function sources(
  configuration: ProcessConfiguration,
  names: () => Promise<readonly string[]>,
  isOperator: boolean,
): Promise<readonly PeerName[]> {
  const isThere = (await findPeer(configuration, tenancy)).ok;
  const more = isOperator ? (await Promise.all(others.map((kind) => ofKind(configuration, kind)))).flat() : [];
  return [...(isThere ? [tenancy] : []), ...(await names()).map(controllerOf), ...more];
}
const ofKind = async (configuration: ProcessConfiguration, kind: string): Promise<readonly PeerName[]> =>
  (await listPeers(configuration, kind)).filter((peer) => kindOf(peer) === kind);
const isOther = (service: PeerName): boolean => others.includes(kindOf(service) ?? "");
/** Of most of them nobody ever asks such a thing; one of a version before keeps no records. */
const isNothing = (part: AuditPart | null): boolean =>
  part !== null && part.next === 1 && (part.refusals?.next ?? 1) === 1;
const none: AuditPart = { first: 1, next: 1, hash: beginning, records: [] };

/** Null: it does not answer, or is of a version that keeps no records. */
async function partOf(
  { configuration, present }: Way,
  service: PeerName,
  query: string,
  authorization: string,
): Promise<AuditPart | null> {
  const cell = cellOfController(service);
  try {
    if (isOther(service)) {
      const answer = await peerRequest(configuration, service, {
        method: "GET",
        path: `${recordsPath}?${query}`,
        signal: AbortSignal.timeout(patienceMs),
      });
      const text = await answer.text();
      if (answer.status === 404 || answer.status === 403) return none;
      return answer.status === 200 ? answerAs(auditPart, text, service) : null;
    }
    if (cell === null) {
      const { status, text } = await askTenancy(configuration, {
        method: "GET",
        path: `/audit?${query}`,
        headers: { authorization },
        body: null,
        waitMs: patienceMs,
      });
      return status === 200 ? answerAs(auditPart, text, service) : null;
    }
    const answer = await present(cell, authorization, (shown) =>
      peerRequest(configuration, service, {
        method: "GET",
        path: `/cells/${encodeURIComponent(cell)}/audit?${query}`,
        headers: { authorization: shown },
        signal: AbortSignal.timeout(patienceMs),
      }),
    );
    const text = await answer.text();
    return answer.status === 200 ? answerAs(auditPart, text, service) : null;
  } catch (error) {
    // Who asks too much at once is told so, and not that nothing is there.
    if (error instanceof RefusedError && error.statusCode === 429) throw error;
    return null;
  }
}

/** By time; of one service in its own order, whatever its clock did. @param limit the newest so many; null: all */
function merged(
  answers: readonly { readonly service: PeerName; readonly part: AuditPart | null }[],
  limit: number | null,
): AuditView {
  const heard = answers.flatMap(({ service, part }) => (part === null ? [] : [{ service, part }]));
  const records = heard
    .flatMap(({ service, part }) => part.records.map((record): ServiceAuditRecord => ({ ...record, service })))
    .sort((one, other) =>
      one.service === other.service ? inOrder(one, other) : one.time < other.time ? -1 : one.time > other.time ? 1 : 0,
    );
  return {
    sources: heard.map(({ service, part: { records: _, ...head } }) => ({ service, ...head })),
    records: limit === null ? records : records.slice(-limit),
    silent: answers.flatMap(({ service, part }) => (part === null ? [service] : [])),
  };
}
