import type { HostName } from "../../../model/cell/identifiers.ts";
import { below, nextRandom, seedOf } from "../../random.ts";
import { updateRoom } from "./codec.ts";
import type { SwimConfig } from "./configuration.ts";
import { createQueue, enqueue, takeUpdates } from "./gossip.ts";
import { retransmits } from "./suspicion.ts";
import type { Member, Packet, PacketKind, Probe, SwimInput, SwimOutput, SwimState, Update } from "./types.ts";
import {
  applySender,
  applyUpdate,
  expireSuspicions,
  fullView,
  heardFrom,
  newMember,
  nextInTurn,
  pickMembers,
  prolongSuspicions,
  rehash,
  suspectFirstHand,
  type Turn,
  updateOf,
} from "./view.ts";
import { createWitnesses, isRipe } from "./witness.ts";

/**
 * SWIM (Das, Gupta, Motivala 2002) with the Lifeguard extensions (Dadgar, Phillips, Currey 2017), as a step function.
 *
 * Every host probes one other per second, in random order; who does not answer, directly or through three others, is
 * suspected, and everyone hears of it on the packets that travel anyway.
 *
 * What this adds: a host that does not answer is first only doubted, which stays between its prober and itself, and is
 * probed again for some seconds; so neither lost packets nor short pauses are ever gossip. Whoever hears of a suspicion
 * and has doubts of its own confirms at once, and of the others a few look for themselves (`confirmers`), so that a true
 * suspicion is confirmed within a second or two instead of whenever somebody's turn comes. And the end of a suspicion is
 * no death but a report, see `view.ts`.
 *
 * One deadline (`wakeAt`) stands for all timers. A step that comes far too late means that this process stood still, and
 * whatever it could not hear meanwhile is no evidence against anyone.
 */
export interface SwimOptions {
  readonly self: HostName;
  /** Durable, and greater than any that this host had. */
  readonly generation: number;
  readonly config: SwimConfig;
  readonly seed: number;
}

/** Probes for others under way at once. */
const mostRelays = 256;
const never = Number.POSITIVE_INFINITY;

export const createSwim = ({ self, generation, config, seed }: SwimOptions, now: number): SwimState => {
  const own = newMember(self, generation, 0);
  const state: SwimState = {
    config,
    self: own,
    members: new Map([[self, own]]),
    ring: [],
    next: 0,
    live: 1,
    random: seedOf(seed),
    seq: 0,
    probes: new Map(),
    turn: null,
    relays: new Map(),
    doubts: new Map(),
    strangers: [],
    peers: [],
    askedAt: Number.NEGATIVE_INFINITY,
    suspects: new Set(),
    witnesses: createWitnesses(),
    queue: createQueue(),
    localHealth: 0,
    digest: 0,
    allowance: config.packetsPerSecond,
    allowedAt: now,
    probeAt: 0,
    gossipAt: never,
    suspicionAt: never,
    wakeAt: 0,
    syncedAt: Number.NEGATIVE_INFINITY,
    changedAt: now,
    refused: 0,
  };
  // A number that an earlier life's late answers do not have.
  state.seq = below(state, 0x1_0000_0000);
  state.probeAt = now + nextRandom(state) * config.probeEveryMs;
  state.wakeAt = state.probeAt;
  rehash(state, own);
  enqueue(state.queue, updateOf(own));
  return state;
};

const nextSeq = (state: SwimState): number => {
  state.seq = (state.seq + 1) >>> 0;
  return state.seq;
};

const noUpdates: readonly Update[] = [];

const send = (
  state: SwimState,
  turn: Turn,
  to: Member,
  kind: PacketKind,
  seq: number,
  target: HostName | null,
): void => {
  const { self, queue, digest } = state;
  // Who is held for anything but alive hears that first, so that it can refute or begin a new generation. Whoever leaves
  // has little time to say so.
  const heldFor = to.status === "alive" ? null : updateOf(to);
  const buddy = self.status === "left" ? updateOf(self) : heldFor;
  const updates =
    buddy === null && queue.byHost.size === 0
      ? noUpdates
      : takeUpdates(queue, updateRoom(self.host, target), retransmits(state.config, state.live), buddy);
  const { host: from, generation, incarnation } = self;
  state.allowance -= 1;
  turn.packets.push({ to: to.host, packet: { kind, seq, from, generation, incarnation, target, digest, updates } });
};

