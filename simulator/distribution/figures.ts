import { presenceKey } from "../../core/documents/presence.ts";
import { type Effect, readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Random } from "../kernel/random.ts";
import {
  addMachine,
  breakWire,
  crash,
  createWorld,
  feed,
  type Line,
  type Machine,
  runUntil,
  type World,
} from "./world.ts";

/** What is measured of one source and its subscribers. */
export interface FanOutOptions {
  readonly subscribers: number;
  readonly seed: number;
  /** Publications of the source. */
  readonly keys: number;
  readonly updates: number;
  /** Share of the connections that breaks around each update and each death, and of the subscribers with a slow line. */
  readonly broken: number;
  readonly slow: number;
}
export interface UpdateFigures {
  /** From the publication to each subscriber's service. */
  readonly deliveredMs: readonly number[];
  /** Pairs of update and subscriber without a delivery. */
  readonly missed: number;
  readonly broken: number;
  /** Real CPU time of the source for each update, without TLS and the kernel. */
  readonly sourceCpuMs: readonly number[];
  /** The same for the digests of 30 s in which nothing changes, and the longest step in them with TLS and the kernel. */
  readonly digestsCpuMs: number;
  readonly longestDigestMs: number;
}
export interface RetractionFigures {
  /** From the first declaration to each subscriber's service having lost all that the host said. */
  readonly withdrawnMs: readonly number[];
  readonly missed: number;
  readonly broken: number;
}

const near: Line = { delayMs: 0.5, bytesPerMs: 125_000 };
/** A subscriber's line: 0.2-2 ms at 1 Gbit/s; of the slow ones 50-150 ms at 1 Mbit/s. */
const lineOf = (random: Random, slow: number): Line =>
  random.chance(slow)
    ? { delayMs: 50 + 100 * random.next(), bytesPerMs: 125 }
    : { delayMs: 0.2 + 1.8 * random.next(), bytesPerMs: 125_000 };

interface Held {
  readonly values: Map<string, Json>;
}
const open: Pick<Service<Held>, "restore" | "entitled" | "accepts" | "read" | "audience"> = {
  restore: () => ({ values: new Map() }),
  entitled: () => true,
  accepts: () => false,
  read: readAnything,
  audience: () => null,
};
/** Publishes what it is asked to. */
const source: Service<Held> = {
  ...open,
  step: (state, input) => ({
    state,
    effects: input.kind === "request" ? (input.request as unknown as readonly Effect[]) : [],
  }),
};
const subscriber = (to: PeerName, told: (key: string, value: Json, state: Held) => void): Service<Held> => ({
  ...open,
  step: (state, input) => {
    if (input.kind === "start") return { state, effects: [{ kind: "subscribe", to, prefix: "" }] };
    if (input.kind === "actual" && input.from === to) {
      if (input.value === null) state.values.delete(input.key);
      else state.values.set(input.key, input.value);
      told(input.key, input.value, state);
    }
    return { state, effects: [] };
  },
});

const publish = (
  world: World,
  machine: Machine<Held>,
  values: readonly (readonly [key: string, value: Json])[],
): void => {
  const effects: Effect[] = values.map(([key, value]) => ({ kind: "publish", key, value }));
  feed(world, machine as Machine<unknown>, { kind: "request", id: 1, request: effects as unknown as Json });
};

/** Breaks a share of the connections, each at a moment of its own within the next half second. Returns how many. */
const breakSome = (world: World, share: number): number => {
  let broken = 0;
  for (const wire of world.wires.values()) {
    if (!world.random.chance(share)) continue;
    broken += 1;
    world.clock.after(500 * world.random.next(), () => breakWire(world, wire));
  }
  return broken;
};

const document = (key: number, version: number): Json => ({ key, version, phase: "ready", address: "10.0.0.1" });

