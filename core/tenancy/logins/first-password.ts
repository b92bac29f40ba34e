import { isoTime } from "../../../model/cell/iso-time.ts";
import type { UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { type Actor, userFor } from "../actor.ts";
import { recordOwn } from "../audit/audited.ts";
import type { UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import { labelOf, save, type TenancyState, userSummary } from "../state.ts";
import { endSessionsOf, heldMessage } from "./logins.ts";

/*
 * A link by which a user gives himself his first password, or another one where he has forgotten his: it opens once, for a day. So nobody else ever
 * knows a password, also not who makes users. The next link takes the place of the one before.
 */
const linkMs = 24 * 60 * 60_000;

/** The step before the password's hash is computed, and the one with it. */
export interface LinkUse {
  readonly kind: "link-begin" | "link-end";
  readonly user: string;
  /** Of the link. */
  readonly hash: string;
  /** PHC string; null: in the first step. */
  readonly password: string | null;
  /** Address of the client. */
  readonly source: string;
}

export function linkUser(
  state: TenancyState,
  actor: Actor,
  { uid, hash }: { readonly uid: string; readonly hash: string },
): Result<{ readonly user: string; readonly expires: string }, Refused> {
  const found = userFor(state, actor, uid, "user.change");
  if (!found.ok) return found;
  const untilMs = state.now.wallMs + linkMs;
  save(state, "user", uid, { ...found.value, link: { hash, untilMs } });
  return ok({ user: labelOf(state, found.value), expires: isoTime(untilMs) });
}

const noLink = refused(
  401,
  "login",
  "this link opens nothing: it was used before, is older than a day, or another took its place",
);

export function useLink(state: TenancyState, asked: LinkUse): Result<UserSummary, Refused> {
  const { user: uid, hash, password, source } = asked;
  // What was used since is there again in an older store.
  if (state.held !== null) return fail(refused(503, "held", heldMessage(state.held.why)));
  const user = state.tables.user.get(uid);
  const { link } = user ?? {};
  const own = { user: user?.uid ?? null, session: null, source };
  if (user === undefined || link === undefined || link.hash !== hash || link.untilMs <= state.now.wallMs) {
    recordOwn(state, "setFirstPassword", own, noLink);
    return fail(noLink);
  }
  if (password === null) return ok(userSummary(state, user));
  const { link: _, ...without } = user;
  const record: UserRecord = { ...without, password };
  endSessionsOf(state, user);
  save(state, "user", uid, record);
  const label = labelOf(state, user);
  log(state.outbox, "tenancy/changed", { verb: "setFirstPassword", by: label, target: label });
  recordOwn(state, "setFirstPassword", own, null);
  return ok(userSummary(state, record));
}
