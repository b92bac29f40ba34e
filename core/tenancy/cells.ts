import type { CellName } from "../../model/cell/identifiers.ts";
import { allows, decide, ruleText } from "../../model/contract/tenancy/rules.ts";
import type { CanAnswer, CellOwner } from "../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { rootCell } from "../documents/cells.ts";
import { type Actor, actorOf, type By, denied, reaches } from "./actor.ts";
import { delegatedTo } from "./delegations/given.ts";
import { askWithinMs, worthAt } from "./looks.ts";
import { dropRecord, isFree, isKept, owned, ownerOf } from "./owners/owners.ts";
import { accountFor } from "./places.ts";
import type { UserRecord } from "./records.ts";
import { noSuch, type Refused, refused } from "./refused.ts";
import {
  accountAt,
  accountPath,
  domainAt,
  hasItsShare,
  isReached,
  labelOf,
  loginKey,
  operatorUid,
  rightsOf,
  save,
  type TenancyState,
  volumesWatcherOf,
  watcherOf,
} from "./state.ts";

/* Whose a cell is, and what a session may do with it. */

const most = { tickets: 100_000, cells: 100_000 } as const;

/** As a controller that is not there answers. */
const noCell = (cell: string): Refused => refused(404, "not-found", `there is no cell "${cell}"`);

export function issueTicket(
  state: TenancyState,
  session: string,
  { hash, cell, child }: { readonly hash: string; readonly cell: string; readonly child?: CellName },
): Result<CellOwner, Refused> {
  const watcher = watcherOf(state, session, cell);
  const actor = watcher === undefined ? actorOf(state, { session }) : ok({ user: watcher });
  if (!actor.ok) return actor;
  const worth = worthAt(state, session, cell, child);
  if (worth === null) return fail(noCell(child ?? cell));
  if (state.tables.ticket.size >= most.tickets)
    return fail(refused(503, "busy", "too many tickets are in use; try again in a minute"));
  const { account = "" } = actor.value.user ?? {};
  if (hasItsShare(most.tickets, state.tables.ticket.size, () => ticketsOf(state, account)))
    return fail(
      refused(503, "busy", "your account has as many tickets in use as it may have now; try again in a minute"),
    );
  if (state.tables.ticket.has(hash)) return fail(refused(409, "conflict", "this ticket was issued before"));
  save(state, "ticket", hash, { session, cell, ...(child === undefined ? {} : { child }) });
  state.unused.set(hash, state.now.ms + askWithinMs);
  return ok({ cell, account: worth.account });
}

function ticketsOf({ tables: { ticket, session, user } }: TenancyState, account: string): number {
  let own = 0;
  for (const each of ticket.values())
    if (user.get(session.get(each.session)?.user ?? "")?.account === account) own += 1;
  return own;
}

/** As one asks: whoever watches persistent volumes for somebody reads none of his cells by that. @param whose with whose each is */
export function cellsTold(
  state: TenancyState,
  actor: Actor,
  by: By,
  whose: boolean,
): readonly string[] | readonly CellOwner[] {
  if ("session" in by && volumesWatcherOf(state, by.session) !== undefined) return [];
  return whose ? ownersOf(state, actor) : cellsOf(state, actor);
}
/** Names of the cells that an actor may see, as far as it is known here whose they are. */
export const cellsOf = (state: TenancyState, actor: Actor): readonly string[] => {
  const mayOwn = denied(state, actor, "cell.read") === null;
  return [...owned(state)].flatMap(([cell, account]) => {
    if (reaches(state, actor, { account })) return mayOwn ? [cell] : [];
    const given = actor.user === null ? null : delegatedTo(state, actor.user, account, cell);
    return given !== null && allows(given.rules, "cell.read") ? [cell] : [];
  });
};

/** The same with whose each is. */
export const ownersOf = (state: TenancyState, actor: Actor): readonly CellOwner[] =>
  cellsOf(state, actor).map((cell) => ({ cell, account: accountPath(state, ownerOf(state, cell)) }));

/**
 * A user makes a cell: its name is his account's from before its controller is there until after it has ended. `isThere`: the gateway
 * knows a cell of that name; one that nobody has claimed is the operator's. Where there is a root cell nothing that a gateway says here is kept.
 */
export function claimCell(
  state: TenancyState,
  actor: Actor,
  { cell, isThere, dryRun }: { readonly cell: string; readonly isThere: boolean; readonly dryRun: boolean },
): Result<CellOwner, Refused> {
  const { user } = actor;
  const owner = ownerOf(state, cell);
  if (user === null) return ok({ cell, account: accountPath(state, owner) });
  const account = accountPath(state, user.account);
  if (owner !== operatorUid && (reaches(state, actor, { account: owner }) || delegatedTo(state, user, owner, cell)))
    return ok({ cell, account: accountPath(state, owner) });
  if (!isFree(state, cell) || isThere || cell === rootCell || cell.includes("."))
    return fail(refused(409, "conflict", `the name "${cell}" is taken: give the cell another one`));
  const no = denied(state, actor, "cell.create");
  if (no !== null) return fail(no);
  if (state.tables.owner.size >= most.cells)
    return fail(refused(409, "conflict", `${most.cells} cells have accounts, and that is the limit`));
  // Where there is a root cell its controller binds the cell to the account, by a ticket for this session, and says so.
  if (!dryRun && !isKept(state)) save(state, "owner", cell, { account: user.account });
  return ok({ cell, account });
}

