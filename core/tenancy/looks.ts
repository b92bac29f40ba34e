import { type CellName, cellName } from "../../model/cell/identifiers.ts";
import { allows } from "../../model/contract/tenancy/rules.ts";
import { rootCell } from "../documents/cells.ts";
import type { ActualLook } from "../documents/tenancy.ts";
import { cellOfController, publishValue } from "../outbox.ts";
import { delegatedTo } from "./delegations/given.ts";
import { givenTo, isFree, isKept, ownerOf } from "./owners/owners.ts";
import type { RoleRecord, UserRecord } from "./records.ts";
import {
  accountPath,
  isReached,
  type Look,
  labelOf,
  rightsOf,
  save,
  type TenancyState,
  userOfSession,
  watcherOf,
} from "./state.ts";

/*
 * What tickets are worth, as each controller hears it. Whatever changes, all that is said is looked at again: a right that was taken back
 * is a publication like any other, and there is no change of which somebody would have to remember that it takes rights back.
 */

/** From the issue until the cell's controller has asked. */
export const askWithinMs = 60_000;
const nothing: ActualLook = { open: false, user: "", account: "", rules: [] };

/** What the bearer of a session may with a cell; null: the cell is not there for him. */
export function mayWithCell(state: TenancyState, session: string, cell: string): ActualLook | null {
  const watcher = watcherOf(state, session, cell);
  const user = watcher ?? userOfSession(state, session);
  const given = user === undefined ? null : rightsAt(state, user, cell);
  if (user === undefined || given === null) return null;
  if (watcher === undefined) return openTo(state, session, user, ownerOf(state, cell), given);
  return allows(given.rules, watched) ? openTo(state, session, user, ownerOf(state, cell), onlyRead) : null;
}
/** What whoever watches a cell for somebody may do there. */
const watched = "cell.read";
const onlyRead = { rules: [{ verb: watched, effect: "allow" }] } as const;

/** What a user may with a cell; null: the cell is not there for him. */
export function rightsAt(state: TenancyState, user: UserRecord, cell: string): Pick<RoleRecord, "rules"> | null {
  const role = rightsOf(state, user);
  const account = ownerOf(state, cell);
  // What runs the cloud is opened by the operator's credential alone, which nobody here knows.
  if (role === null || cell === rootCell) return null;
  return isReached(state, user, role, account) ? role : delegatedTo(state, user, account, cell);
}
const openTo = (
  state: TenancyState,
  session: string,
  user: UserRecord,
  account: string,
  { rules }: Pick<RoleRecord, "rules">,
): ActualLook => ({
  open: true,
  user: labelOf(state, user),
  account: accountPath(state, account),
  rules,
  session: session.slice(0, shownOfHash),
});
/** A session is known by so many digits of its hash. */
export const shownOfHash = 12;

/**
 * What he may with one child cell of the root cell, at the root controller, which makes it and ends it; null: the cell is not there for him, and
 * its name is not to be had. That of a name that is free is his account's to be.
 */
export function mayWithChild(state: TenancyState, session: string, child: string): ActualLook | null {
  const user = userOfSession(state, session);
  const role = rightsOf(state, user);
  if (user === undefined || role === null || !isKept(state) || reservedNames.includes(child)) return null;
  if (child.includes(".") || (isFree(state, child) && !allows(role.rules, "cell.create"))) return null;
  const account = isFree(state, child) ? user.account : givenTo(state, child);
  if (account === null || !isReached(state, user, role, account)) return null;
  return { ...openTo(state, session, user, account, role), child: cellName(child) };
}
/** Names of cells that mean something else, whoever asks. */
const reservedNames: readonly string[] = [rootCell, "primary", "controller"];

/** A ticket is worth something to the controller of the cell that it was issued for, and to no other. */
function worthOf(state: TenancyState, { controller, ticket }: Look): ActualLook {
  const issued = state.tables.ticket.get(ticket);
  if (issued === undefined || issued.cell !== cellOfController(controller)) return nothing;
  return worthAt(state, issued.session, issued.cell, issued.child) ?? nothing;
}

/** @param child at the root cell, the one that the ticket is for */
export const worthAt = (
  state: TenancyState,
  session: string,
  cell: string,
  child: CellName | undefined,
): ActualLook | null =>
  cell === rootCell && child !== undefined ? mayWithChild(state, session, child) : mayWithCell(state, session, cell);

/** Says of every look, or of those at these tickets, what it is worth now, where that is another thing than was said last. */
export function publishLooks(state: TenancyState, tickets: ReadonlySet<string> | "all"): void {
  if (!state.started || (tickets !== "all" && tickets.size === 0)) return;
  for (const [key, look] of state.looks)
    if (tickets === "all" || tickets.has(look.ticket)) publishLook(state, key, look);
}
function publishLook(state: TenancyState, key: string, look: Look | null): void {
  publishValue(state.outbox, key, look === null ? null : worthOf(state, look));
}

/** Of a session, or of those sessions that are over. */
export function dropTickets(state: TenancyState, isOver: (session: string) => boolean): void {
  for (const [hash, { session }] of state.tables.ticket)
    if (isOver(session)) {
      state.unused.delete(hash);
      save(state, "ticket", hash, null);
    }
}

/** What no controller has asked about in time is worth nothing any more. */
export function dropUnused(state: TenancyState): void {
  for (const [hash, untilMs] of state.unused) {
    if (untilMs > state.now.ms) continue;
    state.unused.delete(hash);
    save(state, "ticket", hash, null);
  }
}

export function takeLook(state: TenancyState, key: string, look: Look | null): void {
  const { ticket, controller } = look ?? state.looks.get(key) ?? { ticket: "" };
  // Whoever else has asked about it changes nothing of it.
  const isOwn = controller !== undefined && state.tables.ticket.get(ticket)?.cell === cellOfController(controller);
  if (isOwn) state.unused.delete(ticket);
  if (look === null) {
    if (isOwn) save(state, "ticket", ticket, null);
    if (state.looks.delete(key)) publishLook(state, key, null);
    return;
  }
  state.looks.set(key, look);
  if (state.started) publishLook(state, key, look);
}
