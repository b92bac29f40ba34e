import { fail, ok, type Result } from "../../../model/result.ts";
import type { UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import type { TenancyState } from "../state.ts";
import { noteFailure, noteSuccess, tooOften } from "./failures.ts";

/* Codes of a second factor: each opens once. */
export interface GivenCode {
  /** Of 30 s since 1970, of which this is the code; null: of none near now. */
  readonly step: number | null;
  /** Its hash, as of a recovery code. */
  readonly hash: string;
}
const stepMs = 30_000;
/** Of the user, from wherever: whoever gets so far has his password. */
const attemptsOf = ({ uid }: UserRecord) => ({ domain: "", user: uid, source: "code" });

const wrong = refused(401, "second-factor", "this code is not right, or was used before: wait for the next one");
const needed = refused(401, "second-factor", "this user has a second factor: log in with the code that it shows now");

/** The user with the code spent, or why it does not open. */
export function spend(state: TenancyState, user: UserRecord, code: GivenCode | null): Result<UserRecord, Refused> {
  const { totp } = user;
  if (totp === undefined) return ok(user);
  if (code === null) return fail(needed);
  const attempt = attemptsOf(user);
  const no = tooOften(state, attempt);
  if (no !== null)
    return fail({ ...no, message: `too many codes of this user were wrong: try again in ${no.retryAfter} s` });
  const now = Math.floor(state.now.wallMs / stepMs);
  const isOfNow = code.step !== null && code.step > totp.lastStep && Math.abs(code.step - now) <= 1;
  const recovery = totp.recovery.filter((each) => each !== code.hash);
  if (!isOfNow && recovery.length === totp.recovery.length) {
    noteFailure(state, attempt);
    return fail(wrong);
  }
  noteSuccess(state, attempt);
  return ok({ ...user, totp: isOfNow ? { ...totp, lastStep: code.step ?? now } : { ...totp, recovery } });
}
