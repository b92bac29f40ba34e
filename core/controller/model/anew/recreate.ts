import type { ElementPath } from "../../../../model/cell/identifiers.ts";
import { identify } from "../../../../model/plan/identity.ts";
import { planChange } from "../../../../model/plan/plan.ts";
import { inOneGo } from "../../../../model/slices.ts";
import { log } from "../../../outbox.ts";
import { type ControllerState, recordAt, saveCounters, saveElement } from "../../state.ts";
import { saidOver } from "../../vm/protected.ts";
import { isGivenUp, recreatableOf } from "../../vm/recreatable.ts";
import { adoptElements } from "../model-change.ts";

/**
 * Volumes of a machine whose host is lost, made anew at the HA Manager's word that nothing else ends what may write to them: the model stays
 * as it is, and the paths have new elements. Only then that word counts (`overOf`), so no incarnation ever has a volume to which an
 * earlier one may still write. The former volumes are deleted when their server can do it.
 */
export function recreateVolumes(state: ControllerState): void {
  const { cell } = state;
  if (cell === null || !state.ha) return;
  const anew = new Set<ElementPath>();
  state.pass.each("recreate", state.vms, (vm) => {
    const { uid, run } = vm;
    if (run === null || saidOver(state, uid, run)?.by !== "recreatable" || isGivenUp(state, run)) return;
    for (const path of recreatableOf(state, vm, run) ?? []) anew.add(path);
  });
  if (anew.size === 0) return;
  const steps = planChange(cell, cell).steps.map((step) => {
    const element = cell.elements.get(step.path);
    const isAnew = anew.has(step.path) || (element?.type === "VolumeConnection" && anew.has(element.volume));
    return isAnew ? { ...step, action: "replace" as const } : step;
  });
  const former = [...anew].map((path) => ({ path, uid: state.uids.get(path) ?? null }));
  const { uids, nextNumber } = identify(state.uids, { steps }, state.options.cellUid, state.counters.nextNumber);
  saveCounters(state, { nextNumber });
  inOneGo(adoptElements(state, cell, uids));
  for (const { path, uid } of former) {
    const record = recordAt(state, path);
    // What was deployed all or none before is not to be had as a whole once more.
    if (record !== undefined) saveElement(state, { ...record, reserving: false });
    log(state.outbox, "volume/recreated", { path, type: cell.elements.get(path)?.type ?? "Volume", uid });
  }
}
