import { isoTime } from "../../../model/cell/iso-time.ts";
import type {
  CellNews,
  CellNotice,
  NoticeKind,
  SubscriptionSummary,
} from "../../../model/contract/tenancy/subscriptions.ts";
import { log, toJson } from "../../outbox.ts";
import { type Queue, rightsOf, save, type TenancyState } from "../state.ts";

/*
 * Notices to URLs of users. Each is durable with what it tells, and stays until the receiver has taken it, for a day at most; of one
 * subscription they go one after the other. What was given up is kept for a while, so that its user sees what he was not told. Who looks what
 * becomes of cells, and who carries notices, is the gateway's matter (`gateway/follow/notifications/`): it asks here what is to be watched and what is
 * due, in one question that waits. A receiver that is slow or away holds up nobody else's: so many are carried at a time, of one account fewer.
 */
const firstRetryMs = 1_000;
const longestRetryMs = 600_000;
const keptMs = 86_400_000;
const most = { waiting: 64, dead: 16, carried: 16, carriedOfAccount: 2 } as const;
/** Longer than anybody carries one. */
const carriedWithinMs = 60_000;
export const noticeTimer = "notices";

const newQueue = (): Queue => ({
  waiting: [],
  dead: [],
  tried: 0,
  dueMs: 0,
  said: null,
  carriedMs: 0,
});
/** To be looked at: of a subscription that is none yet nothing is kept. */
export function queueShown(
  { notices, tables }: TenancyState,
  uid: string,
): Pick<SubscriptionSummary, "waiting" | "said" | "dead"> {
  const { waiting, dead, said } = notices.queues.get(uid) ?? newQueue();
  const shownDead = dead.map((number) => {
    const { atMs = 0, dead: why = "" } = tables.notice.get(keyOf(uid, number)) ?? {};
    return { number, at: isoTime(atMs), why };
  });
  return { waiting: waiting.length, said, dead: shownDead };
}
function queueOf({ notices: { queues } }: TenancyState, uid: string): Queue {
  const queue = queues.get(uid) ?? newQueue();
  queues.set(uid, queue);
  return queue;
}
/** At a start, of what the store has. */
export function restoreNotices(state: TenancyState): void {
  const { notice, subscription } = state.tables;
  for (const [key, { dead }] of [...notice]) {
    const [uid = "", number] = key.split("/");
    const queue = queueOf(state, uid);
    (dead === undefined ? queue.waiting : queue.dead).push(Number(number));
  }
  for (const [uid, queue] of [...state.notices.queues]) {
    for (const each of [queue.waiting, queue.dead]) each.sort((one, other) => one - other);
    if (!subscription.has(uid)) dropNotices(state, uid);
  }
  state.notices.since = state.now.wallMs;
}
/** What is to be watched is another thing than before. */
export function watchedAnew({ notices }: TenancyState): void {
  notices.changes += 1;
}
/** Stands for what is watched: another one after each change of it, and of each process. */
const watchedNow = ({ notices }: TenancyState): string => `${notices.since}.${notices.changes}`;

const keyOf = (uid: string, number: number): string => `${uid}/${number}`;

/** @param news null: a test. */
export function addNotice(state: TenancyState, uid: string, news: CellNews | null): void {
  const subscription = state.tables.subscription.get(uid);
  if (subscription === undefined) return;
  const number = subscription.number + 1;
  save(state, "subscription", uid, { ...subscription, number });
  save(state, "notice", keyOf(uid, number), { atMs: state.now.wallMs, news });
  const queue = queueOf(state, uid);
  queue.waiting.push(number);
  const [first] = queue.waiting;
  if (queue.waiting.length > most.waiting && first !== undefined)
    giveUp(state, uid, first, `more than ${most.waiting} waited`);
}
/** Also those that were given up. */
export function dropNotices(state: TenancyState, uid: string): void {
  const { waiting, dead } = queueOf(state, uid);
  for (const number of [...waiting, ...dead]) save(state, "notice", keyOf(uid, number), null);
  state.notices.queues.delete(uid);
}

function giveUp(state: TenancyState, uid: string, number: number, why: string): void {
  const queue = queueOf(state, uid);
  const record = state.tables.notice.get(keyOf(uid, number));
  if (record === undefined) return;
  queue.waiting.splice(queue.waiting.indexOf(number), 1);
  queue.dead.push(number);
  save(state, "notice", keyOf(uid, number), { ...record, news: null, dead: why });
  const oldest = queue.dead.length > most.dead ? queue.dead.shift() : undefined;
  if (oldest !== undefined) save(state, "notice", keyOf(uid, oldest), null);
  log(state.outbox, "notice/unsent", { subscription: uid, number, reason: why });
}

