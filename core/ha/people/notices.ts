import type { Json } from "../../../model/json/json.ts";
import type { Instant } from "../../env.ts";
import { isObject, log, toJson, write } from "../../outbox.ts";
import type { HaState } from "../state.ts";
import type { Alert, Mail, Notice, Notices, Webhook } from "./alert.ts";

/**
 * What is told to a machine of the operator's, and by mail to himself: that an alert was opened, acknowledged, or has ended. A notice is durable with what it tells, and
 * stays until the receiver has taken it, for a day at most; they go one after the other, so nobody hears of an end before the beginning.
 * One may come twice, under the same number, where the word that it was taken was lost. Who carries them is the edge's matter
 * (`runtime/ha/notices.ts`, `gateway/ha/notices.ts`, for mail `mail.ts` in both); which is due, and when it is tried again, stands here.
 */

const firstRetryMs = 1_000;
const longestRetryMs = 600_000;
const keptMs = 86_400_000;
/** Where a receiver is away for long the oldest are given up. */
const most = 256;

export function addNotice(state: HaState, event: Notice["event"], alert: Alert | null, now: Instant): void {
  for (const notices of [state.notices, state.mail]) add(state, notices, event, alert, now);
}
function add(state: HaState, notices: Notices, event: Notice["event"], alert: Alert | null, { wallMs }: Instant): void {
  const { outbox } = state;
  if (notices.receiver === null) return;
  notices.number += 1;
  write(outbox, notices.channel.number, { number: notices.number });
  const notice: Notice = { number: notices.number, event, alert, at: wallMs };
  write(outbox, `${notices.channel.notice}${notice.number}`, notice);
  notices.queue.set(notice.number, notice);
  const [first] = notices.queue.values();
  if (notices.queue.size > most && first !== undefined) giveUp(state, notices, first, `more than ${most} wait`);
}

function forget({ outbox }: HaState, notices: Notices, { number }: Notice): void {
  const isFirst = notices.queue.keys().next().value === number;
  notices.queue.delete(number);
  write(outbox, `${notices.channel.notice}${number}`, null);
  if (isFirst) Object.assign(notices, { tried: 0, dueMs: 0 });
}
function giveUp(state: HaState, notices: Notices, notice: Notice, reason: string): void {
  log(state.outbox, "alert/unsent", { to: notices.channel.name, number: notice.number, event: notice.event, reason });
  forget(state, notices, notice);
}

/** Answers what the edge asks, at once or, where it waits, later. @returns whether it is such a request */
export function takeNoticeWord(state: HaState, id: number, request: Json, now: Instant): boolean {
  if (!isObject(request)) return false;
  const { outbox } = state;
  const reply = (response: Json): boolean => {
    outbox.effects.push({ kind: "reply", id, response });
    return true;
  };
  const wait = (notices: Notices): boolean => {
    answerWait(state, notices, null);
    notices.waiting = id;
    return true;
  };
  switch (request.kind) {
    case "ha-webhook-set": {
      const webhook = request.webhook as unknown as Webhook;
      setReceiver(state, state.notices, webhook, now);
      log(outbox, "alert/webhook", { url: webhook.url });
      return reply({});
    }
    case "ha-mail-set": {
      const mail = request.mail as unknown as Mail;
      setReceiver(state, state.mail, mail, now);
      log(outbox, "alert/mail", { server: mail.server, to: mail.to });
      return reply({});
    }
    case "ha-webhook-remove": {
      const wasThere = forgetReceiver(state, state.notices);
      if (wasThere) log(outbox, "alert/webhook", { url: null });
      return reply({ wasThere });
    }
    case "ha-mail-remove": {
      const wasThere = forgetReceiver(state, state.mail);
      if (wasThere) log(outbox, "alert/mail", { server: null, to: null });
      return reply({ wasThere });
    }
    case "ha-notice-wait":
      return wait(state.notices);
    case "ha-mail-wait":
      return wait(state.mail);
    case "ha-notice-said":
      takeAnswer(state, state.notices, request, now);
      return reply({});
    case "ha-mail-said":
      takeAnswer(state, state.mail, request, now);
      return reply({});
    default:
      return false;
  }
}

function setReceiver<Receiver extends Webhook | Mail>(
  state: HaState,
  notices: Notices<Receiver>,
  receiver: Receiver,
  now: Instant,
): void {
  forgetReceiver(state, notices);
  write(state.outbox, notices.channel.name, receiver);
  notices.receiver = receiver;
  add(state, notices, "test", null, now);
}
/** @returns whether there was one */
function forgetReceiver(state: HaState, notices: Notices): boolean {
  for (const notice of [...notices.queue.values()]) forget(state, notices, notice);
  const wasThere = notices.receiver !== null;
  if (wasThere) write(state.outbox, notices.channel.name, null);
  Object.assign(notices, { receiver: null, said: null });
  return wasThere;
}

/** What came of one. The word of an attempt that is not under way, as of an earlier receiver, changes nothing. */
function takeAnswer(
  state: HaState,
  notices: Notices,
  said: { readonly [name: string]: Json },
  { ms, wallMs }: Instant,
): void {
  const [first] = notices.queue.values();
  if (first === undefined || said.number !== first.number) return;
  if (said.taken === true) {
    notices.said = null;
    forget(state, notices, first);
    return;
  }
  notices.said = typeof said.reason === "string" ? said.reason : "nobody says why it was not taken";
  if (wallMs - first.at >= keptMs) {
    giveUp(state, notices, first, notices.said);
    return;
  }
  notices.dueMs = ms + Math.min(firstRetryMs * 2 ** notices.tried, longestRetryMs);
  notices.tried += 1;
}

/** Gives the edge the first one of each, once that is due. */
export function settleNotices(state: HaState, { ms }: Instant): void {
  for (const notices of [state.notices, state.mail]) {
    const { receiver } = notices;
    const [first] = notices.queue.values();
    if (notices.waiting === null || first === undefined || receiver === null) continue;
    if (notices.dueMs > ms)
      state.outbox.effects.push({ kind: "timer", name: notices.channel.timer, afterMs: notices.dueMs - ms });
    else answerWait(state, notices, toJson({ receiver, notice: first }));
  }
}

function answerWait({ outbox }: HaState, notices: Notices, response: Json): void {
  if (notices.waiting !== null) outbox.effects.push({ kind: "reply", id: notices.waiting, response });
  notices.waiting = null;
}
