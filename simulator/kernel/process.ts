import { Gathering, mayWait } from "../../core/distribution/inputs/gathering.ts";
import { type BatchEffects, carryOutBatch } from "../../core/distribution/node/batch.ts";
import { createNode, type Node, stepNode } from "../../core/distribution/node/node.ts";
import type { Distribution, LogLine, NodeInput, NodeOutput } from "../../core/distribution/node/types.ts";
import type { Effect, Instant, Service } from "../../core/env.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ScheduledEvent } from "./clock.ts";
import type { Disk } from "./disk.ts";
import type { Kernel } from "./kernel.ts";

/** Where in its work a process is to crash: the next time that a step writes something. */
export type CrashPoint = "before-commit" | "after-commit" | "between-sends";

export interface ProcessOptions<State> {
  readonly name: PeerName;
  readonly machine: string;
  readonly disk: Disk;
  /** Made anew for every life. */
  readonly service: (life: Life) => Service<State>;
  /** After every start; what it begins must end with the life. */
  readonly begun?: (life: Life) => void;
  /** It ended by itself, or was made to. */
  readonly ended: (why: string) => void;
  /** Members of the Presence group, whose declarations count here. */
  readonly presence: readonly PeerName[];
}
/** What arrives beside state distribution. */
export interface Ears {
  readonly datagram: (bytes: Uint8Array) => void;
  readonly posted: (from: PeerName, json: Json) => void;
}
/** One life of a process. Nothing that is scheduled here happens after its end, nor while it stands still. */
export interface Life {
  readonly request: (request: Json) => Promise<Json>;
  /** Returns what cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** The same for what no promise waits for: much cheaper. */
  readonly timer: (ms: number, run: () => void) => ScheduledEvent;
  /** To this process's share of state distribution. */
  readonly input: (input: NodeInput) => void;
  readonly listen: (ears: Ears) => void;
  readonly isAlive: () => boolean;
  readonly nowMs: () => number;
}

interface Timer {
  readonly event: ScheduledEvent;
}
type Queued = { readonly input: NodeInput; readonly timer: Timer | null };

interface Running<State> extends Life {
  readonly node: Node<State>;
  readonly startedMs: number;
  readonly timers: Map<string, Timer>;
  readonly requests: Map<number, (response: Json) => void>;
  readonly backlog: (() => void)[];
  /** Of the backlog. */
  datagrams: number;
  queue: Queued[];
  readonly gathering: Gathering<Queued>;
  /** What was gathered is let go in time. */
  gathers: boolean;
  scheduled: boolean;
  busy: boolean;
  alive: boolean;
}

/** What a socket holds for a process that does not read. */
const mostDatagrams = 512;
/** The origin of wall-clock time. */
export const epochMs = 1_767_225_600_000;

/**
 * A service as a process, by the rules of `runtime/process/process.ts`: what waits is stepped in one go, shares one commit, and only
 * then does anything leave. It can be crashed between any two of these, stood still, and started from what is durable.
 */
export class SimulatedProcess<State> {
  readonly name: PeerName;
  readonly machine: string;
  readonly disk: Disk;
  /** Wall clock of this process against true time. */
  wallOffsetMs = 0;
  /** The greatest that it ever was. */
  latestOffsetMs = 0;
  crashPoint: CrashPoint | null = null;
  /** What it says beside what its service would, with its next step: somebody else has it in hand. */
  readonly lies: Effect[] = [];
  readonly #kernel: Kernel;
  readonly #options: ProcessOptions<State>;
  #running: Running<State> | null = null;
  #pausedSinceMs: number | null = null;
  #request = 0;
  starts = 0;
  /** When it last started, or went on after it had stood still. */
  wellSinceMs = 0;

  constructor(kernel: Kernel, options: ProcessOptions<State>) {
    this.#kernel = kernel;
    this.#options = options;
    this.name = options.name;
    this.machine = options.machine;
    this.disk = options.disk;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }
  get isPaused(): boolean {
    return this.#pausedSinceMs !== null;
  }
  /** What the service believes, to be looked at from outside; null while it does not run. */
  get state(): State | null {
    return this.#running?.node.state ?? null;
  }
  /** Its share of state distribution, to be looked at from outside. */
  get distribution(): Distribution | null {
    return this.#running?.node.distribution ?? null;
  }

