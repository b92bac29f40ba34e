import type { HostName } from "../../../model/cell/identifiers.ts";
import { isPlausible, mostAhead } from "../../documents/life-numbers.ts";
import { below, hashText, nextRandom } from "../../random.ts";
import { enqueue } from "./gossip.ts";
import { confirmationsNeeded, suspicionMs } from "./suspicion.ts";
import type { Member, Packet, SwimOutput, SwimState, Update, Verdict } from "./types.ts";
import { isWitnessed, noteRumour, settleRumour } from "./witness.ts";

/**
 * One host's view of the others, and the only place that changes it.
 *
 * Which of two words about a host holds: the one of the higher generation; of one generation, its end (`dead`, `left`); of
 * two incarnations the higher; of one incarnation, the suspicion. Only the host itself makes a new incarnation, so nobody
 * but it can refute. A suspicion that runs out is no death here: it becomes the verdict `failed`, which is a report to the
 * Presence group, and the host is probed and can refute as before. That is why a healed partition needs no repair.
 */
export interface Turn extends SwimOutput {
  readonly now: number;
  /** What is learned in this step is old news to everyone else, and is not passed on. */
  quiet: boolean;
  /** Whose word it is: a host's over the reliable channel, the Presence group's, or (null) anybody's, in a datagram. */
  by: HostName | "the group" | null;
}

const ended = (member: Member): boolean => member.status === "dead" || member.status === "left";
/** Suspicion is left out: it passes, and comparing views while it does would be for nothing. */
const hashOf = (member: Member): number => {
  let hash = hashText(member.host);
  for (const part of [member.generation % 0x1_0000_0000, member.incarnation, ended(member) ? 1 : 0])
    hash = Math.imul(hash ^ part, 0x9e3779b1) ^ (hash >>> 15);
  return hash;
};
export const rehash = (state: SwimState, member: Member): void => {
  const hash = hashOf(member);
  state.digest = (state.digest ^ member.hash ^ hash) >>> 0;
  member.hash = hash;
};

export const newMember = (host: HostName, generation: number, incarnation: number): Member => ({
  host,
  generation,
  incarnation,
  status: "alive",
  suspicion: null,
  told: "alive",
  hash: 0,
});

const verdictOf = ({ status, suspicion }: Member): Verdict => {
  if (suspicion?.firstHand !== true) return status;
  return suspicion.expired ? "failed" : "doubted";
};

const tell = (turn: Turn, member: Member): void => {
  const verdict = verdictOf(member);
  if (verdict === member.told) return;
  member.told = verdict;
  const { host, generation, incarnation } = member;
  turn.verdicts.push({ host, generation, incarnation, verdict });
};

export const updateOf = ({ status, host, generation, incarnation, suspicion }: Member): Update => ({
  status,
  host,
  generation,
  incarnation,
  from: status === "suspect" ? (suspicion?.by[0] ?? null) : null,
});
export const fullView = (state: SwimState): readonly Update[] => [...state.members.values()].map(updateOf);

/** Puts a newcomer at a random place of what is left of this round. */
const seat = (state: SwimState, member: Member): void => {
  state.ring.push(member);
  const last = state.ring.length - 1;
  const at = Math.min(state.next, last) + below(state, last + 1 - Math.min(state.next, last));
  const other = state.ring[at] ?? member;
  state.ring[at] = member;
  state.ring[last] = other;
};

const settle = (state: SwimState, turn: Turn, member: Member): void => {
  rehash(state, member);
  state.changedAt = turn.now;
  tell(turn, member);
};

const clearSuspicion = (state: SwimState, member: Member): void => {
  if (member.suspicion === null) return;
  member.suspicion = null;
  state.suspects.delete(member);
};

/** The deadline as the number of confirmations now has it. */
const retime = (state: SwimState, member: Member): void => {
  const { suspicion } = member;
  if (suspicion === null || suspicion.expired) return;
  suspicion.deadline = suspicion.startedAt + suspicionMs(state.config, state.live, suspicion.by.length - 1);
  if (suspicion.deadline < state.suspicionAt) state.suspicionAt = suspicion.deadline;
};

const suspect = (state: SwimState, turn: Turn, member: Member, from: HostName): void => {
  clearSuspicion(state, member);
  member.status = "suspect";
  member.suspicion = {
    startedAt: turn.now,
    by: [from],
    deadline: Number.POSITIVE_INFINITY,
    firstHand: false,
    expired: false,
  };
  state.suspects.add(member);
  retime(state, member);
};

/** @returns true when this is a host that was not yet among its suspects, and is of use */
const confirm = (state: SwimState, member: Member, from: HostName): boolean => {
  const { suspicion } = member;
  if (suspicion === null || suspicion.by.length > confirmationsNeeded(state.config, state.live)) return false;
  if (suspicion.by.includes(from)) return false;
  suspicion.by.push(from);
  retime(state, member);
  return true;
};

