import { decodePacket, encodePacket, type Seal } from "../../core/presence/swim/codec.ts";
import { type SwimConfig, swimDefaults } from "../../core/presence/swim/configuration.ts";
import { createSwim, stepSwim } from "../../core/presence/swim/swim.ts";
import type { Packet, SwimInput, SwimState, Update, VerdictChange } from "../../core/presence/swim/types.ts";
import { nextRandom, seedOf } from "../../core/random.ts";
import { type HostName, hostName } from "../../model/cell/identifiers.ts";
import { type Agenda, createAgenda } from "./agenda.ts";

/**
 * Hosts that run the real membership protocol over a virtual clock and a seeded network, nothing else: made for a thousand
 * hosts and a simulated day. Every host has its own state and learns from packets alone; what is shared is the text of
 * names. In large runs packets are handed over as objects and their size is computed; with `wire` each goes through bytes.
 */
export interface NetworkOptions {
  /** 0 to 1, of each packet by itself. */
  readonly loss: number;
  readonly duplicate: number;
  /** Delay of a packet, drawn evenly. */
  readonly fastestMs: number;
  readonly slowestMs: number;
}
export interface WorldOptions {
  readonly hosts: number;
  readonly seed: number;
  readonly network: NetworkOptions;
  readonly config?: Partial<SwimConfig>;
  readonly wire?: boolean;
  /** How hosts publish what the Presence group should know; `groups.ts` takes it. */
  readonly edge?: HostEdge;
}
export interface HostEdge {
  /** The host's own life changed. */
  incarnated(host: Host): void;
  verdict(host: Host, change: VerdictChange): void;
}
export interface Host {
  readonly index: number;
  readonly name: HostName;
  /** Null while it is crashed. */
  state: SwimState | null;
  /** Durable. */
  generation: number;
  paused: boolean;
  /** A pause that also stopped its clock adds to this. */
  clockOffset: number;
  /** Packets that wait in the socket of a paused process. */
  readonly backlog: Packet[];
  /** When the agenda has it waken next; Infinity: not. */
  wakenAt: number;
  sent: number;
  received: number;
}
type What = Packet | (() => void) | null;
export interface World {
  readonly options: WorldOptions;
  readonly config: SwimConfig;
  readonly hosts: readonly Host[];
  readonly byName: ReadonlyMap<HostName, Host>;
  readonly agenda: Agenda<What>;
  /** Directed pairs that no packet passes: from × 65536 + to. */
  readonly blocked: Set<number>;
  readonly random: { random: number };
  now: number;
  largestPacket: number;
  packets: number;
  /** Packets that bytes could not carry; a defect. */
  unreadable: number;
}

/** What a socket holds for a process that does not read. */
const backlogPackets = 512;
/** A retransmission's first time-out over TCP. */
const retransmitMs = 200;

/** Only used where bytes are made; authentication is not what this harness tries. */
const plainSeal: Seal = { sign: () => undefined, verify: () => true };

export const createWorld = (options: WorldOptions): World => {
  const config = { ...swimDefaults, ...options.config };
  const hosts = Array.from({ length: options.hosts }, (_, index): Host => {
    const name = hostName(`h${`${index}`.padStart(4, "0")}`);
    return {
      index,
      name,
      state: null,
      generation: 0,
      paused: false,
      clockOffset: 0,
      backlog: [],
      wakenAt: Number.POSITIVE_INFINITY,
      sent: 0,
      received: 0,
    };
  });
  const world: World = {
    options,
    config,
    hosts,
    byName: new Map(hosts.map((host) => [host.name, host])),
    agenda: createAgenda<What>(null),
    blocked: new Set(),
    random: { random: seedOf(options.seed) },
    now: 0,
    largestPacket: 0,
    packets: 0,
    unreadable: 0,
  };
  return world;
};

const pair = (from: Host, to: Host): number => from.index * 65_536 + to.index;
export const block = (world: World, from: Host, to: Host): void => {
  world.blocked.add(pair(from, to));
};
export const unblock = (world: World, from: Host, to: Host): void => {
  world.blocked.delete(pair(from, to));
};
export const passes = (world: World, from: Host, to: Host): boolean => !world.blocked.has(pair(from, to));

const delay = (world: World): number => {
  const { fastestMs, slowestMs } = world.options.network;
  return fastestMs + nextRandom(world.random) * (slowestMs - fastestMs);
};
/** Delay of a message over TCP: each loss costs a retransmission, each time twice as long. */
export const reliableDelay = (world: World): number => {
  let total = delay(world);
  for (let wait = retransmitMs; nextRandom(world.random) < world.options.network.loss; wait *= 2) total += wait;
  return total;
};
export const after = (world: World, ms: number, call: () => void): void => world.agenda.add(world.now + ms, -1, call);

const carry = (world: World, from: Host, to: Host, packet: Packet): void => {
  const { network } = world.options;
  if (world.blocked.size > 0 && world.blocked.has(pair(from, to))) return;
  if (network.loss > 0 && nextRandom(world.random) < network.loss) return;
  world.agenda.add(world.now + delay(world), to.index, packet);
  if (network.duplicate > 0 && nextRandom(world.random) < network.duplicate)
    world.agenda.add(world.now + delay(world), to.index, packet);
};

