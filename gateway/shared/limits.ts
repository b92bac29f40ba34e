import { createHash } from "node:crypto";
import { keepNewest } from "../../model/limits.ts";
import { bearerOf } from "../../runtime/http/bearer.ts";

/**
 * How much of a personality one client may have: so many requests a second on the average, and more at once after a while of
 * none. Who shows a credential of which the gateway said whose it is has the measure of his account, with whoever else is of it;
 * everybody else shares the one of where he comes from, which is smaller, so that guessing is slow and costs nobody else anything.
 *
 * A refusal costs about as much as an answer, and most clients ask again as soon as they have it. So it is said later: as many a
 * second as a client has answers, the first after a second. For whoever has more of them to come than would be said within ten
 * seconds there is none, and his connection ends.
 */
export interface Measure {
  /** Each second. */
  readonly rate: number;
  /** At once. */
  readonly burst: number;
}
export const known: Measure = { rate: 50, burst: 200 };
export const unknown: Measure = { rate: 5, burst: 20 };
const refusals = { leastMs: 1000, mostMs: 10_000 };
/** Of clients that were heard of last; a forgotten one begins with all it may have. */
const mostRemembered = 10_000;

interface Left {
  readonly at: number;
  readonly left: number;
}
/** Tokens of one kind of client, by its key. */
export class Bucket {
  readonly #measure: Measure;
  readonly #left = new Map<string, Left>();
  /** When the last refusal is said. */
  readonly #refused = new Map<string, number>();
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
  /** In how long that is said; null: never. */
  refuse(key: string, nowMs: number): number | null {
    const last = this.#refused.get(key) ?? 0;
    const laterMs = Math.max(refusals.leastMs, last + 1000 / this.#measure.rate - nowMs);
    if (laterMs > refusals.mostMs) return null;
    this.#refused.delete(key);
    this.#refused.set(key, nowMs + laterMs);
    keepNewest(this.#refused, mostRemembered);
    return laterMs;
  }
}

export interface Refused {
  /** As `Retry-After` says it. */
  readonly waitS: number;
  /** It is said then; null: it is not, and the connection ends. */
  readonly laterMs: number | null;
}
export interface Limits {
  /** @param shown a credential; "": none */
  begin(shown: string, source: string): Refused | { readonly answered: Answered };
  /** As the gateway says it of a credential that it took. */
  belongs(shown: string, whose: string): void;
}
/** @param status null: the client left before it was answered @param isLogin it asked for a session, by a password or a key */
type Answered = (status: number | null, isLogin: boolean) => void;

export function createLimits(nowMs: () => number): Limits {
  const clients = new Bucket(known);
  const sources = new Bucket(unknown);
  /** Credentials that were taken, by their hashes: those alone have another measure, that of whose they are. */
  const taken = new Map<string, string>();
  /** A gateway of the version before never does. */
  let saysWhose = false;
  /** One credential may be shown in many spellings of the header, and is the same in each. */
  const hashOf = (shown: string): string =>
    createHash("sha256")
      .update(bearerOf(shown) ?? shown)
      .digest("base64url");
  const remember = (key: string, whose: string): void => {
    taken.delete(key);
    taken.set(key, whose);
    keepNewest(taken, mostRemembered);
  };
  return {
    belongs: (shown, whose) => {
      // Until then each had a measure of its own, made up or not.
      if (!saysWhose) taken.clear();
      saysWhose = true;
      remember(hashOf(shown), whose);
    },
    begin: (shown, source) => {
      const now = nowMs();
      const key = hashOf(shown);
      const whose = taken.get(key);
      const [bucket, of] = whose === undefined ? [sources, source] : [clients, whose];
      if (bucket.leftOf(of, now) < 1) return { waitS: bucket.waitS(of, now), laterMs: bucket.refuse(of, now) };
      bucket.take(of, now);
      return {
        answered: (status, isLogin) => {
          if (status === 401) taken.delete(key);
          const said = taken.get(key);
          const isTaken = status !== null && status !== 401;
          if (!saysWhose && isTaken && shown !== "") remember(key, said ?? key);
          if (whose !== undefined) return;
          const at = nowMs();
          // It was no guess. Of whom it is known by now, it counts for him, as long as he has some left.
          const isHis = said !== undefined && clients.leftOf(said, at) >= 1;
          const isNoGuess = saysWhose ? isLogin && isTaken && status < 300 : isTaken;
          if (isHis || (said === undefined && isNoGuess)) sources.give(source, at);
          if (said !== undefined) clients.take(said, at);
        },
      };
    },
  };
}