  start(): void {
    if (this.#running !== null) return;
    this.starts += 1;
    const { clock, network } = this.#kernel;
    this.wellSinceMs = clock.nowMs;
    const ears: { of: Ears | null } = { of: null };
    const life: Life = {
      request: (request) => this.#ask(running, request),
      after: (ms, run) => {
        const event = this.#later(running, ms, () => {
          this.#kernel.poke();
          run();
        });
        return () => {
          event.cancelled = true;
        };
      },
      timer: (ms, run) => this.#later(running, ms, run),
      input: (input) => this.#enqueue(running, input),
      listen: (given) => {
        ears.of = given;
      },
      isAlive: () => running.alive,
      nowMs: () => clock.nowMs - running.startedMs,
    };
    const now = { ms: 0, wallMs: this.#wallMs() };
    const { presence, service } = this.#options;
    const watched = this.#lying(this.#kernel.watched(this.name, service(life)));
    const running: Running<State> = {
      ...life,
      node: createNode(watched, this.disk.load(), this.name, now, `${this.name} ${clock.nowMs}`, presence),
      startedMs: clock.nowMs,
      timers: new Map(),
      requests: new Map(),
      backlog: [],
      datagrams: 0,
      queue: [],
      gathering: new Gathering(),
      gathers: false,
      scheduled: false,
      busy: false,
      alive: true,
    };
    this.#running = running;
    this.#kernel.began(this.name);
    this.#kernel.log(this.name, "process/started", {});
    network.attach({
      name: this.name,
      machine: this.machine,
      pausedSinceMs: () => this.#pausedSinceMs,
      input: (input) => this.#happen(running, () => this.#enqueue(running, input)),
      datagram: (bytes) => this.#hear(running, () => ears.of?.datagram(bytes)),
      posted: (from, json) => this.#happen(running, () => ears.of?.posted(from, json)),
    });
    this.#enqueue(running, { kind: "start" });
    this.#kernel.poke();
    this.#options.begun?.(life);
  }

