import type { Json } from "../../../model/json/json.ts";
import type { Instant } from "../../env.ts";
import { isObject, log, toJson, write } from "../../outbox.ts";
import type { HaState } from "../state.ts";
import type { Alert, Notice, Webhook } from "./alert.ts";

/**
 * What is told to a machine of the operator's: that an alert was opened, acknowledged, or has ended. A notice is durable with what it tells, and
 * stays until the receiver has taken it, for a day at most; they go one after the other, so nobody hears of an end before the beginning.
 * One may come twice, under the same number, where the word that it was taken was lost. Who carries them is the edge's matter
 * (`runtime/ha/notices.ts`, `gateway/ha/notices.ts`); which is due, and when it is tried again, stands here.
 */

const firstRetryMs = 1_000;
const longestRetryMs = 600_000;
const keptMs = 86_400_000;
/** Where a receiver is away for long the oldest are given up. */
const most = 256;

export function addNotice(state: HaState, event: Notice["event"], alert: Alert | null, { wallMs }: Instant): void {
  const { notices, outbox } = state;
  if (notices.webhook === null) return;
  notices.number += 1;
  write(outbox, "notice-number", { number: notices.number });
  const notice: Notice = { number: notices.number, event, alert, at: wallMs };
  write(outbox, `notice/${notice.number}`, notice);
  notices.queue.set(notice.number, notice);
  const [first] = notices.queue.values();
  if (notices.queue.size > most && first !== undefined) giveUp(state, first, `more than ${most} wait`);
}

function forget({ notices, outbox }: HaState, { number }: Notice): void {
  const isFirst = notices.queue.keys().next().value === number;
  notices.queue.delete(number);
  write(outbox, `notice/${number}`, null);
  if (isFirst) Object.assign(notices, { tried: 0, dueMs: 0 });
}
function giveUp(state: HaState, notice: Notice, reason: string): void {
  log(state.outbox, "alert/unsent", { number: notice.number, event: notice.event, reason });
  forget(state, notice);
}

/** Answers what the edge asks, at once or, where it waits, later. @returns whether it is such a request */
export function takeNoticeWord(state: HaState, id: number, request: Json, now: Instant): boolean {
  if (!isObject(request)) return false;
  const { notices, outbox } = state;
  const reply = (response: Json): boolean => {
    outbox.effects.push({ kind: "reply", id, response });
    return true;
  };
  switch (request.kind) {
    case "ha-webhook-set": {
      const webhook = request.webhook as unknown as Webhook;
      forgetWebhook(state);
      write(outbox, "webhook", webhook);
      notices.webhook = webhook;
      log(outbox, "alert/webhook", { url: webhook.url });
      addNotice(state, "test", null, now);
      return reply({});
    }
    case "ha-webhook-remove": {
      const wasThere = notices.webhook !== null;
      forgetWebhook(state);
      if (wasThere) log(outbox, "alert/webhook", { url: null });
      return reply({ wasThere });
    }
    case "ha-notice-wait":
      answerWait(state, null);
      notices.waiting = id;
      return true;
    case "ha-notice-said":
      takeAnswer(state, request, now);
      return reply({});
    default:
      return false;
  }
}

function forgetWebhook(state: HaState): void {
  const { notices, outbox } = state;
  for (const notice of [...notices.queue.values()]) forget(state, notice);
  if (notices.webhook !== null) write(outbox, "webhook", null);
  Object.assign(notices, { webhook: null, said: null });
}

/** What came of one. The word of an attempt that is not under way, as of an earlier receiver, changes nothing. */
function takeAnswer(state: HaState, said: { readonly [name: string]: Json }, { ms, wallMs }: Instant): void {
  const { notices } = state;
  const [first] = notices.queue.values();
  if (first === undefined || said.number !== first.number) return;
  if (said.taken === true) {
    notices.said = null;
    forget(state, first);
    return;
  }
  notices.said = typeof said.reason === "string" ? said.reason : "nobody says why it was not taken";
  if (wallMs - first.at >= keptMs) {
    giveUp(state, first, notices.said);
    return;
  }
  notices.dueMs = ms + Math.min(firstRetryMs * 2 ** notices.tried, longestRetryMs);
  notices.tried += 1;
}

/** Gives the edge the first one, once that is due. */
export function settleNotices(state: HaState, { ms }: Instant): void {
  const { notices, outbox } = state;
  const [first] = notices.queue.values();
  if (notices.waiting === null || first === undefined || notices.webhook === null) return;
  if (notices.dueMs > ms) {
    outbox.effects.push({ kind: "timer", name: noticeTimer, afterMs: notices.dueMs - ms });
    return;
  }
  answerWait(state, toJson({ webhook: notices.webhook, notice: first }));
}
export const noticeTimer = "notice";

function answerWait({ notices, outbox }: HaState, response: Json): void {
  if (notices.waiting !== null) outbox.effects.push({ kind: "reply", id: notices.waiting, response });
  notices.waiting = null;
}