/** @param endAt when a doubt would end; a probe that comes near it lasts until then */
const beginProbe = (state: SwimState, turn: Turn, target: Member, inTurn: boolean, endAt = never): void => {
  const { config, localHealth } = state;
  const patience = localHealth + 1;
  const after = turn.now + config.probeEveryMs * patience;
  const deadline = endAt - after < config.probeEveryMs / 2 ? Math.max(endAt, after) : after;
  const probe: Probe = {
    seq: nextSeq(state),
    target,
    generation: target.generation,
    startedAt: turn.now,
    indirectAt: turn.now + config.probeTimeoutMs * patience,
    deadline,
    indirect: endAt === never || deadline >= endAt,
    turn: inTurn,
    expectedNacks: 0,
    nacks: 0,
  };
  state.probes.set(probe.seq, probe);
  if (inTurn) state.turn = probe;
  send(state, turn, target, "ping", probe.seq, target.host);
};

const endProbe = (state: SwimState, probe: Probe): void => {
  state.probes.delete(probe.seq);
  if (state.turn === probe) state.turn = null;
};

const changeHealth = (state: SwimState, by: number): void => {
  state.localHealth = Math.max(0, Math.min(state.config.maxLocalHealth, state.localHealth + by));
};

const failProbe = (state: SwimState, turn: Turn, probe: Probe): void => {
  const { target, generation, startedAt } = probe;
  endProbe(state, probe);
  // Those who were asked to help did not answer either: perhaps it is this host that does not hear.
  if (probe.turn) changeHealth(state, probe.expectedNacks > 0 ? probe.expectedNacks - probe.nacks : 1);
  if (target.generation !== generation || target.status === "dead" || target.status === "left") {
    state.doubts.delete(target);
    return;
  }
  const { incarnation } = target;
  const known = state.doubts.get(target);
  // It has refuted a suspicion since: that is as good as an answer.
  const holds = known !== undefined && known.generation === generation && known.incarnation === incarnation;
  const doubt = holds ? known : { since: startedAt, generation, incarnation };
  if (target.suspicion !== null || turn.now - doubt.since >= state.config.doubtMs) {
    state.doubts.delete(target);
    suspectFirstHand(state, turn, target);
  } else {
    state.doubts.set(target, doubt);
    beginProbe(state, turn, target, false, doubt.since + state.config.doubtMs);
  }
};

/** Asks others to probe, and asks once more itself: of two packets one arrives where both being lost would be likely. */
const askOthers = (state: SwimState, turn: Turn, probe: Probe): void => {
  const { host } = probe.target;
  probe.indirectAt = never;
  send(state, turn, probe.target, "ping", probe.seq, host);
  if (!probe.indirect) return;
  for (const helper of pickMembers(state, state.config.indirectProbes, probe.target)) {
    probe.expectedNacks += 1;
    send(state, turn, helper, "ping-req", probe.seq, host);
  }
};

const takeAck = (state: SwimState, turn: Turn, packet: Packet): void => {
  const probe = state.probes.get(packet.seq);
  if (probe !== undefined && packet.target === probe.target.host) {
    endProbe(state, probe);
    if (probe.turn) changeHealth(state, -1);
    state.doubts.delete(probe.target);
    heardFrom(turn, probe.target);
    return;
  }
  const relay = state.relays.get(packet.seq);
  if (relay === undefined || packet.target !== relay.target.host || packet.from !== relay.target.host) return;
  state.relays.delete(packet.seq);
  send(state, turn, relay.origin, "ack", relay.originSeq, relay.target.host);
};

const takePingRequest = (state: SwimState, turn: Turn, origin: Member, packet: Packet): void => {
  const target = packet.target === null ? undefined : state.members.get(packet.target);
  if (target === undefined || target === state.self || state.relays.size >= mostRelays) {
    state.refused += 1;
    return;
  }
  const { probeTimeoutMs, probeEveryMs } = state.config;
  const own = nextSeq(state);
  // The nack must be back before the asker's probe ends.
  const nackAt = turn.now + 0.8 * probeTimeoutMs;
  state.relays.set(own, { origin, originSeq: packet.seq, target, nackAt, endAt: turn.now + probeEveryMs });
  send(state, turn, target, "ping", own, target.host);
};

/** Confirms if it had doubts of its own; else looks for itself, by chance: about `confirmers` of all hosts do. */
const lookForItself = (state: SwimState, turn: Turn, member: Member): void => {
  if (state.doubts.delete(member)) {
    suspectFirstHand(state, turn, member);
    return;
  }
  if (nextRandom(state) * Math.max(1, state.live - 2) >= state.config.confirmers) return;
  for (const { target } of state.probes.values()) if (target === member) return;
  beginProbe(state, turn, member, false);
};

const takeUpdatesOf = (state: SwimState, turn: Turn, updates: readonly Update[]): void => {
  for (const update of updates) {
    const suspected = applyUpdate(state, turn, update);
    if (suspected !== null) lookForItself(state, turn, suspected);
  }
};

