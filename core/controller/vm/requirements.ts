import { type Cause, said } from "../../../model/cause/cause.ts";
import type { VmElement } from "../../../model/cell/cell.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { elementPath } from "../../../model/cell/identifiers.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import { because } from "../changes/standing.ts";
import { chooseAddress, takenRange } from "../network/addresses.ts";
import { whyShut } from "../network/entrance.ts";
import { isOnMode } from "../network/instances.ts";
import type { RunDisk } from "../records.ts";
import { foreignLink, foreignVolume, whyNotVisible } from "../references/foreign.ts";
import { diskOf, keptBootDisk } from "../services/boot-disks.ts";
import { isService, serviceFault } from "../services/service-data.ts";
import { actualOf, type ControllerState, isHeldBack, linksOf, recordAt, storageManagerOf } from "../state.ts";
import { whyNoOffering } from "./places/offering.ts";

/** What an incarnation that starts now would have, and what it must wait for; it may start when `missing` is empty. */
export interface Requirements {
  readonly disks: readonly RunDisk[];
  readonly interfaces: readonly Uid[];
  readonly missing: readonly Cause[];
}

/** A link that is not required and not ready is left out: it takes effect at the VM's next start. */
export function requirementsOf(state: ControllerState, vm: VmElement): Requirements {
  const disks: RunDisk[] = [];
  const interfaces: Uid[] = [];
  const missing: Cause[] = [];
  const manager = storageManagerOf(state);
  for (const element of linksOf(state, vm.path)) {
    const record = recordAt(state, element.path);
    if (record === undefined) continue;
    if (element.type === "VirtualInterface") {
      // Its address comes once its host is known.
      if (isOnMode(state)) {
        interfaces.push(record.uid);
        continue;
      }
      const shut = whyShut(state, record);
      const subnet = recordAt(state, element.subnet);
      if (shut !== null) missing.push(shut);
      else if (subnet !== undefined && takenRange(state, subnet) !== null) {
        if (element.requires) missing.push({ kind: "waits-for", element: element.subnet });
      } else if (record.allocation !== null) interfaces.push(record.uid);
      else if (element.requires) {
        const choice = chooseAddress(state, record.uid, element);
        const why: Cause = typeof choice === "string" ? { kind: "address-asked" } : choice;
        missing.push({ kind: "waits-for", element: element.path, because: [why] });
      }
      continue;
    }
    const kept = keptBootDisk(state, vm.path, record.uid);
    if (kept !== null) {
      disks.push(kept);
      continue;
    }
    const want = foreignLink(element.volume);
    if (want !== null) {
      const why = whyNotVisible(state, want, "volume");
      const foreign = foreignVolume(state, element.volume, element.path);
      if (foreign !== null) disks.push(diskOf(record.uid, foreign.uid, element));
      else if (element.requires && why !== null) missing.push(why);
      continue;
    }
    const volume = recordAt(state, element.volume);
    const actual = volume === undefined ? undefined : actualOf(actualVolume, state, manager, `volume/${volume.uid}`);
    if (volume !== undefined && !isHeldBack(state, volume) && actual?.phase === "ready") {
      disks.push(diskOf(record.uid, volume.uid, element));
    } else if (element.requires) {
      // One that was given back with its deployment says so itself.
      const isGivenBack = volume !== undefined && isHeldBack(state, volume);
      const why = isGivenBack ? [] : said(manager, actual?.reason);
      missing.push({ kind: "waits-for", element: elementPath(element.volume), ...because(why) });
    }
  }
  if (isService(state, vm.data)) {
    const uid = recordAt(state, vm.path)?.uid;
    const fault = uid === undefined ? null : serviceFault(state, uid, vm.data);
    if (fault !== null) missing.push(fault);
    else if (interfaces.length === 0) missing.push({ kind: "no-interface" });
  }
  const notOffered = whyNoOffering(state, vm);
  if (notOffered !== null) missing.push(notOffered);
  return { disks, interfaces, missing };
}
