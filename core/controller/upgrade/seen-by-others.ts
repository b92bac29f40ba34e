import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import { directoryKey } from "../../documents/cells.ts";
import { type ControllerState, desiredNow, directory } from "../state.ts";

/**
 * Whether another cell may see a volume of this one, by which identity: of an image that an upgrade is under way to, the
 * former one is seen until the upgrade is complete. Null: none of them.
 */
export function seenByOthers(state: ControllerState): (uid: Uid, path: ElementPath) => Uid | null {
  const isUpgrading =
    state.options.root !== undefined &&
    [...state.indexes.upgrades.keys()].some((vm) => state.vms.get(vm)?.upgrade !== undefined);
  if (!isUpgrading) return (uid) => uid;
  const isShown = (uid: Uid): boolean => desiredNow(state, directory, directoryKey.public(uid)) !== undefined;
  const left = [...state.elements.values()].filter(({ type, deleting }) => type === "Volume" && deleting);
  return (uid, path) => {
    const formers = left.filter((record) => record.path === path);
    if (formers.length === 0 || isShown(uid)) return uid;
    return formers.find((former) => isShown(former.uid))?.uid ?? null;
  };
}
