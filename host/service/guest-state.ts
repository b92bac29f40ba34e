import { bootAllowanceMs } from "../../core/documents/guest.ts";
import type { Effect } from "../../core/env.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import type { AwaitedGuest } from "../host-requests.ts";
import type { HostState } from "../known.ts";
import { guestOf, logHealth, pathOf } from "../liveness/health.ts";
import type { VmRecord } from "../vm-record.ts";
import type { Wanted } from "../wanted.ts";
import { store, wantedOf } from "./host-state.ts";

/*
 * Whether a guest is up, which is more than that its machine runs: its agent has answered once. After that the agent is asked no
 * more, since somebody may stop the agent of a guest that is well; only a reset of the guest begins anew. The time in which it
 * must come up is not extended by a reset: a guest in a reset loop would never be late.
 */

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

/** A guest has answered. False: nothing changed by that. */
export function guestAnswered(
  state: HostState,
  { vm, incarnation, reboots }: AwaitedGuest,
  effects: Effect[],
): boolean {
  const record = state.records.get(vm);
  const isOfNow = record?.vm.incarnation === incarnation && (record.reboots ?? 0) === reboots;
  return record?.stage === "running" && isOfNow && record.guest !== "up" && note(state, record, "up", effects);
}

/** A timer of `timeGuests` has expired. False: the guest was not waited for any more. */
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

/** Starts a timer for each guest that boots, also after a restart of this process, and stops those of all others. */
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
