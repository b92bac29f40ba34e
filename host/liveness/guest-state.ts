import { bootAllowanceMs } from "../../core/documents/guest.ts";
import type { Effect } from "../../core/env.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import { guestOf, logHealth, pathOf } from "../service/health.ts";
import { store, wantedOf } from "../service/host-state.ts";
import type { HostState } from "../service/known.ts";
import type { Wanted } from "../service/planner.ts";
import type { VmRecord } from "../service/vm-record.ts";

/*
 * Whether a guest has come up, which is more than that its machine runs: its agent has answered. It has come up for good, until it
 * resets itself: an agent that somebody stops says nothing of its guest, and no question is asked any more. A guest that
 * resets in circles gets no new time for each turn, or it would never be late.
 */

/** A guest whose agent is to be asked. */
export interface AwaitedGuest {
  readonly vm: Uid;
  readonly incarnation: number;
  /** An answer from before the last reset says nothing. */
  readonly reboots: number;
}

const awaited = (state: HostState, wanted: Wanted): readonly VmRecord[] =>
  [...state.records.values()].filter(
    (record) =>
      record.stage === "running" &&
      !state.stalled.has(record.vm.uid) &&
      ["booting", "late"].includes(guestOf(record, wanted) ?? ""),
  );

export const awaitedGuests = (state: HostState): readonly AwaitedGuest[] =>
  awaited(state, wantedOf(state)).map(({ vm: { uid: vm, incarnation }, reboots = 0 }) => ({
    vm,
    incarnation,
    reboots,
  }));

/** A guest has answered. False: that is no news of it. */
export function guestAnswered(
  state: HostState,
  { vm, incarnation, reboots }: AwaitedGuest,
  effects: Effect[],
): boolean {
  const record = state.records.get(vm);
  const isOfNow = record?.vm.incarnation === incarnation && (record.reboots ?? 0) === reboots;
  return record?.stage === "running" && isOfNow && record.guest !== "up" && note(state, record, "up", effects);
}

/** A timer of `timeGuests`, by its name after the prefix. False: its guest is not waited for any more. */
export function guestIsLate(state: HostState, vm: Uid, effects: Effect[]): boolean {
  const record = state.records.get(vm);
  return state.guestTimers.delete(vm) && record !== undefined && note(state, record, "late", effects);
}

function note(state: HostState, before: VmRecord, guest: "up" | "late", effects: Effect[]): true {
  const record = { ...before, guest };
  store(state, record.vm.uid, record, effects);
  effects.push(logHealth(record, pathOf(record, wantedOf(state)), "machine/guest", guest, null));
  return true;
}

export const guestTimer = "guest/";

/** Each guest that boots has a timer, also after a start of this process, and each other one has none. */
export function timeGuests(state: HostState, effects: Effect[]): void {
  const wanted = wantedOf(state);
  const booting = new Map(
    awaited(state, wanted).flatMap(({ vm, guest }) => (guest === "late" ? [] : [[vm.uid, vm.incarnation] as const])),
  );
  for (const [vm, incarnation] of state.guestTimers) {
    if (booting.get(vm) === incarnation) continue;
    state.guestTimers.delete(vm);
    effects.push({ kind: "timer", name: `${guestTimer}${vm}`, afterMs: null });
  }
  for (const [vm, incarnation] of booting) {
    if (state.guestTimers.has(vm)) continue;
    state.guestTimers.set(vm, incarnation);
    effects.push({ kind: "timer", name: `${guestTimer}${vm}`, afterMs: bootAllowanceMs });
  }
}