/** Own probes of a member went unanswered. */
export const suspectFirstHand = (state: SwimState, turn: Turn, member: Member): void => {
  if (ended(member)) return;
  const self = state.self.host;
  if (member.suspicion === null) suspect(state, turn, member, self);
  else confirm(state, member, self);
  const { suspicion } = member;
  if (suspicion === null || suspicion.firstHand) return;
  suspicion.firstHand = true;
  enqueue(state.queue, { ...updateOf(member), from: self });
  settle(state, turn, member);
};

/** It answered. That alone does not end a suspicion, which only it can refute, but it is no longer this host's own. */
export const heardFrom = (turn: Turn, member: Member): void => {
  if (member.suspicion === null || !member.suspicion.firstHand) return;
  member.suspicion.firstHand = false;
  tell(turn, member);
};

/** A later life than this host ever had: its store may have been lost, or somebody makes it up. */
const isOwnLife = (state: SwimState, turn: Turn, update: Update): boolean => {
  if (update.generation <= state.self.generation || turn.by === "the group") return true;
  if (!isPlausible(update.generation, state.self.generation)) state.refused += 1;
  else if (turn.by === null) noteRumour(state, state.self.host, turn.now);
  else return isWitnessed(state, turn.by, update);
  return false;
};

const refute = (state: SwimState, turn: Turn, update: Update): void => {
  const { self, config } = state;
  if (update.generation < self.generation || !isOwnLife(state, turn, update)) return;
  if (update.generation > self.generation || update.status === "dead" || update.status === "left") {
    settleRumour(state, self.host);
    if (self.status !== "left") turn.above = Math.max(turn.above ?? 0, update.generation);
    return;
  }
  if (update.status === "alive" && update.incarnation <= self.incarnation) return;
  if (update.status === "suspect" && update.incarnation < self.incarnation) {
    // The refutation is out already; whoever says this has not heard it.
    if (!state.queue.byHost.has(self.host)) enqueue(state.queue, updateOf(self));
    return;
  }
  if (update.incarnation >= 0xffff_ffff) {
    turn.above = Math.max(turn.above ?? 0, update.generation);
    return;
  }
  if (update.status === "suspect") state.localHealth = Math.min(config.maxLocalHealth, state.localHealth + 1);
  self.incarnation = update.incarnation + 1;
  rehash(state, self);
  turn.incarnated = true;
  enqueue(state.queue, updateOf(self));
};

/** @returns true when a suspicion began with it */
const advance = (
  state: SwimState,
  turn: Turn,
  member: Member,
  update: Update,
  later = update.generation > member.generation,
): boolean => {
  const wasLive = !ended(member);
  clearSuspicion(state, member);
  if (later) member.told = "alive";
  member.generation = update.generation;
  member.incarnation = update.incarnation;
  member.status = update.status;
  const live = !ended(member);
  if (live && !wasLive) {
    state.live += 1;
    if (!state.ring.includes(member)) seat(state, member);
  } else if (!live && wasLive) state.live -= 1;
  if (update.status === "suspect") suspect(state, turn, member, update.from ?? state.self.host);
  if (later && live) {
    // A new life is news even when nothing was held against the former one.
    const { host, generation, incarnation } = member;
    turn.verdicts.push({ host, generation, incarnation, verdict: "alive" });
  }
  enqueue(state.queue, update);
  settle(state, turn, member);
  return update.status === "suspect";
};

/** Whether the end of a life is taken from whoever says it; from one alone it is not. */
const mayEnd = (state: SwimState, turn: Turn, member: Member | undefined, update: Update): boolean => {
  if (update.status !== "dead" || turn.by === "the group") return true;
  const isNews =
    member === undefined ||
    update.generation > member.generation ||
    (update.generation === member.generation && !ended(member));
  if (!isNews) return false;
  if (turn.by === null) noteRumour(state, update.host, turn.now);
  else if (isWitnessed(state, turn.by, update)) {
    if (member !== state.self) turn.deaths.push({ host: update.host, generation: update.generation });
    return true;
  }
  return false;
};

