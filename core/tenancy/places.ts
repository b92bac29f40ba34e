import type { AccountSummary, DomainSummary, Standing } from "../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { type Actor, denied, isStronger, reaches, refuseLastRootAdmin } from "./actor.ts";
import { declaredOf, whyDeclared, whyDeclaredBelow } from "./declared/keeper.ts";
import { advanceEnds, beginAccountEnd, beginDomainEnd, planOf } from "./deletion/deletion.ts";
import { cellsByAccount, isKept } from "./owners/owners.ts";
import { countFrom } from "./quotas/usage.ts";
import type { AccountRecord, DomainRecord } from "./records.ts";
import { beyondShare, noSuch, type Refused, refused } from "./refused.ts";
import {
  accountAt,
  accountPath,
  domainAt,
  domainPath,
  domainsAbove,
  hasItsShare,
  isInDomain,
  operatorUid,
  partOf,
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
  ...declaredOf(state, "domain", domainPath(state, uid)),
});
export const accountSummary = (
  state: TenancyState,
  { uid, number, state: standing, deleting }: AccountRecord,
  cells = cellsByAccount(state),
): AccountSummary => ({
  uid,
  path: accountPath(state, uid),
  number,
  state: standing,
  cells: cells.get(uid) ?? [],
  ...(deleting === true ? { deleting } : {}),
  ...declaredOf(state, "account", accountPath(state, uid)),
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

/** Nothing comes into what ends. */
const whyEnding = ({ deleting }: AccountRecord | DomainRecord, path: string, verb: string): Refused | null =>
  deleting === true && !verb.endsWith(".delete")
    ? refused(409, "conflict", `${path} is being deleted: its name is free when nothing of it is left`)
    : null;

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
  const no = denied(state, actor, verb) ?? whyEnding(found, path, verb);
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
  const no = denied(state, actor, verb) ?? whyEnding(found, path, verb);
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
  const part = partOf(state, parent.value.uid);
  const domainsIn = (): number =>
    [...state.tables.domain.values()].filter((each) => partOf(state, each.uid) === part).length;
  if (actor.user !== null && hasItsShare(most.domains, state.tables.domain.size, domainsIn))
    return fail(beyondShare("domains"));
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
  const part = partOf(state, domain.value.uid);
  const accountsIn = (): number =>
    [...state.tables.account.values()].filter((each) => partOf(state, each.domain) === part).length;
  if (actor.user !== null && hasItsShare(most.accounts, state.tables.account.size, accountsIn))
    return fail(beyondShare("accounts"));
  const record: AccountRecord = { uid, name, domain: domain.value.uid, number, state: "enabled" };
  if (!dryRun) countFrom(state, uid, () => save(state, "account", uid, record));
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
  const kept = whyDeclared(state, actor, "domain", domainPath(state, uid));
  if (kept !== null) return fail(kept);
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
  const kept = whyDeclared(state, actor, "account", accountPath(state, uid));
  if (kept !== null) return fail(kept);
  const isIn = (account: string): boolean => account === uid;
  const no = strongest(state, actor, isIn) ?? (standing === "enabled" ? null : refuseLast(state, actor, isIn));
  if (no !== null) return fail(no);
  const record = { ...found.value, state: standing };
  if (!dryRun) save(state, "account", uid, record);
  return ok(accountSummary(state, record));
}

/** How something is deleted. */
export interface Deleting {
  readonly uid: string;
  /** Names of the cells whose data may be lost with it. */
  readonly allowDestroy: readonly string[];
  readonly dryRun: boolean;
}

export function deleteDomain(
  state: TenancyState,
  actor: Actor,
  { uid, allowDestroy, cleanup, dryRun }: Deleting & { readonly cleanup: boolean },
): Result<DomainSummary & { readonly plan: readonly string[] }, Refused> {
  const found = domainFor(state, actor, domainPath(state, uid), "domain.delete");
  if (!found.ok) return found;
  if (uid === rootUid) return fail(stays("ROOT"));
  const path = domainPath(state, uid);
  const kept = whyDeclaredBelow(state, path);
  if (kept !== null) return fail(kept);
  const { domain, account, role } = state.tables;
  const domains = [...domain.values()].filter((each) => isInDomain(state, each.uid, uid));
  const accounts = [...account.values()].filter((each) => isInDomain(state, each.domain, uid));
  const holds = [
    ...domains.flatMap((each) => (each.parent === uid ? [domainPath(state, each.uid)] : [])),
    ...accounts.flatMap((each) => (each.domain === uid ? [accountPath(state, each.uid)] : [])),
    ...[...role.values()].flatMap((each) => (each.domain === uid ? [`the role ${each.name}`] : [])),
  ];
  const plan = [
    ...accounts.flatMap((each) => [...planOf(state, each), `the account ${accountPath(state, each.uid)}`]),
    ...domains.map((each) => `the domain ${domainPath(state, each.uid)}`).reverse(),
  ];
  if (holds.length > 0 && !cleanup) return fail(stillHolds(path, holds));
  const ids = new Set(accounts.map((each) => each.uid));
  const isIn = (each: string): boolean => ids.has(each);
  const no = strongest(state, actor, isIn) ?? refuseLast(state, actor, isIn);
  if (no !== null) return fail(no);
  const answer = { ...domainSummary(state, found.value), plan };
  if (dryRun) return ok(answer);
  const lost = whyNotLost(state, path, accounts, allowDestroy);
  if (lost !== null) return fail(lost);
  for (const each of accounts) if (each.deleting !== true) beginAccountEnd(state, each);
  for (const each of domains) if (each.deleting !== true) beginDomainEnd(state, each);
  advanceEnds(state, true);
  return ok(domain.has(uid) ? { ...answer, state: "disabled", deleting: true } : answer);
}
const named = 5;
const stillHolds = (path: string, holds: readonly string[]): Refused => {
  const more = holds.length > named ? ` and ${holds.length - named} more` : "";
  return refused(
    409,
    "conflict",
    `${path} still has ${holds.slice(0, named).join(", ")}${more}: delete these first, or all with it (\`--cleanup\`)`,
  );
};

/** Why cells must not go with what they are of; null: they may. */
function whyNotLost(
  state: TenancyState,
  path: string,
  accounts: readonly AccountRecord[],
  allowDestroy: readonly string[],
): Refused | null {
  const all = cellsByAccount(state);
  const cells = accounts.flatMap(({ uid }) => all.get(uid) ?? []);
  if (cells.length === 0) return null;
  const has = `${path} still has ${cells.map((cell) => `the cell ${cell}`).join(", ")}`;
  if (!isKept(state)) return refused(409, "conflict", `${has}: delete these first`);
  const former = cells.filter((cell) => !state.ownersOf.has(cell));
  if (former.length > 0)
    return refused(
      409,
      "conflict",
      `the root cell's model does not say whose ${former.join(", ")} are: say it there first, by \`cells account give\``,
    );
  const allowed = new Set(allowDestroy);
  const missing = cells.filter((cell) => !allowed.has(cell));
  if (missing.length === 0) return null;
  const message = `${has}: these end with it, and their data is lost. If that is meant, add --allow-destroy ${missing.join(",")}`;
  return refused(409, "change/destroys-data", message);
}

export function deleteAccount(
  state: TenancyState,
  actor: Actor,
  { uid, allowDestroy, dryRun }: Deleting,
): Result<AccountSummary & { readonly plan: readonly string[] }, Refused> {
  const found = accountFor(state, actor, accountPath(state, uid), "account.delete");
  if (!found.ok) return found;
  if (uid === operatorUid) return fail(stays("the operator's account"));
  const kept = whyDeclared(state, actor, "account", accountPath(state, uid));
  if (kept !== null) return fail(kept);
  const isIn = (account: string): boolean => account === uid;
  const no = strongest(state, actor, isIn) ?? refuseLast(state, actor, isIn);
  if (no !== null) return fail(no);
  const gone = accountSummary(state, found.value);
  const answer = { ...gone, plan: [...planOf(state, found.value), `the account ${gone.path}`] };
  if (dryRun) return ok(answer);
  const lost = found.value.deleting === true ? null : whyNotLost(state, gone.path, [found.value], allowDestroy);
  if (lost !== null) return fail(lost);
  if (found.value.deleting !== true) beginAccountEnd(state, found.value);
  advanceEnds(state, true);
  return ok(state.tables.account.has(uid) ? { ...answer, state: "disabled", deleting: true } : answer);
}
