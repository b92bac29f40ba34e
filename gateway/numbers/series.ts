import type { Series } from "../../model/contract/operator/numbers/history.ts";

/*
 * An hour of numbers by name, each 10 s: as much as a plot of now shows, and no more than fits beside all else. A series is as many numbers of four octets as
 * there are moments, so how many there may be follows from the bound. A database for more is the operator's own (`GET /metrics`).
 */
export const [everyMs, moments] = [10_000, 360] as const;
const mostBytes = 16 * 1024 * 1024;
export const mostSeries = Math.floor(mostBytes / (4 * moments));

/*
 * Who is there first may have all the room, and gives of it to who comes later and has less: what said nothing at this moment first, then what came last. So
 * nobody who makes names without end takes the room of others, and nothing of it lies idle.
 */
export class SeriesRing {
  readonly #series = new Map<string, Float32Array>();
  /** By whose it is. */
  readonly #of = new Map<string, Set<string>>();
  readonly #most: number;
  readonly #ownerOf: (name: string) => string;
  /** How many moments there were; the ring's next place follows from it. */
  #count = 0;
  #untilMs = 0;
  #leftOut = 0;

  /** @param ownerOf whose a series is, by its name */
  constructor(most: number = mostSeries, ownerOf: (name: string) => string = (name) => name) {
    this.#most = most;
    this.#ownerOf = ownerOf;
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
    for (const [name, values] of this.#series) if (!numbers.has(name) && values.every(Number.isNaN)) this.#end(name);
    this.#leftOut = 0;
    const silent = new Map<string, string[]>();
    for (const [name, value] of numbers) {
      const values = this.#series.get(name) ?? this.#begun(name, numbers, silent);
      if (values === null) this.#leftOut += 1;
      else values[at] = value;
    }
  }
  /** @param silent by owner, which of its series say nothing at this moment; looked for once */
  #begun(name: string, numbers: ReadonlyMap<string, number>, silent: Map<string, string[]>): Float32Array | null {
    const owner = this.#ownerOf(name);
    const own = this.#of.get(owner)?.size ?? 0;
    if (this.#series.size >= this.#most) {
      const giver = this.#largest(own) ?? owner;
      const left = silent.get(giver) ?? [...(this.#of.get(giver) ?? [])].filter((each) => !numbers.has(each));
      silent.set(giver, left);
      const gone = left.pop() ?? (giver === owner ? undefined : [...(this.#of.get(giver) ?? [])].at(-1));
      if (gone === undefined) return null;
      this.#end(gone);
    }
    const values = new Float32Array(moments).fill(Number.NaN);
    this.#series.set(name, values);
    this.#of.set(owner, (this.#of.get(owner) ?? new Set()).add(name));
    return values;
  }
  /** Who has most, and more than who has so many would have with one more; null: nobody. */
  #largest(own: number): string | null {
    let [found, most]: [string | null, number] = [null, own + 1];
    for (const [owner, { size }] of this.#of) if (size > most) [found, most] = [owner, size];
    return found;
  }
  #end(name: string): void {
    const owner = this.#ownerOf(name);
    const left = this.#of.get(owner);
    this.#series.delete(name);
    left?.delete(name);
    if (left?.size === 0) this.#of.delete(owner);
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