/** Takes a word about a host if it is news; whatever is taken is passed on. @returns a member that became suspected */
export const applyUpdate = (state: SwimState, turn: Turn, update: Update): Member | null => {
  const member = state.members.get(update.host);
  if (member !== undefined && member !== state.self && turn.by === update.host && isFar(member, update)) {
    // Over the reliable channel, of itself.
    if (update.status === "alive") advance(state, turn, member, update, true);
    return null;
  }
  if (member !== undefined && turn.by !== "the group" && !isPlausible(update.generation, member.generation)) {
    state.refused += 1;
    return null;
  }
  if (!mayEnd(state, turn, member, update)) return null;
  if (update.status === "dead" && member !== state.self) settleRumour(state, update.host);
  if (member === state.self) {
    refute(state, turn, update);
    return null;
  }
  if (member === undefined) return meet(state, turn, update);
  if (update.generation < member.generation) return null;
  if (update.generation === member.generation) {
    if (ended(member)) return null;
    if (update.status === "alive" && update.incarnation <= member.incarnation) return null;
    if (update.status === "suspect") {
      if (update.incarnation < member.incarnation) return null;
      if (update.incarnation === member.incarnation && member.status === "suspect") {
        if (update.from !== null && confirm(state, member, update.from)) enqueue(state.queue, update);
        return null;
      }
    }
  }
  return advance(state, turn, member, update) ? member : null;
};

const meet = (state: SwimState, turn: Turn, update: Update): Member | null => {
  if (state.members.size >= state.config.maxMembers) {
    state.refused += 1;
    return null;
  }
  const member = newMember(update.host, update.generation, update.incarnation);
  member.status = update.status;
  state.members.set(update.host, member);
  if (!turn.quiet) enqueue(state.queue, update);
  if (!ended(member)) {
    state.live += 1;
    seat(state, member);
    const { host, generation, incarnation } = member;
    turn.verdicts.push({ host, generation, incarnation, verdict: "alive" });
  }
  if (update.status === "suspect") suspect(state, turn, member, update.from ?? state.self.host);
  settle(state, turn, member);
  return update.status === "suspect" ? member : null;
};

/**
 * The packet's head: its sender lives. @returns the sender; null when there is no place for it
 * @param known what this host has of the sender so far
 * @param answered it is the sender's answer to a probe of this host: nobody made it up who has not seen that probe
 */
export const applySender = (
  state: SwimState,
  turn: Turn,
  known: Member | undefined,
  { from, generation, incarnation }: Packet,
  answered: boolean,
): Member | null => {
  if (known?.generation === generation && known.incarnation >= incarnation) return known;
  const update: Update = { status: "alive", host: from, generation, incarnation, from: null };
  if (known !== undefined && isFar(known, update)) {
    if (answered) advance(state, turn, known, update, true);
    else state.refused += 1;
    return known;
  }
  applyUpdate(state, turn, update);
  return known ?? state.members.get(from) ?? null;
};

/** What is known of the host was made up, or this is: only the host itself says which. */
const isFar = (known: Member, { generation }: Update): boolean => Math.abs(generation - known.generation) > mostAhead;

/** Suspicions that ran out, and when the next one does. */
export const expireSuspicions = (state: SwimState, turn: Turn): void => {
  let next = Number.POSITIVE_INFINITY;
  for (const member of state.suspects) {
    const { suspicion } = member;
    if (suspicion === null || suspicion.expired) continue;
    if (suspicion.deadline <= turn.now) {
      suspicion.expired = true;
      tell(turn, member);
    } else if (suspicion.deadline < next) next = suspicion.deadline;
  }
  state.suspicionAt = next;
};

/** This host stood still and could hear no refutation meanwhile: that time does not count. */
export const prolongSuspicions = (state: SwimState, byMs: number): void => {
  for (const { suspicion } of state.suspects) if (suspicion !== null) suspicion.deadline += byMs;
  state.suspicionAt += byMs;
};

/** The next whose turn it is; null when there is nobody. */
export const nextInTurn = (state: SwimState): Member | null => {
  for (let tries = 0; tries < 2; tries += 1) {
    while (state.next < state.ring.length) {
      const member = state.ring[state.next];
      state.next += 1;
      if (member !== undefined && !ended(member)) return member;
    }
    state.ring = state.ring.filter((member) => !ended(member));
    for (let index = state.ring.length - 1; index > 0; index -= 1) {
      const other = Math.floor(nextRandom(state) * (index + 1));
      const [a, b] = [state.ring[index], state.ring[other]];
      if (a !== undefined && b !== undefined) {
        state.ring[index] = b;
        state.ring[other] = a;
      }
    }
    state.next = 0;
  }
  return null;
};

/** Up to `count` members by chance, without this host, the given one and those that are gone. */
export const pickMembers = (state: SwimState, count: number, not: Member | null): readonly Member[] => {
  const picked: Member[] = [];
  // Those that are gone are few until the round ends, so a few tries are enough; fewer picks do no harm.
  for (let tries = 3 * count + 5; tries > 0 && picked.length < count && state.ring.length > 0; tries -= 1) {
    const member = state.ring[below(state, state.ring.length)];
    if (member === undefined || member === not || ended(member) || picked.includes(member)) continue;
    picked.push(member);
  }
  return picked;
};
