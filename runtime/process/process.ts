import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Gathering, mayWait } from "../../core/distribution/inputs/gathering.ts";
import { InputQueue } from "../../core/distribution/inputs/input-queue.ts";
import { measureDistribution } from "../../core/distribution/measure.ts";
import { type BatchEffects, carryOutBatch } from "../../core/distribution/node/batch.ts";
import { createNode, type Node, stepNode } from "../../core/distribution/node/node.ts";
import { type IsThere, instanceOf, leftoversOf, orphansOf } from "../../core/distribution/node/release.ts";
import type { LogLine, NodeInput, NodeOutput } from "../../core/distribution/node/types.ts";
import type { AdoptRequest, Instant, Service } from "../../core/env.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { AuditEntry, AuditRecord, Ring } from "../../model/contract/audit/audit.ts";
import { headOf } from "../../model/contract/audit/rings.ts";
import type { Json } from "../../model/json/json.ts";
import type { PeerHandler } from "../http/peer-handler.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { boundToLife, breakAtFailure } from "../life/role-life.ts";
import { stopAtSignals } from "../life/signals.ts";
import type { AuditAccess } from "../observation/asked-by.ts";
import type { LogEvent } from "../observation/events.ts";
import type { LeftoversAccess } from "../observation/leftovers.ts";
import { createObserver, type Observer } from "../observation/observer.ts";
import { readAudit } from "../observation/read-audit.ts";
import { createServiceNumbers, type ServiceNumbers } from "../observation/service-numbers.ts";
import { type TransportLimits, transportLimits } from "../transport/connections/connection.ts";
import { readWhoIsThere } from "../transport/peers.ts";
import { watchMembers } from "../transport/peers-watch.ts";
import { createTransport, type Transport } from "../transport/transport.ts";
import { removeLeftCopy } from "./left-copy.ts";
import { openStore, type Store } from "./store.ts";

/**
 * A core service as a process: the real `Env`. Inputs queue up while a step or a commit is under way; those that wait are
 * stepped in bounded batches (`core/distribution/inputs/input-queue.ts`), each with one commit, and only then does anything of it leave. A failing disk
 * therefore ends the process before anyone was told what is not durable.
 */
export interface RunningService {
  /** Asks the service; rejects when the process stops first. @param by who has it done, where that is to have a record in the same commit */
  request(request: Json, by?: AuditEntry): Promise<Json>;
  /** Records of a chain of the service's audit from this number on, in their order, as far as they are durable. */
  audit(ring: Ring, from: number, most: number): readonly AuditRecord[];
  /** Every line that the service or its state distribution logs, after it is durable. */
  subscribeLog(listener: (event: LogEvent) => void): () => void;
  /** Of the process: `GET /metrics` and `GET /events` answer from it. */
  readonly observer: Observer;
  /**
   * Says goodbye, closes everything. Idempotent. Without `goodbye` it ends as by a crash, for a restart at once: its
   * actual state stays, marked old, until the next life has said what is so.
   */
  stop(options?: { readonly goodbye: boolean }): Promise<void>;
  /** The life of its host begins, as Presence counts them; a later one makes all that is said new. */
  beginLife(life: number): void;
  /** Heard otherwise than from the Presence group itself: that life of a peer's host is over by the group's word. */
  declaredDead(peer: PeerName, life: number): void;
  /** Port of state distribution, of use when the configuration asked for port 0. */
  readonly distributionPort: number;
}
export interface ServiceRun<State> {
  readonly configuration: ProcessConfiguration;
  readonly service: Service<State>;
  readonly onLog?: (event: LogEvent) => void;
  /** The process's own, where it has more to say than this service; otherwise one is made. */
  readonly observer?: Observer;
  /**
   * False where what it reports goes on without it (machines, exports): a signal then ends it as by a crash, and its
   * actual state stays with its clients, marked old. Default: true.
   */
  readonly goodbye?: boolean;
  /** Of its connections; absent: the usual ones. */
  readonly limits?: TransportLimits;
}

interface Timer {
  readonly handle: NodeJS.Timeout;
}
type Arrived = { readonly input: NodeInput; readonly timer: Timer | null };
type Queued = Arrived & { readonly sinceMs: number };

