import type { FastifyInstance } from "fastify";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AuditPart, AuditView, ServiceAuditRecord } from "../../model/contract/audit/audit.ts";
import { auditPart } from "../../model/contract/audit/values.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { cellOfController } from "../../runtime/identity/tickets.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { findPeer } from "../../runtime/transport/peers.ts";
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

/** @param names of the cells that a credential may see */
export function registerAudit(
  app: FastifyInstance,
  way: Way,
  names: (authorization: string) => Promise<readonly string[]>,
): void {
  serveRoute(app, "readAudit", async ({ query, request }): Promise<AuditView> => {
    const { service, after, limit = usual } = query;
    if (after !== undefined && service === undefined)
      throw refused(400, "bad-request", "after is a number of one service's records: say which, as service=tenancy");
    const authorization = request.headers.authorization ?? "";
    const asked = new URLSearchParams(request.url.split("?", 2)[1] ?? "");
    asked.delete("service");
    const all = await sources(way.configuration, () => names(authorization));
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
    return merged(answers, after === undefined ? limit : null);
  });
}

async function sources(
  configuration: ProcessConfiguration,
  names: () => Promise<readonly string[]>,
): Promise<readonly PeerName[]> {
  const isThere = (await findPeer(configuration, tenancy)).ok;
  return [...(isThere ? [tenancy] : []), ...(await names()).map(controllerOf)];
}

/** Null: it does not answer, or is of a version that keeps no records. */
async function partOf(
  { configuration, present }: Way,
  service: PeerName,
  query: string,
  authorization: string,
): Promise<AuditPart | null> {
  const cell = cellOfController(service);
  try {
    if (cell === null) {
      const { status, text } = await askTenancy(configuration, {
        ...{ method: "GET", path: `/audit?${query}`, headers: { authorization }, body: null, waitMs: patienceMs },
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
      one.service === other.service ? one.n - other.n : one.time < other.time ? -1 : one.time > other.time ? 1 : 0,
    );
  return {
    sources: heard.map(({ service, part: { first, next, hash } }) => ({ service, first, next, hash })),
    records: limit === null ? records : records.slice(-limit),
    silent: answers.flatMap(({ service, part }) => (part === null ? [service] : [])),
  };
}
