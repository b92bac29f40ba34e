import { isoTime } from "../../../model/cell/iso-time.ts";
import { allows } from "../../../model/contract/tenancy/rules.ts";
import {
  type NewSubscription,
  noticeKinds,
  type SubscriptionChange,
  type SubscriptionSummary,
} from "../../../model/contract/tenancy/subscriptions.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { type Actor, actorAs, type By, denied, reaches } from "../actor.ts";
import { endSession } from "../logins/logins.ts";
import { rightsAt } from "../looks.ts";
import type { SubscriptionRecord, UserRecord } from "../records.ts";
import { beyondShare, noSuch, type Refused, refused } from "../refused.ts";
import { hasItsShare, labelOf, partOf, rightsOf, save, type TenancyState, volumesWatcherOf } from "../state.ts";
import { addNotice, dropNotices, queueShown, watchedAnew } from "./notices.ts";

/*
 * Who has which URL told of which cells. One's own need no right but to read the cells, and count for as long as one may: whoever carries
 * notices reads each cell by a session of the subscriber that opens nothing else (`looks.ts`).
 */
const mostOfUser = 8;
/** Cells that are watched, each as often as somebody has it watched: each is read again whenever it changes. */
const mostWatched = { ofAccount: 32, inAll: 512 } as const;
/** A session that watches ends then, and another one is begun. */
const watchMs = 24 * 60 * 60_000;

