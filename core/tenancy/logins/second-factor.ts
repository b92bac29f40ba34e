import type { UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { recordOwn } from "../audit/audited.ts";
import type { UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import { labelOf, save, type TenancyState, userSummary } from "../state.ts";
import { type GivenCode, spend } from "./codes.ts";
import { noteSuccess } from "./failures.ts";
import { endSessionsOf, type LoginBegun } from "./logins.ts";
import { attemptOf, userOf } from "./own-password.ts";

/*
 * A second factor beside the password: codes by time (RFC 6238), and recovery codes, each of which opens once. The secret is sealed here; whoever
 * carries out the steps says of which step a code is. A user enrols by his password, and confirms by a first code, so that nobody is shut out by a
 * secret that no telephone has; from then on a login needs both.
 */
interface Own {
  readonly session: string;
  /** Address of the client. */
  readonly source: string;
}
/** Another secret, by the password. */
export interface TotpBegin extends Own {
  readonly kind: "totp-begin";
  readonly begun: LoginBegun;
  readonly matched: boolean;
  readonly sealed: string;
}
/** What has to be opened to look at a code. */
export interface TotpLook extends Pick<Own, "session"> {
  readonly kind: "totp-look";
}
export interface TotpConfirm extends Own {
  readonly kind: "totp-confirm";
  readonly sealed: string;
  readonly code: GivenCode;
  /** Hashes of recovery codes. */
  readonly recovery: readonly string[];
}
export interface TotpEnd extends Own {
  readonly kind: "totp-end";
  readonly begun: LoginBegun;
  readonly matched: boolean;
  readonly code: GivenCode;
}

export function beginTotp(state: TenancyState, asked: TotpBegin): Result<{ readonly label: string }, Refused> {
  const { session, source, begun, matched, sealed } = asked;
  const found = userOf(state, session);
  if (!found.ok) return found;
  const user = found.value;
  const own = { user: user.uid, session, source };
  if (user.totp?.isOn === true)
    return fail(refused(409, "conflict", "you have a second factor: `cells totp off` takes it away first"));
  if (!matched || begun.user !== user.uid || begun.password !== user.password) return refusedOwn(state, own, notHis);
  noteSuccess(state, attemptOf(state, user, source));
  save(state, "user", user.uid, { ...user, totp: { sealed, isOn: false, lastStep: 0, recovery: [] } });
  recordOwn(state, "beginTotp", own, null);
  return ok({ label: labelOf(state, user) });
}
export function lookTotp(
  state: TenancyState,
  { session }: TotpLook,
): Result<{ readonly user: string; readonly sealed: string }, Refused> {
  const user = userOf(state, session);
  if (!user.ok) return user;
  const { uid, totp } = user.value;
  return totp === undefined || totp.isOn ? fail(nothingBegun) : ok({ user: uid, sealed: totp.sealed });
}
const nothingBegun = refused(409, "conflict", "no second factor waits for its first code: `cells totp on` begins one");

export function confirmTotp(state: TenancyState, asked: TotpConfirm): Result<UserSummary, Refused> {
  const { session, source, sealed, code, recovery } = asked;
  const found = userOf(state, session);
  if (!found.ok) return found;
  const user = found.value;
  const { totp } = user;
  // Another one may have been begun while the code was looked at.
  if (totp === undefined || totp.isOn || totp.sealed !== sealed) return fail(nothingBegun);
  const own = { user: user.uid, session, source };
  const spent = spend(state, user, code);
  if (!spent.ok) return refusedOwn(state, own, spent.error, "confirmTotp");
  const lastStep = spent.value.totp?.lastStep ?? 0;
  // Whoever got in by the password alone is out.
  endSessionsOf(state, user, session);
  const record: UserRecord = { ...user, totp: { sealed, isOn: true, lastStep, recovery } };
  save(state, "user", user.uid, record);
  tell(state, "confirmTotp", record, own);
  return ok(userSummary(state, record));
}
/** By the password and a code: neither a session nor one of the two does. */
export function endTotp(state: TenancyState, asked: TotpEnd): Result<UserSummary, Refused> {
  const { session, source, begun, matched, code } = asked;
  const found = userOf(state, session);
  if (!found.ok) return found;
  const user = found.value;
  if (user.totp?.isOn !== true) return fail(refused(409, "conflict", "you have no second factor"));
  const own = { user: user.uid, session, source };
  if (!matched || begun.user !== user.uid || begun.password !== user.password)
    return refusedOwn(state, own, notHis, "endTotp");
  const spent = spend(state, user, code);
  if (!spent.ok) return refusedOwn(state, own, spent.error, "endTotp");
  noteSuccess(state, attemptOf(state, user, source));
  const record = withoutTotp(user);
  save(state, "user", user.uid, record);
  tell(state, "endTotp", record, own);
  return ok(userSummary(state, record));
}
export const withoutTotp = ({ totp: _, ...user }: UserRecord): UserRecord => user;

type Verb = "beginTotp" | "confirmTotp" | "endTotp";
type Whose = { readonly user: string; readonly session: string; readonly source: string };
function tell(state: TenancyState, verb: Verb, user: UserRecord, own: Whose): void {
  const label = labelOf(state, user);
  log(state.outbox, "tenancy/changed", { verb, by: label, target: label });
  recordOwn(state, verb, own, null);
}
const notHis = refused(403, "forbidden", "the present password is not right: nothing was changed");
function refusedOwn(
  state: TenancyState,
  own: Whose,
  no: Refused,
  verb: Verb = "beginTotp",
): { readonly ok: false; readonly error: Refused } {
  recordOwn(state, verb, own, no);
  return fail(no);
}
