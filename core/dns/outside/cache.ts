import type { Found } from "./answers.ts";

/**
 * What was answered outside, for as long as it holds. Bounded by entries and by bytes; what was asked for least lately goes
 * first. One cell's alone: no cell learns from how fast an answer is what another one asked for.
 */
interface Entry {
  readonly found: Found;
  readonly storedMs: number;
  readonly untilMs: number;
  readonly bytes: number;
}
export interface CacheBounds {
  readonly entries: number;
  readonly bytes: number;
}
export class NameCache {
  readonly #entries = new Map<string, Entry>();
  readonly #bounds: CacheBounds;
  #bytes = 0;
  constructor(bounds: CacheBounds = { entries: 2_048, bytes: 1 << 20 }) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#entries.size;
  }
  get bytes(): number {
    return this.#bytes;
  }

  /** As it was answered, with what is left of each record's time. */
  get(key: string, nowMs: number): Found | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    if (nowMs >= entry.untilMs) {
      this.#drop(key, entry);
      return null;
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    const passed = Math.floor((nowMs - entry.storedMs) / 1_000);
    const left = (ttl: number): number => Math.max(0, ttl - passed);
    const { rcode, records, ttl } = entry.found;
    return { rcode, ttl: left(ttl), records: records.map((each) => ({ ...each, ttl: left(each.ttl) })) };
  }

  put(key: string, found: Found, nowMs: number): void {
    const before = this.#entries.get(key);
    if (before !== undefined) this.#drop(key, before);
    const bytes =
      64 + 2 * key.length + found.records.reduce((sum, { name, data }) => sum + 64 + 2 * name.length + data.length, 0);
    if (found.ttl <= 0 || bytes > this.#bounds.bytes) return;
    this.#entries.set(key, { found, storedMs: nowMs, untilMs: nowMs + 1_000 * found.ttl, bytes });
    this.#bytes += bytes;
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size <= this.#bounds.entries && this.#bytes <= this.#bounds.bytes) break;
      this.#drop(oldest, entry);
    }
  }

  #drop(key: string, { bytes }: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= bytes;
  }
}