/** What one host sends when its updates are not empty is as large as it is; without any it is a head. */
const asBytes = (world: World, packet: Packet): Packet | null => {
  const bytes = encodePacket(packet, plainSeal);
  if (bytes.length > world.largestPacket) world.largestPacket = bytes.length;
  const read = decodePacket(bytes, plainSeal);
  return read.ok ? read.value : null;
};

/** Steps a host and carries out what it wants. */
export const stepHost = (world: World, host: Host, input: SwimInput): void => {
  const { state } = host;
  if (state === null) return;
  const local = world.now - host.clockOffset;
  // Sums of times are not exact; a timer that is due must not come a rounding too early, and then again for ever.
  const due = input.kind === "wake" && state.wakeAt + host.clockOffset <= world.now;
  const output = stepSwim(state, input, due ? Math.max(local, state.wakeAt) : local);
  for (const { to, packet } of output.packets) {
    const target = world.byName.get(to);
    host.sent += 1;
    world.packets += 1;
    if (target === undefined) continue;
    const sent = world.options.wire === true ? asBytes(world, packet) : packet;
    if (sent === null) world.unreadable += 1;
    else carry(world, host, target, sent);
  }
  for (const { to, updates, answer } of output.syncs) exchange(world, host, to, updates, answer);
  const { edge } = world.options;
  if (edge !== undefined) {
    for (const change of output.verdicts) edge.verdict(host, change);
    if (output.incarnated) edge.incarnated(host);
  }
  if (output.above !== null) {
    host.generation = Math.max(output.above, host.generation) + 1;
    stepHost(world, host, { kind: "enter", generation: host.generation });
    return;
  }
  if (state.wakeAt + host.clockOffset < host.wakenAt) {
    host.wakenAt = state.wakeAt + host.clockOffset;
    world.agenda.add(host.wakenAt, host.index, null);
  }
};

/** Over TCP: arrives when both sides are there, or not at all. */
const exchange = (world: World, from: Host, to: HostName, updates: readonly Update[], answer: boolean): void => {
  const target = world.byName.get(to);
  if (target === undefined) return;
  after(world, reliableDelay(world), () => {
    if (target.paused || !passes(world, from, target) || !passes(world, target, from)) return;
    stepHost(world, target, { kind: "sync", from: from.name, updates, answer });
  });
};

/** A host's process starts, knowing nobody. */
export const startHost = (world: World, host: Host): void => {
  host.generation += 1;
  host.paused = false;
  host.backlog.length = 0;
  const seed = Math.floor(nextRandom(world.random) * 2 ** 32);
  const { generation, name } = host;
  host.state = createSwim({ self: name, generation, config: world.config, seed }, world.now - host.clockOffset);
  host.wakenAt = host.state.wakeAt + host.clockOffset;
  world.agenda.add(host.wakenAt, host.index, null);
  world.options.edge?.incarnated(host);
};
/** All hosts start, each already with its own full view of the others, as a running installation has it. */
export const startAll = (world: World): void => {
  for (const host of world.hosts) startHost(world, host);
  const updates = world.hosts.map(
    ({ name, generation }): Update => ({ status: "alive", host: name, generation, incarnation: 0, from: null }),
  );
  for (const host of world.hosts) stepHost(world, host, { kind: "sync", from: host.name, updates, answer: true });
};
export const crash = (host: Host): void => {
  host.state = null;
  host.paused = false;
  host.backlog.length = 0;
};

/** The process stands still, and its clock with it if that is wanted (a VM that is paused). */
export const pause = (world: World, host: Host, ms: number, clock: boolean, resumed?: () => void): void => {
  if (host.state === null || host.paused) return;
  const paused = host.state;
  host.paused = true;
  after(world, ms, () => {
    if (host.state !== paused) return;
    host.paused = false;
    if (clock) host.clockOffset += ms;
    const waiting = host.backlog.splice(0);
    // Timers come before packets when a process goes on: the worse order of the two.
    stepHost(world, host, { kind: "wake" });
    // A stopped machine heard nothing; a stopped process finds what its socket kept.
    if (!clock) for (const packet of waiting) receive(world, host, packet);
    resumed?.();
  });
};

const receive = (world: World, host: Host, packet: Packet): void => {
  host.received += 1;
  stepHost(world, host, { kind: "packet", packet });
};

const happen = (world: World, subject: number, what: What): void => {
  if (typeof what === "function") {
    what();
    return;
  }
  const host = world.hosts[subject];
  if (host?.state == null) return;
  if (what === null) {
    if (world.now < host.wakenAt) return;
    host.wakenAt = Number.POSITIVE_INFINITY;
    if (host.paused) return;
    if (host.state.wakeAt + host.clockOffset > world.now) {
      host.wakenAt = host.state.wakeAt + host.clockOffset;
      world.agenda.add(host.wakenAt, subject, null);
      return;
    }
    stepHost(world, host, { kind: "wake" });
  } else if (!host.paused) receive(world, host, what);
  else if (host.backlog.length < backlogPackets) host.backlog.push(what);
};

/** Lets time pass until then. */
export const runUntil = (world: World, until: number): void => {
  const { agenda } = world;
  while (agenda.next() <= until) {
    world.now = agenda.next();
    agenda.take();
    happen(world, agenda.subject, agenda.what);
  }
  world.now = until;
};
