import type { PeerName } from "../../../model/cell/identifiers.ts";
import { log } from "../../outbox.ts";
import type { ControllerState } from "../state.ts";

/**
 * How far what receivers keep may raise the numbers of a controller whose store is older, in one place. A number that a
 * receiver has seen must not be given out again; but a forged one must not use up a range either: whoever takes the highest
 * number has no next one, for good.
 */
export type Numbered = "element" | "identity" | "rule" | "policy version" | "incarnation" | "grant";
/** In one fork, above what the store says. A cell has at most 200,000 documents at a receiver. */
const mostAhead: Readonly<Record<Numbered, number>> = {
  element: 2 ** 40,
  identity: 2 ** 22,
  rule: 2 ** 22,
  "policy version": 2 ** 32,
  incarnation: 2 ** 16,
  grant: 2 ** 16,
};
/** Beyond this nothing is taken from outside: below it lie the ranges of the dataplane's tables, and of exact numbers. */
const greatest: Readonly<Record<Numbered, number>> = {
  element: 2 ** 52,
  identity: 2 ** 32 - 2 ** 22,
  rule: 2 ** 32 - 2 ** 22,
  "policy version": 2 ** 52,
  incarnation: 2 ** 48,
  grant: 2 ** 48,
};

/** Of a number that only its source would have to do without. */
export const hasNext = (what: Numbered, to: number): boolean => Number.isSafeInteger(to) && to < greatest[what];

/**
 * What is skipped when a store that was lost is let count, or was put back from a backup: numbers that the lost one gave out may
 * be known to those alone who were not heard meanwhile, a host above all, of which a blank store does not even know that there is
 * something to ask. More than a cell has of them, and as much again as was drawn for this start: from a copy that is put back a
 * second time, it goes on elsewhere than it did after the first time.
 */
const skipped: Readonly<Record<Numbered, { readonly least: number; readonly drawn: number }>> = {
  element: { least: 2 ** 20, drawn: 2 ** 36 },
  identity: { least: 2 ** 16, drawn: 2 ** 18 },
  rule: { least: 2 ** 16, drawn: 2 ** 18 },
  "policy version": { least: 2 ** 16, drawn: 2 ** 28 },
  incarnation: { least: 2 ** 8, drawn: 2 ** 12 },
  grant: { least: 2 ** 8, drawn: 2 ** 12 },
};

/** @returns the number to go on with */
export const beyondUnheard = (drawn: number, what: Numbered, now: number): number => {
  const { least, drawn: span } = skipped[what];
  return Math.max(now, Math.min(now + least + Math.floor(drawn * span), greatest[what]));
};

export interface Source {
  readonly peer: PeerName;
  readonly key: string;
}

/**
 * May a receiver be believed that this number was given out? One that is too far ahead is refused and named.
 * @param now  the newest that is known here
 * @param of  whose incarnation
 */
export function isPlausible(
  state: ControllerState,
  { peer, key }: Source,
  what: Numbered,
  { to, now, of = "" }: { readonly to: number; readonly now: number; readonly of?: string },
): boolean {
  const { raisedFrom } = state.kept;
  const name = `${what} ${of}`;
  const base = raisedFrom.get(name) ?? now;
  const most = Math.min(base + mostAhead[what], greatest[what]);
  if (Number.isSafeInteger(to) && to >= 0 && to <= most) {
    if (to > now) raisedFrom.set(name, base);
    return true;
  }
  const why = `the ${what} number ${to} cannot have been given out: ${now} is known here, and at most ${most} is taken`;
  log(state.outbox, "document/refused", { peer, key, why });
  return false;
}