const summaryOf = (state: TenancyState, uid: string, actor: Actor, record: SubscriptionRecord): SubscriptionSummary => {
  const user = state.tables.user.get(record.user);
  return {
    uid,
    user: user === undefined ? "" : labelOf(state, user),
    // A path is often what lets somebody post there.
    url: record.user === actor.user?.uid ? record.url : originOf(record.url),
    cells: record.cells,
    ...(record.volumes === true ? { volumes: true } : {}),
    events: record.events,
    made: isoTime(record.madeMs),
    ...queueShown(state, uid),
  };
};
const originOf = (url: string): string => /^https?:\/\/[^/?#]*/.exec(url)?.[0] ?? "";

const isSeen = (state: TenancyState, actor: Actor, { user }: SubscriptionRecord): boolean =>
  user === actor.user?.uid ||
  (denied(state, actor, "subscription.read") === null &&
    reaches(state, actor, { account: state.tables.user.get(user)?.account ?? "" }));

export function listSubscriptions(state: TenancyState, actor: Actor): Result<readonly SubscriptionSummary[], Refused> {
  const seen = [...state.tables.subscription].filter(([, each]) => isSeen(state, actor, each));
  return ok(seen.map(([uid, each]) => summaryOf(state, uid, actor, each)));
}

type Watched = Pick<SubscriptionRecord, "cells"> & { readonly volumes?: boolean | undefined };
/** Persistent volumes count as a cell. */
const weightOf = ({ cells, volumes }: Watched): number => cells.length + (volumes === true ? 1 : 0);

/** Why these may not be watched for him; null: they may. */
function refuseWatched(
  state: TenancyState,
  user: UserRecord,
  { cells, volumes }: Watched,
  uid: string,
): Refused | null {
  if (cells.length === 0 && volumes !== true)
    return refused(400, "bad-request", "a subscription is about cells, or about persistent volumes: name one");
  const unseen = cells.find((cell) => !allows(rightsAt(state, user, cell)?.rules ?? [], "cell.read"));
  if (unseen !== undefined) return noSuch("cell", unseen, "`cells list` shows those that you may see");
  const { subscription, user: users, account } = state.tables;
  const others = [...subscription].filter(([each]) => each !== uid).map(([, each]) => each);
  const asked = weightOf({ cells, volumes });
  const count = (all: readonly SubscriptionRecord[]): number => all.reduce((sum, each) => sum + weightOf(each), 0);
  const accountOf = (each: SubscriptionRecord): string => users.get(each.user)?.account ?? "";
  if (count(others.filter((each) => accountOf(each) === user.account)) + asked > mostWatched.ofAccount)
    return refused(
      409,
      "conflict",
      `your account's subscriptions name ${mostWatched.ofAccount} cells together at most: delete one that is not used`,
    );
  const all = count(others);
  if (all + asked > mostWatched.inAll)
    return refused(409, "conflict", `subscriptions name ${mostWatched.inAll} cells together, and that is the limit`);
  const part = (uid: string): string => partOf(state, account.get(uid)?.domain ?? "");
  const own = (): number => count(others.filter((each) => part(accountOf(each)) === part(user.account)));
  return hasItsShare(mostWatched.inAll, all, own) ? beyondShare("subscriptions") : null;
}

/** He himself, by what does not outlive what he may take back. */
function requireOwn(state: TenancyState, { user }: Actor, by: By): Result<UserRecord, Refused> {
  if (user === null || !("session" in by))
    return fail(refused(400, "bad-request", "the operator's credential is no user's: log in as who is to be told"));
  if (state.tables.session.get(by.session)?.key !== undefined)
    return fail(
      refused(403, "forbidden", "this session was begun by a key, and what it had told would go on without it: log in"),
    );
  return ok(user);
}

export function addSubscription(
  state: TenancyState,
  actor: Actor,
  asked: {
    readonly by: By;
    readonly uid: string;
    readonly asked: Omit<NewSubscription, "secret">;
    readonly sealed: string;
    readonly dryRun: boolean;
  },
): Result<SubscriptionSummary, Refused> {
  const { url, volumes = false, events = noticeKinds } = asked.asked;
  const user = requireOwn(state, actor, asked.by);
  if (!user.ok) return user;
  const own = [...state.tables.subscription.values()].filter((each) => each.user === user.value.uid);
  if (own.length >= mostOfUser)
    return fail(
      refused(409, "conflict", `a user has at most ${mostOfUser} subscriptions: delete one that is not used`),
    );
  const cells = [...new Set(asked.asked.cells)].sort();
  const no = refuseWatched(state, user.value, { cells, volumes }, asked.uid);
  if (no !== null) return fail(no);
  const record: SubscriptionRecord = {
    user: user.value.uid,
    url,
    sealed: asked.sealed,
    cells,
    ...(volumes ? { volumes: true } : {}),
    events: noticeKinds.filter((kind) => events.includes(kind)),
    madeMs: state.now.wallMs,
    number: 0,
  };
  if (!asked.dryRun) {
    save(state, "subscription", asked.uid, record);
    addNotice(state, asked.uid, null);
    watchedAnew(state);
  }
  return ok(summaryOf(state, asked.uid, actor, record));
}

export function changeSubscription(
  state: TenancyState,
  actor: Actor,
  {
    by,
    uid,
    change,
    sealed,
    dryRun,
  }: {
    readonly by: By;
    readonly uid: string;
    readonly change: Omit<SubscriptionChange, "secret">;
    readonly sealed: string | undefined;
    readonly dryRun: boolean;
  },
): Result<SubscriptionSummary, Refused> {
  const before = state.tables.subscription.get(uid);
  if (before === undefined || before.user !== actor.user?.uid)
    return fail(noSuch("subscription of yours", uid, "`cells subscription list` shows them"));
  const user = requireOwn(state, actor, by);
  if (!user.ok) return user;
  const isMoved = change.url !== undefined && change.url !== before.url;
  // Whoever is told from now on would else be shown that somebody has the secret, by each notice.
  if (isMoved && sealed === undefined)
    return fail(refused(400, "bad-request", "another URL has a secret of its own: say one"));
  const cells = change.cells === undefined ? before.cells : [...new Set(change.cells)].sort();
  const volumes = change.volumes ?? before.volumes === true;
  const isOther = change.cells !== undefined || change.volumes !== undefined;
  const no = isOther ? refuseWatched(state, user.value, { cells, volumes }, uid) : null;
  if (no !== null) return fail(no);
  const events = change.events ?? before.events;
  const { volumes: _, ...rest } = before;
  const record: SubscriptionRecord = {
    ...rest,
    ...(volumes ? { volumes: true } : {}),
    url: change.url ?? before.url,
    sealed: sealed ?? before.sealed,
    cells,
    events: noticeKinds.filter((kind) => events.includes(kind)),
  };
  if (!dryRun) {
    if (isMoved) dropNotices(state, uid);
    save(state, "subscription", uid, record);
    if (isMoved) addNotice(state, uid, null);
    if (isOther) endWatch(state, uid);
    watchedAnew(state);
  }
  return ok(summaryOf(state, uid, actor, record));
}

export function deleteSubscription(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<SubscriptionSummary, Refused> {
  const record = state.tables.subscription.get(uid);
  if (record === undefined || !isSeen(state, actor, record))
    return fail(noSuch("subscription", uid, "`cells subscription list` shows those that you may see"));
  const no = record.user === actor.user?.uid ? null : denied(state, actor, "subscription.delete");
  if (no !== null) return fail(no);
  const gone = summaryOf(state, uid, actor, record);
  if (!dryRun) drop(state, uid);
  return ok(gone);
}

function drop(state: TenancyState, uid: string): void {
  endWatch(state, uid);
  dropNotices(state, uid);
  save(state, "subscription", uid, null);
  watchedAnew(state);
}
function endWatch(state: TenancyState, uid: string): void {
  for (const [hash, { watch }] of [...state.tables.session]) if (watch === uid) endSession(state, hash);
}
const uidsOf = ({ tables }: TenancyState, user: string): readonly string[] =>
  [...tables.subscription].filter(([, each]) => each.user === user).map(([uid]) => uid);
export const countSubscriptionsOf = (state: TenancyState, { uid }: UserRecord): number => uidsOf(state, uid).length;
export function dropSubscriptionsOf(state: TenancyState, { uid }: UserRecord): void {
  for (const each of uidsOf(state, uid)) drop(state, each);
}
/** A version before this one deletes users and knows no subscriptions. */
export function dropSubscriptionsOfNobody(state: TenancyState): void {
  for (const [uid, { user }] of [...state.tables.subscription]) if (!state.tables.user.has(user)) drop(state, uid);
}

/** A session by which whoever carries notices reads the cells of one subscription, in place of those before. */
export function beginWatch(
  state: TenancyState,
  { uid, session }: { readonly uid: string; readonly session: string },
): Result<{ readonly expires: string }, Refused> {
  const { user: whose = "" } = state.tables.subscription.get(uid) ?? {};
  const user = state.tables.user.get(whose);
  if (user === undefined) return fail(noSuch("subscription", uid, "it was deleted"));
  if (rightsOf(state, user) === null)
    return fail(refused(403, "disabled", "its user, or the account or domain that he is in, is disabled"));
  endWatch(state, uid);
  const untilMs = state.now.wallMs + watchMs;
  save(state, "session", session, { user: user.uid, untilMs, watch: uid });
  return ok({ expires: isoTime(untilMs) });
}

/** Of a session that watches persistent volumes for somebody what is asked by which these say what he may see: who he is, and his account. */
const ofVolumes: readonly string[] = ["whoAmI", "listAccounts", "cells"];
const rulesOfVolumes = ["cell.read", "account.read"] as const;

/** Who asks that by such a session, with no more than it takes; null: it is none, or asks something else. */
export function watchingActor(state: TenancyState, by: By, name: string): Actor | null {
  if (!("session" in by) || !ofVolumes.includes(name)) return null;
  const user = volumesWatcherOf(state, by.session);
  const role = rightsOf(state, user);
  if (user === undefined || role === null) return null;
  const rules = rulesOfVolumes.filter((verb) => allows(role.rules, verb));
  return actorAs(state, user, { ...role, rules: rules.map((verb) => ({ verb, effect: "allow" })) });
}
