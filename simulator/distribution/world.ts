import type { Frame } from "../../core/distribution/node/frames.ts";
import { createNode, type Node, stepNode } from "../../core/distribution/node/node.ts";
import type { NodeInput, NodeOutput } from "../../core/distribution/node/types.ts";
import type { Service } from "../../core/env.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { encodeFrame } from "../../runtime/transport/frame-codec.ts";
import { Clock, type ScheduledEvent } from "../kernel/clock.ts";
import { createRandom, type Random } from "../kernel/random.ts";

/**
 * Many services with nothing but state distribution between them: real nodes on a virtual clock, and connections with a
 * delay and a bandwidth that break and are dialled again as `runtime/transport/transport.ts` does it. The kernel's processes know
 * disks, crashes and clocks as well; thousands of connections to one source are carried by this one.
 */
export interface Line {
  /** One way. */
  readonly delayMs: number;
  readonly bytesPerMs: number;
}
export interface Machine<State> {
  readonly name: PeerName;
  readonly line: Line;
  readonly node: Node<State>;
  /** Whether the time that its steps and the encoding really take passes on the virtual clock too. */
  readonly timed: boolean;
  readonly timers: Map<string, ScheduledEvent>;
  readonly dialled: Set<PeerName>;
  /** What its steps and the encoding took, measured; and its longest step, writes included. Only of a timed one. */
  cpuMs: number;
  longestMs: number;
  /** Inputs that wait; the first one may be under way. */
  readonly queue: NodeInput[];
  busy: boolean;
  up: boolean;
}
interface Direction {
  freeAtMs: number;
  arrivesMs: number;
}
export interface Wire {
  readonly id: number;
  readonly client: Machine<unknown>;
  readonly server: Machine<unknown>;
  readonly line: Line;
  readonly open: Set<Machine<unknown>>;
  readonly toClient: Direction;
  readonly toServer: Direction;
}
export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly machines: Map<PeerName, Machine<unknown>>;
  readonly wires: Map<number, Wire>;
  /** Members of the Presence group. */
  readonly presence: readonly PeerName[];
  frames: number;
  bytes: number;
  nextWire: number;
}

/** Of a write to a connection beside its encoding: TLS and the kernel. As `bench distribution` sees it, rounded up. */
const writeMs = 0.05;
const backOff = { firstMs: 25, lastMs: 50, unreachableMs: 5000 } as const;

export const createWorld = (seed: number, presence: readonly PeerName[] = []): World => ({
  clock: new Clock(),
  random: createRandom(seed, "distribution"),
  machines: new Map(),
  wires: new Map(),
  presence,
  frames: 0,
  bytes: 0,
  nextWire: 0,
});

export const addMachine = <State>(
  world: World,
  name: PeerName,
  service: Service<State>,
  line: Line,
  timed = false,
): Machine<State> => {
  const machine: Machine<State> = {
    name,
    line,
    timed,
    timers: new Map(),
    dialled: new Set(),
    cpuMs: 0,
    longestMs: 0,
    queue: [],
    busy: false,
    up: true,
    node: createNode(service, new Map(), name, { ms: 0, wallMs: 1 }, name, world.presence),
  };
  world.machines.set(name, machine as Machine<unknown>);
  feed(world, machine as Machine<unknown>, { kind: "start" });
  return machine;
};

/** One input, when the machine has taken those before it. */
export const feed = (world: World, machine: Machine<unknown>, input: NodeInput): void => {
  machine.queue.push(input);
  if (machine.queue.length === 1 && !machine.busy) work(world, machine);
};

const work = (world: World, machine: Machine<unknown>): void => {
  for (let input = machine.queue[0]; input !== undefined && machine.up; input = machine.queue[0]) {
    const spentMs = step(world, machine, input);
    machine.queue.shift();
    if (spentMs === 0) continue;
    machine.busy = true;
    world.clock.after(spentMs, () => {
      machine.busy = false;
      work(world, machine);
    });
    return;
  }
};

/** @returns how long the machine is busy with it */
const step = (world: World, machine: Machine<unknown>, input: NodeInput): number => {
  const { nowMs } = world.clock;
  const begin = performance.now();
  const output = stepNode(machine.node, input, { ms: nowMs, wallMs: nowMs });
  const sends = encoded(output);
  const stepMs = machine.timed ? performance.now() - begin : 0;
  const spentMs = machine.timed ? stepMs + writeMs * sends.size : 0;
  machine.cpuMs += stepMs;
  machine.longestMs = Math.max(machine.longestMs, spentMs);
  carryOut(world, machine, output, sends);
  return spentMs;
};

interface Batch {
  readonly frames: Frame[];
  bytes: number;
}
const encoded = (output: NodeOutput): Map<number, Batch> => {
  const batches = new Map<number, Batch>();
  for (const { connection, frame } of output.sends) {
    const batch = batches.get(connection) ?? { frames: [], bytes: 0 };
    batches.set(connection, batch);
    batch.frames.push(frame);
    batch.bytes += encodeFrame(frame)?.length ?? 0;
  }
  return batches;
};

