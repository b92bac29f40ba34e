import type { Cell } from "../../../model/cell/cell.ts";
import type { ElementPath } from "../../../model/cell/identifiers.ts";
import { sizeOf } from "../../../model/check/check-limits.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import { actualOf, type ControllerState, storageManagerOf } from "../state.ts";

/**
 * MiB that this model's volumes have been promised beyond what it says of them. A size that had no room may be written back, and
 * the Storage Manager may find the room before it hears of that; a copy whose `x.size` is left out keeps what it had. Volumes never
 * become smaller, so quotas count what was promised, and what is held for a copy. `plan`: how the model comes from the one in force; null: it is that one.
 */
export function beyondModel(state: ControllerState, cell: Cell | null, plan: Plan | null): number {
  let sum = heldMiB(state);
  if (cell === null) return sum;
  const formers = new Map<ElementPath, ElementPath | null>();
  for (const { path, action, movedFrom } of plan?.steps ?? []) {
    if (action === "create" || action === "replace") formers.set(path, null);
    else if (movedFrom !== undefined) formers.set(path, movedFrom);
  }
  for (const element of cell.elements.values()) {
    if (element.type !== "Volume" && element.type !== "VolumeCopy") continue;
    const former = formers.get(element.path);
    const uid = former === null ? undefined : state.uids.get(former ?? element.path);
    const promisedMiB = uid && actualOf(actualVolume, state, storageManagerOf(state), `volume/${uid}`)?.sizeMiB;
    const sizeMiB = sizeOf(element, cell);
    // What a copy of another cell's volume has is not known to the model, and not counted.
    if (sizeMiB > 0) sum += Math.max(0, (promisedMiB ?? 0) - sizeMiB);
  }
  return sum;
}

/** MiB of volumes that have left the model and stay until their copies are made (`holds.ts`): their cell has them until then. */
function heldMiB(state: ControllerState): number {
  let sum = 0;
  for (const uid of state.indexes.held.keys())
    sum += actualOf(actualVolume, state, storageManagerOf(state), `volume/${uid}`)?.sizeMiB ?? 0;
  return sum;
}
