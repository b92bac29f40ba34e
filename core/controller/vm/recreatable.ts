import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import type { Run, VmRecord } from "../records.ts";
import { isService } from "../services/service-data.ts";
import { type ControllerState, elementOf } from "../state.ts";

/*
 * An incarnation all of whose volumes may be lost (`x.recreatable`) needs no fence: they are given up, and its next incarnation has
 * others (`model/anew/recreate.ts`). What goes on writing to the former ones, nobody reads.
 */

/** What an incarnation may write to, as paths of the model; null: something of it may not be lost, or nothing of it is written. */
export function recreatableOf(
  state: ControllerState,
  { uid, upgrade }: VmRecord,
  run: Run,
): readonly ElementPath[] | null {
  if (upgrade !== undefined || run.spare !== undefined) return null;
  const own = state.elements.get(uid);
  const vm = own === undefined ? undefined : elementOf(state, own);
  // What the management is made of has its boot volumes by upgrades. One that has left the model leaves its volumes behind as well.
  if (vm?.type !== "VM" || isService(state, vm.data)) return null;
  const written = writtenBy(state, run);
  const paths = written.map((volume) => {
    const record = state.elements.get(volume);
    const element = record === undefined ? undefined : elementOf(state, record);
    const isSuch = (element?.type === "Volume" || element?.type === "VolumeCopy") && element.recreatable;
    return isSuch ? element.path : null;
  });
  return paths.length === 0 || paths.includes(null) ? null : paths.filter((each) => each !== null);
}

/** Everything that it may write to has left the model. A volume of another cell never has. */
export const isGivenUp = (state: ControllerState, run: Run): boolean =>
  writtenBy(state, run).every((volume) => state.elements.get(volume)?.deleting === true);

function writtenBy(state: ControllerState, run: Run): readonly Uid[] {
  return [...run.disks, ...(run.spare === undefined ? [] : [run.spare])].flatMap(({ volume }) => {
    const record = state.elements.get(volume);
    const element = record === undefined ? undefined : elementOf(state, record);
    return element?.type === "Volume" && element.access === "ro" ? [] : [volume];
  });
}