  /** Outside of what the invariants look at: they are about those that do not lie. */
  #lying(service: Service<State>): Service<State> {
    return {
      ...service,
      step: (state, input, now) => {
        const { state: next, effects } = service.step(state, input, now);
        return { state: next, effects: [...effects, ...this.lies.splice(0)] };
      },
    };
  }

  /** Ends it as by SIGKILL. */
  crash(why: string): void {
    const running = this.#running;
    if (running === null) return;
    running.alive = false;
    this.#running = null;
    this.#pausedSinceMs = null;
    this.crashPoint = null;
    this.disk.crash();
    for (const { event } of running.timers.values()) event.cancelled = true;
    this.#kernel.log(this.name, "process/crashed", { why });
    this.#kernel.network.detach(this.name);
    this.#options.ended(why);
  }

  pause(): void {
    if (this.#running === null || this.#pausedSinceMs !== null) return;
    this.#pausedSinceMs = this.#kernel.clock.nowMs;
    this.#kernel.network.paused(this.name);
  }

  /** What came meanwhile happens now, in its order. */
  resume(): void {
    const since = this.#pausedSinceMs;
    const running = this.#running;
    this.#pausedSinceMs = null;
    if (since === null || running === null) return;
    this.wellSinceMs = this.#kernel.clock.nowMs;
    running.datagrams = 0;
    this.#kernel.network.resumed(this.name, this.#kernel.clock.nowMs - since);
    for (const happen of running.backlog.splice(0)) if (running.alive) happen();
  }

  /** Something for its share of state distribution, from its operator; nothing where it does not run. */
  tell(input: NodeInput): void {
    const running = this.#running;
    if (running !== null) this.#happen(running, () => this.#enqueue(running, input));
  }

  /** A request from the service's edge; null where it does not run. Never resolves if the process ends first. */
  request(request: Json): Promise<Json> | null {
    return this.#running === null ? null : this.#ask(this.#running, request);
  }

  #ask(running: Running<State>, request: Json): Promise<Json> {
    return new Promise((resolve) => {
      this.#request += 1;
      const id = this.#request;
      const text = JSON.stringify(request);
      this.#happen(running, () => {
        running.requests.set(id, resolve);
        this.#enqueue(running, { kind: "request", id, request: JSON.parse(text) as Json });
      });
    });
  }

  #wallMs(): number {
    return Math.floor(epochMs + this.#kernel.clock.nowMs + this.wallOffsetMs);
  }

  #happen(running: Running<State>, run: () => void): void {
    if (!running.alive) return;
    if (this.#pausedSinceMs === null) run();
    else running.backlog.push(run);
  }

  /** A datagram: one too many for a process that stands still is lost. */
  #hear(running: Running<State>, run: () => void): void {
    if (this.#pausedSinceMs !== null) {
      if (running.datagrams >= mostDatagrams) return;
      running.datagrams += 1;
    }
    this.#happen(running, run);
  }

  #later(running: Running<State>, ms: number, run: () => void): ScheduledEvent {
    return this.#kernel.clock.after(ms, () => this.#happen(running, run));
  }

  #enqueue(running: Running<State>, input: NodeInput, timer: Timer | null = null): void {
    const { node, gathering } = running;
    const items = gathering.take({ input, timer }, () => mayWait(node, input));
    if (items.length > 0) this.#push(running, items);
    else if (!running.gathers) {
      running.gathers = true;
      this.#later(running, node.service.gathers?.forMs ?? 0, () => {
        running.gathers = false;
        this.#push(running, gathering.letGo());
      });
    }
  }

  #push(running: Running<State>, items: readonly Queued[]): void {
    running.queue.push(...items);
    if (running.scheduled || running.busy) return;
    running.scheduled = true;
    this.#later(running, 0.01, () => {
      running.scheduled = false;
      this.#runQueue(running);
    });
  }

  #setTimers(running: Running<State>, timers: NodeOutput["timers"]): void {
    for (const { name, afterMs } of timers) {
      const before = running.timers.get(name);
      if (before !== undefined) before.event.cancelled = true;
      running.timers.delete(name);
      if (afterMs === null) continue;
      const timer: Timer = {
        event: this.#later(running, Math.max(1, afterMs), () => this.#enqueue(running, { kind: "timer", name }, timer)),
      };
      running.timers.set(name, timer);
    }
  }

  #isDue(running: Running<State>, { input, timer }: Queued): boolean {
    if (input.kind !== "timer") return true;
    if (running.timers.get(input.name) !== timer) return false;
    running.timers.delete(input.name);
    return true;
  }

  #runQueue(running: Running<State>): void {
    const queue = running.queue;
    // Also what a step asks for itself waits until its commit is done.
    running.busy = true;
    running.queue = [];
    const outputs: NodeOutput[] = [];
    for (const queued of queue) {
      if (!this.#isDue(running, queued)) continue;
      const now: Instant = { ms: running.nowMs(), wallMs: this.#wallMs() };
      const output = stepNode(running.node, queued.input, now);
      this.#setTimers(running, output.timers);
      outputs.push(output);
    }
    const writes = outputs.some((output) => output.writes.length > 0);
    carryOutBatch(outputs, this.#effects(running, writes ? this.crashPoint : null));
  }

  #effects(running: Running<State>, point: CrashPoint | null): BatchEffects {
    const { network } = this.#kernel;
    const half = point === "between-sends";
    let sends = 0;
    return {
      commit: (writes, durable) => this.#commit(running, writes, point, durable),
      log: (line) => this.#log(line),
      reply: (id, response) => {
        if (half) return;
        this.#kernel.poke();
        running.requests.get(id)?.(JSON.parse(JSON.stringify(response)) as Json);
        running.requests.delete(id);
      },
      connect: (peer) => network.connect(this.name, peer),
      send: (connection, frames) => {
        sends += 1;
        if (!half || sends % 2 === 0) network.send(this.name, connection, frames);
      },
      close: (connection) => {
        if (!half) network.close(this.name, connection);
      },
    };
  }

  #commit(
    running: Running<State>,
    writes: ReadonlyMap<string, Json>,
    point: CrashPoint | null,
    durable: () => void,
  ): void {
    const takesMs = this.disk.begin(writes);
    if (takesMs === null) {
      this.crash("the disk refused a commit");
      return;
    }
    if (point === "before-commit") {
      this.crash(`at ${point}`);
      return;
    }
    // The commit is the kernel's: it ends also where the process stands still.
    this.#kernel.clock.after(takesMs, () => {
      if (!running.alive) return;
      this.disk.finish();
      if (point === "after-commit") this.crash(`at ${point}`);
      else this.#happen(running, () => this.#later(running, 0.005, () => this.#committed(running, point, durable)));
    });
  }

  #committed(running: Running<State>, point: CrashPoint | null, durable: () => void): void {
    durable();
    if (point === "between-sends") {
      this.crash(`at ${point}`);
      return;
    }
    running.busy = false;
    if (running.queue.length === 0 || running.scheduled) return;
    running.scheduled = true;
    this.#later(running, 0.01, () => {
      running.scheduled = false;
      this.#runQueue(running);
    });
  }

  #log({ event, fields }: LogLine): void {
    this.#kernel.log(this.name, event, fields);
  }
}