/** The cell has ended, and its name is free. */
export function freeCell(state: TenancyState, actor: Actor, cell: string): Result<CellOwner, Refused> {
  const owner = state.tables.owner.get(cell)?.account;
  if (owner === undefined || !reaches(state, actor, { account: owner })) return fail(noCell(cell));
  const account = accountPath(state, owner);
  // Of a cell that is there a root controller says whose it is, and a gateway that says otherwise frees nothing.
  if (state.ownersOf.has(cell) && actor.user !== null) return fail(noCell(cell));
  dropRecord(state, cell);
  return ok({ cell, account });
}

const atRoot = "here the root cell's model says whose a cell is, and the operator gives it to another account";
export function giveCell(
  state: TenancyState,
  actor: Actor,
  { cell, account: path, dryRun }: { readonly cell: string; readonly account: string; readonly dryRun: boolean },
): Result<CellOwner, Refused> {
  if (cell === rootCell || cell.includes("."))
    return fail(
      refused(400, "bad-request", "the root cell is the operator's, and a child cell goes with the cell around it"),
    );
  if (!reaches(state, actor, { account: ownerOf(state, cell) })) return fail(noCell(cell));
  const account = accountFor(state, actor, path, "account.change");
  if (!account.ok) return account;
  if (isKept(state)) {
    if (actor.user !== null) return fail(refused(403, "forbidden", atRoot));
    // The gateway, with the operator's credential, writes it into the root cell's model.
    if (!dryRun) dropRecord(state, cell);
    return ok({ cell, account: path });
  }
  if (!dryRun) save(state, "owner", cell, account.value.uid === operatorUid ? null : { account: account.value.uid });
  return ok({ cell, account: path });
}

/** Of a path in a cell; of an account none is given. */
const delegatedOn = (state: TenancyState, user: UserRecord, account: string, path: string) =>
  path === "ROOT" || path.startsWith("ROOT/") ? null : delegatedTo(state, user, account, path.split("/")[0] ?? "");

/** Which rule decides what a user may do with an account. */
export function can(
  state: TenancyState,
  actor: Actor,
  {
    user: name,
    domain,
    verb,
    path,
  }: { readonly user: string; readonly domain: string; readonly verb: string; readonly path: string },
): Result<CanAnswer, Refused> {
  const uid = state.logins.get(loginKey(domainAt(state, domain)?.uid ?? "", name));
  const user = uid === undefined ? undefined : state.tables.user.get(uid);
  if (user === undefined || !reaches(state, actor, { account: user.account }))
    return fail(noSuch("user", `${name}@${domain}`, "`cells user list` shows them"));
  if (user.uid !== actor.user?.uid) {
    const no = denied(state, actor, "user.read");
    if (no !== null) return fail(no);
  }
  const role = rightsOf(state, user);
  const label = labelOf(state, user);
  const no = (because: string): Result<CanAnswer, Refused> => ok({ allowed: false, because });
  if (role === null)
    return no(`${label} is disabled, or its account or domain is: an administrator can enable it again`);
  const target =
    path.startsWith("ROOT/") || path === "ROOT"
      ? accountAt(state, path)?.uid
      : ownerOf(state, path.split("/")[0] ?? "");
  const given =
    target === undefined || isReached(state, user, role, target) ? null : delegatedOn(state, user, target, path);
  // His own delegations he may see; of others' who reaches whose cells they are.
  if (
    given !== null &&
    target !== undefined &&
    (user.uid === actor.user?.uid || reaches(state, actor, { account: target }))
  ) {
    const decided = decide(given.rules, verb);
    const by = `${ruleText(given.rules, decided)} of the delegation of ${accountPath(state, target)}`;
    return decided.allowed
      ? ok({ allowed: true, because: by })
      : no(`${by}; an administrator of ${accountPath(state, target)} can give another one`);
  }
  // Of what the asker may not see he learns nothing, and of what its user does not reach it is told what is not there.
  if (target === undefined || !isReached(state, user, role, target) || !reaches(state, actor, { account: target }))
    return no(
      `${path} is not there for ${label}: it is not of its account, nor of one that its role (${role.name}) reaches`,
    );
  const decision = decide(role.rules, verb);
  const rule = `${ruleText(role.rules, decision)} of the role ${role.name}`;
  return decision.allowed
    ? ok({ allowed: true, because: rule })
    : no(`${rule}; who may give ${label} another role can change that: \`cells user role\``);
}
