import type { CauseOf } from "../../../model/cause/cause.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { readChild } from "../../../model/check/check.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { isObject, write } from "../../outbox.ts";
import type { StartState } from "../records.ts";
import { type ControllerState, elementOf } from "../state.ts";

/**
 * How many machines a cell may start a minute (decision 39): a start costs a Placer, a Storage Manager and a host
 * something that no quota of memory or processors counts, and a cell whose VMs fail at once and are started again for
 * ever would take it from the others. Its own controller limits it, so that nothing that all share has to know who asks.
 *
 * A token bucket of ten minutes' worth, kept as what was taken and is not yet there again: an untouched bucket is full at any
 * rate, and a limit that is changed holds at once. In every stretch of time at most as many machines start as the bucket
 * holds and as come in during it. After a limit was lowered, what had been taken is more than the smaller bucket holds; that
 * part does not hold up the next start (of 1,000 it would, at one a minute, for 16 hours). It is gone after ten minutes, and
 * counts again should the limit rise before: lowering and raising it is no way to more. Who does not get a token waits in a queue, first come, first served; it holds each VM at
 * most once, so the quota of VMs is its bound.
 *
 * How long one VM waits after a failure is another matter: `retry-delay.ts`.
 *
 * The rate is the provider's, or the parent's for a child cell, and a cell may limit itself to less. A cell shares its rate
 * with its child cells: many children are no way to more.
 *
 * Rejected: a limit at the Placer or the hosts (they would have to be fair between cells, and what is refused there was
 * already sent); counting windows (twice the limit at their borders); a limit on restarts alone (an element that is deleted
 * and submitted again is a new one each time).
 */
export const defaultStartsPerMinute = 120;
/** So many minutes' worth may start at once: a cell of a thousand VMs that is deployed as a whole waits for nothing. */
const savedMinutes = 10;
export const startTimer = "starts";
/** A pass over the cell for each single token would cost more than the moment of waiting. */
const shortestWaitMs = 100;
const minuteMs = 60_000;

/** A limit of a document or of a configuration; null: it is none. */
const asRate = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) && value >= 1 ? value : null;

/** From the record `starts`. What comes in while the process is away counts, by the wall clock. */
export function restoredStarts(record: unknown, queue: Set<Uid>): StartState {
  const { used, above, rate, wallMs } = (record ?? {}) as { readonly [name: string]: unknown };
  const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
  return {
    used: Math.max(0, number(used)),
    above: Math.max(0, number(above)),
    abovePerMinute: Math.max(0, number(above)) / savedMinutes,
    rate: asRate(rate),
    atMs: null,
    wallMs: number(wallMs),
    isTaken: false,
    queue,
    dueMs: null,
  };
}

/** What the cell may start a minute together with its child cells; null: nobody limits it. */
function rateOfTree(state: ControllerState): number | null {
  const own = asRate(state.cell?.limits?.vmStartsPerMinute);
  // The cloud's own services must come back, whoever's cells they serve.
  if (state.options.root !== undefined) return own;
  const given = asRate(state.life?.startsPerMinute) ?? state.options.startsPerMinute ?? defaultStartsPerMinute;
  return own === null ? given : Math.min(own, given);
}

/**
 * Shares of a rate: each child with a limit has that, as far as it goes, and what is left is the same for all others and for
 * the cell itself. Nobody has less than one a minute.
 * @param limits of the children; null: it has none
 */
export function shareOut(
  rate: number,
  limits: readonly (number | null)[],
): { readonly own: number; readonly children: readonly number[] } {
  let left = rate;
  const taken = limits.map((limit) => {
    if (limit === null) return null;
    const share = Math.max(1, Math.min(limit, left));
    left = Math.max(0, left - share);
    return share;
  });
  const others = limits.filter((limit) => limit === null).length;
  const own = Math.max(1, Math.floor(left / (others + 1)));
  return { own, children: taken.map((share) => share ?? own) };
}

const childLimits = new WeakMap<JsonObject, number | null>();
function limitOfChild(document: Json): number | null {
  if (!isObject(document)) return null;
  const known = childLimits.get(document);
  if (known !== undefined) return known;
  const limit = asRate(readChild(document)?.limits?.vmStartsPerMinute);
  childLimits.set(document, limit);
  return limit;
}

/** Child cells and the limits in their `x.cell`, in document order. */
const childrenOf = (state: ControllerState): readonly { readonly uid: Uid; readonly limit: number | null }[] =>
  [...state.grants.keys()].flatMap((uid) => {
    const record = state.elements.get(uid);
    const element = record === undefined ? undefined : elementOf(state, record);
    return element?.type === "CellController" ? [{ uid, limit: limitOfChild(element.cell) }] : [];
  });