interface Loop<State> {
  readonly node: Node<State>;
  readonly store: Store;
  readonly listeners: Set<(event: LogEvent) => void>;
  readonly timers: Map<string, Timer>;
  readonly numbers: ServiceNumbers;
  readonly requests: Map<number, { resolve: (response: Json) => void; reject: (error: Error) => void }>;
  transport: Transport | null;
  readonly queue: InputQueue<Queued>;
  readonly gathering: Gathering<Arrived>;
  /** Ends the wait of what is gathered; null: nothing is. */
  gathered: NodeJS.Timeout | null;
  scheduled: boolean;
  nextRequest: number;
  stopped: boolean;
  /** A step or a commit failed: what is in memory is no longer what is durable, and nothing more is made of it. */
  broken: boolean;
  /** Steps what waits, in the life of the role that this is. */
  readonly turn: () => void;
  /** Of what goes on beside the queue. */
  forget: () => void;
}

const instant = (): Instant => ({ ms: performance.now(), wallMs: Date.now() });

const longestTimerMs = 2 ** 31 - 1;

const enqueue = <State>(loop: Loop<State>, input: NodeInput, timer: Timer | null = null): void => {
  if (loop.stopped || loop.broken) return;
  const { node, gathering } = loop;
  const items = gathering.take({ input, timer }, () => mayWait(node, input));
  if (items.length > 0) push(loop, items);
  else loop.gathered ??= setTimeout(() => letGo(loop), node.service.gathers?.forMs);
};
/** What was gathered has waited on purpose, and is no delay of the loop. */
const push = <State>(loop: Loop<State>, items: readonly Arrived[]): void => {
  const sinceMs = performance.now();
  for (const item of items) loop.queue.push({ ...item, sinceMs });
  schedule(loop);
};
const letGo = <State>(loop: Loop<State>): void => {
  loop.gathered = null;
  if (loop.stopped || loop.broken) return;
  push(loop, loop.gathering.letGo());
};
const schedule = <State>(loop: Loop<State>): void => {
  if (loop.scheduled) return;
  loop.scheduled = true;
  setImmediate(loop.turn);
};

/** Set at once and not after the commit: a later input of the same batch may replace or cancel it. */
const setTimers = <State>(loop: Loop<State>, timers: NodeOutput["timers"]): void => {
  for (const { name, afterMs } of timers) {
    clearTimeout(loop.timers.get(name)?.handle);
    loop.timers.delete(name);
    if (afterMs === null) continue;
    const timer: Timer = {
      handle: setTimeout(
        () => enqueue(loop, { kind: "timer", name }, timer),
        Math.min(Math.max(afterMs, 0), longestTimerMs),
      ),
    };
    loop.timers.set(name, timer);
  }
};

/** True when the input is still to be stepped: a timer may have been replaced while it waited in the queue. */
const isDue = <State>(loop: Loop<State>, { input, timer }: Queued): boolean => {
  if (input.kind !== "timer") return true;
  if (loop.timers.get(input.name) !== timer) return false;
  loop.timers.delete(input.name);
  return true;
};

/** A commit takes some milliseconds: much shorter, and a burst would be all commits; much longer, and whoever asks waits. */
const batchMs = 20;

const runBatch = <State>(loop: Loop<State>): void => {
  if (loop.broken) return;
  const fullMs = performance.now() + batchMs;
  const outputs: NodeOutput[] = [];
  let oldestMs = Number.POSITIVE_INFINITY;
  for (const queued of loop.queue.batch(() => performance.now() >= fullMs)) {
    if (!isDue(loop, queued)) continue;
    oldestMs = Math.min(oldestMs, queued.sinceMs);
    const output = loop.numbers.step(queued.input, () => stepNode(loop.node, queued.input, instant()));
    setTimers(loop, output.timers);
    outputs.push(output);
  }
  if (outputs.length === 0) return;
  loop.numbers.waited(fullMs - batchMs - oldestMs);
  carryOutBatch(outputs, effectsOf(loop));
};
/** All that waits, with nothing else in between. */
const runQueue = <State>(loop: Loop<State>): void => {
  while (loop.queue.size > 0 && !loop.broken) runBatch(loop);
};

