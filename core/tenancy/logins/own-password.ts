import type { UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { actorOf } from "../actor.ts";
import { recordOwn } from "../audit/audited.ts";
import type { UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import { labelOf, save, type TenancyState, userSummary } from "../state.ts";
import { noteFailure, noteSuccess, tooOften } from "./failures.ts";
import { begunFor, endSessionsOf, type LoginBegun } from "./logins.ts";

/*
 * A user gives himself another password, by the one that he has: no right is needed for that, and a session alone does not do. As at a login,
 * `begin` gives the hash that the present one must have, and `end` says whether it had; a failure counts as one of a login.
 */
export interface PasswordBegin {
  readonly kind: "password-begin";
  readonly session: string;
  /** Address of the client. */
  readonly source: string;
}
export interface PasswordEnd extends Omit<PasswordBegin, "kind"> {
  readonly kind: "password-end";
  readonly begun: LoginBegun;
  readonly matched: boolean;
  /** PHC string of the next one. */
  readonly password: string;
}

export function userOf(state: TenancyState, session: string): Result<UserRecord, Refused> {
  const actor = actorOf(state, { session });
  if (!actor.ok) return actor;
  const { user } = actor.value;
  return user === null ? fail(refused(409, "conflict", "the operator has no password")) : ok(user);
}
/** As logins of this user from this address are counted. */
export const attemptOf = (state: TenancyState, user: UserRecord, source: string) => {
  const { name, domain } = userSummary(state, user);
  return { domain, user: name, source };
};

export function beginPassword(state: TenancyState, { session, source }: PasswordBegin): Result<LoginBegun, Refused> {
  const user = userOf(state, session);
  if (!user.ok) return user;
  if (user.value.password === null)
    return fail(refused(409, "conflict", "you have no password yet: an administrator gives the first one"));
  const attempt = attemptOf(state, user.value, source);
  const no = tooOften(state, attempt);
  if (no !== null) return fail(no);
  noteFailure(state, attempt);
  return ok(begunFor(user.value));
}

export function endPassword(state: TenancyState, asked: PasswordEnd): Result<UserSummary, Refused> {
  const { session, source, begun, matched, password } = asked;
  const found = userOf(state, session);
  if (!found.ok) return found;
  const user = found.value;
  // It may have been changed while this one was looked at.
  if (!matched || begun.user !== user.uid || begun.password !== user.password)
    return refusedOwn(state, { user: user.uid, session, source });
  noteSuccess(state, attemptOf(state, user, source));
  // Whoever else got in with the former one is out; who has just shown that he knows it stays.
  endSessionsOf(state, user, session);
  const record: UserRecord = { ...user, password };
  save(state, "user", user.uid, record);
  const label = labelOf(state, user);
  log(state.outbox, "tenancy/changed", { verb: "changeOwnPassword", by: label, target: label });
  recordOwn(state, "changeOwnPassword", { user: user.uid, session, source }, null);
  return ok(userSummary(state, record));
}
function refusedOwn(state: TenancyState, own: Parameters<typeof recordOwn>[2]): Result<never, Refused> {
  const no = refused(403, "forbidden", "the present password is not right: nothing was changed");
  recordOwn(state, "changeOwnPassword", own, no);
  return fail(no);
}
