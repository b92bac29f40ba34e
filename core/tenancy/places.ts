import type { AccountSummary, DomainSummary, Standing } from "../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { type Actor, denied, isStronger, reaches, refuseLastRootAdmin } from "./actor.ts";
import { endSessionsOf } from "./logins/logins.ts";
import { cellsByAccount } from "./owners.ts";
import type { AccountRecord, DomainRecord } from "./records.ts";
import { type Refused, refused } from "./refused.ts";
import {
  accountAt,
  accountPath,
  domainAt,
  domainPath,
  domainsAbove,
  isInDomain,
  operatorUid,
  rootUid,
  save,
  type TenancyState,
} from "./state.ts";

/*
 * Domains and accounts. What is not within the reach of who asks is not there: it is told in the same words as what nobody has made.
 */

const most = { domains: 10_000, accounts: 100_000, depth: 16 } as const;

export const domainSummary = (state: TenancyState, { uid, state: standing }: DomainRecord): DomainSummary => ({
  uid,
  path: domainPath(state, uid),
  state: standing,
});
export const accountSummary = (
  state: TenancyState,
  { uid, number, state: standing }: AccountRecord,
  cells = cellsByAccount(state),
): AccountSummary => ({
  ...{ uid, path: accountPath(state, uid), number, state: standing },
  cells: cells.get(uid) ?? [],
});
const byPath = (one: { readonly path: string }, other: { readonly path: string }): number =>
  one.path < other.path ? -1 : 1;

/** What the actor may see of all domains; his own path down to him he knows. */
export function listDomains(state: TenancyState, actor: Actor): Result<readonly DomainSummary[], Refused> {
  const no = denied(state, actor, "domain.read");
  if (no !== null) return fail(no);
  const own = state.tables.account.get(actor.user?.account ?? "")?.domain;
  const seen = [...state.tables.domain.values()].filter(
    ({ uid }) => uid === own || reaches(state, actor, { domain: uid }),
  );
  return ok(seen.map((each) => domainSummary(state, each)).sort(byPath));
}
export function listAccounts(state: TenancyState, actor: Actor): Result<readonly AccountSummary[], Refused> {
  const no = denied(state, actor, "account.read");
  if (no !== null) return fail(no);
  const seen = [...state.tables.account.values()].filter(({ uid }) => reaches(state, actor, { account: uid }));
  const cells = cellsByAccount(state);
  return ok(seen.map((each) => accountSummary(state, each, cells)).sort(byPath));
}

export const noSuch = (what: string, name: string, how: string): Refused =>
  refused(404, "not-found", `there is no ${what} "${name}": ${how}`);

/** A domain in which the actor may do this. */
export function domainFor(
  state: TenancyState,
  actor: Actor,
  path: string,
  verb: string,
): Result<DomainRecord, Refused> {
  const found = domainAt(state, path);
  if (found === undefined || !reaches(state, actor, { domain: found.uid }))
    return fail(noSuch("domain", path, "`cells domain list` shows them, as ROOT/acme"));
  const no = denied(state, actor, verb);
  return no === null ? ok(found) : fail(no);
}
export function accountFor(
  state: TenancyState,
  actor: Actor,
  path: string,
  verb: string,
): Result<AccountRecord, Refused> {
  const found = accountAt(state, path);
  if (found === undefined || !reaches(state, actor, { account: found.uid }))
    return fail(noSuch("account", path, "`cells account list` shows them, as ROOT/acme/dev"));
  const no = denied(state, actor, verb);
  return no === null ? ok(found) : fail(no);
}

/** Null: nothing has this name in the domain. A domain and an account in it have one path, so they have not one name. */
const taken = (state: TenancyState, path: string): Refused | null =>
  domainAt(state, path) === undefined && accountAt(state, path) === undefined
    ? null
    : refused(409, "conflict", `${path} is there already: a name is one domain's or one account's`);
const split = (path: string): readonly [string, string] => {
  const at = path.lastIndexOf("/");
  return [path.slice(0, Math.max(0, at)), path.slice(at + 1)];
};

export function addDomain(
  state: TenancyState,
  actor: Actor,
  { path, uid, dryRun }: { readonly path: string; readonly uid: string; readonly dryRun: boolean },
): Result<DomainSummary, Refused> {
  const [above, name] = split(path);
  const parent = domainFor(state, actor, above, "domain.add");
  if (!parent.ok) return parent;
  const no = taken(state, path);
  if (no !== null) return fail(no);
  if (domainsAbove(state, parent.value.uid).length > most.depth)
    return fail(refused(400, "bad-request", `domains are at most ${most.depth} within one another`));
  if (state.tables.domain.size >= most.domains)
    return fail(refused(409, "conflict", `there are ${most.domains} domains, and that is the limit`));
  const record: DomainRecord = { uid, name, parent: parent.value.uid, state: "enabled" };
  if (!dryRun) save(state, "domain", uid, record);
  return ok(dryRun ? { uid, path, state: "enabled" } : domainSummary(state, record));
}
export function addAccount(
  state: TenancyState,
  actor: Actor,
  {
    path,
    uid,
    number,
    dryRun,
  }: { readonly path: string; readonly uid: string; readonly number: string; readonly dryRun: boolean },
): Result<AccountSummary, Refused> {
  const [above, name] = split(path);
  const domain = domainFor(state, actor, above, "account.add");
  if (!domain.ok) return domain;
  const no = taken(state, path);
  if (no !== null) return fail(no);
  if ([...state.tables.account.values()].some((each) => each.number === number))
    return fail(refused(503, "busy", "the number that was drawn is another account's; try again"));
  if (state.tables.account.size >= most.accounts)
    return fail(refused(409, "conflict", `there are ${most.accounts} accounts, and that is the limit`));
  const record: AccountRecord = { uid, name, domain: domain.value.uid, number, state: "enabled" };
  if (!dryRun) save(state, "account", uid, record);
  return ok(dryRun ? { uid, path, number, state: "enabled", cells: [] } : accountSummary(state, record));
}

