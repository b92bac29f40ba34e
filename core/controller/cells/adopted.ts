import type { Uid } from "../../../model/cell/identifiers.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { log, write } from "../../outbox.ts";
import { raiseUids } from "../histories/fork.ts";
import { numberOf } from "../histories/given-out.ts";
import { forgetGrant, saveGrant } from "../histories/kept-grants.ts";
import type { ElementRecord } from "../records.ts";
import { actualOf, type ControllerState, cellManager, childRecords, elementOf, saveElement } from "../state.ts";

/**
 * A cell whose store was lost declares its child anew, under a new UID, while the child lives under the one that it had. An operator
 * may say that it is the same one (`core/cells/unclaimed.ts`), and the Cell Manager passes that on: the element then gets the child's
 * UID, so that there is one name for the child everywhere, as before the loss.
 */
export function adoptChildren(state: ControllerState): void {
  for (const record of childRecords(state)) {
    if (elementOf(state, record) === undefined) continue;
    const is = actualOf(actualCell, state, cellManager, `cell/${record.uid}`)?.is;
    if (is !== undefined && mayBe(state, is)) rename(state, record, is);
  }
}

/** It is a number of this cell's own, and nothing that the cell has now. */
function mayBe(state: ControllerState, is: Uid): boolean {
  const number = numberOf(state.options.cellUid, is);
  if (state.elements.has(is) || state.grants.has(is) || number === null) return false;
  raiseUids(state, { peer: cellManager, key: `cell/${is}` }, is);
  return number < state.counters.nextNumber;
}

function rename(state: ControllerState, record: ElementRecord, is: Uid): void {
  const { uid: before, path } = record;
  const grant = state.grants.get(before);
  state.elements.delete(before);
  write(state.outbox, `element/${before}`, null);
  saveElement(state, { ...record, uid: is });
  state.uids.set(path, is);
  // The child knows grants of later serials: what it says of them is looked at next (quota.ts).
  if (grant !== undefined) saveGrant(state, is, grant);
  forgetGrant(state, before);
  state.forgotten.get(cellManager)?.delete(`cell/${is}`);
  log(state.outbox, "children/adopted", { path, uid: is, before });
}
