import { request as askSocket } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { BackupList, KeptBackup, MissingServer } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { namesIn } from "../../runtime/controller/backups/record.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { passBack } from "../requests/forward.ts";
import { pageFor } from "../requests/paging.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

/**
 * A backup of the management passes through here, and stays closed: who may have one says the root cell's controller (on a
 * testbed of processes its supervisor), whose order every process checks for itself, and each part is sealed before it leaves
 * its process. What is passed on is bytes.
 */
const partIdleMs = 120_000;
const orderIdleMs = 30_000;
const listMs = 20_000;

export function registerBackup(
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  supervisorSocket: string | null,
): void {
  const askSupervisor = (path: string, request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    throughSocket(supervisorSocket ?? "", path, request, reply);
  serveRoute(app, "orderBackup", async ({ request }, reply) => {
    if (supervisorSocket !== null) return askSupervisor("/backup-order", request, reply);
    const answer = await peerRequest(configuration, peerName("controller.root"), {
      method: "POST",
      path: "/cells/root/backup",
      body: bodyOf(request),
      idleTimeoutMs: orderIdleMs,
      headers: { authorization: String(request.headers.authorization) },
    }).catch((error: Error) => {
      throw refused(502, "controller-unreachable", `the controller of the root cell does not answer: ${error.message}`);
    });
    reply.hijack();
    await passBack(answer, reply.raw);
  });
  serveRoute(app, "readBackupPart", async ({ parameters: { name }, request }, reply) => {
    if (name === "supervisor" && supervisorSocket !== null) return askSupervisor("/backup", request, reply);
    const known = await listPeers(configuration, name);
    if (!known.includes(peerName(name))) throw refused(404, "not-found", `there is no process "${name.slice(0, 80)}"`);
    const answer = await peerRequest(configuration, peerName(name), {
      method: "POST",
      path: "/backup",
      body: bodyOf(request),
      idleTimeoutMs: partIdleMs,
    }).catch((error: Error) => {
      throw refused(502, "unreachable", error.message);
    });
    reply.hijack();
    await passBack(answer, reply.raw);
  });
  serveRoute(app, "listBackups", async ({ query }, reply) => {
    const { backups, missing } = await keptBackups(configuration);
    return { backups: pageFor("listBackups", backups, query, reply), missing };
  });
  serveRoute(app, "readBackup", async ({ parameters: { name } }, reply) => {
    const { backups } = await keptBackups(configuration);
    const servers = backups.find((each) => each.name === name)?.servers;
    if (servers === undefined)
      throw refused(404, "not-found", `no storage server that answers has a backup "${name.slice(0, 40)}"`);
    for (const server of servers) {
      const asked = { method: "GET", path: `/backups/${name}`, idleTimeoutMs: partIdleMs };
      const answer = await peerRequest(configuration, peerName(`agent.${server}`), asked).catch(() => null);
      if (answer?.status === 200) {
        reply.hijack();
        return passBack(answer, reply.raw);
      }
      answer?.body.destroy();
    }
    throw refused(502, "unreachable", `${servers.join(", ")} had the backup a moment ago, and cannot give it now`);
  });
}

/** What each storage server has. Asked of them alone, so that it is known when the root cell is lost. */
const keptBackups = async (configuration: ProcessConfiguration): Promise<BackupList> => {
  const agents = await listPeers(configuration, "agent.");
  const found = new Map<string, { name: string; bytes: number; servers: string[] }>();
  const missing: MissingServer[] = [];
  await Promise.all(
    agents.map(async (agent) => {
      const server = agent.slice("agent.".length);
      try {
        const signal = AbortSignal.timeout(listMs);
        const answer = await peerRequest(configuration, agent, { method: "GET", path: "/backups", signal });
        if (answer.status !== 200) throw new Error(`it answers ${answer.status}`);
        for (const { name, bytes } of keptIn(await answer.text())) {
          const backup = found.get(name) ?? { name, bytes, servers: [] };
          found.set(name, backup);
          backup.servers.push(server);
        }
      } catch (error) {
        missing.push({ server, why: (error as Error).message });
      }
    }),
  );
  const backups = [...found.values()].sort((one, other) => one.name.localeCompare(other.name, "en"));
  for (const { servers } of backups) servers.sort();
  return { backups, missing };
};

/** What is called as no backup is, or has no size, is passed over: one server's word hides nobody else's backups. */
const keptIn = (text: string): readonly KeptBackup[] => {
  const list = JSON.parse(text) as Json;
  const names = new Set(namesIn(list, Number.POSITIVE_INFINITY));
  const sizes = new Map((list as unknown as readonly (KeptBackup | null)[]).map((each) => [each?.name, each?.bytes]));
  return [...names].flatMap((name) => {
    const bytes = sizes.get(name);
    return Number.isSafeInteger(bytes) ? [{ name, bytes: Number(bytes) }] : [];
  });
};

const bodyOf = ({ body }: FastifyRequest): Buffer => (body instanceof Buffer ? body : Buffer.alloc(0));

/** The supervisor's answer as it comes. */
const throughSocket = async (
  socketPath: string,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> => {
  const { authorization = "" } = request.headers;
  const asking = askSocket({ socketPath, method: "POST", path, timeout: partIdleMs, headers: { authorization } });
  asking.once("timeout", () => asking.destroy(new Error("it is silent")));
  const answer = await new Promise<Parameters<typeof passBack>[0]>((resolve, reject) => {
    asking.once("error", (error) => reject(refused(503, "supervisor", `the supervisor: ${error.message}`)));
    asking.once("response", (body) =>
      resolve({ status: body.statusCode ?? 500, headers: body.headers, body, text: () => Promise.resolve("") }),
    );
    Readable.from([bodyOf(request)]).pipe(asking);
  });
  reply.hijack();
  await passBack(answer, reply.raw);
};
