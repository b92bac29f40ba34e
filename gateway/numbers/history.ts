import type { InstallationStatus } from "../../model/api.ts";
import { type History, type Moment, momentOf, type Series } from "../../model/contract/operator/numbers/history.ts";

/*
 * An hour of what the status of the installation said, each 10 s: as much as a plot of now shows, and no more than fits beside all else. A series is as many
 * numbers of four octets as there are moments, so how many there may be follows from the bound. A database for more is the operator's own
 * (`GET /metrics`).
 */
export const [everyMs, moments] = [10_000, 360] as const;
const mostBytes = 16 * 1024 * 1024;
export const mostSeries = Math.floor(mostBytes / (4 * moments));

export class HistoryRing {
  readonly #series = new Map<string, Float32Array>();
  readonly #most: number;
  /** How many moments there were; the ring's next place follows from it. */
  #count = 0;
  #untilMs = 0;
  #leftOut = 0;

  constructor(most: number = mostSeries) {
    this.#most = most;
  }

  /** @param status null: nothing was heard at this moment */
  add(status: Pick<InstallationStatus, "hosts"> | null, nowMs: number): void {
    // A status that took long, or a machine that slept, has left moments out: an hour stays one.
    const due = this.#count === 0 ? 1 : Math.round((nowMs - this.#untilMs) / everyMs);
    for (let left = Math.min(due - 1, moments); left > 0; left -= 1) this.#put(new Map());
    this.#put(numbersOf(status));
    this.#untilMs = nowMs;
  }
  #put(numbers: ReadonlyMap<string, number>): void {
    const at = this.#count % moments;
    this.#count += 1;
    for (const values of this.#series.values()) values[at] = Number.NaN;
    // One that said nothing for the whole hour makes room for others.
    for (const [name, values] of this.#series)
      if (!numbers.has(name) && values.every(Number.isNaN)) this.#series.delete(name);
    this.#leftOut = 0;
    for (const [name, value] of numbers) {
      const values = this.#series.get(name) ?? this.#begun(name);
      if (values === null) this.#leftOut += 1;
      else values[at] = value;
    }
  }
  #begun(name: string): Float32Array | null {
    if (this.#series.size >= this.#most) return null;
    const values = new Float32Array(moments).fill(Number.NaN);
    this.#series.set(name, values);
    return values;
  }

  read(): History {
    const count = Math.min(this.#count, moments);
    const valuesOf = (values: Float32Array): Series =>
      Array.from({ length: count }, (_, back) => {
        const value = values[(this.#count - count + back) % moments] ?? Number.NaN;
        return Number.isNaN(value) ? null : Math.round(value * 1000) / 1000;
      });
    const of = (kind: keyof Moment): Readonly<Record<string, Series>> =>
      Object.fromEntries(
        [...this.#series]
          .filter(([name]) => name.startsWith(`${kind} `))
          .map(([name, values]) => [name.slice(kind.length + 1), valuesOf(values)]),
      );
    return {
      everyMs,
      until: new Date(this.#untilMs).toISOString(),
      moments: count,
      load: of("load"),
      usedMiB: of("usedMiB"),
      running: of("running"),
      leftOut: this.#leftOut,
    };
  }
}

/** By kind and name. */
function numbersOf(status: Pick<InstallationStatus, "hosts"> | null): ReadonlyMap<string, number> {
  if (status === null) return new Map();
  const kinds = Object.entries(momentOf(status));
  return new Map(kinds.flatMap(([kind, all]) => [...all].map(([name, value]) => [`${kind} ${name}`, value] as const)));
}
