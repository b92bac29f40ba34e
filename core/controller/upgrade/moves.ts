import type { Cause } from "../../../model/cause/cause.ts";
import type { VmElement } from "../../../model/cell/cell.ts";
import { type HostName, hostPeer } from "../../../model/cell/identifiers.ts";
import { log } from "../../outbox.ts";
import type { Run, VmRecord } from "../records.ts";
import { serviceVms } from "../services/boot-disks.ts";
import { isOwnVm, isService, servicesOf } from "../services/service-data.ts";
import { type ControllerState, elementOf, saveVm } from "../state.ts";
import { actualVmOf, stopRun, wantedOn } from "../vm/life-cycle.ts";
import { placementOf } from "../vm/places/placement.ts";
import { isWell } from "./upgrade.ts";

/*
 * A VM goes to another host (decision 102): the incarnation that runs is stopped in order, and once its host has confirmed that, the next one
 * starts where the Placer has kept room for it, with the same volumes. Nothing is stopped before there is such room. That the operator
 * asked for it (`VmRecord.move`) is durable, and that a host is in maintenance is the Placer's to say; so it does not matter who is
 * started again in the middle.
 *
 * Services of the cloud go one after the other: the next one when all others are well. The VM of the root controller goes by its hosts alone.
 */

/** A VM that is to leave: where it goes now, or what it waits for. */
export type Leaving = { readonly to: HostName } | { readonly waits: Cause };

/** Null: it stays where it is. */
export function leavingOf(state: ControllerState, vm: VmRecord, run: Run): Leaving | null {
  const leave = run.host === null ? undefined : placementOf(state, vm.uid, run)?.leave;
  if (leave === undefined || run.host === null || run.stage !== "running") return null;
  const { host } = run;
  if (isOwnVm(state, vm.uid)) return { waits: { kind: "leaves-with-its-host", host } };
  const { to, ...refused } = leave;
  if (to === null) return { waits: { kind: "cannot-leave", host, ...refused } };
  const other = heldUpBy(state, vm);
  return other === null ? { to } : { waits: { kind: "leaves-after", host, vm: other.path } };
}

/** A service that others rest on, and not the controller of a cell alone. */
const isRestedOn = (state: ControllerState, { data }: VmElement): boolean => {
  const services = isService(state, data) ? servicesOf(state.options, data) : null;
  return services?.ok === true && services.value.some(({ role }) => role !== "controller");
};

/** Another VM of the management that is not well, while this one is of it too; or itself, on trial with another image. */
function heldUpBy(state: ControllerState, vm: VmRecord): VmElement | null {
  const record = state.elements.get(vm.uid);
  const element = record === undefined ? undefined : elementOf(state, record);
  if (element?.type !== "VM") return null;
  if (vm.upgrade?.trying !== undefined) return element;
  if (!isRestedOn(state, element)) return null;
  const isInTheWay = (other: VmElement): boolean =>
    other.path !== element.path && other.desiredState === "on" && isRestedOn(state, other) && !isWell(state, other);
  return serviceVms(state).find(isInTheWay) ?? null;
}

/** @returns whether VMs have something to do for it */
export function advanceMoves(state: ControllerState): boolean {
  let stopped = false;
  state.pass.each("moves", state.vms, (vm) => {
    if (vm.move !== undefined) forgetDone(state, vm);
    const { run } = vm;
    if (run === null || wantedOn(state, vm.uid) === null) return;
    const leaving = leavingOf(state, vm, run);
    if (leaving === null || !("to" in leaving) || run.host === null) return;
    // Who is not heard cannot be asked to stop it, and nobody would know when it has.
    const isHeard = state.reachable.get(hostPeer(run.host)) === true;
    if (!isHeard || actualVmOf(state, vm.uid, run)?.power !== "on") return;
    const path = state.elements.get(vm.uid)?.path ?? null;
    log(state.outbox, "vm/moves", { vm: vm.uid, path, incarnation: run.incarnation, from: run.host, to: leaving.to });
    stopRun(state, vm.uid);
    stopped = true;
  });
  return stopped;
}

/** It was done, or is wanted no more. */
function forgetDone(state: ControllerState, vm: VmRecord): void {
  const { move, ...rest } = vm;
  const isLater = vm.run !== null && vm.run.host !== null && vm.run.incarnation !== move?.incarnation;
  if (isLater || wantedOn(state, vm.uid) === null) saveVm(state, rest);
}
