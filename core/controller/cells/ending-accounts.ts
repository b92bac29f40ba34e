import { removeAt } from "../../../model/cell/document.ts";
import { unknownSupply } from "../../../model/check/check-supply.ts";
import { inOneGo } from "../../../model/slices.ts";
import { checkDocumentInSlices } from "../../../model/specification/specification.ts";
import { cellCounts } from "../model/account-limits.ts";
import { acceptModel, planFor } from "../model/model-change.ts";
import { endingOwners, isOwner } from "../services/ending-owners.ts";
import type { ControllerState } from "../state.ts";
import { whyClosed } from "./life.ts";

/**
 * Cells of an account that is being deleted leave the root cell's model: each then ends as if it had been taken out by hand, its children
 * first. Once there are none, whose hosts are the account's, or the domain's, are nobody's again; not before, or others' VMs would come beside what still
 * runs. How many are left is said with what the account was granted. Whoever asked for it has named them (`core/tenancy/deletion/`).
 */
export function endAccounts(state: ControllerState): void {
  const { cell, model } = state;
  if (cell === null || model.document === null) return;
  const owners = endingOwners(state);
  if (owners.length === 0) return;
  const accounts = new Set(owners.flatMap(({ kind, path }) => (kind === "account" ? [path] : [])));
  const cellsOf = cellCounts(state);
  const left = owners.filter((each) => cellsOf(each) === 0);
  const [cells, dedications]: [string[], string[]] = [[], []];
  for (const element of cell.elements.values()) {
    if (element.type === "CellController" && accounts.has(element.account ?? "")) cells.push(element.path);
    if (element.type === "Dedication" && left.some((owner) => isOwner(owner, element))) dedications.push(element.path);
  }
  // Of a store that is older nobody knows yet what is in its model.
  if (cells.length + dedications.length === 0 || whyClosed(state) !== null) return;
  // Each cell that ends has a record of its own in the audit.
  for (const path of cells) takeOut(state, [path]);
  // Hosts of one may be hundreds: what is looked at for a change is the whole model, and so these are one change.
  const isOne = dedications.length > 1 && takeOut(state, dedications);
  for (const path of isOne ? [] : dedications) takeOut(state, [path]);
}

/** False: what refers to one of them keeps it there; the count that is said of the account shows it. */
function takeOut(state: ControllerState, paths: readonly string[]): boolean {
  let { document } = state.model;
  for (const path of paths) {
    const removed = document === null ? null : removeAt(document, path);
    if (removed === null || !removed.ok) return false;
    document = removed.value;
  }
  const next = document === null ? null : inOneGo(checkDocumentInSlices(document, unknownSupply));
  if (next === null || !next.ok) return false;
  const what = paths.length > 1 ? { what: `and ${paths.length - 1} dedications more` } : {};
  const asked = { verb: "deleteElement", target: paths[0] ?? "", ...what };
  return acceptModel(state, next.value, inOneGo(planFor(state, next.value)), asked).length === 0;
}