const effectsOf = <State>(loop: Loop<State>): BatchEffects => ({
  commit: (writes, durable) => {
    loop.numbers.commit(writes.size, () => loop.store.commit(writes));
    durable();
  },
  log: (line) => {
    const wallMs = Date.now();
    for (const listener of loop.listeners) listener({ ...line, wallMs });
  },
  reply: (id, response) => {
    loop.requests.get(id)?.resolve(response);
    loop.requests.delete(id);
  },
  connect: (peer) => loop.transport?.connect(peer),
  send: (connection, frames) => {
    for (const { frame } of frames) loop.numbers.sent(frame);
    loop.transport?.send(connection, frames);
  },
  close: (connection) => loop.transport?.close(connection),
});

const stopLoop = async <State>(loop: Loop<State>, goodbye: boolean): Promise<void> => {
  if (loop.stopped) return;
  if (goodbye) enqueue(loop, { kind: "stop" });
  runQueue(loop);
  loop.stopped = true;
  for (const { handle } of loop.timers.values()) clearTimeout(handle);
  clearTimeout(loop.gathered ?? undefined);
  for (const { reject } of loop.requests.values()) reject(new Error("the service is stopping"));
  loop.requests.clear();
  loop.forget();
  await loop.transport?.stop();
  loop.store.close();
};

const askLoop = <State>(loop: Loop<State>, inputOf: (id: number) => NodeInput): Promise<Json> =>
  new Promise((resolve, reject) => {
    if (loop.stopped) {
      reject(new Error("the service has stopped"));
      return;
    }
    loop.nextRequest += 1;
    loop.requests.set(loop.nextRequest, { resolve, reject });
    enqueue(loop, inputOf(loop.nextRequest));
  });

/** What makes copies is loaded when the first one is asked for: most starts need none. */
const sealedCopies = (configuration: ProcessConfiguration, store: Store): PeerHandler => {
  removeLeftCopy(configuration);
  let handler: Promise<PeerHandler> | null = null;
  return async (request, response) => {
    handler ??= import("../backup/serve.ts").then(({ createBackupHandler }) =>
      createBackupHandler(configuration, store),
    );
    await (await handler)(request, response);
  };
};

/** The step and its commit come before whatever else is due. */
const say = async <State>(loop: Loop<State>, input: NodeInput): Promise<void> => {
  enqueue(loop, input);
  await new Promise((resolve) => setImmediate(resolve));
};
const auditIn =
  <State>(loop: Loop<State>): RunningService["audit"] =>
  (...asked) =>
    loop.stopped ? [] : (loop.store.audit(...asked) as unknown as readonly AuditRecord[]);
/** What is asked here of people's verbs; of a service that has a chain of its own its edge answers. */
const auditOfLoop = <State>(loop: Loop<State>): AuditAccess => ({
  record: async (by) => {
    await askLoop(loop, (id) => ({ kind: "record", id, by }));
  },
  read: async (query) => {
    const chains = loop.node.recorder.chains();
    return chains === null ? null : readAudit(auditIn(loop), headOf(chains), query, "all");
  },
});
const leftoversOfLoop = <State>(loop: Loop<State>, { configuration, service }: ServiceRun<State>): LeftoversAccess => {
  const { distribution } = loop.node;
  const book = (): Promise<IsThere> => readWhoIsThere(configuration);
  return {
    list: async () => leftoversOf(distribution, await book()),
    release: (peer, by) => say(loop, { kind: "release", peer, by }),
    end: async (peer, keys, by) => {
      const isThere = await book();
      const all = keys ?? orphansOf(distribution, peer, isThere);
      await say(loop, {
        kind: "release",
        peer,
        keys: all,
        by,
        isGone: !isThere(peer, instanceOf(distribution.clients.get(peer))),
      });
    },
    adopt: async (client, key, by) => {
      if (service.unclaimed === undefined) return `nothing at ${configuration.name} can be adopted; a child cell can`;
      return (await askLoop(loop, (id) => ({
        kind: "request",
        id,
        by,
        request: { kind: "adopt", client, key } satisfies AdoptRequest,
      }))) as string | null;
    },
  };
};