const stays = (what: string): Refused =>
  refused(409, "conflict", `${what} can be neither locked, disabled nor deleted: the operator's way in is there`);

/** Of those whom it would shut out, none may be above who does it. */
function strongest(state: TenancyState, actor: Actor, isIn: (account: string) => boolean): Refused | null {
  for (const user of state.tables.user.values()) {
    const no = isIn(user.account) ? isStronger(state, actor, user) : null;
    if (no !== null) return no;
  }
  return null;
}

const refuseLast = (state: TenancyState, actor: Actor, isIn: (account: string) => boolean): Refused | null =>
  refuseLastRootAdmin(state, actor, ({ account }) => isIn(account));

export function changeDomain(
  state: TenancyState,
  actor: Actor,
  { uid, standing, dryRun }: { readonly uid: string; readonly standing: Standing; readonly dryRun: boolean },
): Result<DomainSummary, Refused> {
  const found = domainFor(state, actor, domainPath(state, uid), "domain.change");
  if (!found.ok) return found;
  if (uid === rootUid) return fail(stays("ROOT"));
  const isIn = (account: string): boolean => isInDomain(state, state.tables.account.get(account)?.domain ?? "", uid);
  const no = strongest(state, actor, isIn) ?? (standing === "enabled" ? null : refuseLast(state, actor, isIn));
  if (no !== null) return fail(no);
  const record = { ...found.value, state: standing };
  if (!dryRun) save(state, "domain", uid, record);
  return ok(domainSummary(state, record));
}
export function changeAccount(
  state: TenancyState,
  actor: Actor,
  { uid, standing, dryRun }: { readonly uid: string; readonly standing: Standing; readonly dryRun: boolean },
): Result<AccountSummary, Refused> {
  const found = accountFor(state, actor, accountPath(state, uid), "account.change");
  if (!found.ok) return found;
  if (uid === operatorUid) return fail(stays("the operator's account"));
  const isIn = (account: string): boolean => account === uid;
  const no = strongest(state, actor, isIn) ?? (standing === "enabled" ? null : refuseLast(state, actor, isIn));
  if (no !== null) return fail(no);
  const record = { ...found.value, state: standing };
  if (!dryRun) save(state, "account", uid, record);
  return ok(accountSummary(state, record));
}

export function deleteDomain(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<DomainSummary, Refused> {
  const found = domainFor(state, actor, domainPath(state, uid), "domain.delete");
  if (!found.ok) return found;
  if (uid === rootUid) return fail(stays("ROOT"));
  const path = domainPath(state, uid);
  const holds = [
    ...[...state.tables.domain.values()].flatMap((each) => (each.parent === uid ? [domainPath(state, each.uid)] : [])),
    ...[...state.tables.account.values()].flatMap((each) =>
      each.domain === uid ? [accountPath(state, each.uid)] : [],
    ),
    ...[...state.tables.role.values()].flatMap((each) => (each.domain === uid ? [`the role ${each.name}`] : [])),
  ];
  if (holds.length > 0) return fail(stillHolds(path, holds));
  const gone = domainSummary(state, found.value);
  if (!dryRun) save(state, "domain", uid, null);
  return ok(gone);
}
const named = 5;
const stillHolds = (path: string, holds: readonly string[]): Refused => {
  const more = holds.length > named ? ` and ${holds.length - named} more` : "";
  return refused(409, "conflict", `${path} still has ${holds.slice(0, named).join(", ")}${more}: delete these first`);
};

export function deleteAccount(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<AccountSummary, Refused> {
  const found = accountFor(state, actor, accountPath(state, uid), "account.delete");
  if (!found.ok) return found;
  if (uid === operatorUid) return fail(stays("the operator's account"));
  const isIn = (account: string): boolean => account === uid;
  const no = strongest(state, actor, isIn) ?? refuseLast(state, actor, isIn);
  if (no !== null) return fail(no);
  const gone = accountSummary(state, found.value);
  if (gone.cells.length > 0)
    return fail(
      stillHolds(
        gone.path,
        gone.cells.map((cell) => `the cell ${cell}`),
      ),
    );
  if (dryRun) return ok(gone);
  for (const user of [...state.tables.user.values()].filter(({ account }) => account === uid)) {
    endSessionsOf(state, user);
    save(state, "user", user.uid, null);
  }
  save(state, "account", uid, null);
  return ok(gone);
}
