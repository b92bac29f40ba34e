import {
  beyond,
  builtInUid,
  decide,
  isWithinReach,
  type Reach,
  type Rule,
  ruleText,
} from "../../model/contract/tenancy/rules.ts";
import type { WhoAmI } from "../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import type { RoleRecord, UserRecord } from "./records.ts";
import { noSuch, type Refused, refused } from "./refused.ts";
import {
  domainPath,
  domainsAbove,
  isInDomain,
  isReached,
  labelOf,
  lacksSecondFactor,
  rightsOf,
  roleOf,
  rootUid,
  standingOf,
  type TenancyState,
  userOfSession,
  userSummary,
} from "./state.ts";

/** Who asks: by the operator's credential, or by a session with this hash. */
export type By = { readonly operator: true } | { readonly session: string };

export interface Actor {
  /** Null: the operator. */
  readonly user: UserRecord | null;
  readonly label: string;
  readonly role: string;
  readonly reach: Reach;
  readonly rules: readonly Rule[];
}
export const operator: Actor = {
  user: null,
  label: "operator",
  role: "operator",
  reach: "installation",
  rules: [{ verb: "*", effect: "allow" }],
};

export function actorOf(state: TenancyState, by: By): Result<Actor, Refused> {
  if ("operator" in by) return ok(operator);
  const user = userOfSession(state, by.session);
  const role = rightsOf(state, user);
  if (user === undefined || role === null)
    return fail(
      refused(401, "unauthorized", "this session has ended, or its user is disabled: `cells login` begins another"),
    );
  return ok(actorAs(state, user, role));
}
export const actorAs = (state: TenancyState, user: UserRecord, { name, reach, rules }: RoleRecord): Actor => ({
  user,
  label: labelOf(state, user),
  role: name,
  reach,
  rules,
});

/** Where something is done: in a domain, or to an account or who is in it. */
export type Target = { readonly domain: string } | { readonly account: string };

const domainOf = (state: TenancyState, { user }: Actor): string =>
  state.tables.account.get(user?.account ?? "")?.domain ?? rootUid;

/** What is beyond reach is not there. */
export function reaches(state: TenancyState, actor: Actor, target: Target): boolean {
  const { user, reach } = actor;
  if (user === null || reach === "installation")
    return "domain" in target ? state.tables.domain.has(target.domain) : state.tables.account.has(target.account);
  if ("domain" in target) return reach === "domain" && isInDomain(state, target.domain, domainOf(state, actor));
  return isReached(state, user, { reach } as RoleRecord, target.account);
}

/** Null: he may. Whoever asks has found that the target is within reach. */
export function denied(state: TenancyState, actor: Actor, verb: string): Refused | null {
  const decision = decide(actor.rules, verb);
  if (decision.allowed) return null;
  const { user } = actor;
  const role = user === null ? undefined : roleOf(state, user.role);
  if (user !== null && role !== undefined && lacksSecondFactor(user, role))
    return refused(403, "forbidden", `the role ${role.name} demands a second factor: \`cells totp on\` gives you one`);
  const why = `${ruleText(actor.rules, decision)} of the role ${actor.role}`;
  const who = `an administrator of ${domainPath(state, domainOf(state, actor))} can change that`;
  return refused(403, "forbidden", `${actor.label} may not do this (${verb}): ${why}; ${who}`);
}

/** Nobody gives what he has not: neither a right nor a place where it counts. Null: the role may be given, or taken, by this one. */
export function tooHigh(
  actor: Actor,
  { name, reach, rules }: Pick<RoleRecord, "name" | "reach" | "rules">,
): Refused | null {
  const more = beyond(rules, actor.rules);
  if (more === null && isWithinReach(reach, actor.reach)) return null;
  const what = more === null ? `its reach is the ${reach}` : `it allows ${more}`;
  return refused(
    403,
    "forbidden",
    `the role ${name} is more than ${actor.label} has: ${what}. Somebody who has that can do this`,
  );
}
/** Whoever may do more than one himself is not in one's hands: his password would be a way up. */
export function isStronger(state: TenancyState, actor: Actor, user: UserRecord): Refused | null {
  const role = roleOf(state, user.role);
  return role === undefined ? null : tooHigh(actor, role);
}

/** A user whom the actor may change so. */
export function userFor(state: TenancyState, actor: Actor, uid: string, verb: string): Result<UserRecord, Refused> {
  const user = state.tables.user.get(uid);
  if (user === undefined || !reaches(state, actor, { account: user.account }))
    return fail(noSuch("user", uid, "`cells user list` shows them"));
  const no = denied(state, actor, verb) ?? isStronger(state, actor, user);
  return no === null ? ok(user) : fail(no);
}

/** Who may do everything everywhere, beside the operator. Null: somebody of them is left without those that `isTaken` names. */
export function refuseLastRootAdmin(
  state: TenancyState,
  actor: Actor,
  isTaken: (user: UserRecord) => boolean,
): Refused | null {
  // The operator has his credential, and makes another one.
  if (actor.user === null) return null;
  const admins = [...state.tables.user.values()].filter(
    (each) => each.role === builtInUid("root-admin") && standingOf(state, each) === "enabled",
  );
  return admins.some(isTaken) && admins.every(isTaken) ? lastRootAdmin : null;
}
const lastRootAdmin = refused(
  409,
  "conflict",
  "the last user with the role root-admin would be shut out: make another one first, or ask by the operator's credential",
);

/** Who he is, with the UIDs of the domains that his account is in, by their paths. */
export function userTold(state: TenancyState, user: UserRecord | null): Pick<WhoAmI, "user" | "domains"> {
  if (user === null) return { user };
  const above = domainsAbove(state, state.tables.account.get(user.account)?.domain ?? "");
  return {
    user: userSummary(state, user),
    domains: Object.fromEntries(above.map(({ uid }) => [domainPath(state, uid), uid])),
  };
}
