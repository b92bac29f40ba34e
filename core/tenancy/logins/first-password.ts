import { isoTime } from "../../../model/cell/iso-time.ts";
import { builtInUid } from "../../../model/contract/tenancy/rules.ts";
import { rootDomain, type UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { type Actor, userFor } from "../actor.ts";
import { recordOwn } from "../audit/audited.ts";
import type { UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import {
  accountPath,
  accountStanding,
  labelOf,
  loginKey,
  operatorUid,
  rootUid,
  save,
  type TenancyState,
  userSummary,
} from "../state.ts";
import { dropKeysOf } from "./keys.ts";
import { endSessionsOf, heldMessage } from "./logins.ts";

/*
 * A link by which a user gives himself his first password, or another one where he has forgotten his: it opens once, for a day. So nobody else ever
 * knows a password, also not who makes users. The next link takes the place of the one before. In an older store a link opens that was made since it
 * is known as one, and by this process: another one may have used it, over a store that was lost.
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
  const link = newLink(state, hash);
  save(state, "user", uid, { ...found.value, link });
  return ok({ user: labelOf(state, found.value), expires: isoTime(link.untilMs) });
}
function newLink(state: TenancyState, hash: string): NonNullable<UserRecord["link"]> {
  if (state.held !== null) state.linked.add(hash);
  return { hash, untilMs: state.now.wallMs + linkMs };
}

/**
 * The operator's way back in, where no administrator gets in any more: this one of `ROOT` is a root administrator, whoever or whatever he was
 * before, or is made, in the operator's account, and has a link. What opened as him before opens nothing: it may be what shut everybody out.
 */
export function recoverAdmin(
  state: TenancyState,
  actor: Actor,
  {
    name,
    uid,
    hash,
    dryRun,
  }: { readonly name: string; readonly uid: string; readonly hash: string; readonly dryRun: boolean },
): Result<{ readonly uid: string; readonly user: string; readonly expires: string }, Refused> {
  if (actor.user !== null)
    return fail(refused(403, "forbidden", "the way back in is for the operator, by the operator's credential"));
  const known = state.tables.user.get(state.logins.get(loginKey(rootUid, name)) ?? "");
  const account = known === undefined ? undefined : state.tables.account.get(known.account);
  if (account !== undefined && (account.deleting === true || accountStanding(state, account) !== "enabled")) {
    const [path, is] = [accountPath(state, account.uid), account.deleting === true ? "being deleted" : account.state];
    const enable = account.deleting === true ? "" : `enable it first (\`cells account enable ${path}\`), or `;
    return fail(
      refused(409, "conflict", `${name} is of the account ${path}, which is ${is}: ${enable}give another name`),
    );
  }
  const record: UserRecord = {
    uid: known?.uid ?? uid,
    name,
    account: known?.account ?? operatorUid,
    role: builtInUid("root-admin"),
    state: "enabled",
    password: null,
  };
  const expires = isoTime(state.now.wallMs + linkMs);
  const answer = { uid: record.uid, user: `${name}@${rootDomain}`, expires };
  if (dryRun) return ok(answer);
  if (known !== undefined) {
    endSessionsOf(state, known);
    dropKeysOf(state, known);
  }
  save(state, "user", record.uid, { ...record, link: newLink(state, hash) });
  return ok(answer);
}

const noLink = refused(
  401,
  "login",
  "this link opens nothing: it was used before, is older than a day, or another took its place",
);

export function useLink(state: TenancyState, asked: LinkUse): Result<UserSummary, Refused> {
  const { user: uid, hash, password, source } = asked;
  // What was used since is there again in an older store; what was made since it is known as one was not.
  if (state.held !== null && !state.linked.has(hash)) return fail(refused(503, "held", heldMessage(state.held.why)));
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
