import type { Plan } from "../../../model/plan/plan-types.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import { log } from "../../outbox.ts";
import type { ElementRecord } from "../records.ts";
import { actualOf, type ControllerState, saveElement, storageManagerOf } from "../state.ts";
import { trueSizeMiB } from "./true-size.ts";

/*
 * The order that gives up what is held (`holds.ts`): a copy that never is made, since its cell does not exist or nobody asks for it
 * any more, would else keep its volume, and with it the cell, for ever. It takes nothing out of the model: there a hold is taken back
 * by a change. What is destroyed is named one by one, as with every change that loses data.
 */

/** Volumes that have left the model and are held, at this path or below it; "": all. */
export const heldBelow = (state: ControllerState, path: string): readonly ElementRecord[] => {
  return [...state.indexes.held.keys()].flatMap((uid) => {
    const record = state.elements.get(uid);
    return record !== undefined && (path === "" || record.path === path || record.path.startsWith(`${path}/`))
      ? [record]
      : [];
  });
};

/** What the order would destroy, as a plan. */
export const planOfDropping = (state: ControllerState, held: readonly ElementRecord[]): Plan => ({
  steps: held.map(({ uid, path, type, unwritten }) => {
    const common = { path, type, action: "delete", causes: [], waitsFor: [] } as const;
    if (unwritten === true) return { ...common, losesData: false };
    const said = actualOf(actualVolume, state, storageManagerOf(state), `volume/${uid}`);
    return { ...common, losesData: true, loss: { sizeMiB: trueSizeMiB(said) } };
  }),
});

/** From now on they stay for no copy. */
export function dropHeld(state: ControllerState, held: readonly ElementRecord[]): void {
  for (const record of held) {
    const { held: dropped = [], ...rest } = record;
    const copies = dropped.map(({ hold }) => hold ?? "");
    log(state.outbox, "volume/hold-dropped", { path: record.path, uid: record.uid, copies });
    saveElement(state, { ...rest, letGo: true });
  }
}

export function nothingHeld(state: ControllerState, path: string): string {
  const where = path === "" ? `of the cell ${state.options.cell}` : `at ${path} or below it`;
  return `no volume ${where} that has left the model is held for a copy. What the model holds is let go there: remove the grant or its \`x.hold\`, and delete the volume then`;
}
