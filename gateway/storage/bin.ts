import { readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { isBinFileName } from "../../core/documents/bin.ts";
import type { BinEntry, BinList, MissingServer, ServerAdopted } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { adoptedLeases, binnedFile } from "../../model/contract/operator/storage.ts";
import { list, record, type Schema } from "../../model/contract/schema.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { pageFor } from "../requests/paging.ts";
import { answerAs, answerOr, refusalIn } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { type Asked, serveRoute } from "../requests/serve.ts";

/**
 * The bins of the storage servers, for the operator alone: what is in them, a file brought back, a file emptied. Each server
 * answers for its own; one that is away is named.
 */
const answerTimeoutMs = 5_000;

export function registerBin(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "listBin", async ({ query }, reply) => {
    const { files, missing } = await listAll(configuration);
    return { files: pageFor("listBin", files, query, reply), missing };
  });
  const tell = async <T>(
    method: string,
    { server, file }: Asked<"emptyBin">["parameters"],
    schema: Schema<T>,
  ): Promise<T> => {
    await requireServer(configuration, server);
    if (!isBinFileName(file)) throw refused(404, "bin/unknown", `"${`${file}`.slice(0, 80)}" names no file of a bin`);
    return ask(configuration, server, method, `/bin/${file}`, schema);
  };
  serveRoute(app, "restoreFromBin", async ({ parameters }) => {
    const restored = await tell("POST", parameters, binnedFile);
    return { ...restored, server: parameters.server };
  });
  serveRoute(app, "emptyBin", async ({ parameters: { server, file } }) => {
    await tell("DELETE", { server, file }, record<object>({}));
    return { server, file };
  });
}

/** An operator takes what a storage server has that is older. */
export function registerAdoption(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "adoptServer", async ({ parameters: { server } }): Promise<ServerAdopted> => {
    await requireServer(configuration, server);
    const leases = await ask(configuration, server, "POST", "/adopt", adoptedLeases);
    return { server, leases };
  });
}

async function requireServer(configuration: ProcessConfiguration, server: string): Promise<void> {
  const servers = await serversOf(configuration);
  if (servers.includes(server)) return;
  const known = servers.length === 0 ? "there is none" : `there are ${servers.join(", ")}`;
  throw refused(404, "server/unknown", `there is no storage server "${server.slice(0, 80)}"; ${known}`);
}

async function listAll(configuration: ProcessConfiguration): Promise<BinList> {
  const files: BinEntry[] = [];
  const missing: MissingServer[] = [];
  await Promise.all(
    (await serversOf(configuration)).map(async (server) => {
      try {
        const found = await ask(configuration, server, "GET", "/bin", list(binnedFile));
        files.push(...found.map((file) => ({ ...file, server })));
      } catch (error) {
        missing.push({ server, why: (error as Error).message });
      }
    }),
  );
  // What was deleted last comes first.
  files.sort((one, other) => (one.deleted < other.deleted ? 1 : one.deleted > other.deleted ? -1 : 0));
  return { files, missing };
}

async function serversOf({ peersFile }: ProcessConfiguration): Promise<readonly string[]> {
  const { peers } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  const names = Object.keys(peers).filter((peer) => peer.startsWith("agent."));
  return names.map((peer) => peer.slice("agent.".length)).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** Throws a refusal: the server's own, or that it does not answer. */
async function ask<T>(
  configuration: ProcessConfiguration,
  server: string,
  method: string,
  path: string,
  schema: Schema<T>,
): Promise<T> {
  const unreachable = (why: string) =>
    refused(503, "bin/unreachable", `the storage server ${server} does not answer: ${why}`);
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const answer = await askPeer(configuration, peerName(`agent.${server}`), { method, path, signal }).catch(
    (error: Error) => {
      throw unreachable(error.message);
    },
  );
  const text = await answer.text();
  if (answer.status === 200) return answerOr(() => answerAs(schema, text, `agent.${server}`), "bin/unreadable");
  const { code = "bin/failed", message = "it failed; its log says why" } = refusalIn(text);
  throw refused(answer.status, code, message);
}
