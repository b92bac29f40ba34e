import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { fail } from "../../model/result.ts";
import { type Effect, type Input, readAnything, type Service } from "../env.ts";
import type { Frame } from "./node/frames.ts";
import { createNode, type Node, stepNode } from "./node/node.ts";
import type { NodeInput } from "./node/types.ts";

/**
 * Nodes and connections in memory, for tests: nothing moves unless the test moves it. Frames of one direction of a
 * connection arrive in order; a cut connection may still deliver what was on its way, and each end notices on its own.
 */

/** A service that does what it is asked, remembers what it was told, and watches that no number gets smaller. */
export interface ProbeState {
  readonly desired: Map<string, Json>;
  readonly actual: Map<string, Json>;
  readonly reachable: Map<string, boolean>;
  readonly inputs: Input[];
  /** `<peer> <key>` that may not be seen; kept over restarts. */
  readonly hidden: Set<string>;
  /** Of no document, and gone with the process. */
  readonly unclaimed: Map<PeerName, readonly string[]>;
  readonly subscriptions: Set<string>;
}
export type ProbeRequest =
  | { readonly do: "effect"; readonly effect: Effect }
  | { readonly do: "hide" | "show"; readonly peer: string; readonly key: string };

/** A document that the probe's reader refuses. */
export const malformed = "malformed";

const note = (map: Map<string, Json>, from: string, key: string, value: Json): void => {
  if (value === null) map.delete(`${from} ${key}`);
  else map.set(`${from} ${key}`, value);
};

const stepProbe = (state: ProbeState, input: Input): readonly Effect[] => {
  state.inputs.push(input);
  switch (input.kind) {
    case "start":
      return [...state.subscriptions].map((text) => {
        const [to = "", prefix = ""] = text.split(" ");
        return { kind: "subscribe", to: peerName(to), prefix };
      });
    case "desired":
      note(state.desired, input.from, input.key, input.value);
      return [];
    case "actual":
      note(state.actual, input.from, input.key, input.value);
      return [];
    case "reachable":
      state.reachable.set(input.peer, input.reachable);
      return [];
    case "request": {
      const request = input.request as unknown as ProbeRequest;
      if (request.do !== "effect") {
        const pair = `${request.peer} ${request.key}`;
        if (request.do === "hide") state.hidden.add(pair);
        else state.hidden.delete(pair);
        return [{ kind: "write", key: `hidden ${pair}`, value: request.do === "hide" ? true : null }];
      }
      const { effect } = request;
      if (effect.kind !== "subscribe" && effect.kind !== "unsubscribe") return [effect];
      const follows = effect.kind === "subscribe";
      const pair = `${effect.to} ${effect.prefix}`;
      if (follows) state.subscriptions.add(pair);
      else {
        state.subscriptions.delete(pair);
        forget(state, effect.to);
      }
      return [{ kind: "write", key: `follows ${pair}`, value: follows ? true : null }, effect];
    }
    default:
      return [];
  }
};

/** The layer says nothing about what a service gave up itself. */
const forget = (state: ProbeState, from: PeerName): void => {
  const prefixes = [...state.subscriptions].map((text) => text.split(" ")).filter(([to]) => to === from);
  for (const pair of [...state.actual.keys()]) {
    const [source, key = ""] = pair.split(" ");
    if (source === from && !prefixes.some(([, prefix = ""]) => key.startsWith(prefix))) state.actual.delete(pair);
  }
};

export const createProbe = (): Service<ProbeState> => ({
  restore: ({ records }) => {
    const under = (prefix: string): Set<string> =>
      new Set([...records.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)));
    return {
      desired: new Map(),
      actual: new Map(),
      reachable: new Map(),
      inputs: [],
      hidden: under("hidden "),
      unclaimed: new Map(),
      subscriptions: under("follows "),
    };
  },
  step: (state, input) => ({ state, effects: stepProbe(state, input) }),
  entitled: (state, peer, key) => !state.hidden.has(`${peer} ${key}`),
  unclaimed: ({ unclaimed }) => unclaimed,
  accepts: (_peer, key) => !key.startsWith("forbidden/"),
  read: (verb, from, key, value) =>
    value === malformed ? fail("at it: found nothing good") : readAnything(verb, from, key, value),
});

