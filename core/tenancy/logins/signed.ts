import type { Signed } from "../../../model/contract/signatures/sigv4.ts";
import { outOfTime } from "../../../model/contract/signatures/window.ts";
import type { Login } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { recordOwn } from "../audit/audited.ts";
import { type Refused, refused } from "../refused.ts";
import { rightsOf, save, type TenancyState } from "../state.ts";
import { heldMessage, letIn } from "./logins.ts";

/*
 * Sessions by signed requests. The secret stays sealed here: whoever carries out the steps opens it, looks whether the signature is
 * right, and says so. An unknown key is answered as one whose signature is wrong, after the same work. Nothing slows down who tries: a
 * secret of 256 bits is not found so.
 */
export interface SignedBegin {
  readonly kind: "signed-begin";
  readonly signed: Pick<Signed, "scheme" | "key" | "stringToSign">;
  /** Address of the client. */
  readonly source: string;
}
export interface SignedBegun {
  /** Null: there is no such key; the work is done all the same. */
  readonly sealed: string | null;
  /** Hashes of sessions that it has begun and that go on for a while. */
  readonly live: readonly string[];
}
export interface SignedEnd extends Omit<SignedBegin, "kind"> {
  readonly kind: "signed-end";
  readonly begun: SignedBegun;
  readonly matched: boolean;
  /** Hash of the session that is to be. */
  readonly session: string;
}

/** A session that ends sooner is not given again. */
const leastLeftMs = 60 * 60_000;

export function beginSigned(state: TenancyState, { signed, source }: SignedBegin): Result<SignedBegun, Refused> {
  // A key that was deleted since would be back.
  if (state.held !== null) return fail(refused(503, "held", `${heldMessage(state.held.why)}, by password`));
  const late = outOfTime(signed, state.now.wallMs);
  if (late !== null) return refuse(state, signed, source, refused(401, "signature-late", `this signature: ${late}`));
  const key = state.tables.key.get(signed.key);
  if (key === undefined) return ok({ sealed: null, live: [] });
  const mayIn = key.state === "enabled" && rightsOf(state, state.tables.user.get(key.user)) !== null;
  const untilMs = state.now.wallMs + leastLeftMs;
  const own = [...(state.sessionsBy.get(signed.key) ?? [])];
  const live = own.filter((hash) => (state.tables.session.get(hash)?.untilMs ?? 0) > untilMs);
  return ok({ sealed: key.sealed, live: mayIn ? live : [] });
}

const wrong = refused(401, "signature", "there is no such key, or this is not its signature of this request");

export function endSigned(state: TenancyState, asked: SignedEnd): Result<Omit<Login, "session">, Refused> {
  const { signed, source, begun, matched, session } = asked;
  const key = state.tables.key.get(signed.key);
  const user = state.tables.user.get(key?.user ?? "");
  // The key may have been deleted while this one was looked at.
  if (key === undefined || user === undefined || !matched || key.sealed !== begun.sealed)
    return refuse(state, signed, source, wrong);
  if (key.state !== "enabled")
    return refuse(state, signed, source, refused(403, "disabled", `the key ${signed.key} is disabled`));
  const entered = letIn(state, user, { session, source, key: signed.key });
  if (entered.ok) save(state, "key", signed.key, { ...key, usedMs: state.now.wallMs });
  return entered;
}

function refuse(
  state: TenancyState,
  { key }: SignedBegin["signed"],
  source: string,
  no: Refused,
): { readonly ok: false; readonly error: Refused } {
  log(state.outbox, "login/refused", { source });
  const user = state.tables.key.get(key)?.user ?? null;
  recordOwn(state, "logInSigned", { user, session: null, source, ...(user === null ? {} : { key }) }, no);
  return fail(no);
}