/** Updates of one publication of a source that many follow, one every 7 s. */
export const measureUpdates = (options: FanOutOptions): UpdateFigures => {
  const { subscribers, seed, keys, updates, broken, slow } = options;
  const world = createWorld(seed);
  const name = peerName("host.h1");
  const machine = addMachine(world, name, source, near, true);
  publish(
    world,
    machine,
    Array.from({ length: keys }, (_, key) => [`vm/${key}`, document(key, 0)]),
  );
  let publishedMs = Number.POSITIVE_INFINITY;
  const deliveredMs: number[] = [];
  for (let at = 0; at < subscribers; at += 1) {
    const line = lineOf(world.random, slow);
    const service = subscriber(name, (key, value) => {
      const { version } = value as { readonly version: number };
      if (key === "vm/0" && version > 0) deliveredMs.push(world.clock.nowMs - publishedMs);
    });
    world.clock.after(5000 * world.random.next(), () =>
      addMachine(world, peerName(`controller.c${at}`), service, line),
    );
  }
  runUntil(world, 60_000);
  const sourceCpuMs: number[] = [];
  machine.longestMs = 0;
  const beforeDigests = machine.cpuMs;
  runUntil(world, 120_000);
  const digestsCpuMs = (machine.cpuMs - beforeDigests) / 2;
  const longestDigestMs = machine.longestMs;
  let breaks = 0;
  for (let update = 1; update <= updates; update += 1) {
    breaks += breakSome(world, broken);
    // In the midst of the breaking.
    runUntil(world, world.clock.nowMs + 250);
    const before = machine.cpuMs;
    publishedMs = world.clock.nowMs;
    publish(world, machine, [["vm/0", document(0, update)]]);
    // It may have been busy; with this it is for longer.
    runUntil(world, world.clock.nowMs + 10);
    sourceCpuMs.push(machine.cpuMs - before);
    runUntil(world, world.clock.nowMs + 6740);
  }
  const missed = subscribers * updates - deliveredMs.length;
  return { deliveredMs, missed, broken: breaks, sourceCpuMs, digestsCpuMs, longestDigestMs };
};

/** Deaths of a host that many follow, declared by the three members of the Presence group within 200 ms of each other. */
export const measureRetraction = (options: FanOutOptions): RetractionFigures => {
  const { subscribers, seed, keys, broken, slow } = options;
  const members = ["p1", "p2", "p3"].map((member) => peerName(`presence.${member}`));
  const world = createWorld(seed, members);
  const name = peerName("host.h1");
  const group = members.map((member) => addMachine(world, member, source, near, true));
  const host = addMachine(world, name, source, near, true);
  feed(world, host as Machine<unknown>, { kind: "life", life: 1 });
  publish(
    world,
    host,
    Array.from({ length: keys }, (_, key) => [`vm/${key}`, document(key, 0)]),
  );
  let declaredMs = Number.POSITIVE_INFINITY;
  const withdrawnMs: number[] = [];
  let holding = 0;
  for (let at = 0; at < subscribers; at += 1) {
    const line = lineOf(world.random, slow);
    const service = subscriber(name, (_key, value, { values }) => {
      if (values.size === keys) holding += 1;
      if (value === null && values.size === 0) withdrawnMs.push(world.clock.nowMs - declaredMs);
    });
    world.clock.after(5000 * world.random.next(), () =>
      addMachine(world, peerName(`controller.c${at}`), service, line),
    );
  }
  runUntil(world, 60_000);
  if (holding < subscribers) throw new Error(`only ${holding} of ${subscribers} know what the host says`);
  crash(world, host as Machine<unknown>);
  runUntil(world, world.clock.nowMs + 12_000);
  if (withdrawnMs.length > 0) throw new Error("what a host said was withdrawn before it was declared dead");
  const breaks = breakSome(world, broken);
  runUntil(world, world.clock.nowMs + 250);
  declaredMs = world.clock.nowMs;
  for (const [at, member] of group.entries())
    world.clock.after(100 * at, () =>
      publish(world, member, [[presenceKey.death("h1"), { host: "h1", generation: 1 }]]),
    );
  runUntil(world, world.clock.nowMs + 20_000);
  return { withdrawnMs, missed: subscribers - withdrawnMs.length, broken: breaks };
};
