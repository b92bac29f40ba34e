import { kindOf, mayAsk } from "../core/documents/permissions.ts";
import type { PeerName } from "../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../model/json/json.ts";
import { ok } from "../model/result.ts";
import { createBuckets } from "../runtime/http/buckets.ts";
import { readBody } from "../runtime/http/http.ts";
import type { PeerHandler } from "../runtime/http/peer-handler.ts";
import type { HypervisorDriver } from "./drivers/hypervisor/driver.ts";
import type { NetworkDriver, PacketQuestion } from "./drivers/network/driver.ts";
import type { ExecTarget } from "./host-requests.ts";
import { type PowerHand, readOrder } from "./power/power-hand.ts";
import type { HostObservation } from "./service/observation.ts";

export interface HostEdgeOptions {
  readonly hypervisor: HypervisorDriver;
  readonly network: Pick<NetworkDriver, "examine" | "counters">;
  readonly request: (request: Json) => Promise<Json>;
  /** Answer to `GET /status`. */
  readonly status: HostObservation["status"];
  readonly counters: HostObservation["counters"];
  readonly power: PowerHand;
  /** Absent: 10 s. */
  readonly patienceMs?: number;
  /** Monotonic ms. */
  readonly now?: () => number;
  /** Of one cell about packets: so many a second for good, and at once. Absent: 10 and 100. */
  readonly questions?: { readonly perSecond: number; readonly atOnce: number };
}
interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const longestBody = 1024 * 1024;
/** From the headers of a request to the end of its body. */
const bodyPatienceMs = 10_000;
const longestExecMs = 600_000;

/**
 * What a host answers over HTTPS, to controllers and the gateway alone:
 *
 * POST /exec     {vm, command, timeoutMs, incarnation?} → ExecAnswer; only the controller of that VM's cell
 * POST /examine  PacketQuestion → PacketCheck[]; 429 to a cell that asks too often
 * GET  /status   → one entry of InstallationStatus.hosts
 * GET  /counters → HostCounters
 * GET  /session, upgraded to a WebSocket: a console or a command, see `host/sessions/sessions.ts`
 *
 * POST /power    {action, controller} → PowerReading: asks another machine's management controller, for the HA Manager alone
 * GET  /identity → {uuid}, of this machine's firmware
 *
 * What is not a success is a `Refusal`.
 */
export const createHostEdge = (options: HostEdgeOptions): PeerHandler => {
  const { perSecond, atOnce } = options.questions ?? { perSecond: 10, atOnce: 100 };
  return answering(options, createBuckets(perSecond, atOnce, options.now));
};

const answering =
  (options: HostEdgeOptions, askers: ReturnType<typeof createBuckets>): PeerHandler =>
  async ({ peer, method, url, body }, response) => {
    const over = new AbortController();
    response.once("close", () => over.abort());
    const { patienceMs = bodyPatienceMs, now = () => performance.now() } = options;
    const beganMs = now();
    const read = async (): ReturnType<typeof readBody> => {
      const late = setTimeout(() => response.req.destroy(), patienceMs);
      return readBody(body, longestBody).finally(() => clearTimeout(late));
    };
    // A host that stood still finds what was sent before; who sent it may be away without a word, and gives the order to another one.
    const isLate = (): boolean => what === "POST /power" && now() - beganMs > patienceMs;
    const tooLarge = refusal(413, "too-large", `a body has at most ${longestBody} bytes`);
    const act = async (said: Awaited<ReturnType<typeof readBody>>): Promise<Answer> =>
      isLate()
        ? refusal(408, "late", "the order came late, and is void: give it again")
        : said.ok
          ? route(options, peer, what, said.value, over.signal)
          : said.error === "too-large"
            ? tooLarge
            : refusal(400, "bad-request", "the body is not UTF-8");
    const sent = Number(response.req.headers["content-length"] ?? "0");
    const what = `${method} ${url.split("?")[0]}`;
    const answer = !["gateway", "controller", "ha-manager"].includes(kindOf(peer) ?? "")
      ? refusal(
          403,
          "forbidden",
          `${peer} has no business with a host: only controllers, the gateway and the HA Manager do`,
        )
      : routes.has(what) && !mayAsk("host", peer, method, url)
        ? refusal(403, "forbidden", `${what} of a host is not for ${peer}`)
        : sent > longestBody
          ? tooLarge
          : // Each is answered from all rules that there are here, whoever's.
            what === "POST /examine" && !askers.take(peer)
            ? refusal(429, "busy", `${peer} asks this host about packets too often: ask again in a few seconds`)
            : await act(method === "POST" ? await read() : ok(""));
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer.body));
  };

const routes: ReadonlySet<string> = new Set([
  "GET /status",
  "GET /counters",
  "POST /examine",
  "POST /exec",
  "POST /power",
  "GET /identity",
]);

const refusal = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { code, message } },
});

const route = async (
  options: HostEdgeOptions,
  peer: PeerName,
  what: string,
  body: string,
  over: AbortSignal,
): Promise<Answer> => {
  switch (what) {
    case "GET /status":
      return { status: 200, body: await options.status() };
    case "GET /counters":
      return { status: 200, body: await options.counters() };
    case "POST /examine": {
      const question = parse(body);
      if (!isQuestion(question))
        return refusal(400, "bad-request", "the body is {side, source, destination, protocol, port}");
      return { status: 200, body: await options.network.examine(question) };
    }
    case "GET /identity":
      return { status: 200, body: { uuid: await options.power.uuid() } };
    case "POST /power": {
      const order = readOrder(parse(body) as JsonObject);
      if (order === null) return refusal(400, "bad-request", "the body is {action, controller}");
      return { status: 200, body: await options.power.carryOut(order, over) };
    }
    case "POST /exec":
      return exec(options, peer, parse(body));
    default:
      return refusal(404, "not-found", `${what} is not answered here: see the comment of host/edge.ts`);
  }
};

const exec = async (
  { hypervisor, request }: HostEdgeOptions,
  peer: PeerName,
  body: Readonly<Record<string, unknown>>,
): Promise<Answer> => {
  const { vm, command, timeoutMs, incarnation } = body;
  const isCommand = Array.isArray(command) && command.length > 0 && command.every((part) => typeof part === "string");
  if (typeof vm !== "string" || !isCommand)
    return refusal(400, "bad-request", 'the body is {"vm": "<uid>", "command": ["<program>", …], "timeoutMs": 10000}');
  const target = (await request({
    kind: "exec-target",
    client: peer,
    vm,
    incarnation: typeof incarnation === "number" ? incarnation : null,
  })) as unknown as ExecTarget;
  if ("refused" in target) return refusal(404, "not-found", target.refused);
  const limitMs = typeof timeoutMs === "number" && timeoutMs > 0 ? Math.min(timeoutMs, longestExecMs) : 30_000;
  try {
    return { status: 200, body: await hypervisor.exec(target.vm, command as readonly string[], limitMs) };
  } catch (error) {
    return refusal(504, "no-answer", `the command in "${vm}" gave no result: ${(error as Error).message}`);
  }
};

const parse = (body: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
};

const sides: ReadonlySet<unknown> = new Set<PacketQuestion["side"]>([
  "sender",
  "receiver",
  "behind-sender",
  "before-receiver",
]);
const isQuestion = (value: object): value is PacketQuestion => {
  const { side, source, destination, protocol, port } = value as Readonly<Record<string, unknown>>;
  return (
    sides.has(side) &&
    typeof source === "string" &&
    typeof destination === "string" &&
    (protocol === "tcp" || protocol === "udp" || protocol === "icmp") &&
    (port === null || typeof port === "number")
  );
};
