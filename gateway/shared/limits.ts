import { createHash } from "node:crypto";
import { keepNewest } from "../../model/limits.ts";

/**
 * How much of a personality one client may have: so many requests a second on the average, and more at once after a while of
 * none. Who shows a credential that the gateway took has his own measure, by that; everybody else shares the one of where he comes
 * from, which is smaller, so that guessing is slow and costs nobody else anything.
 */
export interface Measure {
  /** Each second. */
  readonly rate: number;
  /** At once. */
  readonly burst: number;
}
export const known: Measure = { rate: 50, burst: 200 };
export const unknown: Measure = { rate: 5, burst: 20 };
/** Of clients that were heard of last; a forgotten one begins with all it may have. */
const mostRemembered = 10_000;

interface Left {
  readonly at: number;
  readonly left: number;
}
/** Tokens of one kind of client, by its key. */
class Bucket {
  readonly #measure: Measure;
  readonly #left = new Map<string, Left>();
  constructor(measure: Measure) {
    this.#measure = measure;
  }
  leftOf(key: string, nowMs: number): number {
    const { rate, burst } = this.#measure;
    const { at, left } = this.#left.get(key) ?? { at: nowMs, left: burst };
    return Math.min(burst, left + ((nowMs - at) / 1000) * rate);
  }
  take(key: string, nowMs: number): void {
    const left = Math.max(this.leftOf(key, nowMs) - 1, 0);
    this.#left.delete(key);
    this.#left.set(key, { at: nowMs, left });
    keepNewest(this.#left, mostRemembered);
  }
  give(key: string, nowMs: number): void {
    this.#left.set(key, { at: nowMs, left: Math.min(this.leftOf(key, nowMs) + 1, this.#measure.burst) });
  }
  /** Seconds until one more is there, at least 1. */
  waitS(key: string, nowMs: number): number {
    return Math.max(1, Math.ceil((1 - this.leftOf(key, nowMs)) / this.#measure.rate));
  }
}

export interface Limits {
  /** @param shown a credential; "": none */
  begin(shown: string, source: string): { readonly waitS: number } | { readonly answered: (status: number) => void };
}
export function createLimits(nowMs: () => number): Limits {
  const clients = new Bucket(known);
  const sources = new Bucket(unknown);
  /** Credentials that were taken, by their hashes: those alone have a measure of their own. */
  const taken = new Set<string>();
  const remember = (key: string): void => {
    taken.delete(key);
    taken.add(key);
    keepNewest(taken, mostRemembered);
  };
  return {
    begin: (shown, source) => {
      const now = nowMs();
      const key = createHash("sha256").update(shown).digest("base64url");
      const isKnown = taken.has(key);
      const [bucket, of] = isKnown ? [clients, key] : [sources, source];
      if (bucket.leftOf(of, now) < 1) return { waitS: bucket.waitS(of, now) };
      bucket.take(of, now);
      return {
        answered: (status) => {
          if (status === 401) taken.delete(key);
          else {
            // It was no guess.
            if (!isKnown) sources.give(source, nowMs());
            if (shown !== "") remember(key);
          }
        },
      };
    },
  };
}
