import type { VmElement } from "../../../model/cell/cell.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import { chooseAddress } from "../network/addresses.ts";
import { whyShut } from "../network/entrance.ts";
import { foreignLink, foreignVolume, whyNotVisible } from "../references/foreign.ts";
import { diskOf, keptBootDisk } from "../services/boot-disks.ts";
import { isService, serviceFault } from "../services/service-data.ts";
import {
  actualOf,
  type ControllerState,
  isHeldBack,
  linksOf,
  type RunDisk,
  recordAt,
  storageManagerOf,
} from "../state.ts";

/** What an incarnation that starts now would have, and what it must wait for; it may start when `missing` is empty. */
export interface Requirements {
  readonly disks: readonly RunDisk[];
  readonly interfaces: readonly Uid[];
  readonly missing: readonly string[];
}

/** A link that is not required and not ready is left out: it takes effect at the VM's next start. */
export function requirementsOf(state: ControllerState, vm: VmElement): Requirements {
  const disks: RunDisk[] = [];
  const interfaces: Uid[] = [];
  const missing: string[] = [];
  for (const element of linksOf(state, vm.path)) {
    const record = recordAt(state, element.path);
    if (record === undefined) continue;
    if (element.type === "VirtualInterface") {
      const shut = whyShut(state, record);
      if (shut !== null) missing.push(shut);
      else if (record.allocation !== null) interfaces.push(record.uid);
      else if (element.requires) {
        const choice = chooseAddress(state, record.uid, element);
        const why = typeof choice === "string" ? "gets its address" : choice.reason;
        missing.push(`waits for ${element.path}: ${why}`);
      }
      continue;
    }
    const kept = keptBootDisk(state, vm.path, record.uid);
    if (kept !== null) {
      disks.push(kept);
      continue;
    }
    const abroad = foreignLink(element.volume);
    if (abroad !== null) {
      const why = whyNotVisible(state, abroad, "volume");
      const foreign = foreignVolume(state, element.volume);
      if (foreign !== null) disks.push(diskOf(record.uid, foreign.uid, element));
      else if (element.requires && why !== null) missing.push(why.reason);
      continue;
    }
    const volume = recordAt(state, element.volume);
    const actual =
      volume === undefined ? undefined : actualOf(actualVolume, state, storageManagerOf(state), `volume/${volume.uid}`);
    if (volume !== undefined && !isHeldBack(state, volume) && actual?.phase === "ready") {
      disks.push(diskOf(record.uid, volume.uid, element));
    } else if (volume !== undefined && isHeldBack(state, volume)) {
      if (element.requires) missing.push(`waits for ${element.volume}: all-or-none, not everything could be had`);
    } else if (element.requires) {
      missing.push(`waits for ${element.volume}: ${actual?.reason ?? "the Storage Manager is making it"}`);
    }
  }
  if (isService(state, vm.data)) {
    const uid = recordAt(state, vm.path)?.uid;
    const fault = uid === undefined ? null : serviceFault(state, uid, vm.data);
    if (fault !== null) missing.push(fault);
    else if (interfaces.length === 0)
      missing.push("waits for an interface: nobody could reach its services without one");
  }
  return { disks, interfaces, missing };
}
