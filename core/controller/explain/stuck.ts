import type { Cell } from "../../../model/cell/cell.ts";
import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import { dependenciesOf } from "../../../model/plan/plan.ts";
import type { ElementRecord } from "../records.ts";
import { type ControllerState, recordAt } from "../state.ts";

/**
 * Tells elements that stay as they are until somebody changes something: those that have failed, those of which something is owed
 * until a machine starts anew, and those that are not ready and need one of them. Whoever waits for the cell waits in vain for
 * these. Only what an element needs is looked at, however large the cell is.
 */
export function stuckIn(state: ControllerState): (record: ElementRecord) => boolean {
  const { cell } = state;
  if (cell === null || state.indexes.staying.size === 0) return () => false;
  const known = new Map<Uid, boolean>();
  const isStuck = (record: ElementRecord | undefined): boolean => {
    if (record === undefined || record.phase === "ready") return false;
    const { uid, path } = record;
    if (!known.has(uid)) {
      known.set(uid, state.indexes.staying.has(uid));
      if (needsOf(cell, path).some((need) => isStuck(recordAt(state, need)))) known.set(uid, true);
    }
    return known.get(uid) === true;
  };
  return isStuck;
}

const dependencies = new WeakMap<Cell, ReadonlyMap<ElementPath, readonly ElementPath[]>>();

/** Found once per model. A link is ready with its VM. */
function needsOf(cell: Cell, path: ElementPath): readonly ElementPath[] {
  const all = dependencies.get(cell) ?? dependenciesOf(cell);
  dependencies.set(cell, all);
  const needs = all.get(path) ?? [];
  const element = cell.elements.get(path);
  const isLink = element?.type === "VirtualInterface" || element?.type === "VolumeConnection";
  return isLink ? [...needs, element.vm] : needs;
}
