import { placementSettings } from "../../../../model/cell/attributes/placement-settings.ts";
import type { Rested, Run, VmRecord } from "../../records.ts";
import { offersOf } from "../../services/hosts.ts";
import { type ControllerState, saveVm } from "../../state.ts";

/*
 * A VM that was stopped goes on counting at its last host for a while, if it asks for who stands beside it: for its affinity groups, and for
 * hosts that an account has alone by what runs there. It takes no room. When it starts again, or is deleted, that is over at once.
 */
const presetMs = placementSettings.lastHostS.preset * 1000;
/** As the operator has it, by the word of this cell's Placer. */
const lastsFor = (state: ControllerState): number => {
  const said = offersOf(state)?.lastHostS;
  return said === undefined ? presetMs : said * 1000;
};

/** Of a run that has ended because nobody wants it; null: of its place nothing is left to be said. */
export function restOf(
  state: ControllerState,
  uid: VmRecord["uid"],
  run: Run,
  isWanted: boolean,
): Pick<VmRecord, "rested"> {
  const { host, incarnation, memoryMiB, cpus, cpuSpeedMHz, placement } = run;
  const asks = placement.groups !== undefined || placement.dedication !== undefined;
  if (host === null || !run.handedOver || !asks || isWanted) return {};
  const lastsMs = lastsFor(state);
  if (lastsMs === 0) return {};
  setTimer(state, uid, lastsMs);
  const times = { untilMs: state.now.wallMs + lastsMs, ...(lastsMs === presetMs ? {} : { lastsMs }) };
  return { rested: { host, incarnation, memoryMiB, cpus, cpuSpeedMHz, placement, ...times } satisfies Rested };
}

/** The record with its next incarnation. */
export const withRun = ({ rested: _over, ...vm }: VmRecord, run: Run): VmRecord => ({
  ...vm,
  incarnation: run.incarnation,
  run,
});

export const restedTimer = "rested/";
const setTimer = (state: ControllerState, uid: VmRecord["uid"], afterMs: number): void =>
  void state.outbox.effects.push({ kind: "timer", name: `${restedTimer}${uid}`, afterMs: Math.max(1, afterMs) });

export function restIsOver(state: ControllerState, uid: VmRecord["uid"]): void {
  const vm = state.vms.get(uid);
  if (vm?.rested === undefined) return;
  const leftMs = vm.rested.untilMs - state.now.wallMs;
  // A clock that was set forward or back is no reason for longer than that.
  if (leftMs > 0 && leftMs <= (vm.rested.lastsMs ?? presetMs)) {
    setTimer(state, uid, leftMs);
    return;
  }
  const { rested: _over, ...rest } = vm;
  saveVm(state, rest);
}
/** After a start no timer runs any more. */
export function resumeRests(state: ControllerState): void {
  for (const { uid, rested } of state.vms.values()) if (rested !== undefined) setTimer(state, uid, 1);
}
