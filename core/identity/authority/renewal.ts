import type { PeerName } from "../../../model/cell/identifiers.ts";
import { span } from "../may-connect.ts";
import { isPinnable } from "../presented.ts";
import { toleranceMs } from "./lifetime.ts";

/**
 * When a service asks for its next certificate, and how: with its token, or with the certificate that it has. At two
 * thirds of the certificate's time, a little earlier by chance so that services that began together do not ask together;
 * while the authority is away, ever more seldom, but always several times before the end. How long a certificate is
 * valid, 24 h: `lifetime.ts`.
 */
export interface Held {
  readonly validFromMs: number;
  readonly validToMs: number;
}
export interface NextAsk {
  readonly how: "enrol" | "renew";
  readonly inMs: number;
  /** May it take part until then? A host may without a valid certificate, by its pinned key. */
  readonly usable: boolean;
}

const renewAt = 2 / 3;
/** Of a certificate's time, how much earlier by chance. */
const spread = 0.1;
const backoff = { firstMs: 1000, lastMs: 300_000 } as const;
/** A machine that slept or whose clock was set wakes up to it within this time: nothing tells of either. */
const longestSleepMs = { usable: 3_600_000, waiting: 60_000 } as const;

/**
 * @param held the certificate's dates; null: it has none
 * @param attempts how often it asked in vain since it last got one
 * @param nowMs wall clock
 * @param chance from 0 to below 1
 */
export function nextAsk(name: PeerName, held: Held | null, attempts: number, nowMs: number, chance: number): NextAsk {
  const over = held === null || nowMs > held.validToMs;
  // An expired certificate opens nothing, except for those whose keys are pinned; the others need a new token.
  const how = held !== null && (!over || isPinnable(name)) ? "renew" : "enrol";
  const usable = held !== null && ((!over && nowMs >= held.validFromMs) || isPinnable(name));
  const most = Math.min(backoff.lastMs, backoff.firstMs * 2 ** Math.min(Math.max(attempts - 1, 0), 16));
  const rest = most / 2 + (most / 2) * chance;
  if (over) return { how, usable, inMs: attempts === 0 ? 0 : rest };
  const due = held.validFromMs + (held.validToMs - held.validFromMs) * (renewAt - spread * chance);
  const left = held.validToMs - nowMs;
  const inMs = attempts === 0 ? Math.max(0, due - nowMs) : Math.min(rest, Math.max(left / 4, backoff.firstMs / 2));
  return { how, usable, inMs: Math.min(inMs, usable ? longestSleepMs.usable : longestSleepMs.waiting) };
}

/** Is it time? After a sleep that was cut short it may not be. */
export const isDue = (next: NextAsk): boolean => next.inMs <= 0;

/** What is wrong between this machine's clock and the authority's, as a sentence; null: certificates bear it. */
export function clockFault(ownMs: number, authorityMs: number, lifetimeMs: number): string | null {
  const bears = toleranceMs(lifetimeMs);
  const apart = ownMs - authorityMs;
  if (Math.abs(apart) <= bears) return null;
  return (
    `this machine's clock is ${span(Math.abs(apart))} ${apart < 0 ? "slow" : "fast"} against the authority's, and certificates ` +
    `bear ${span(bears)}: others will refuse it, or it them; set the clocks of both machines`
  );
}
