import { rootCell } from "../../documents/cells.ts";
import type { DesiredOwner } from "../../documents/tenancy.ts";
import { write } from "../../outbox.ts";
import { accountAt, notePayers, operatorUid, save, type TenancyState } from "../state.ts";

/*
 * Whose a cell is. Where there is a root cell its model says that (`x.account`), and its controller says it on; nobody else's word counts, a
 * gateway's least of all. Where the services are processes of one machine there is no root cell, and it is a record here. A record of before a
 * root model said such things counts for a cell of which that says nothing.
 */

/** Is there a root cell, which says whose the cells are? One that has none at the moment is there all the same: its controller still counts what is whose. */
export const isKept = ({ hasRoot }: TenancyState): boolean => hasRoot;

/** The root controller has said something. That it did outlasts what it said. */
export function noteRoot(state: TenancyState): void {
  if (state.hasRoot) return;
  state.hasRoot = true;
  write(state.outbox, rootRecord, { heard: true });
}
/** Key of the record that there is a root cell. */
export const rootRecord = "root";

export function takeOwner(state: TenancyState, key: string, document: DesiredOwner | null): void {
  const before = state.owners.get(key);
  if (before !== undefined) forget(state, before);
  if (document === null) state.owners.delete(key);
  else {
    noteRoot(state);
    state.owners.set(key, document);
    const all = state.ownersOf.get(document.cell) ?? new Set();
    state.ownersOf.set(document.cell, all.add(document));
    notePayers(state, [document]);
  }
}
function forget(state: TenancyState, document: DesiredOwner): void {
  state.payers.drop(document);
  const all = state.ownersOf.get(document.cell);
  all?.delete(document);
  if (all?.size === 0) state.ownersOf.delete(document.cell);
}

/** UID of the account of a cell that is in no other; null: nobody has given it to any. */
export function givenTo(state: TenancyState, cell: string): string | null {
  const recorded = state.tables.owner.get(cell)?.account ?? null;
  const said = [...(state.ownersOf.get(cell) ?? [])];
  // While one of a name ends, the next one waits: what may be seen is that of the former.
  const ending = said.filter((each) => each.ending === true);
  const accounts = new Set((ending.length > 0 ? ending : said).map(({ account }) => account));
  const [account = null] = accounts;
  // Words that contradict one another give it to nobody.
  if (accounts.size > 1) return null;
  if (account === null) return recorded;
  return accountAt(state, account)?.uid ?? null;
}

/** UID of its account. A child cell belongs to whom the cell around it belongs to. */
export const ownerOf = (state: TenancyState, cell: string): string =>
  givenTo(state, cell.split(".").at(-1) ?? cell) ?? operatorUid;

/** A name that nobody has, as far as it is known here. */
export const isFree = (state: TenancyState, cell: string): boolean =>
  cell !== rootCell && !state.ownersOf.has(cell) && !state.tables.owner.has(cell);

/** Every cell that was given to an account, in the order of their names. */
export function* owned(state: TenancyState): Generator<readonly [cell: string, account: string]> {
  for (const cell of [...new Set([...state.tables.owner.keys(), ...state.ownersOf.keys()])].sort()) {
    const account = givenTo(state, cell);
    if (account !== null) yield [cell, account];
  }
}
/** By account: names of its cells, sorted. Of the operator's those that were given to it alone. */
export function cellsByAccount(state: TenancyState): ReadonlyMap<string, readonly string[]> {
  const cells = new Map<string, string[]>();
  for (const [cell, account] of owned(state)) cells.set(account, [...(cells.get(account) ?? []), cell]);
  return cells;
}

/** The former record of a cell that its root model gives to somebody now. */
export function dropRecord(state: TenancyState, cell: string): void {
  if (state.tables.owner.has(cell)) save(state, "owner", cell, null);
}
