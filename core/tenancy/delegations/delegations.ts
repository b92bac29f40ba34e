import type { DelegationSummary, NewDelegation } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { type Actor, denied, reaches } from "../actor.ts";
import { roleFor } from "../people.ts";
import { accountFor } from "../places.ts";
import type { AccountRecord, DelegationRecord } from "../records.ts";
import { beyondShare, noSuch, type Refused, refused } from "../refused.ts";
import {
  accountAt,
  accountPath,
  domainAt,
  hasItsShare,
  labelOf,
  loginKey,
  partOf,
  roleOf,
  save,
  type TenancyState,
} from "../state.ts";
import { delegationsOf } from "./given.ts";

/*
 * An account gives another account, or one user, a role on some of its cells. It counts there and nowhere else, and where one's own role reaches a
 * cell that one decides. Whoever is beyond the giver's reach is named by what he has told the giver himself, the number of his account or his UID:
 * that somebody is there is told to nobody who tries names.
 */

const mostDelegations = 100_000;

const seenAs = (state: TenancyState, actor: Actor, to: string): string => {
  const { account: accounts, user: users } = state.tables;
  const user = users.get(to);
  const account = accounts.get(user?.account ?? to);
  if (account === undefined) return to;
  const isSeen = reaches(state, actor, { account: account.uid });
  if (user !== undefined) return isSeen || user.uid === actor.user?.uid ? labelOf(state, user) : to;
  return isSeen ? accountPath(state, to) : account.number;
};
const summary = (state: TenancyState, actor: Actor, each: DelegationRecord): DelegationSummary => ({
  uid: each.uid,
  account: accountPath(state, each.account),
  cells: each.cells,
  to: seenAs(state, actor, each.to),
  role: roleOf(state, each.role)?.name ?? "",
});

/** Of an account that the actor administers, given by it or to it; and to himself. */
const isOwn = (state: TenancyState, actor: Actor, { account, to }: DelegationRecord): boolean => {
  const whose = state.tables.user.get(to)?.account ?? to;
  return reaches(state, actor, { account }) || reaches(state, actor, { account: whose });
};

export function listDelegations(state: TenancyState, actor: Actor): Result<readonly DelegationSummary[], Refused> {
  const mayAll = denied(state, actor, "delegation.read") === null;
  const { user } = actor;
  const isMine = ({ to }: DelegationRecord): boolean => user !== null && (to === user.uid || to === user.account);
  const seen = [...state.tables.delegation.values()].filter(
    (each) => isMine(each) || (mayAll && isOwn(state, actor, each)),
  );
  return ok(seen.map((each) => summary(state, actor, each)));
}

/** UID of whom `to` names; null: nobody whom the actor may see, or has been told of. */
function whoIs(state: TenancyState, actor: Actor, to: string): string | null {
  const { account: accounts, user: users } = state.tables;
  if (/^\d{12}$/.test(to)) return [...accounts.values()].find(({ number }) => number === to)?.uid ?? null;
  if (users.has(to)) return to;
  const at = to.indexOf("@");
  if (at < 0) {
    const account = accountAt(state, to);
    return account !== undefined && reaches(state, actor, { account: account.uid }) ? account.uid : null;
  }
  const domain = domainAt(state, to.slice(at + 1));
  const uid = state.logins.get(loginKey(domain?.uid ?? "", to.slice(0, at)));
  const user = users.get(uid ?? "");
  return user !== undefined && reaches(state, actor, { account: user.account }) ? user.uid : null;
}

export function addDelegation(
  state: TenancyState,
  actor: Actor,
  { uid, asked, dryRun }: { readonly uid: string; readonly asked: NewDelegation; readonly dryRun: boolean },
): Result<DelegationSummary, Refused> {
  const account = accountFor(state, actor, asked.account, "delegation.add");
  if (!account.ok) return account;
  const role = roleFor(state, actor, account.value.domain, asked.role);
  if (!role.ok) return role;
  if (role.value.reach !== "account")
    return fail(
      refused(
        400,
        "bad-request",
        `the role ${asked.role} is for more than an account: a delegation counts on cells alone`,
      ),
    );
  const to = whoIs(state, actor, asked.to);
  if (to === null)
    return fail(
      noSuch(
        "account or user",
        asked.to,
        "of those that you may not see, their account's number (`cells account list`) or their UID (`cells whoami --output json`) is needed, which they know",
      ),
    );
  const given = state.tables.user.get(to)?.account ?? to;
  if (given === account.value.uid)
    return fail(refused(409, "conflict", `${asked.to} is of that account already: a role of its own decides there`));
  if (state.tables.account.get(given)?.deleting === true)
    return fail(refused(409, "conflict", `the account of ${asked.to} is being deleted`));
  const cells = [...new Set(asked.cells ?? [])].sort();
  const wrong = cells.find((cell) => cell.includes(".") || cell === "");
  if (wrong !== undefined)
    return fail(refused(400, "bad-request", `"${wrong}" is in another cell: it is given with the cell around it`));
  const no = refuseAnother(state, actor, account.value, { to, cells });
  if (no !== null) return fail(no);
  const record: DelegationRecord = { uid, account: account.value.uid, cells, to, role: role.value.uid };
  if (!dryRun) save(state, "delegation", uid, record);
  return ok(summary(state, actor, record));
}

/** Null: there is room, and nothing says otherwise of the same cells. */
function refuseAnother(
  state: TenancyState,
  actor: Actor,
  account: AccountRecord,
  { to, cells }: Pick<DelegationRecord, "to" | "cells">,
): Refused | null {
  const { delegation } = state.tables;
  const same = delegationsOf(state, account.uid)
    .flatMap((each) => delegation.get(each) ?? [])
    .find(
      (each) =>
        each.to === to &&
        (cells.length === 0 ? each.cells.length === 0 : each.cells.some((cell) => cells.includes(cell))),
    );
  if (same !== undefined)
    return refused(409, "conflict", `the delegation ${same.uid} gives a role on these cells already: delete it first`);
  if (delegation.size >= mostDelegations)
    return refused(409, "conflict", `there are ${mostDelegations} delegations, and that is the limit`);
  const part = partOf(state, account.domain);
  const own = (): number =>
    [...delegation.values()].filter(
      (each) => partOf(state, state.tables.account.get(each.account)?.domain ?? "") === part,
    ).length;
  return actor.user !== null && hasItsShare(mostDelegations, delegation.size, own) ? beyondShare("delegations") : null;
}

/** By who gives, or by who has: nobody has to keep what he was given. */
export function deleteDelegation(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<DelegationSummary, Refused> {
  const delegation = state.tables.delegation.get(uid);
  const isMine = delegation !== undefined && delegation.to === actor.user?.uid;
  if (delegation === undefined || !(isMine || isOwn(state, actor, delegation)))
    return fail(noSuch("delegation", uid, "`cells delegation list` shows them"));
  const no = isMine ? null : denied(state, actor, "delegation.delete");
  if (no !== null) return fail(no);
  const gone = summary(state, actor, delegation);
  if (!dryRun) save(state, "delegation", uid, null);
  return ok(gone);
}