/** Asks for a full exchange with a host whose view differs, seldom while there is news anyway. */
const compare = (state: SwimState, turn: Turn, { from, digest }: Packet): void => {
  if (digest === state.digest) return;
  const { syncQuietMs, syncBusyMs, probeEveryMs } = state.config;
  const quiet = state.queue.byHost.size === 0 && turn.now - state.changedAt >= syncQuietMs / 2;
  const everyMs = isRipe(state, turn.now) ? probeEveryMs : quiet ? syncQuietMs : syncBusyMs;
  if (turn.now - state.syncedAt < everyMs) return;
  state.syncedAt = turn.now;
  turn.syncs.push({ to: from, updates: fullView(state), answer: false });
};

/** The member whose answer to a probe it is, if it is one. */
const answererOf = (state: SwimState, { kind, seq, from }: Packet): Member | undefined => {
  const probe = kind === "ack" ? state.probes.get(seq) : undefined;
  return probe?.target.host === from ? probe.target : undefined;
};

const takePacket = (state: SwimState, turn: Turn, packet: Packet): void => {
  const { self } = state;
  if (packet.from === self.host || (packet.kind === "ping" && packet.target !== self.host)) {
    state.refused += 1;
    return;
  }
  // Known from the probe that it answers, mostly: a thousand hosts look for each other twice a second.
  const answerer = answererOf(state, packet);
  const known = answerer ?? state.members.get(packet.from);
  const sender = applySender(state, turn, known, packet, answerer !== undefined);
  if (sender === null) return;
  if (packet.updates.length > 0) takeUpdatesOf(state, turn, packet.updates);
  switch (packet.kind) {
    case "ping":
      // Whoever said goodbye does not answer any more.
      if (self.status !== "left") send(state, turn, sender, "ack", packet.seq, self.host);
      return;
    case "ack":
      takeAck(state, turn, packet);
      if (packet.from === packet.target) compare(state, turn, packet);
      return;
    case "ping-req":
      takePingRequest(state, turn, sender, packet);
      return;
    case "nack": {
      const probe = state.probes.get(packet.seq);
      if (probe !== undefined && probe.target.host === packet.target)
        probe.nacks = Math.min(probe.nacks + 1, probe.expectedNacks);
      return;
    }
    case "gossip":
      return;
  }
};

const gossip = (state: SwimState, turn: Turn, to: number): void => {
  for (const member of pickMembers(state, to, null)) send(state, turn, member, "gossip", 0, null);
};

/**
 * Asks one that is not known yet, often while alone. It does not end with the first answer: several hosts that start at
 * once would find only each other, and stay an island. Nor with the death of all others: each may have heard of an earlier life of
 * each, and nobody probes the dead, so those that live again would never meet.
 */
const join = (state: SwimState, turn: Turn): void => {
  const { syncQuietMs, probeEveryMs } = state.config;
  const everyMs = state.live === 1 ? probeEveryMs : syncQuietMs;
  if (turn.now - state.syncedAt < everyMs || turn.now - state.askedAt < everyMs) return;
  state.askedAt = turn.now;
  state.strangers = state.strangers.filter((host) => !state.members.has(host));
  const to = state.strangers.length > 0 ? state.strangers[below(state, state.strangers.length)] : anyEnded(state);
  if (to === undefined) return;
  state.syncedAt = turn.now;
  turn.syncs.push({ to, updates: fullView(state), answer: false });
};

/** One that has ended, by chance: about one of all living hosts finds one at a time. */
const anyEnded = (state: SwimState): HostName | undefined => {
  const ended = state.peers.filter((host) => hasEnded(state.members.get(host)));
  if (ended.length === 0 || nextRandom(state) * state.live >= 1) return undefined;
  return ended[below(state, ended.length)];
};
const hasEnded = (member: Member | undefined): boolean => member?.status === "dead" || member?.status === "left";

const mayGossip = (state: SwimState, now: number): boolean => {
  const { packetsPerSecond } = state.config;
  const gained = ((now - state.allowedAt) * packetsPerSecond) / 1000;
  state.allowance = Math.min(packetsPerSecond, state.allowance + gained);
  state.allowedAt = now;
  return state.allowance > 0;
};