const carryOut = (
  world: World,
  machine: Machine<unknown>,
  output: NodeOutput,
  sends: ReadonlyMap<number, Batch>,
): void => {
  for (const { name, afterMs } of output.timers) {
    const before = machine.timers.get(name);
    if (before !== undefined) before.cancelled = true;
    machine.timers.delete(name);
    if (afterMs === null) continue;
    const fire = (): void => {
      machine.timers.delete(name);
      feed(world, machine, { kind: "timer", name });
    };
    machine.timers.set(name, world.clock.after(afterMs, fire));
  }
  for (const peer of output.connects) {
    machine.dialled.add(peer);
    dial(world, machine, peer);
  }
  let written = 0;
  for (const [connection, batch] of sends) {
    written += 1;
    const wire = world.wires.get(connection);
    // Each write begins when those before it were made.
    if (wire?.open.has(machine)) transmit(world, wire, machine, batch, machine.timed ? written * writeMs : 0);
  }
  for (const connection of output.closes) {
    const wire = world.wires.get(connection);
    if (wire !== undefined) close(world, wire, machine);
  }
};

const transmit = (world: World, wire: Wire, from: Machine<unknown>, batch: Batch, afterMs: number): void => {
  const { clock } = world;
  const direction = from === wire.client ? wire.toServer : wire.toClient;
  const to = from === wire.client ? wire.server : wire.client;
  direction.freeAtMs = Math.max(direction.freeAtMs, clock.nowMs + afterMs) + batch.bytes / wire.line.bytesPerMs;
  direction.arrivesMs = direction.freeAtMs + wire.line.delayMs;
  world.frames += batch.frames.length;
  world.bytes += batch.bytes;
  clock.after(direction.freeAtMs - clock.nowMs, () => {
    if (wire.open.has(from)) feed(world, from, { kind: "sendable", connection: wire.id });
  });
  clock.after(direction.arrivesMs - clock.nowMs, () => {
    for (const frame of batch.frames)
      if (wire.open.has(to)) feed(world, to, { kind: "frame", connection: wire.id, frame: frame as unknown as Json });
  });
};

/** One side ends it; the other hears of it behind what is on its way. */
const close = (world: World, wire: Wire, by: Machine<unknown>): void => {
  if (!wire.open.delete(by)) return;
  const [other, direction] = by === wire.client ? [wire.server, wire.toServer] : [wire.client, wire.toClient];
  world.clock.after(Math.max(direction.arrivesMs - world.clock.nowMs, wire.line.delayMs), () =>
    ended(world, wire, other),
  );
  if (by === wire.client) redial(world, wire.client, wire.server.name, backOff.firstMs);
};

const ended = (world: World, wire: Wire, side: Machine<unknown>): void => {
  if (!wire.open.delete(side)) return;
  if (wire.open.size === 0) world.wires.delete(wire.id);
  feed(world, side, { kind: "disconnected", connection: wire.id });
  if (side === wire.client) redial(world, side, wire.server.name, backOff.firstMs);
};

/** The connection breaks, what is on its way is lost, and either side notices within its delay. */
export const breakWire = (world: World, wire: Wire): void => {
  for (const side of [...wire.open])
    world.clock.after(world.random.next() * wire.line.delayMs, () => ended(world, wire, side));
};

/** A machine is gone without a word; its connections are given up by the others at once, which is later than they did it. */
export const crash = (world: World, machine: Machine<unknown>): void => {
  machine.up = false;
  for (const wire of [...world.wires.values()])
    if (wire.client === machine || wire.server === machine) {
      wire.open.delete(machine);
      breakWire(world, wire);
    }
};

const redial = (world: World, machine: Machine<unknown>, peer: PeerName, firstMs: number): void => {
  const waitMs = firstMs + world.random.next() * (backOff.lastMs - backOff.firstMs);
  world.clock.after(waitMs, () => dial(world, machine, peer));
};

const dial = (world: World, machine: Machine<unknown>, peer: PeerName): void => {
  const server = world.machines.get(peer);
  if (!machine.up) return;
  const line = server !== undefined && machine.line.delayMs < server.line.delayMs ? server.line : machine.line;
  // One round trip for TCP and one for TLS 1.3.
  world.clock.after(4 * line.delayMs, () => {
    if (server?.up !== true) {
      feed(world, machine, { kind: "unreachable", peer });
      redial(world, machine, peer, backOff.unreachableMs);
      return;
    }
    world.nextWire += 1;
    const id = world.nextWire;
    const wire: Wire = {
      id,
      client: machine,
      server,
      line,
      open: new Set([machine, server]),
      toClient: { freeAtMs: 0, arrivesMs: 0 },
      toServer: { freeAtMs: 0, arrivesMs: 0 },
    };
    world.wires.set(id, wire);
    world.clock.after(line.delayMs, () => {
      if (wire.open.has(server))
        feed(world, server, { kind: "connected", connection: id, peer: machine.name, role: "server" });
    });
    feed(world, machine, { kind: "connected", connection: id, peer, role: "client" });
  });
};

/** Lets everything happen that is due until then. */
export const runUntil = (world: World, untilMs: number): void => {
  const { clock } = world;
  for (let next = clock.nextMs; next !== null && next <= untilMs; next = clock.nextMs) clock.step();
  clock.nowMs = Math.max(clock.nowMs, untilMs);
};
