import type { Element, VolumeCopyElement } from "../../../model/cell/cell.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { actualVolume, desiredVolume } from "../../documents/readers/storage.ts";
import type { DesiredConnection, DesiredVolume } from "../../documents/vocabulary.ts";
import { type DesiredLetGo, letGoKey, mostHeldFor } from "../../documents/volumes.ts";
import type { Desires } from "../changes/desires.ts";
import { isInUse } from "../changes/in-use.ts";
import { straysOf } from "../histories/fork.ts";
import { keptDisks } from "../histories/kept-disks.ts";
import type { ElementRecord, Run } from "../records.ts";
import { foreignLink, foreignVolume } from "../references/foreign.ts";
import { isOwnVm } from "../services/service-data.ts";
import {
  actualOf,
  addDesire,
  type ControllerState,
  desiredNow,
  elementOf,
  isHeldBack,
  keepDesire,
  mayBeWritten,
  recordAt,
  storageManagerOf,
} from "../state.ts";
import { grantDocument } from "./grants.ts";
import { heldForOf, holdsOf, isKept, noteCopied, noteKept, stillHeld } from "./holds.ts";

/**
 * Volumes, grants and connections at the Storage Manager. A copy is asked for at once: the Manager waits for its origin.
 * A volume that left the model stays desired while an incarnation still has it, or it is held for a copy; a connection for as long as its
 * incarnation is not confirmed gone.
 */
export function desireStorage(state: ControllerState): void {
  state.pass.each("volumes", state.elements, (record, _uid, desires) => desireVolume(state, record, desires), {
    of: ({ type }) => type === "Volume" || type === "VolumeCopy" || type === "VolumeGrant",
  });
  state.pass.each("connections", state.vms, (vm, uid, desires) => {
    if (vm.run !== null) desireConnections(state, uid, vm.run, desires);
    for (const kept of keptDisks(state, vm, straysOf(state, vm)))
      addDesire(desires, storageManagerOf(state), `connection/${kept.uid}`, kept);
  });
}

function desireVolume(state: ControllerState, record: ElementRecord, desires: Desires): void {
  const element = elementOf(state, record);
  if (record.type === "Volume" || record.type === "VolumeCopy") {
    const volume = element === undefined || isHeldBack(state, record) ? null : volumeDocument(state, record, element);
    const key = `volume/${record.uid}`;
    if (volume !== null) addDesire(desires, storageManagerOf(state), key, volume);
    else {
      if (record.deleting) noteKept(state, record);
      const held = record.deleting ? stillHeld(state, record) : [];
      for (const grant of held) addDesire(desires, storageManagerOf(state), `grant/${grant.uid}`, grant);
      if (held.length > 0 || isInUse(state, record.uid)) keepDesire(state, desires, storageManagerOf(state), key);
      else if (record.letGo === true && isKept(state, record))
        addDesire(desires, storageManagerOf(state), letGoKey(record.uid), { uid: record.uid } satisfies DesiredLetGo);
    }
  } else if (element?.type === "VolumeGrant") {
    const grant = grantDocument(state, record.uid, element);
    if (grant === null) return;
    addDesire(desires, storageManagerOf(state), `grant/${record.uid}`, grant);
    noteCopied(state, record, grant);
    if (grant.grant === "connect") mayBeWritten(state, grant.volume);
  }
}

function desireConnections(state: ControllerState, vm: Uid, run: Run, desires: Desires): void {
  if (run.stage === "placing" || run.host === null) return;
  for (const disk of [...run.disks, ...(run.spare === undefined ? [] : [run.spare])]) {
    mayBeWritten(state, disk.volume);
    addDesire(desires, storageManagerOf(state), `connection/${disk.connection}`, {
      uid: disk.connection,
      volume: disk.volume,
      vm,
      incarnation: run.incarnation,
      host: run.host,
      cell: state.options.cell,
      ...(isOwnVm(state, vm) ? { succession: true as const } : {}),
      ...(state.vms.get(vm)?.endedAt === undefined ? {} : { asksFirst: true as const }),
    } satisfies DesiredConnection);
  }
}

function volumeDocument(state: ControllerState, record: ElementRecord, element: Element): DesiredVolume | null {
  const heldFor = heldForOf(holdsOf(state, record)).slice(0, mostHeldFor);
  const common = {
    uid: record.uid,
    cell: state.options.cell,
    path: element.path,
    ...(heldFor.length === 0 ? {} : { heldFor }),
  };
  if (element.type === "Volume") {
    const origin: DesiredVolume["origin"] =
      element.import === undefined ? { kind: "empty" } : { kind: "image", image: element.import };
    return { ...common, origin, sizeMiB: element.sizeMiB, access: element.access };
  }
  if (element.type !== "VolumeCopy") return null;
  const origin = recordAt(state, element.image)?.uid ?? foreignOrigin(state, record.uid, element);
  if (origin === null) return null;
  return {
    ...common,
    origin: { kind: "copy", volume: origin },
    sizeMiB: element.sizeMiB ?? null,
    access: "rw",
  };
}

/**
 * A copy that was made once is there, whatever its origin's cell shows now. One that has found no origin was not made: that cell may have made
 * its volume anew since, and nobody would ever let the former one be copied.
 */
function foreignOrigin(state: ControllerState, copy: Uid, { image: link, path }: VolumeCopyElement): Uid | null {
  if (foreignLink(link) === null) return null;
  const shown = foreignVolume(state, link, path)?.uid ?? null;
  const manager = storageManagerOf(state);
  const before = desiredVolume.of(desiredNow(state, manager, `volume/${copy}`));
  if (before?.origin.kind !== "copy") return shown;
  const isHidden = actualOf(actualVolume, state, manager, `volume/${copy}`)?.hidden === true;
  return (isHidden ? shown : null) ?? before.origin.volume;
}