const createLoop = <State>(node: Node<State>, store: Store, held: (by: string, ms: number) => void): Loop<State> => {
  const loop: Loop<State> = {
    node,
    store,
    numbers: createServiceNumbers(held),
    listeners: new Set(),
    timers: new Map(),
    requests: new Map(),
    transport: null,
    queue: new InputQueue(),
    gathering: new Gathering(),
    gathered: null,
    // Nothing is stepped before there is a transport to carry it out.
    scheduled: true,
    nextRequest: 0,
    stopped: false,
    broken: false,
    forget: () => undefined,
    turn: boundToLife(() => {
      loop.scheduled = false;
      runBatch(loop);
      // Whatever came over the network meanwhile is heard first.
      if (loop.queue.size > 0 && !loop.broken) schedule(loop);
    }),
  };
  return loop;
};

/**
 * Runs a service until `stop`, SIGTERM or SIGINT; the signals end the process with status 0.
 * Its store is `<configuration.directory>/state.sqlite`. Rejects when the store or the port is taken, or a file is missing.
 * A step that throws, and a disk that fails, end the process, or its role where there are several: a supervisor starts it
 * again from what is durable.
 */
export const runService = async <State>(run: ServiceRun<State>): Promise<RunningService> => {
  const { configuration, service, onLog, goodbye = true, limits = transportLimits } = run;
  const { observer = createObserver(configuration.name) } = run;
  const presence = await watchMembers(configuration, "presence.", (members) =>
    enqueue(loop, { kind: "presence", members }),
  );
  const store = openStore(join(configuration.directory, "state.sqlite"));
  const node = createNode(service, store.load(), configuration.name, instant(), randomUUID(), presence.members);
  const loop = createLoop(node, store, (by, ms) => log("process/held", { by, ms }));
  const forgetBreak = breakAtFailure(() => {
    loop.broken = true;
  });
  loop.listeners.add(observer.record);
  if (onLog !== undefined) loop.listeners.add(onLog);
  const log = (event: EventName, fields: LogLine["fields"]): void => {
    for (const listener of loop.listeners) listener({ event, fields, wallMs: Date.now() });
  };
  enqueue(loop, { kind: "start" });
  try {
    loop.transport = await createTransport(configuration, { input: (input) => enqueue(loop, input), log }, limits);
  } catch (error) {
    loop.stopped = true;
    presence.stop();
    forgetBreak();
    store.close();
    throw error;
  }
  const { transport } = loop;
  log("process/started", { role: configuration.role, port: transport.port, pid: process.pid });
  loop.scheduled = false;
  runQueue(loop);
  observer.backup = sealedCopies(configuration, store);
  const forgetNumbers = observer.measures(() => [
    ...loop.numbers.metrics({
      queued: loop.queue.size + loop.gathering.size,
      timers: loop.timers.size,
      storeBytes: store.bytes(),
    }),
    ...measureDistribution(loop.node.distribution),
    ...transport.measure(),
    ...(service.measure?.(loop.node.state) ?? []),
  ]);
  observer.leftovers = leftoversOfLoop(loop, run);
  observer.audit = auditOfLoop(loop);
  loop.forget = () => {
    observer.backup = null;
    observer.leftovers = null;
    observer.audit = null;
    forgetNumbers();
    forgetBreak();
    presence.stop();
  };
  const stop = (options: { readonly goodbye: boolean } = { goodbye }): Promise<void> => {
    unregister();
    if (!loop.stopped) log("process/stopped", { goodbye: options.goodbye });
    return stopLoop(loop, options.goodbye);
  };
  const unregister = stopAtSignals(() => stop());
  return {
    distributionPort: transport.port,
    beginLife: (life) => enqueue(loop, { kind: "life", life }),
    declaredDead: (peer, life) => enqueue(loop, { kind: "declared-dead", peer, life }),
    observer,
    request: (request, by) =>
      askLoop(loop, (id) => ({ kind: "request", id, request, ...(by === undefined ? {} : { by }) })),
    audit: auditIn(loop),
    subscribeLog: (listener) => {
      loop.listeners.add(listener);
      return () => loop.listeners.delete(listener);
    },
    stop,
  };
};
