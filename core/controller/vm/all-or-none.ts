import type { Cause } from "../../../model/cause/cause.ts";
import type { ElementPath, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { InSlices } from "../../../model/slices.ts";
import { actualSubnet } from "../../documents/readers/network.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import type { ActualVolume } from "../../documents/vocabulary.ts";
import { log, sameJson, toJson } from "../../outbox.ts";
import { heldBack } from "../changes/slices.ts";
import type { Work } from "../changes/work.ts";
import { isManagement, managementRange } from "../network/management.ts";
import type { ElementRecord, VmRecord } from "../records.ts";
import {
  actualOf,
  addressManager,
  type ControllerState,
  confirmedGone,
  desiredNow,
  elementOf,
  type Lacking,
  linksOf,
  type MemberStanding,
  type Members,
  noReservation,
  placerOf,
  recordAt,
  saveElement,
  storageManagerOf,
} from "../state.ts";
import { stopRun, wantedOn } from "./life-cycle.ts";
import { placementOf } from "./places/placement.ts";

/**
 * `x.policy.deploy "all-or-none"`: what a change adds is had as a whole or not at all. Reservations of three managers are
 * involved, and none of them knows the others', so this is hold-and-wait: two cells that race for the last room can each
 * have half of it. What keeps that from lasting is that a cell gives back.
 *
 * New VMs, volumes and subnets of such a cell are *members*, durably marked. They are asked for like any other; a placed
 * VM goes no further than its place until every member is had. Then the marks go at once (the commit), and nothing is ever
 * given back again. While some member cannot be had for want of room, a timer runs; when it runs out, the cell takes
 * everything back, rests, and asks anew when nothing of it is left. Whoever gives back first lets the other have all of it,
 * so only cells that give back at the very same moment can meet again. The time that a cell holds out therefore follows
 * from its number, in base 16, another digit with each attempt: cells that go on in step have different digits at the latest
 * in the attempt in which their numbers differ, and the lower one holds out longer.
 *
 * Nothing is ever given back that a VM may have used: what an incarnation of another VM has is no member any more.
 *
 * Rejected: a transaction coordinator for all cells (a service more, and every deployment waits for it); reserving in a
 * fixed order of resources (managers answer in any order, and hosts and servers are many); asking what is free first (it
 * is taken before the answer arrives).
 */
const bound: ReadonlySet<string> = new Set(["VM", "Volume", "VolumeCopy", "Subnet"]);

/** How long what is had is held while something is short: longer for the lower digit, so that the lower cell wins. */
const shortestHoldMs = 4_000;
const holdStepMs = 2_000;
const digits = 16;
const places = 8;
const firstRestMs = 10_000;
const longestRestMs = 60_000;
export const reservationTimer = "all-or-none";

export function holdMs(cellNumber: number, attempt: number): number {
  const digit = Math.floor(cellNumber / digits ** (attempt % places)) % digits;
  return shortestHoldMs + (digits - 1 - digit) * holdStepMs;
}
export const restMs = (attempt: number): number => Math.min(longestRestMs, firstRestMs * 2 ** Math.min(attempt, 3));

const isMember = (state: ControllerState, record: ElementRecord): boolean =>
  record.reserving === true &&
  !record.deleting &&
  elementOf(state, record) !== undefined &&
  // One that is off needs no place yet; it is a member when it is switched on.
  (record.type !== "VM" || wantedOn(state, record.uid) !== null);
/** Of an index, in the order of all elements. */
const recordsIn = (state: ControllerState, uids: Iterable<Uid>): readonly ElementRecord[] =>
  [...uids]
    .sort((one, other) => state.elements.orderOf(one) - state.elements.orderOf(other))
    .flatMap((uid) => state.elements.get(uid) ?? []);
const unmark = (state: ControllerState, record: ElementRecord): void =>
  saveElement(state, { ...record, reserving: false });

export const noMembers = (): Members => ({
  standing: new Map(),
  count: { had: 0, lacking: 0, short: 0, left: 0, gone: 0 },
  isNews: false,
});
const isLackingAs = (standing: MemberStanding | undefined): boolean => standing === "lacking" || standing === "short";

/** Null: it is none, or none any more. */
export function noteMember({ members }: Pick<ControllerState, "members">, uid: Uid, now: MemberStanding | null): void {
  const { standing, count } = members;
  const before = standing.get(uid);
  if (before === (now ?? undefined)) return;
  if (before !== undefined) count[before] -= 1;
  if (now === null) standing.delete(uid);
  else {
    standing.set(uid, now);
    count[now] += 1;
  }
  if (now !== null && isLackingAs(now) && !isLackingAs(before)) members.isNews = true;
}

function standingOf(state: ControllerState, uid: Uid): MemberStanding | null {
  const record = state.elements.get(uid);
  if (record === undefined || !isMember(state, record)) return null;
  if (state.reservation.stage !== "asking") return isGone(state, record) ? "gone" : "left";
  if (isHad(state, record)) return "had";
  return isShort(state, record) ? "short" : "lacking";
}
/** Of those of whom something has changed. */
const settleMembers = (state: ControllerState, when: "first" | "last"): void =>
  state.pass.each(`members-${when}`, state.indexes.reserving, (_flag, uid) =>
    noteMember(state, uid, standingOf(state, uid)),
  );

/** At the start of a pass: new elements join, a deployment that has everything is committed, one that rested asks again. */
export function* advanceReservation(state: ControllerState): Work {
  const { pass, indexes } = state;
  if (state.cell?.deploy === "all-or-none") {
    // Without a phase: accepted in this very step.
    yield* pass.slices(() => pass.each("joins", indexes.unseen, (_flag, uid) => join(state, uid)));
  } else {
    for (const record of recordsIn(state, indexes.reserving.keys())) unmark(state, record);
  }
  if (indexes.reserving.size > 0) {
    yield* pass.slices(() => {
      if (state.reservation.stage === "asking") pass.each("used", state.vms, (vm) => releaseUsed(state, vm));
      settleMembers(state, "first");
    });
  }
  const { standing, count } = state.members;
  if (standing.size === 0) {
    if (state.reservation.stage !== "asking" || state.reservation.isTimed) setTimer(state, null);
    state.reservation = noReservation;
  } else if (state.reservation.stage === "clearing") {
    if (count.gone < standing.size) return;
    state.reservation = { ...state.reservation, stage: "asking", attempt: state.reservation.attempt + 1 };
  } else if (state.reservation.stage === "asking" && count.had === standing.size) {
    const members = recordsIn(state, standing.keys());
    yield* heldBack(state, unmarkAll(state, members));
    if (state.reservation.isTimed) setTimer(state, null);
    state.reservation = noReservation;
    log(state.outbox, "reservation/complete", { path: state.cell?.path ?? null, elements: members.length });
  }
}
function join(state: ControllerState, uid: Uid): void {
  const record = state.elements.get(uid);
  const isNew = record?.phase === null && record.reserving === undefined && !record.deleting;
  if (isNew && bound.has(record.type)) saveElement(state, { ...record, reserving: true });
}
function* unmarkAll(state: ControllerState, members: readonly ElementRecord[]): InSlices<void> {
  for (const record of members) {
    unmark(state, record);
    yield 1;
  }
}

/** At the end of a pass: the timer runs for as long as something cannot be had. */
export function* watchReservation(state: ControllerState): Work {
  if (state.indexes.reserving.size > 0) yield* state.pass.slices(() => settleMembers(state, "last"));
  const { reservation, members } = state;
  if (reservation.stage !== "asking") return;
  const isTimed = members.count.short > 0;
  if (isTimed && !reservation.isTimed) setTimer(state, holdMs(state.options.cellNumber, reservation.attempt));
  if (!isTimed && reservation.isTimed) setTimer(state, null);
  const lacking = lackingNow(state);
  if (isTimed !== reservation.isTimed || !sameJson(toJson(reservation.lacking), toJson(lacking)))
    state.reservation = { ...reservation, isTimed, lacking };
}

/**
 * What every member says of those that are not had yet. Of many, the last ones are named and the others counted roughly: whoever is
 * had next changes then what few members say, and not all of them each time.
 */
function lackingNow(state: ControllerState): Lacking {
  const { members, uids, reservation } = state;
  const count = members.count.lacking + members.count.short;
  const more = roughly(count - mostNamed);
  const isStill = (path: ElementPath): boolean => {
    const uid = uids.get(path);
    return uid !== undefined && isLackingAs(members.standing.get(uid));
  };
  const { elements } = reservation.lacking;
  if (count > mostNamed && !members.isNews && elements.length === mostNamed && elements.every(isStill))
    return { elements, ...more };
  members.isNews = false;
  const lacking = recordsIn(
    state,
    [...members.standing].flatMap(([uid, standing]) => (isLackingAs(standing) ? [uid] : [])),
  );
  return { elements: lacking.slice(-mostNamed).map(({ path }) => path), ...more };
}
/** As many as a person wants to read, since every member says it. */
const mostNamed = 5;
/** From ten on rounded down to one digit. */
function roughly(count: number): { readonly more?: number } {
  if (count <= 0) return {};
  const unit = 10 ** Math.floor(Math.log10(count));
  return { more: Math.floor(count / unit) * unit };
}

/** After a restart: whoever had given everything back rests once more, since how long it did is not known. */
export function resumeReservation(state: ControllerState): void {
  const isAsked = ({ type, uid }: ElementRecord): boolean => {
    const [peer, key] = documentOf(state, type, uid) ?? [];
    return peer === undefined || key === undefined || desiredNow(state, peer, key) !== undefined;
  };
  const members = recordsIn(state, state.indexes.reserving.keys()).filter((record) => isMember(state, record));
  if (members.every(isAsked)) return;
  state.reservation = { ...state.reservation, stage: "resting", isTimed: true };
  setTimer(state, restMs(0));
}

/** The timer has run out: what is held is given back, or what was given back is asked for again. */
export function reservationDue(state: ControllerState): void {
  const { reservation } = state;
  if (reservation.stage === "resting") state.reservation = { ...reservation, stage: "clearing", isTimed: false };
  if (reservation.stage !== "asking" || !reservation.isTimed) return;
  const { standing } = state.members;
  const members = recordsIn(state, standing.keys());
  const short = members.flatMap(({ uid, path }) => (standing.get(uid) === "short" ? [path] : []));
  for (const record of members) {
    if (record.type === "VM") stopRun(state, record.uid);
    else if (record.range !== null) saveElement(state, { ...record, range: null });
  }
  state.reservation = { ...reservation, stage: "resting", short };
  const afterMs = restMs(reservation.attempt);
  setTimer(state, afterMs);
  log(state.outbox, "reservation/given-back", { path: state.cell?.path ?? null, short: short.slice(0, 5), afterMs });
}

const setTimer = (state: ControllerState, afterMs: number | null): void => {
  state.outbox.effects.push({ kind: "timer", name: reservationTimer, afterMs });
};

/** Where a member is asked for; null: a VM, whose placement follows from its run. */
function documentOf(state: ControllerState, type: ElementRecord["type"], uid: Uid): readonly [PeerName, string] | null {
  if (type === "VM") return null;
  return type === "Subnet" ? [addressManager, `subnet/${uid}`] : [storageManagerOf(state), `volume/${uid}`];
}

/** Nothing of it is left, so that asking again starts from nothing: a volume that is being removed must not be wanted. */
function isGone(state: ControllerState, record: ElementRecord): boolean {
  const { type, uid } = record;
  if (isManagement(state, record)) return true;
  const [peer, key] = documentOf(state, type, uid) ?? [placerOf(state), `placement/${uid}`];
  return confirmedGone(state, peer, key);
}

const volumeOf = (state: ControllerState, uid: Uid): ActualVolume | undefined =>
  actualOf(actualVolume, state, storageManagerOf(state), `volume/${uid}`);

function isHad(state: ControllerState, record: ElementRecord): boolean {
  const { type, uid } = record;
  if (isManagement(state, record)) return managementRange(state) !== null;
  if (type === "VM") {
    const run = state.vms.get(uid)?.run ?? null;
    return run !== null && (placementOf(state, uid, run)?.host ?? null) !== null;
  }
  if (type === "Subnet") return actualOf(actualSubnet, state, addressManager, `subnet/${uid}`)?.cidr != null;
  const actual = volumeOf(state, uid);
  return actual !== undefined && actual.phase !== "failed" && actual.server !== null;
}

/** Its manager was heard, and does not give it: more than a moment's work is in the way. */
function isShort(state: ControllerState, record: ElementRecord): boolean {
  const { type, uid } = record;
  if (type === "Subnet") {
    const actual = actualOf(actualSubnet, state, addressManager, `subnet/${uid}`);
    return actual !== undefined && actual.cidr === null;
  }
  if (type !== "VM") return isVolumeShort(state, record);
  const run = state.vms.get(uid)?.run ?? null;
  if (run !== null) return placementOf(state, uid, run)?.host === null;
  return linksOf(state, record.path).some((link) => {
    if (!link.requires) return false;
    if (link.type === "VolumeConnection") {
      const volume = recordAt(state, link.volume);
      return volume !== undefined && isVolumeShort(state, volume);
    }
    const subnet = recordAt(state, link.subnet);
    return subnet?.range != null && recordAt(state, link.path)?.allocation === null;
  });
}

function isVolumeShort(state: ControllerState, record: ElementRecord): boolean {
  const actual = volumeOf(state, record.uid);
  if (actual === undefined || (actual.phase !== "failed" && actual.phase !== "waiting")) return false;
  const element = elementOf(state, record);
  const origin = element?.type === "VolumeCopy" ? recordAt(state, element.image) : undefined;
  if (origin === undefined || actual.phase === "failed") return true;
  // A copy waits for its origin as long as that is being made; where the origin is short, that one says so itself.
  const phase = volumeOf(state, origin.uid)?.phase;
  return phase === "ready" || (phase !== undefined && phase !== "working" && !isMember(state, origin));
}

/** What a VM that is no member has, with all that it is made of, is in use and stays. */
function releaseUsed(state: ControllerState, { uid, run }: VmRecord): void {
  if (run === null || state.elements.get(uid)?.reserving === true) return;
  for (const { volume } of run.disks) settleChain(state, volume);
  for (const card of run.interfaces) {
    const subnet = state.elements.get(state.elements.get(card)?.allocation?.subnet ?? card);
    if (subnet?.type === "Subnet" && subnet.reserving === true) unmark(state, subnet);
  }
}
function settleChain(state: ControllerState, volume: Uid): void {
  for (let record = state.elements.get(volume); record?.reserving === true; ) {
    unmark(state, record);
    const element = elementOf(state, record);
    record = element?.type === "VolumeCopy" ? recordAt(state, element.image) : undefined;
  }
}

/** Why a member goes no further although nothing is wrong with itself; null: it is no member, or has something of its own to say. */
export function whyGivenBack(state: ControllerState, record: ElementRecord): Cause | null {
  const { stage, short, attempt } = state.reservation;
  if (stage === "asking" || !isMember(state, record)) return null;
  const again = stage === "resting" ? { seconds: restMs(attempt) / 1000 } : {};
  return { kind: "all-or-none", stage, ...few(short), ...again };
}
const few = (paths: readonly ElementPath[]): Lacking => ({
  elements: paths.slice(0, mostNamed),
  ...roughly(paths.length - mostNamed),
});
/** Of a VM that has its place: what is not had yet beside it. */
export const whyPlaceIsHeld = ({ reservation }: ControllerState): Cause => ({
  kind: "all-or-none",
  stage: "asking",
  ...reservation.lacking,
});
