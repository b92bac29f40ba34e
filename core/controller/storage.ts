import type { Element } from "../../model/cell.ts";
import type { Uid } from "../../model/identifiers.ts";
import type { DesiredConnection, DesiredGrant, DesiredVolume } from "../documents.ts";
import {
  type ControllerState,
  elementOf,
  inUse,
  isHeldBack,
  keepWish,
  mayBeWritten,
  recordAt,
  runs,
  storageManager,
  type Wishes,
  wish,
} from "./state.ts";

/**
 * Volumes, grants and connections at the Storage Manager. A copy is asked for at once: the Manager waits for its origin.
 * A volume that left the model stays desired while an incarnation still has it; a connection for as long as its
 * incarnation is not confirmed gone.
 */
export function wishForStorage(state: ControllerState, wishes: Wishes): void {
  const used = inUse(state);
  for (const record of state.elements.values()) {
    const element = elementOf(state, record);
    if (record.type === "Volume" || record.type === "VolumeCopy") {
      const volume =
        element === undefined || isHeldBack(state, record) ? null : volumeDocument(state, record.uid, element);
      const key = `volume/${record.uid}`;
      if (volume !== null) wish(wishes, storageManager, key, volume);
      else if (used.has(record.uid)) keepWish(state, wishes, storageManager, key);
    } else if (element?.type === "VolumeGrant") {
      const grant = grantDocument(state, record.uid, element);
      if (grant === null) continue;
      wish(wishes, storageManager, `grant/${record.uid}`, grant);
      if (grant.grant === "connect") mayBeWritten(state, grant.volume);
    }
  }
  for (const { vm, run } of runs(state)) {
    if (run.stage === "placing" || run.host === null) continue;
    for (const disk of run.disks) {
      mayBeWritten(state, disk.volume);
      wish(wishes, storageManager, `connection/${disk.connection}`, {
        uid: disk.connection,
        volume: disk.volume,
        vm,
        incarnation: run.incarnation,
        host: run.host,
        cell: state.options.cell,
      } satisfies DesiredConnection);
    }
  }
}

function volumeDocument(state: ControllerState, uid: Uid, element: Element): DesiredVolume | null {
  const common = { uid, cell: state.options.cell, path: element.path };
  if (element.type === "Volume") {
    const origin: DesiredVolume["origin"] =
      element.import === undefined ? { kind: "empty" } : { kind: "image", image: element.import };
    return { ...common, origin, sizeMiB: element.sizeMiB, access: element.access };
  }
  if (element.type !== "VolumeCopy") return null;
  const origin = recordAt(state, element.image);
  if (origin === undefined) return null;
  return {
    ...common,
    origin: { kind: "copy", volume: origin.uid },
    sizeMiB: element.sizeMiB ?? null,
    access: "rw",
  };
}

function grantDocument(
  state: ControllerState,
  uid: Uid,
  element: Extract<Element, { type: "VolumeGrant" }>,
): DesiredGrant | null {
  const volume = recordAt(state, element.volume);
  const vm = element.to.kind === "vm" ? recordAt(state, element.to.vm) : undefined;
  if (volume === undefined) return null;
  if (element.to.kind === "cell") {
    return { uid, volume: volume.uid, to: { domain: element.to.domain }, grant: element.grant };
  }
  return vm === undefined ? null : { uid, volume: volume.uid, to: { vm: vm.uid }, grant: element.grant };
}