const wake = (state: SwimState, turn: Turn): void => {
  const { now } = turn;
  for (const probe of state.probes.values()) {
    if (probe.deadline <= now) failProbe(state, turn, probe);
    else if (probe.indirectAt <= now) askOthers(state, turn, probe);
  }
  for (const [seq, relay] of state.relays) {
    if (relay.nackAt <= now) {
      relay.nackAt = never;
      send(state, turn, relay.origin, "nack", relay.originSeq, relay.target.host);
    }
    if (relay.endAt <= now) state.relays.delete(seq);
  }
  if (state.suspicionAt <= now) expireSuspicions(state, turn);
  if (state.self.status !== "left" && state.probeAt <= now) {
    if (state.turn !== null) state.probeAt = state.turn.deadline;
    else {
      join(state, turn);
      const target = nextInTurn(state);
      if (target !== null) beginProbe(state, turn, target, true);
      state.probeAt = now + state.config.probeEveryMs;
    }
  }
  if (state.gossipAt <= now) {
    state.gossipAt = never;
    if (mayGossip(state, now)) gossip(state, turn, state.config.gossipTo);
  }
};

/** Probes under way when the process stood still prove nothing, nor does a suspicion's time that it did not live through. */
const stoodStill = (state: SwimState, now: number): void => {
  const lateMs = now - state.wakeAt;
  if (state.probes.size > 0) changeHealth(state, 1);
  for (const probe of state.probes.values()) endProbe(state, probe);
  state.relays.clear();
  state.doubts.clear();
  prolongSuspicions(state, lateMs);
  state.probeAt = Math.max(state.probeAt, now);
  if (state.gossipAt < now) state.gossipAt = now;
};

const arrange = (state: SwimState, turn: Turn): void => {
  if (state.queue.byHost.size === 0) state.gossipAt = never;
  else if (state.gossipAt === never && state.live > 1) state.gossipAt = turn.now + state.config.gossipEveryMs;
  let wakeAt = Math.min(state.probeAt, state.gossipAt, state.suspicionAt);
  if (state.probes.size > 0)
    for (const { indirectAt, deadline } of state.probes.values()) wakeAt = Math.min(wakeAt, indirectAt, deadline);
  if (state.relays.size > 0)
    for (const { nackAt, endAt } of state.relays.values()) wakeAt = Math.min(wakeAt, nackAt, endAt);
  state.wakeAt = wakeAt;
};

/** Another generation of this host; everything that was held against the former one is over. */
const enter = (state: SwimState, turn: Turn, generation: number): void => {
  const { self } = state;
  self.generation = generation;
  self.incarnation = 0;
  self.status = "alive";
  rehash(state, self);
  turn.incarnated = true;
  enqueue(state.queue, updateOf(self));
};

const leave = (state: SwimState, turn: Turn): void => {
  state.self.status = "left";
  state.probes.clear();
  state.doubts.clear();
  state.turn = null;
  state.probeAt = never;
  rehash(state, state.self);
  enqueue(state.queue, updateOf(state.self));
  // The process ends soon, so more are told at once than by ordinary gossip.
  gossip(state, turn, 4 * state.config.gossipTo);
};

const deathOf = ({ host, generation }: { readonly host: HostName; readonly generation: number }): Update => ({
  status: "dead",
  host,
  generation,
  incarnation: 0,
  from: null,
});

/**
 * One step; changes the state in place, as every service here. `state.wakeAt` says afterwards when a `wake` is due.
 * @param now monotonic milliseconds
 */
export const stepSwim = (state: SwimState, input: SwimInput, now: number): SwimOutput => {
  const output: SwimOutput = { packets: [], syncs: [], verdicts: [], deaths: [], above: null, incarnated: false };
  const turn: Turn = { ...output, now, quiet: false, by: null };
  if (now - state.wakeAt > state.config.stallMs) stoodStill(state, now);
  switch (input.kind) {
    case "packet":
      takePacket(state, turn, input.packet);
      break;
    case "wake":
      wake(state, turn);
      break;
    case "sync":
      turn.quiet = input.answer && state.members.size === 1;
      turn.by = input.from;
      takeUpdatesOf(state, turn, input.updates);
      state.syncedAt = now;
      if (!input.answer) turn.syncs.push({ to: input.from, updates: fullView(state), answer: true });
      break;
    case "peers":
      state.peers = input.hosts;
      state.strangers = input.hosts.filter((host) => !state.members.has(host));
      state.askedAt = Number.NEGATIVE_INFINITY;
      join(state, turn);
      break;
    case "declared":
      turn.by = "the group";
      takeUpdatesOf(state, turn, [deathOf(input)]);
      break;
    case "rumour":
      takeUpdatesOf(state, turn, [deathOf(input)]);
      break;
    case "missed": {
      // Who does not know this life looks for it from now on; who does has nothing to do.
      const { host, generation, incarnation } = input;
      takeUpdatesOf(state, turn, [{ status: "alive", host, generation, incarnation, from: null }]);
      break;
    }
    case "enter":
      enter(state, turn, input.generation);
      break;
    case "leave":
      leave(state, turn);
      break;
  }
  arrange(state, turn);
  return turn;
};