export type Side = "client" | "server";
export interface Wire {
  readonly id: number;
  readonly client: PeerName;
  readonly server: PeerName;
  /** On the way to that side; null: the end of the connection. */
  readonly to: { readonly client: (Frame | null)[]; readonly server: (Frame | null)[] };
  /** Sides that gave frames and have not been told that they left. */
  readonly busy: Set<Side>;
  /** Sides that know of the connection. */
  readonly open: Set<Side>;
}
export interface Machine {
  readonly name: PeerName;
  readonly store: Map<string, Json>;
  readonly timers: Set<string>;
  readonly dials: Set<PeerName>;
  /** Of all its lives. */
  /** Another one under its name, from its next start on. */
  instance?: string;
  readonly logs: { readonly event: string; readonly fields: { readonly [key: string]: Json } }[];
  node: Node<ProbeState> | null;
}
export interface Network {
  readonly presence: readonly PeerName[];
  readonly machines: Map<PeerName, Machine>;
  readonly wires: Map<number, Wire>;
  /** Every frame that was ever sent. */
  readonly sent: { readonly from: PeerName; readonly to: PeerName; readonly frame: Frame }[];
  readonly faults: string[];
  readonly highest: Map<string, number>;
  wireCount: number;
  starts: number;
  now: number;
}

export const createNetwork = (names: readonly string[], presence: readonly string[] = []): Network => {
  const network: Network = {
    presence: presence.map(peerName),
    machines: new Map(),
    wires: new Map(),
    sent: [],
    faults: [],
    highest: new Map(),
    wireCount: 0,
    starts: 0,
    now: 1000,
  };
  for (const text of names) {
    const name = peerName(text);
    const machine: Machine = { name, store: new Map(), timers: new Set(), dials: new Set(), logs: [], node: null };
    network.machines.set(name, machine);
    boot(network, machine);
  }
  return network;
};

export const machineOf = (network: Network, name: string): Machine => {
  const machine = network.machines.get(peerName(name));
  if (machine === undefined) throw new Error(`no machine "${name}"`);
  return machine;
};
export const stateOf = (network: Network, name: string): ProbeState => {
  const { node } = machineOf(network, name);
  if (node === null) throw new Error(`"${name}" is down`);
  return node.state;
};

const watch = (network: Network, machine: Machine, input: Input): void => {
  if (input.kind !== "desired" && input.kind !== "actual") return;
  if (typeof input.value !== "number") return;
  const about = `${machine.name} ${input.kind} ${input.from} ${input.key}`;
  const highest = network.highest.get(about) ?? 0;
  if (input.value < highest) network.faults.push(`${about} went from ${highest} back to ${input.value}`);
  network.highest.set(about, Math.max(highest, input.value));
};

const end = (wire: Wire, side: Side): void => {
  wire.open.delete(side);
  // What this side has sent may still arrive; what was on its way to it does not.
  wire.to[side].length = 0;
  wire.to[side === "client" ? "server" : "client"].push(null);
};

/** One input for one node. With `crash` the writes are durable and nothing else of the step happened. */
export const feed = (network: Network, machine: Machine, input: NodeInput, crash = false): void => {
  const { node } = machine;
  if (node === null) return;
  network.now += 1;
  const told = node.state.inputs.length;
  const output = stepNode(node, input, { ms: network.now, wallMs: network.now });
  for (const { key, value } of output.writes) {
    if (value === null) machine.store.delete(key);
    else machine.store.set(key, structuredClone(value));
  }
  for (const told_ of node.state.inputs.slice(told)) watch(network, machine, told_);
  machine.logs.push(...output.logs);
  if (crash) {
    halt(network, machine);
    return;
  }
  for (const { name, afterMs } of output.timers) {
    if (afterMs === null) machine.timers.delete(name);
    else machine.timers.add(name);
  }
  for (const peer of output.connects) machine.dials.add(peer);
  for (const { connection, frame } of output.sends) {
    const wire = network.wires.get(connection);
    const side: Side = wire?.client === machine.name ? "client" : "server";
    if (wire === undefined || !wire.open.has(side)) continue;
    const other: Side = side === "client" ? "server" : "client";
    wire.to[other].push(structuredClone(frame));
    wire.busy.add(side);
    network.sent.push({ from: machine.name, to: wire[other], frame });
  }
  for (const connection of output.closes) {
    const wire = network.wires.get(connection);
    const side: Side = wire?.client === machine.name ? "client" : "server";
    if (wire?.open.has(side)) end(wire, side);
  }
};

