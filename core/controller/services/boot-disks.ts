import type { Cell, VmElement, VolumeConnectionElement } from "../../../model/cell/cell.ts";
import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import type { RunDisk } from "../records.ts";
import { type ControllerState, linksIn, recordAt } from "../state.ts";
import { isOwnVmElement, isService } from "./service-data.ts";

/** Which disk a service VM boots from: by the model, and now. How it comes from one to the other: upgrade.ts. */

/** A machine boots from the disk with the lowest number. */
export const byBootOrder = (one: { readonly bootOrder?: number | null }, other: typeof one): number =>
  (one.bootOrder ?? Number.POSITIVE_INFINITY) - (other.bootOrder ?? Number.POSITIVE_INFINITY);

/** In document order. */
export const serviceVms = (state: ControllerState): readonly VmElement[] =>
  [...(state.cell?.elements.values() ?? [])].flatMap((element) =>
    element.type === "VM" && isService(state, element.data) ? [element] : [],
  );

/** The connection that a VM boots through, by the present model. */
export function bootLink(state: ControllerState, vm: ElementPath): VolumeConnectionElement | undefined {
  return state.cell === null ? undefined : bootLinkIn(state.cell, vm);
}
/** By a model that may not be the present one. */
export function bootLinkIn(cell: Cell, vm: ElementPath): VolumeConnectionElement | undefined {
  const disks = linksIn(cell, vm).filter((link) => link.type === "VolumeConnection");
  return [...disks].sort(byBootOrder)[0];
}

export function targetOf(state: ControllerState, vm: ElementPath): RunDisk | undefined {
  const link = bootLink(state, vm);
  const record = link === undefined ? undefined : recordAt(state, link.path);
  const volume = link === undefined ? undefined : recordAt(state, link.volume);
  return link === undefined || record === undefined || volume === undefined
    ? undefined
    : diskOf(record.uid, volume.uid, link);
}

/** The boot disk that an incarnation which starts now has; null: the one that the model says. */
export function keptBootDisk(state: ControllerState, vm: ElementPath, connection: Uid): RunDisk | null {
  const uid = state.uids.get(vm);
  const upgrade = uid === undefined ? undefined : state.vms.get(uid)?.upgrade;
  if (upgrade === undefined || (upgrade.trying === connection && !isOwnVmElement(state, state.cell?.elements.get(vm))))
    return null;
  return targetOf(state, vm)?.connection === connection ? upgrade.from : null;
}

/** A disk as the next incarnation has it. */
export const diskOf = (connection: Uid, volume: Uid, element: VolumeConnectionElement): RunDisk => ({
  connection,
  volume,
  busType: element.busType,
  busNumber: element.busNumber ?? null,
  busSlot: element.busSlot ?? null,
  bootOrder: element.bootOrder ?? null,
});
