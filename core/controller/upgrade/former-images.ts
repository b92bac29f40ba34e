import type { Cell, Element } from "../../../model/cell/cell.ts";
import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import { desiredVolume } from "../../documents/readers/storage.ts";
import { isInUse } from "../changes/in-use.ts";
import type { ElementRecord } from "../records.ts";
import { foreignVolume } from "../references/foreign.ts";
import { type ControllerState, desiredNow, storageManagerOf } from "../state.ts";

/**
 * The former image again, while VMs still run from it or are kept for it: what the model wants is there under its old
 * identity. It is taken up, so that a VM that was not upgraded yet has nothing to be done, and one that was, goes back to
 * what it had. Elsewhere a volume that has left the model never comes back: this is about copies of images alone.
 */
export function withKept(
  state: ControllerState,
  cell: Cell,
  uids: ReadonlyMap<ElementPath, Uid>,
): ReadonlyMap<ElementPath, Uid> {
  const kept = keptRecords(state);
  if (kept.size === 0) return uids;
  const found = new Map(uids);
  // Images before copies, copies before connections: each is the same if what it is made from is.
  for (const type of ["Volume", "VolumeCopy", "VolumeConnection"] as const) {
    for (const element of cell.elements.values()) {
      const isNew = element.type === type && !state.elements.has(found.get(element.path) ?? ("" as Uid));
      const same = isNew
        ? kept.get(element.path)?.find((record) => record.type === type && isSame(state, found, record, element))
        : undefined;
      if (same !== undefined) found.set(element.path, same.uid);
    }
  }
  return found;
}

/** What has left the model and is held for the return of some VM, by path. */
function keptRecords(state: ControllerState): ReadonlyMap<ElementPath, readonly ElementRecord[]> {
  if ([...state.vms.values()].every(({ upgrade }) => upgrade === undefined)) return new Map();
  const records = [...state.elements.values()].filter(({ uid, deleting }) => deleting && isInUse(state, uid));
  return Map.groupBy(records, ({ path }) => path);
}

function isSame(
  state: ControllerState,
  uids: ReadonlyMap<ElementPath, Uid>,
  { uid }: ElementRecord,
  element: Element,
): boolean {
  if (element.type === "VolumeConnection") {
    const vm = uids.get(element.vm);
    const from = vm === undefined ? undefined : state.vms.get(vm)?.upgrade?.from;
    return from?.connection === uid && from.volume === uids.get(element.volume) && from.busType === element.busType;
  }
  const document = desiredVolume.of(desiredNow(state, storageManagerOf(state), `volume/${uid}`));
  if (document === null || document.sizeMiB !== ("sizeMiB" in element ? (element.sizeMiB ?? null) : null)) return false;
  const { origin, access } = document;
  if (element.type === "VolumeCopy") {
    const image = uids.get(element.image) ?? foreignVolume(state, element.image, element.path)?.uid;
    return origin.kind === "copy" && origin.volume === image;
  }
  return (
    element.type === "Volume" && origin.kind === "image" && origin.image === element.import && access === element.access
  );
}