export const boot = (network: Network, machine: Machine): void => {
  if (machine.node !== null) return;
  const content = new Map([...machine.store].map(([key, value]) => [key, structuredClone(value)]));
  network.starts += 1;
  const instance = machine.instance === undefined ? {} : { instance: machine.instance };
  const now = { ms: network.now, wallMs: 0 };
  const draw = `start ${network.starts}`;
  machine.node = createNode({ ...createProbe(), ...instance }, content, machine.name, now, draw, network.presence);
  feed(network, machine, { kind: "start" });
};

/** The power goes: nothing is said to anyone. */
export const halt = (network: Network, machine: Machine): void => {
  machine.node = null;
  machine.timers.clear();
  machine.dials.clear();
  for (const wire of network.wires.values()) {
    for (const side of ["client", "server"] as const) {
      if (wire[side] === machine.name && wire.open.has(side)) end(wire, side);
    }
  }
};

export const dial = (network: Network, from: Machine, to: PeerName): void => {
  const target = network.machines.get(to);
  for (const wire of network.wires.values()) {
    if (wire.client === from.name && wire.server === to && wire.open.has("client")) return;
  }
  if (target === undefined || target.node === null) {
    feed(network, from, { kind: "unreachable", peer: to });
    return;
  }
  network.wireCount += 1;
  const id = network.wireCount;
  network.wires.set(id, {
    id,
    client: from.name,
    server: to,
    to: { client: [], server: [] },
    busy: new Set(),
    open: new Set(["client", "server"]),
  });
  feed(network, target, { kind: "connected", connection: id, peer: from.name, role: "server" });
  feed(network, from, { kind: "connected", connection: id, peer: to, role: "client" });
};

/** The connection breaks for one side; the other will see the end after what is on its way. */
export const cut = (network: Network, wire: Wire, side: Side): void => {
  if (!wire.open.has(side)) return;
  end(wire, side);
  feed(network, machineOf(network, wire[side]), { kind: "disconnected", connection: wire.id });
};

/** Moves one frame, or tells the sender that all has left. False when there was nothing to move. */
export const deliver = (network: Network, wire: Wire, side: Side, crash = false): boolean => {
  const other: Side = side === "client" ? "server" : "client";
  const frame = wire.to[side].shift();
  if (frame === undefined) {
    if (!wire.busy.delete(other) || !wire.open.has(other)) return false;
    feed(network, machineOf(network, wire[other]), { kind: "sendable", connection: wire.id });
    return true;
  }
  if (!wire.open.has(side)) return true;
  const machine = machineOf(network, wire[side]);
  if (frame === null) {
    wire.open.delete(side);
    feed(network, machine, { kind: "disconnected", connection: wire.id });
  } else feed(network, machine, { kind: "frame", connection: wire.id, frame: frame as unknown as Json }, crash);
  return true;
};

/** The digests go on for ever; whatever else is due comes to an end. */
const periodic = "distribution/digest";

export const fireTimers = (network: Network, machine: Machine, which: (name: string) => boolean = () => true): void => {
  for (const name of [...machine.timers].filter(which)) {
    machine.timers.delete(name);
    feed(network, machine, { kind: "timer", name });
  }
};

/** Everything that can move does, until nothing is left: what time and a healthy network would do. */
export const settle = (network: Network): void => {
  if (!goOn(network, 100_000)) throw new Error("the network does not come to rest");
};

