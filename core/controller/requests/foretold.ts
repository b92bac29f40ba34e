import type { Changed } from "../../../model/api.ts";
import type { Cell } from "../../../model/cell/cell.ts";
import { cellName } from "../../../model/cell/identifiers.ts";
import { givenAnew } from "../../../model/cell/tenants/dedication/given-anew.ts";
import { uncheckedIn } from "../../../model/check/check-supply.ts";
import { declaredIn } from "../../../model/check/root-cell/check-tenants.ts";
import { foreseenOf } from "../../../model/plan/foreseen.ts";
import { openedBy } from "../../../model/plan/opened.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { childName } from "../../documents/cells.ts";
import { isRoot } from "../services/hosts.ts";
import { boundOf, type ControllerState, offersOf } from "../state.ts";
import { shownWithin, type Within } from "./credentials/within.ts";

/** What can be said of a change before it is made, beside its plan. Whoever has a part of the cell is told of that part. */
export function foretold(
  state: ControllerState,
  cell: Cell | null,
  plan: Plan,
  { dryRun, within }: { readonly dryRun: boolean; readonly within: Within | undefined },
): Pick<Changed, "unchecked" | "foreseen" | "opened" | "dedicates"> {
  const offers = offersOf(state);
  const unchecked = dryRun && cell !== null ? uncheckedIn(offers) : [];
  const foreseen = cell === null ? [] : shownWithin(within, foreseenOf(cell, plan, offers.storage));
  const own = cellName(state.options.cell);
  const opened =
    within === undefined ? openedBy(state.cell, cell, boundOf(state), (label) => childName(own, label)) : [];
  const dedicates = dryRun && cell !== null && isRoot(state) ? givenAnew(state.cell, cell, declaredIn(cell)) : [];
  return {
    ...(dedicates.length > 0 ? { dedicates } : {}),
    ...(unchecked.length > 0 ? { unchecked } : {}),
    ...(foreseen.length > 0 ? { foreseen } : {}),
    ...(opened.length > 0 ? { opened } : {}),
  };
}
