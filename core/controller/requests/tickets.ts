import type { CellName, PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { rootCell } from "../../documents/cells.ts";
import { actualLook } from "../../documents/readers/tenancy.ts";
import { type ActualLook, declaredKey, tenancy } from "../../documents/tenancy.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Effect, Input, Instant, Restored } from "../../env.ts";
import { isObject, type Outbox, sameJson, toJson } from "../../outbox.ts";

/**
 * What tickets of tenants are worth here. The cell's controller decides what each may do; who holds one, and what his role allows, the
 * service `tenancy` says, and says anew whenever that changes. So a right that is taken back is gone with the next word.
 *
 * Silence is no word: while `tenancy` cannot be heard, what it said last counts for five minutes, and no longer. That nothing is
 * published any more (it was started again, or has ended) is silence too.
 *
 * This is apart from the passes over the model: nothing there rests on it, and whoever asks waits for no pass.
 */

export type TicketRequest =
  /** What is a ticket with this hash worth? Answered when that is known. */
  | { readonly method: "TICKET-WORTH"; readonly hash: string }
  /**
   * What is it worth, if it is followed? `held`: whether something is open that was opened with it, for as long as which it is followed;
   * absent: as before.
   */
  | { readonly method: "TICKET-HELD"; readonly hash: string; readonly held?: boolean };
/**
 * `unknown`: it opens nothing; `silent`: nobody can say now. `old`: it opens nothing new, and what it has opened goes on.
 */
export type TicketWorth =
  | {
      readonly state: "open" | "old";
      readonly user: string;
      readonly account: string;
      readonly rules: ActualLook["rules"];
      readonly session?: string;
      /** At the root controller. */
      readonly child?: CellName;
    }
  | { readonly state: "unknown" | "silent" };

/** A ticket opens something new for as long after it was seen first; the gateway shows another one long before. */
export const ticketMs = 15 * 60_000;
/** How long the last word counts where there is silence. */
export const silenceMs = 5 * 60_000;
const answerWithinMs = 5_000;
/** What is worth nothing is asked about once more after this long. */
const worthlessMs = 10_000;
const mostFollowed = 4096;

interface Followed {
  readonly sinceMs: number;
  /** Null: nothing was said yet. */
  worth: ActualLook | null;
  /** Since when nothing is said of it, though `tenancy` is heard; null: it is said. */
  silentMs: number | null;
  held: boolean;
  /** Who waits for the first word, and until when at most. */
  waiting: readonly number[];
}
export interface Tickets {
  readonly self: PeerName;
  readonly followed: Map<string, Followed>;
  /** Since when `tenancy` cannot be heard at all; null: it can. */
  unheardMs: number | null;
  effects: Effect[];
  /** Of what the store desired before: whoever has such a ticket shows it again, or another. */
  readonly stale: readonly string[];
  /** What was taken back, and `tenancy` has not confirmed it. */
  readonly releasing: Set<string>;
  /** The cell ends: nobody is let in any more. */
  isClosed: boolean;
}

/** The pass over the model takes back what it does not know: it knows nothing of these. */
export const createTickets = (self: PeerName, restored: Restored, outbox: Outbox): Tickets => {
  const [desired, releasing] = [outbox.desired.get(tenancy), outbox.releasing.get(tenancy)];
  const stale = [...(restored.desiredAt.get(tenancy)?.keys() ?? [])].filter(isLook);
  const tickets: Tickets = {
    self,
    followed: new Map(),
    unheardMs: null,
    effects: [],
    stale,
    releasing: new Set([...stale, ...[...(releasing ?? [])].filter(isLook)]),
    isClosed: false,
  };
  for (const key of [...(desired?.keys() ?? [])]) if (isLook(key)) desired?.delete(key);
  for (const key of [...(releasing ?? [])]) if (isLook(key)) releasing?.delete(key);
  return tickets;
};

const isRootController = (self: PeerName): boolean => self === `controller.${rootCell}`;
const keyOf = (hash: string): string => `look/${hash}`;
/** And nothing else that is desired there, as whose a cell is (`model/owners.ts`). */
const isLook = (key: string): boolean => key.startsWith(keyOf(""));
const timerName = "tickets";
const sweepMs = 5_000;

/** The effects of an input that concerns tickets alone; null: it does not. */
export function takeTicketInput(tickets: Tickets, input: Input, now: Instant): readonly Effect[] | null {
  if (!take(tickets, input, now)) return null;
  const { effects } = tickets;
  tickets.effects = [];
  return effects;
}

/** True: it is of no concern to anybody else. */
function take(tickets: Tickets, input: Input, now: Instant): boolean {
  switch (input.kind) {
    case "request": {
      const asked = input.request;
      if (!isObject(asked) || typeof asked.hash !== "string") return false;
      if (asked.method === "TICKET-WORTH") askWorth(tickets, input.id, asked.hash, now);
      else if (asked.method === "TICKET-HELD") hold(tickets, input.id, asked.hash, asked.held, now);
      else return false;
      return true;
    }
    case "actual":
      if (input.from !== tenancy || input.key.startsWith(actualKey(tickets.self, declaredKey("")))) return false;
      hear(tickets, input.key, input.value, now);
      return true;
    case "reachable":
      if (input.peer !== tenancy) return false;
      tickets.unheardMs = input.reachable ? null : (tickets.unheardMs ?? now.ms);
      // What is declared of tenants rests on it too, at the root controller (`services/tenants.ts`).
      return !isRootController(tickets.self);
    case "timer":
      if (input.name !== timerName) return false;
      sweep(tickets, now);
      return true;
    case "forked":
    case "another":
    case "kept":
      return input.peer === tenancy;
    case "released":
      if (input.peer !== tenancy || !isLook(input.key)) return false;
      tickets.releasing.delete(input.key);
      // The last one of a cell that ends is of concern to whoever waits for its end.
      return !tickets.isClosed || tickets.releasing.size > 0;
    default:
      return false;
  }
}

/** At a start: what was desired before is taken back. */
export const dropStale = ({ stale }: Tickets): readonly Effect[] =>
  stale.map((key) => ({ kind: "desire", to: tenancy, key, value: null }));

/** The cell ends: doors are shut, and what was asked is taken back before its controller goes. The effects; none the second time. */
export function closeTickets(tickets: Tickets): readonly Effect[] {
  if (tickets.isClosed) return [];
  tickets.isClosed = true;
  for (const [hash, { worth, waiting }] of tickets.followed) {
    if (worth?.open === true) end(tickets, hash, worth);
    for (const id of waiting) reply(tickets, id, { state: "unknown" });
    forget(tickets, hash);
  }
  const { effects } = tickets;
  tickets.effects = [];
  return effects;
}

function forget({ followed, releasing, effects }: Tickets, hash: string): void {
  followed.delete(hash);
  releasing.add(keyOf(hash));
  effects.push({ kind: "desire", to: tenancy, key: keyOf(hash), value: null });
}

function askWorth(tickets: Tickets, id: number, hash: string, now: Instant): void {
  const { followed, effects, self } = tickets;
  if (tickets.isClosed) {
    reply(tickets, id, { state: "unknown" });
    return;
  }
  let known = followed.get(hash);
  if (known === undefined) {
    if (followed.size >= mostFollowed) {
      reply(tickets, id, { state: "silent" });
      return;
    }
    if (followed.size === 0) {
      effects.push({ kind: "subscribe", to: tenancy, prefix: actualKey(self, "look/") });
      effects.push({ kind: "timer", name: timerName, afterMs: sweepMs });
    }
    known = { sinceMs: now.ms, worth: null, silentMs: null, held: false, waiting: [] };
    followed.set(hash, known);
    tickets.releasing.delete(keyOf(hash));
    effects.push({ kind: "desire", to: tenancy, key: keyOf(hash), value: { ticket: hash } });
  }
  if (known.worth !== null) reply(tickets, id, worthOf(tickets, known, now));
  else known.waiting = [...known.waiting, id];
}

/** For longer than the last word counts. */
const isSilent = ({ unheardMs }: Tickets, { silentMs }: Followed, now: Instant): boolean =>
  [unheardMs, silentMs].some((sinceMs) => sinceMs !== null && sinceMs + silenceMs <= now.ms);

function worthOf(tickets: Tickets, followed: Followed, now: Instant): TicketWorth {
  const { worth, sinceMs } = followed;
  if (worth === null || isSilent(tickets, followed, now)) return { state: "silent" };
  if (!worth.open) return { state: "unknown" };
  const { open: _, ...known } = worth;
  return { state: sinceMs + ticketMs <= now.ms ? "old" : "open", ...known };
}

function hear(tickets: Tickets, key: string, value: Json, now: Instant): void {
  const hash = key.slice(actualKey(tickets.self, "look/").length);
  const followed = tickets.followed.get(hash);
  const worth = actualLook.of(value);
  if (followed === undefined || !key.startsWith(actualKey(tickets.self, "look/"))) return;
  if (worth === null) {
    followed.silentMs ??= now.ms;
    return;
  }
  const before = followed.worth;
  followed.worth = worth;
  followed.silentMs = null;
  for (const id of followed.waiting) reply(tickets, id, worthOf(tickets, followed, now));
  followed.waiting = [];
  if (before?.open === true && !sameJson(toJson(before), toJson(worth))) end(tickets, hash, before);
}

/** What was opened with it ends; whoever may still have it opens it anew. */
function end({ effects }: Tickets, hash: string, { user }: ActualLook): void {
  effects.push({ kind: "log", event: "ticket/ended", fields: { ticket: hash, user } });
}

function hold(tickets: Tickets, id: number, hash: string, held: Json | undefined, now: Instant): void {
  const followed = tickets.followed.get(hash);
  if (followed !== undefined) followed.held = typeof held === "boolean" ? held : followed.held;
  reply(tickets, id, followed === undefined ? { state: "unknown" } : worthOf(tickets, followed, now));
}

function sweep(tickets: Tickets, now: Instant): void {
  const { followed, effects, self } = tickets;
  for (const [hash, each] of followed) {
    const ageMs = now.ms - each.sinceMs;
    if (each.worth === null && ageMs >= answerWithinMs) {
      for (const id of each.waiting) reply(tickets, id, { state: "silent" });
      each.waiting = [];
    }
    const isUnsaid = isSilent(tickets, each, now);
    if (isUnsaid && each.worth?.open === true) end(tickets, hash, each.worth);
    const isWorthless = each.worth?.open !== true && ageMs >= worthlessMs;
    const isOld = ageMs >= ticketMs && !each.held;
    if (!isUnsaid && !isWorthless && !isOld) continue;
    forget(tickets, hash);
  }
  if (followed.size > 0) effects.push({ kind: "timer", name: timerName, afterMs: sweepMs });
  else effects.push({ kind: "unsubscribe", to: tenancy, prefix: actualKey(self, "look/") });
}

const reply = ({ effects }: Tickets, id: number, worth: TicketWorth): void => {
  effects.push({ kind: "reply", id, response: toJson(worth) });
};
