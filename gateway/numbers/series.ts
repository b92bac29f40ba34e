import type { Series } from "../../model/contract/operator/numbers/history.ts";

/*
 * An hour of numbers by name, each 10 s: as much as a plot of now shows, and no more than fits beside all else. A series is as many numbers of four octets as
 * there are moments, so how many there may be follows from the bound. A database for more is the operator's own (`GET /metrics`).
 */
export const [everyMs, moments] = [10_000, 360] as const;
const mostBytes = 16 * 1024 * 1024;
export const mostSeries = Math.floor(mostBytes / (4 * moments));

export class SeriesRing {
  readonly #series = new Map<string, Float32Array>();
  readonly #most: number;
  /** How many moments there were; the ring's next place follows from it. */
  #count = 0;
  #untilMs = 0;
  #leftOut = 0;

  constructor(most: number = mostSeries) {
    this.#most = most;
  }

  /** @param numbers by the names of series; none: nothing was heard at this moment */
  add(numbers: ReadonlyMap<string, number>, nowMs: number): void {
    // A status that took long, or a machine that slept, has left moments out: an hour stays one.
    const due = this.#count === 0 ? 1 : Math.round((nowMs - this.#untilMs) / everyMs);
    for (let left = Math.min(due - 1, moments); left > 0; left -= 1) this.#put(new Map());
    this.#put(numbers);
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

  get names(): readonly string[] {
    return [...this.#series.keys()];
  }
  get moments(): number {
    return Math.min(this.#count, moments);
  }
  /** Of the last moment, ISO 8601. */
  get until(): string {
    return new Date(this.#untilMs).toISOString();
  }
  /** So many more there was no room for. */
  get leftOut(): number {
    return this.#leftOut;
  }
  /** Null: nothing was heard then. */
  of(name: string): Series {
    const values = this.#series.get(name);
    const count = this.moments;
    return Array.from({ length: count }, (_, back) => {
      const value = values?.[(this.#count - count + back) % moments] ?? Number.NaN;
      return Number.isNaN(value) ? null : Math.round(value * 1000) / 1000;
    });
  }
}
