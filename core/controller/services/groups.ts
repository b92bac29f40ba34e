import { type DesiredGroup, groupKey } from "../../documents/tenancy.ts";
import { addDesire, type ControllerState, elementOf, placerOf } from "../state.ts";

/** Affinity groups of the cell: its Placer has them of all cells of the account, by their names. */
export function desireGroups(state: ControllerState): void {
  state.pass.each(
    "groups",
    state.elements,
    (record, uid, desires) => {
      const element = elementOf(state, record);
      if (element?.type !== "AffinityGroup") return;
      const { path, kind } = element;
      const name = path.slice(path.lastIndexOf("/") + 1);
      addDesire(desires, placerOf(state), groupKey(uid), { uid, path, name, kind } satisfies DesiredGroup);
    },
    { of: ({ type }) => type === "AffinityGroup" },
  );
}
