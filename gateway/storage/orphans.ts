import { readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { rootCell } from "../../core/documents/cells.ts";
import type { CellSummary, MissingService, OrphanList, Refusal, ServiceOrphans } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { leftoversOf } from "../../model/contract/operator/storage.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { leftoversPath } from "../../runtime/observation/leftovers.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { isBeside } from "../requests/beside.ts";
import { controllerOf } from "../requests/cell-names.ts";
import { pageFor } from "../requests/paging.ts";
import { answerAs, answerOr, refusalIn } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

/**
 * Documents that stay in force although their client does not desire them any more, or not so, since its store was lost or is
 * older: for the operator alone. Each service answers for its own; one that is away is named.
 */
const answerTimeoutMs = 10_000;
type Said = Omit<ServiceOrphans, "service">;

export function registerOrphans(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "listOrphans", async ({ query }, reply) => {
    const { services, missing } = await everywhere(configuration, "GET", leftoversPath);
    return { services: pageFor("listOrphans", services, query, reply), missing };
  });
  serveRoute(app, "releaseOrphans", async ({ parameters: { peer }, request }) => {
    const path = `${leftoversPath}?peer=${encodeURIComponent(peer)}`;
    await requireName(configuration, peer);
    if (peer === controllerOf(rootCell)) await requireRootModel(configuration, request.headers.authorization ?? "");
    return everywhere(configuration, "POST", path);
  });
  serveRoute(app, "adoptOrphan", async ({ parameters: { service, peer }, query: { key } }) => {
    await requireName(configuration, service);
    const path = `${leftoversPath}?${new URLSearchParams({ peer, adopt: key })}`;
    return { ...(await ask(configuration, service, "POST", path)), service } satisfies ServiceOrphans;
  });
  serveRoute(app, "endOrphans", async ({ parameters: { service, peer }, request }) => {
    await requireName(configuration, service);
    const query = new URLSearchParams(request.url.split("?", 2)[1] ?? "");
    query.set("peer", peer);
    const found = await ask(configuration, service, "DELETE", `${leftoversPath}?${query}`);
    return { ...found, service } satisfies ServiceOrphans;
  });
}

/**
 * A controller that has no model and counts makes everything anew. Of other cells that is what an operator may want; the root
 * cell's would make a second management, at the addresses of the one that runs.
 */
async function requireRootModel(configuration: ProcessConfiguration, authorization: string): Promise<void> {
  const root = controllerOf(rootCell);
  const asked = { method: "GET", path: `/cells/${rootCell}`, headers: { authorization } };
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const answer = await askPeer(configuration, root, { ...asked, signal }).catch((error: Error) => {
    throw refused(
      503,
      "orphans/unreachable",
      `"${root}" does not answer, so what its store knows is not known: ${error.message}`,
    );
  });
  const said = JSON.parse(await answer.text()) as Partial<CellSummary & Refusal>;
  if (answer.status !== 200)
    throw refused(
      answer.status,
      said.error?.code ?? "orphans/failed",
      said.error?.message ?? "it failed; its log says why",
    );
  if (said.version !== 0) return;
  const message = `the store of ${root} knows nothing of the cloud: if it counted, it would make a second management at the addresses of the one that runs. Give it a copy of its store first: \`cells management return FILE ${root}\``;
  throw refused(409, "orphans/blank", message);
}

/** What every service has left over, after it has heard this. */
export async function everywhere(
  configuration: ProcessConfiguration,
  method: string,
  path: string,
): Promise<OrphanList> {
  const missing: MissingService[] = [];
  const answers = (await namesIn(configuration))
    .filter((service) => service !== configuration.name)
    .map(async (service): Promise<readonly ServiceOrphans[]> => {
      try {
        const said = await ask(configuration, service, method, path);
        return said.clients.length + said.receivers.length === 0 ? [] : [{ ...said, service }];
      } catch (error) {
        missing.push({ service, why: (error as Error).message });
        return [];
      }
    });
  return { services: (await Promise.all(answers)).flat(), missing };
}

async function namesIn({ peersFile }: ProcessConfiguration): Promise<readonly string[]> {
  const { peers } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  return Object.keys(peers)
    .filter((name) => !isBeside(name))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

async function requireName(configuration: ProcessConfiguration, name: string): Promise<void> {
  const names = await namesIn(configuration);
  // Who is gone for good is in no book, and its documents may be left, or what it last said of a fork.
  if (names.includes(name) || /^(?:controller|host|agent)\.[a-z0-9.-]+$/.test(name)) return;
  throw refused(
    404,
    "orphans/unknown",
    `there is no service "${name.slice(0, 80)}"; \`cells orphans list\` names them`,
  );
}

/** Throws a refusal: the service's own, or that it does not answer. */
async function ask(configuration: ProcessConfiguration, service: string, method: string, path: string): Promise<Said> {
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const answer = await askPeer(configuration, peerName(service), { method, path, signal }).catch((error: Error) => {
    throw refused(503, "orphans/unreachable", `"${service}" does not answer: ${error.message}`);
  });
  const text = await answer.text();
  if (answer.status === 200) return answerOr(() => answerAs(leftoversOf, text, service), "orphans/unreadable");
  const { code = "orphans/failed", message = "it failed; its log says why" } = refusalIn(text);
  throw refused(answer.status, code, message);
}