/** What came of one. The word of an attempt that is not under way any more, as of an earlier URL, changes nothing. */
export function takeNoticeWord(
  state: TenancyState,
  said: {
    readonly subscription: string;
    readonly number: number;
    readonly taken: boolean;
    readonly reason: string | null;
  },
): void {
  const { subscription: uid, number, taken } = said;
  state.notices.carried.delete(keyOf(uid, number));
  if (!state.tables.subscription.has(uid)) return;
  const queue = queueOf(state, uid);
  if (queue.waiting[0] !== number) return;
  if (taken) {
    queue.waiting.shift();
    save(state, "notice", keyOf(uid, number), null);
    Object.assign(queue, { tried: 0, dueMs: 0, said: null });
    return;
  }
  queue.said = said.reason ?? "nobody says why it was not taken";
  queue.dueMs = state.now.ms + Math.min(firstRetryMs * 2 ** queue.tried, longestRetryMs);
  queue.tried += 1;
  for (const each of [...queue.waiting]) {
    const { atMs } = state.tables.notice.get(keyOf(uid, each)) ?? { atMs: 0 };
    if (state.now.wallMs - atMs >= keptMs) giveUp(state, uid, each, queue.said);
  }
}

// --- who carries them -----------------------------------------------------------------------------------------------

/** What is to be watched, for whoever does not know it yet, and a notice that is due. */
export interface NextNotice {
  readonly watched: string;
  readonly watches?: readonly {
    readonly uid: string;
    readonly cells: readonly string[];
    readonly volumes?: true;
    readonly events: readonly NoticeKind[];
  }[];
  readonly due?: {
    readonly url: string;
    readonly sealed: string;
    readonly notice: CellNotice;
  };
}

/** Waits for what is new since `watched`, or for a notice that is due. Whoever waited before is answered with nothing. */
export function waitForNotice(state: TenancyState, id: number, watched: string | null): void {
  answer(state, {});
  state.notices.waiting = { id, watched };
}
function answer({ notices, outbox }: TenancyState, response: object): void {
  if (notices.waiting !== null)
    outbox.effects.push({ kind: "reply", id: notices.waiting.id, response: toJson(response) });
  notices.waiting = null;
}

export function settleNotices(state: TenancyState): void {
  const { notices, tables } = state;
  if (notices.waiting === null) return;
  const due = nextDue(state);
  const watched = watchedNow(state);
  const isNews = notices.waiting.watched !== watched;
  if (due === null && !isNews) {
    const tries = [...notices.queues.values()].flatMap(({ waiting, dueMs }) => (waiting.length === 0 ? [] : [dueMs]));
    const times = [...tries, ...[...notices.carried.values()].map(({ untilMs }) => untilMs)];
    const soonest = Math.min(...times.filter((ms) => ms > state.now.ms));
    if (Number.isFinite(soonest))
      state.outbox.effects.push({ kind: "timer", name: noticeTimer, afterMs: soonest - state.now.ms });
    return;
  }
  const watches = [...tables.subscription].map(([uid, { cells, volumes, events }]) => ({
    uid,
    cells,
    ...(volumes === true ? { volumes } : {}),
    events,
  }));
  answer(state, { watched, ...(isNews ? { watches } : {}), ...(due === null ? {} : { due }) });
}

/** Of those whose users get in: who was carried longest ago is the next one. */
function nextDue(state: TenancyState): NextNotice["due"] | null {
  const { notices, tables, now } = state;
  const [carried, busy] = [new Map<string, number>(), new Set<string>()];
  const accountOf = (uid: string): string => tables.user.get(tables.subscription.get(uid)?.user ?? "")?.account ?? "";
  for (const [key, { uid, account, untilMs }] of notices.carried) {
    if (untilMs <= now.ms) notices.carried.delete(key);
    else {
      busy.add(uid);
      carried.set(account, (carried.get(account) ?? 0) + 1);
    }
  }
  if (notices.carried.size >= most.carried) return null;
  let found: { readonly uid: string; readonly queue: Queue } | null = null;
  for (const [uid, queue] of notices.queues) {
    if (queue.waiting.length === 0 || busy.has(uid) || queue.dueMs > now.ms) continue;
    if ((carried.get(accountOf(uid)) ?? 0) >= most.carriedOfAccount) continue;
    if (rightsOf(state, tables.user.get(tables.subscription.get(uid)?.user ?? "")) === null) continue;
    if (found === null || queue.carriedMs < found.queue.carriedMs) found = { uid, queue };
  }
  const subscription = tables.subscription.get(found?.uid ?? "");
  const [number] = found?.queue.waiting ?? [];
  if (found === null || subscription === undefined || number === undefined) return null;
  const record = tables.notice.get(keyOf(found.uid, number));
  if (record === undefined) return null;
  const carriedNow = { uid: found.uid, account: accountOf(found.uid), untilMs: now.ms + carriedWithinMs };
  notices.carried.set(keyOf(found.uid, number), carriedNow);
  found.queue.carriedMs = now.ms;
  const { kind = "test", cell = null, events = [], more = 0 } = record.news ?? {};
  const notice: CellNotice = { subscription: found.uid, number, at: isoTime(record.atMs), kind, cell, events, more };
  return { url: subscription.url, sealed: subscription.sealed, notice };
}