/** The same for so many rounds at most, of whom dials for ever. @returns whether nothing is left */
export const goOn = (network: Network, rounds: number): boolean => {
  for (let round = 0; round < rounds; round += 1) {
    let moved = false;
    for (const machine of network.machines.values()) {
      if ([...machine.timers].some((name) => name !== periodic)) moved = true;
      fireTimers(network, machine, (name) => name !== periodic);
      for (const peer of machine.dials) {
        const before = network.wireCount;
        dial(network, machine, peer);
        if (network.wireCount > before) moved = true;
      }
    }
    for (const wire of network.wires.values()) {
      for (const side of ["client", "server"] as const) while (deliver(network, wire, side)) moved = true;
      if (wire.open.size === 0) network.wires.delete(wire.id);
    }
    if (!moved) return true;
  }
  return false;
};

export const wireBetween = (network: Network, client: string, server: string): Wire => {
  const found = [...network.wires.values()].findLast((wire) => wire.client === client && wire.server === server);
  if (found === undefined) throw new Error(`no connection from "${client}" to "${server}"`);
  return found;
};

const request = (network: Network, name: string, what: ProbeRequest, crash = false): void => {
  feed(network, machineOf(network, name), { kind: "request", id: 1, request: what as unknown as Json }, crash);
};
/** Has a probe cause an effect. */
export const cause = (network: Network, name: string, effect: Effect, crash = false): void =>
  request(network, name, { do: "effect", effect }, crash);
export const desire = (network: Network, from: string, to: string, key: string, value: Json, crash = false): void =>
  cause(network, from, { kind: "desire", to: peerName(to), key, value }, crash);
export const publish = (network: Network, from: string, key: string, value: Json): void =>
  cause(network, from, { kind: "publish", key, value });
export const subscribe = (network: Network, from: string, to: string, prefix: string): void =>
  cause(network, from, { kind: "subscribe", to: peerName(to), prefix });
export const unsubscribe = (network: Network, from: string, to: string, prefix: string): void =>
  cause(network, from, { kind: "unsubscribe", to: peerName(to), prefix });
export const allow = (network: Network, at: string, peer: string, key: string, seen: boolean): void =>
  request(network, at, { do: seen ? "show" : "hide", peer, key });

/** A frame that the other side never sent. */
export const inject = (
  network: Network,
  client: string,
  server: string,
  to: "client" | "server",
  frame: Json,
): void => {
  const wire = wireBetween(network, client, server);
  feed(network, machineOf(network, wire[to]), { kind: "frame", connection: wire.id, frame });
};
/** Reasons of the refusals that were logged. */
export const refusals = (network: Network, name: string): Json[] =>
  machineOf(network, name)
    .logs.filter(({ event }) => event === "distribution/refused")
    .map(({ fields }) => fields.reason ?? null);

// --- stores that are put back ------------------------------------------------------------------------------------

/** What a service has been told to desire, by client and key. */
export const desiredAt = (network: Network, name: string): Json => Object.fromEntries(stateOf(network, name).desired);
export type Copy = ReadonlyMap<string, Json>;
/** A copy of its store. */
export const copyOf = (network: Network, name: string): Copy => structuredClone(machineOf(network, name).store);
/** Its store is that copy from now on, or (null) a blank one, and it starts again. */
export const putBack = (network: Network, name: string, copy: Copy | null): void => {
  const machine = machineOf(network, name);
  halt(network, machine);
  // Its clock goes on, whatever its store has forgotten.
  const generation = machine.store.get("generation") ?? 0;
  machine.store.clear();
  for (const [key, value] of copy ?? []) machine.store.set(key, structuredClone(value));
  machine.store.set("generation", generation);
  boot(network, machine);
};
export const restart = (network: Network, name: string): void => {
  halt(network, machineOf(network, name));
  boot(network, machineOf(network, name));
};
/** An operator lets a peer, or the service itself, count. */
export const release = (network: Network, name: string, peer: string, keys?: readonly string[]): void =>
  feed(network, machineOf(network, name), {
    kind: "release",
    peer: peerName(peer),
    ...(keys === undefined ? {} : { keys }),
  });