/** What each child cell may start a minute, for its controller to hold itself to. */
export function startsOfChildren(state: ControllerState): ReadonlyMap<Uid, number> {
  const rate = rateOfTree(state);
  const children = childrenOf(state);
  const limits = children.map(({ limit }) => limit);
  const shares =
    rate === null ? limits.map((limit) => limit ?? defaultStartsPerMinute) : shareOut(rate, limits).children;
  return new Map(children.map(({ uid }, index) => [uid, shares[index] ?? 1]));
}

/** What the cell's own VMs may do a minute; null: they are not limited. */
export function startsPerMinute(state: ControllerState): number | null {
  if (state.options.root !== undefined) return null;
  const limits = childrenOf(state).map(({ limit }) => limit);
  return shareOut(rateOfTree(state) ?? defaultStartsPerMinute, limits).own;
}

/** What has come in again since the last look, and what moves between the bucket and above it where the rate has changed. */
function refill(state: ControllerState, rate: number): void {
  const { starts, now } = state;
  const passedMs = starts.atMs === null ? now.wallMs - starts.wallMs : now.ms - starts.atMs;
  const minutes = Math.max(0, passedMs) / minuteMs;
  starts.used = Math.max(0, starts.used - minutes * rate);
  starts.above = Math.max(0, starts.above - minutes * starts.abovePerMinute);
  const grown = Math.max(0, rate - (starts.rate ?? rate)) * savedMinutes;
  const back = Math.min(starts.above, grown);
  const tooMuch = Math.max(0, starts.used + back - rate * savedMinutes);
  starts.used += back - tooMuch;
  starts.above += tooMuch - back;
  starts.abovePerMinute = starts.above === 0 ? 0 : Math.max(starts.abovePerMinute, starts.above / savedMinutes);
  starts.rate = rate;
  starts.atMs = now.ms;
  starts.wallMs = now.wallMs;
}

/** Is there a start left? Then it is taken. */
export function takeStart(state: ControllerState): boolean {
  const rate = startsPerMinute(state);
  if (rate === null) return true;
  refill(state, rate);
  if (state.starts.used > rate * savedMinutes - 1) return false;
  state.starts.used += 1;
  state.starts.isTaken = true;
  return true;
}

/**
 * A start that is not held up: one of an all-or-none deployment, which has all it needs at one moment or gives everything
 * back. Others wait the longer for it, within bounds.
 */
export function chargeStart(state: ControllerState): void {
  const rate = startsPerMinute(state);
  if (rate === null) return;
  refill(state, rate);
  state.starts.used = Math.min(Math.max(state.starts.used, rate * savedMinutes), state.starts.used + 1);
  state.starts.isTaken = true;
}

/** Keeps what was taken, and sees to it that the first in the queue is looked at when its token is there. */
export function settleStarts(state: ControllerState): void {
  const { starts, now, outbox } = state;
  const rate = startsPerMinute(state);
  // What comes in again is worked out from the time; only what was taken has to be written down.
  if (starts.isTaken) {
    const { wallMs } = starts;
    const [used = 0, above = 0] = [starts.used, starts.above].map((count) => Math.ceil(count * 1000) / 1000);
    write(outbox, "starts", { used, wallMs, ...(above === 0 ? {} : { above, rate: starts.rate }) });
  }
  starts.isTaken = false;
  if (rate !== null && starts.queue.size > 0) refill(state, rate);
  const dueMs = rate === null || starts.queue.size === 0 ? null : now.ms + waitMs(state, rate, 1);
  if (dueMs === starts.dueMs || (dueMs !== null && starts.dueMs !== null && starts.dueMs <= dueMs)) return;
  starts.dueMs = dueMs;
  outbox.effects.push({ kind: "timer", name: startTimer, afterMs: dueMs === null ? null : dueMs - now.ms });
}

/** Until the `position`th in the queue has its token, in ms. */
function waitMs({ starts }: ControllerState, rate: number, position: number): number {
  const short = Math.min(starts.used, rate * savedMinutes) + position - rate * savedMinutes;
  return Math.max(shortestWaitMs, Math.ceil((short / rate) * minuteMs));
}

/** What a VM in the queue waits for; null: it is not in it. */
export function whyNoTurn(state: ControllerState, vm: Uid): CauseOf<"waits-its-turn"> | null {
  const rate = startsPerMinute(state) ?? 0;
  return state.starts.queue.has(vm) ? { kind: "waits-its-turn", perMinute: rate, atOnce: rate * savedMinutes } : null;
}

/** The same with its place in the queue as it is at this moment. */
export function placeInQueue(
  state: ControllerState,
  vm: Uid,
  cause: CauseOf<"waits-its-turn">,
): CauseOf<"waits-its-turn"> {
  const place = [...state.starts.queue].indexOf(vm) + 1;
  const { perMinute } = cause;
  if (perMinute === 0 || place === 0) return cause;
  const limit = asRate(state.cell?.limits?.vmStartsPerMinute);
  const own = limit !== null && limit === rateOfTree(state);
  const seconds = Math.ceil(waitMs(state, perMinute, place) / 1000);
  return { ...cause, queue: { place, of: state.starts.queue.size, seconds, own } };
}
