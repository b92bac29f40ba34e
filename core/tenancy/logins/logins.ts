import { isoTime } from "../../../model/cell/iso-time.ts";
import type { Login, UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { recordOwn } from "../audit/audited.ts";
import { dropTickets } from "../looks.ts";
import type { SessionRecord, UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import {
  domainAt,
  labelOf,
  loginKey,
  rightsOf,
  save,
  type TenancyState,
  userOfSession,
  userSummary,
} from "../state.ts";
import { type GivenCode, spend } from "./codes.ts";
import { noteFailure, noteSuccess, tooOften } from "./failures.ts";

/*
 * Logins by password. Whoever carries out the steps computes what takes long in between: `begin` gives the hash that the password
 * must have, `end` says whether it had. An unknown user is answered as one whose password is wrong, after the same work.
 */
export interface LoginBegin {
  readonly kind: "login-begin";
  readonly domain: string;
  readonly user: string;
  /** Address of the client. */
  readonly source: string;
}
export interface LoginBegun {
  /** Null: there is no such user, or none with a password; the work is done all the same. */
  readonly password: string | null;
  readonly user: string | null;
  /** Secret of his second factor, sealed; null: he has none that is needed. */
  readonly totp: string | null;
}
export interface LoginEnd extends Omit<LoginBegin, "kind"> {
  readonly kind: "login-end";
  readonly begun: LoginBegun;
  readonly matched: boolean;
  /** Hash of the session that is to be. */
  readonly session: string;
  /** Absent: none was given. */
  readonly code?: GivenCode;
  /** The same password with the costs of today; absent: those were its costs already. */
  readonly grown?: string;
}

export const sessionMs = 12 * 60 * 60_000;
const sessionsPerUser = 32;

export function beginLogin(state: TenancyState, asked: LoginBegin): Result<LoginBegun, Refused> {
  const no = tooOften(state, asked);
  if (no !== null) return fail(no);
  noteFailure(state, asked);
  const domain = domainAt(state, asked.domain);
  const uid = domain === undefined ? undefined : state.logins.get(loginKey(domain.uid, asked.user));
  const user = uid === undefined ? undefined : state.tables.user.get(uid);
  return ok(user === undefined ? { user: null, password: null, totp: null } : begunFor(user));
}
export const begunFor = ({ uid, password, totp }: UserRecord): LoginBegun => ({
  user: uid,
  password,
  totp: totp?.isOn === true ? totp.sealed : null,
});

const noLogin = refused(401, "login", "there is no such user, or the password is not right: try `cells login` again");

export function endLogin(state: TenancyState, asked: LoginEnd): Result<Omit<Login, "session">, Refused> {
  const { begun, matched, session, grown } = asked;
  const user = begun.user === null ? undefined : state.tables.user.get(begun.user);
  // The password may have been changed while this one was looked at.
  if (user === undefined || !matched || begun.password === null || user.password !== begun.password) {
    log(state.outbox, "login/refused", { source: asked.source });
    recordOwn(state, "logIn", { user: begun.user, session: null, source: asked.source }, noLogin);
    return fail(noLogin);
  }
  const spent = user.totp?.isOn === true ? spend(state, user, asked.code ?? null) : ok(user);
  if (!spent.ok) {
    recordOwn(state, "logIn", { user: user.uid, session: null, source: asked.source }, spent.error);
    return spent;
  }
  noteSuccess(state, asked);
  const entered = letIn(state, user, { session, source: asked.source });
  const next = grown === undefined ? spent.value : { ...spent.value, password: grown };
  if (entered.ok && next !== user) save(state, "user", user.uid, next);
  return entered;
}

/** Whoever has shown who he is gets a session, unless he, or what he is in, is disabled. */
export function letIn(
  state: TenancyState,
  user: UserRecord,
  {
    session,
    source,
    key,
    by = {},
    verb = key === undefined ? "logIn" : "logInSigned",
  }: {
    readonly session: string;
    readonly source: string;
    readonly key?: string;
    readonly by?: Pick<SessionRecord, "provider" | "sid">;
    readonly verb?: "logIn" | "logInSigned" | "endOidcLogin";
  },
): Result<Omit<Login, "session">, Refused> {
  const byKey = key === undefined ? {} : { key };
  if (rightsOf(state, user) === null) {
    const no =
      state.held === null
        ? refused(
            403,
            "disabled",
            "this user, or the account or domain that it is in, is disabled: ask its administrator",
          )
        : refused(503, "held", heldMessage(state.held.why));
    recordOwn(state, verb, { user: user.uid, session: null, source, ...byKey }, no);
    return fail(no);
  }
  const untilMs = state.now.wallMs + sessionMs;
  const own = sessionsOf(state, user).filter(([, { watch }]) => watch === undefined);
  for (const [oldest] of own.slice(0, 1 - sessionsPerUser)) endSession(state, oldest);
  save(state, "session", session, { user: user.uid, untilMs, ...byKey, ...by });
  log(state.outbox, "login/accepted", { user: labelOf(state, user), source });
  recordOwn(state, verb, { user: user.uid, session, source, ...byKey }, null);
  return ok({ user: userSummary(state, user), expires: isoTime(untilMs) });
}
export const heldMessage = (why: string): string =>
  `the store of the service tenancy is older than it was: ${why}. Until somebody lets it count (\`cells orphans release tenancy\`), root administrators alone get in`;

const sessionsOf = (state: TenancyState, { uid }: UserRecord) =>
  [...state.tables.session]
    .filter(([, { user }]) => user === uid)
    .sort(([, one], [, other]) => one.untilMs - other.untilMs);

export function endSession(state: TenancyState, hash: string): void {
  dropTickets(state, (session) => session === hash);
  save(state, "session", hash, null);
}
/** @param but the hash of one that goes on */
export function endSessionsOf(state: TenancyState, user: UserRecord, but?: string): void {
  for (const [hash] of sessionsOf(state, user)) if (hash !== but) endSession(state, hash);
}
/** Those whose time has come. */
export function endOldSessions(state: TenancyState): void {
  const over = [...state.tables.session].filter(([, { untilMs }]) => untilMs <= state.now.wallMs);
  for (const [hash] of over) endSession(state, hash);
}

/** Who has this session, and until when. */
export function sessionSummary(
  state: TenancyState,
  hash: string,
): { readonly user: UserSummary; readonly expires: string } | null {
  const user = userOfSession(state, hash);
  const untilMs = state.tables.session.get(hash)?.untilMs ?? 0;
  return user === undefined ? null : { user: userSummary(state, user), expires: isoTime(untilMs) };
}
