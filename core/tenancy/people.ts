import { builtInRoles, builtInUid } from "../../model/contract/tenancy/rules.ts";
import type { NewRole, NewUser, RoleSummary, UserChange, UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { type Actor, denied, reaches, refuseLastRootAdmin, tooHigh, userFor } from "./actor.ts";
import { declaredOf, whyDeclared } from "./declared/keeper.ts";
import { dropDelegations } from "./delegations/given.ts";
import { dropKeysOf } from "./logins/keys.ts";
import { endSessionsOf } from "./logins/logins.ts";
import { dropInvitationsBy } from "./logins/openings.ts";
import { withoutTotp } from "./logins/second-factor.ts";
import { accountFor, domainFor } from "./places.ts";
import type { RoleRecord, UserRecord } from "./records.ts";
import { beyondShare, noSuch, type Refused, refused } from "./refused.ts";
import {
  accountPath,
  domainPath,
  hasItsShare,
  isInDomain,
  loginKey,
  partOf,
  roleOf,
  rootUid,
  save,
  type TenancyState,
  userSummary,
} from "./state.ts";
import { dropSubscriptionsOf } from "./subscriptions/subscriptions.ts";

/* Users and roles. Nobody gives a right that he has not, and nobody changes a user or a role that may more than himself. */

const most = { users: 500_000, roles: 10_000 } as const;

// --- roles -----------------------------------------------------------------------------------------------------------

const roleSummary = (
  state: TenancyState,
  { uid, name, domain, reach, rules, secondFactor }: RoleRecord,
): RoleSummary => ({
  uid,
  name,
  domain: domainPath(state, domain),
  reach,
  rules,
  secondFactor: secondFactor === true,
  builtIn: !state.tables.role.has(uid),
  ...declaredOf(state, "role", `${domainPath(state, domain)}/${name}`),
});
const allRoles = (state: TenancyState): readonly RoleRecord[] => [
  ...builtInRoles.flatMap(({ name }) => roleOf(state, builtInUid(name)) ?? []),
  ...state.tables.role.values(),
];
/** Roles of a domain are to be had there and below. */
const isHadIn = (state: TenancyState, role: RoleRecord, domain: string): boolean =>
  isInDomain(state, domain, role.domain);

export function listRoles(state: TenancyState, actor: Actor): Result<readonly RoleSummary[], Refused> {
  const no = denied(state, actor, "role.read");
  if (no !== null) return fail(no);
  const own = state.tables.account.get(actor.user?.account ?? "")?.domain ?? rootUid;
  const seen = allRoles(state).filter(
    (role) => isHadIn(state, role, own) || reaches(state, actor, { domain: role.domain }),
  );
  return ok(seen.map((role) => roleSummary(state, role)));
}

/** The nearest of that name, from the domain upwards. */
export function roleFor(state: TenancyState, actor: Actor, domain: string, name: string): Result<RoleRecord, Refused> {
  const had = allRoles(state).filter((role) => role.name === name && isHadIn(state, role, domain));
  const [nearest] = had.sort((one, other) => (isInDomain(state, one.domain, other.domain) ? -1 : 1));
  if (nearest === undefined)
    return fail(noSuch("role", name, `\`cells role list\` shows those that ${domainPath(state, domain)} has`));
  const no = tooHigh(actor, nearest);
  return no === null ? ok(nearest) : fail(no);
}

export function addRole(
  state: TenancyState,
  actor: Actor,
  { uid, role, dryRun }: { readonly uid: string; readonly role: NewRole; readonly dryRun: boolean },
): Result<RoleSummary, Refused> {
  const domain = domainFor(state, actor, role.domain, "role.add");
  if (!domain.ok) return domain;
  const no = tooHigh(actor, role);
  if (no !== null) return fail(no);
  const isTaken = allRoles(state).some(
    (each) => each.name === role.name && (each.domain === domain.value.uid || !state.tables.role.has(each.uid)),
  );
  if (isTaken) return fail(refused(409, "conflict", `${role.domain} has a role ${role.name} already`));
  if (state.tables.role.size >= most.roles)
    return fail(refused(409, "conflict", `there are ${most.roles} roles, and that is the limit`));
  const part = partOf(state, domain.value.uid);
  const rolesIn = (): number =>
    [...state.tables.role.values()].filter((each) => partOf(state, each.domain) === part).length;
  if (actor.user !== null && hasItsShare(most.roles, state.tables.role.size, rolesIn))
    return fail(beyondShare("roles"));
  const { name, reach, rules, secondFactor } = role;
  const demanded = secondFactor === true ? ({ secondFactor } as const) : {};
  const record: RoleRecord = { uid, name, domain: domain.value.uid, reach, rules, ...demanded };
  if (!dryRun) save(state, "role", uid, record);
  return ok({ ...roleSummary(state, record), builtIn: false });
}

/** A role that the actor may change as it is. */
function ownRole(state: TenancyState, actor: Actor, uid: string, verb: string): Result<RoleRecord, Refused> {
  const role = state.tables.role.get(uid);
  if (role === undefined && roleOf(state, uid) !== undefined)
    return fail(refused(409, "conflict", "a built-in role stays as it is: `cells role add` makes another"));
  if (role === undefined || !reaches(state, actor, { domain: role.domain }))
    return fail(noSuch("role", uid, "`cells role list` shows them"));
  const path = `${domainPath(state, role.domain)}/${role.name}`;
  const no = denied(state, actor, verb) ?? tooHigh(actor, role) ?? whyDeclared(state, actor, "role", path);
  return no === null ? ok(role) : fail(no);
}
export function changeRole(
  state: TenancyState,
  actor: Actor,
  { uid, rules, dryRun }: { readonly uid: string; readonly rules: RoleRecord["rules"]; readonly dryRun: boolean },
): Result<RoleSummary, Refused> {
  const found = ownRole(state, actor, uid, "role.change");
  if (!found.ok) return found;
  const record = { ...found.value, rules };
  const no = tooHigh(actor, record);
  if (no !== null) return fail(no);
  if (!dryRun) save(state, "role", uid, record);
  return ok({ ...roleSummary(state, record), builtIn: false });
}
export function deleteRole(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<RoleSummary, Refused> {
  const found = ownRole(state, actor, uid, "role.delete");
  if (!found.ok) return found;
  const holder = [...state.tables.user.values()].find(({ role }) => role === uid);
  if (holder !== undefined)
    return fail(
      refused(
        409,
        "conflict",
        `${holder.name} of ${accountPath(state, holder.account)} has this role: give another first`,
      ),
    );
  const provider = [...state.tables.provider.values()].find(({ mappings }) =>
    mappings.some(({ role }) => role === uid),
  );
  if (provider !== undefined)
    return fail(
      refused(
        409,
        "conflict",
        `the provider ${provider.name} gives this role: \`cells provider delete\` takes it away`,
      ),
    );
  const delegation = [...state.tables.delegation.values()].find(({ role }) => role === uid);
  if (delegation !== undefined) {
    const whose = accountPath(state, delegation.account);
    return fail(
      refused(409, "conflict", `a delegation of ${whose} gives this role: \`cells delegation delete\` takes it back`),
    );
  }
  const gone = roleSummary(state, found.value);
  if (!dryRun) save(state, "role", uid, null);
  return ok(gone);
}

// --- users -----------------------------------------------------------------------------------------------------------

export function listUsers(state: TenancyState, actor: Actor): Result<readonly UserSummary[], Refused> {
  if (denied(state, actor, "user.read") !== null && actor.user !== null) return ok([userSummary(state, actor.user)]);
  const seen = [...state.tables.user.values()].filter(({ account }) => reaches(state, actor, { account }));
  const all = seen.map((user) => userSummary(state, user));
  return ok(all.sort((one, other) => (`${one.domain}/${one.name}` < `${other.domain}/${other.name}` ? -1 : 1)));
}

export function addUser(
  state: TenancyState,
  actor: Actor,
  {
    uid,
    user,
    password,
    dryRun,
  }: { readonly uid: string; readonly user: NewUser; readonly password: string | null; readonly dryRun: boolean },
): Result<UserSummary, Refused> {
  const account = accountFor(state, actor, user.account, "user.add");
  if (!account.ok) return account;
  const { domain } = account.value;
  const role = roleFor(state, actor, domain, user.role);
  if (!role.ok) return role;
  // What reaches further than the account is given by who reaches as far: `tooHigh` has seen to that.
  const no = refuseUser(state, domain, user.name, actor.user === null);
  if (no !== null) return fail(no);
  const record: UserRecord = {
    uid,
    name: user.name,
    account: account.value.uid,
    role: role.value.uid,
    state: "enabled",
    password,
  };
  if (!dryRun) save(state, "user", uid, record);
  return ok(userSummary(state, record));
}

/** Null: the domain takes a user of this name. */
export function refuseUser(state: TenancyState, domain: string, name: string, isOperator: boolean): Refused | null {
  if (state.logins.has(loginKey(domain, name)))
    return refused(409, "conflict", `${domainPath(state, domain)} has a user ${name} already`);
  if (state.tables.user.size >= most.users)
    return refused(409, "conflict", `there are ${most.users} users, and that is the limit`);
  const usersIn = (part: string): number =>
    [...state.tables.user.values()].filter(
      (each) => partOf(state, state.tables.account.get(each.account)?.domain ?? "") === part,
    ).length;
  const hasShare = (): boolean => hasItsShare(most.users, state.tables.user.size, () => usersIn(partOf(state, domain)));
  return !isOperator && hasShare() ? beyondShare("users") : null;
}

export function changeUser(
  state: TenancyState,
  actor: Actor,
  {
    uid,
    change,
    password,
    dryRun,
  }: { readonly uid: string; readonly change: UserChange; readonly password: string | null; readonly dryRun: boolean },
): Result<UserSummary, Refused> {
  const found = userFor(state, actor, uid, "user.change");
  if (!found.ok) return found;
  const user = found.value;
  const domain = state.tables.account.get(user.account)?.domain ?? rootUid;
  const role = change.role === undefined ? null : roleFor(state, actor, domain, change.role);
  if (role !== null && !role.ok) return role;
  const changed: UserRecord = {
    ...user,
    state: change.state ?? user.state,
    role: role?.value.uid ?? user.role,
    password: change.password === undefined ? user.password : password,
  };
  const same = change.totp === "off" ? withoutTotp(changed) : changed;
  // A link of before would take the next password away.
  const { link: _, ...unlinked } = same;
  const record: UserRecord = change.password === undefined ? same : unlinked;
  const isLess = record.state !== "enabled" || record.role !== user.role;
  const last = isLess ? refuseLastRootAdmin(state, actor, (each) => each.uid === uid) : null;
  if (last !== null) return fail(last);
  if (dryRun) return ok(userSummary(state, record));
  // Whoever got in with the former password, or before he was disabled, is out for good.
  if (change.password !== undefined || record.state === "disabled") endSessionsOf(state, user);
  save(state, "user", uid, record);
  return ok(userSummary(state, record));
}
export function deleteUser(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<UserSummary, Refused> {
  const found = userFor(state, actor, uid, "user.delete");
  if (!found.ok) return found;
  const last = refuseLastRootAdmin(state, actor, (each) => each.uid === uid);
  if (last !== null) return fail(last);
  const gone = userSummary(state, found.value);
  if (dryRun) return ok(gone);
  endSessionsOf(state, found.value);
  dropKeysOf(state, found.value);
  dropSubscriptionsOf(state, found.value);
  dropDelegations(state, uid);
  dropInvitationsBy(state, uid);
  save(state, "user", uid, null);
  return ok(gone);
}
