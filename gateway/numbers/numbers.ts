import type { FastifyInstance } from "fastify";
import type { InstallationStatus } from "../../model/api.ts";
import { type CellCounters, hostCounters } from "../../model/contract/operator/numbers/counters.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers, readLives } from "../../runtime/transport/peers.ts";
import { type Connections, timeoutWithVmsMs } from "../observation/connections.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { serveRoute } from "../requests/serve.ts";
import { countersOf, createHostCounters } from "./counters.ts";
import { HistoryRing, MachineRing } from "./history.ts";
import { everyMs } from "./series.ts";

export interface NumbersOptions {
  readonly configuration: ProcessConfiguration;
  readonly connections: Connections;
  /** Where services are processes of this machine all answer at once. */
  readonly isSupervised: boolean;
  readonly status: () => Promise<InstallationStatus>;
  isOperator(authorization: string): boolean;
  /** The cell's model with `$state`, as whoever shows this may read it. Rejects with a refusal. */
  model(cell: string, authorization: string, signal: AbortSignal): Promise<Json>;
  /** Rejects with a refusal where whoever shows this may read no VM there. */
  requireVm(cell: string, path: string, authorization: string, signal: AbortSignal): Promise<void>;
}
/** How the topic `counters:NAME` is read. */
export type ReadCounters = (cell: string, authorization: string, signal: AbortSignal) => Promise<CellCounters>;

const processTimeoutMs = 5_000;
const patienceMs = 30_000;

/** `GET /cells/{cell}/counters` and `GET /history`. */
export function registerNumbers(app: FastifyInstance, options: NumbersOptions): ReadCounters {
  const { configuration, connections, status } = options;
  const timeoutMs = options.isSupervised ? processTimeoutMs : timeoutWithVmsMs;
  const said = createHostCounters({
    list: () => listPeers(configuration, "host."),
    nowMs: () => performance.now(),
    ask: async (host) => {
      const signal = AbortSignal.timeout(timeoutMs);
      const asked = { method: "GET", path: "/counters", signal, connection: connections.to(host) };
      const answer = await peerRequest(configuration, host, asked);
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`"${host}" answered ${answer.status} when asked for its counters`);
      return answerAs(hostCounters, text, host);
    },
  });
  const read: ReadCounters = async (cell, authorization, signal) => {
    // Who may not read the model has no host asked.
    const document = await options.model(cell, authorization, signal);
    const isOperator = options.isOperator(authorization);
    return countersOf(await said(), { cell, document, isOperator });
  };
  serveRoute(app, "readCounters", ({ parameters: { cell }, request }) =>
    read(cell, request.headers.authorization ?? "", AbortSignal.timeout(patienceMs)),
  );
  const ring = new HistoryRing();
  const machines = new MachineRing();
  const lives = () => readLives(configuration).catch(() => () => "");
  let isAsking = false;
  const look = async (): Promise<void> => {
    // A status that takes longer than that is one moment alone.
    if (isAsking) return;
    isAsking = true;
    const [said, lifeOf] = await Promise.all([status().catch(() => null), lives()]);
    ring.add(said, Date.now());
    machines.add(said, lifeOf, Date.now());
    isAsking = false;
  };
  let timer: NodeJS.Timeout | null = null;
  app.addHook("onReady", async () => {
    timer = setInterval(() => void look(), everyMs).unref();
  });
  app.addHook("onClose", async () => {
    if (timer !== null) clearInterval(timer);
  });
  serveRoute(app, "readHistory", () => ring.read());
  serveRoute(app, "readMachineHistory", async ({ parameters: { cell }, query: { vm }, request }) => {
    const signal = AbortSignal.timeout(patienceMs);
    await options.requireVm(cell, vm, request.headers.authorization ?? "", signal);
    return machines.read(cell, vm, (await lives())(cell));
  });
  return read;
}
