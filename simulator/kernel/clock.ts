/**
 * Virtual time: what is to happen lies in a heap, and time is whatever the next of it says. Two events of one moment happen
 * in the order in which they were put there, so a run is a function of its seed.
 */
export interface ScheduledEvent {
  readonly atMs: number;
  cancelled: boolean;
}
interface Entry extends ScheduledEvent {
  readonly order: number;
  readonly run: () => void;
}

const isBefore = (a: Entry, b: Entry): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

export class Clock {
  nowMs = 0;
  /** Events that have happened. */
  events = 0;
  readonly #heap: Entry[] = [];
  #order = 0;

  /** At most so often something may happen without time passing: more is a circle. */
  static readonly mostAtOnce = 200_000;
  #atOnce = 0;

  after(ms: number, run: () => void): ScheduledEvent {
    // Whole microseconds: sums stay the same whatever they were made of.
    const atMs = Math.round((this.nowMs + Math.max(0, ms)) * 1000) / 1000;
    this.#order += 1;
    const entry: Entry = { atMs, order: this.#order, run, cancelled: false };
    this.#push(entry);
    return entry;
  }

  /** When the next event is due; null: there is none. */
  get nextMs(): number | null {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) return null;
      if (!first.cancelled) return first.atMs;
      this.#pop();
    }
  }

  /** Lets the next event happen. Throws when time stands still for too long. */
  step(): void {
    const entry = this.#pop();
    if (entry === undefined || entry.cancelled) return;
    this.#atOnce = entry.atMs > this.nowMs ? 0 : this.#atOnce + 1;
    if (this.#atOnce > Clock.mostAtOnce) throw new Error(`time stands still at ${this.nowMs} ms`);
    this.nowMs = entry.atMs;
    this.events += 1;
    entry.run();
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(entry, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const left = heap[below];
      if (left === undefined) break;
      const right = heap[below + 1];
      let smaller = left;
      if (right !== undefined && isBefore(right, left)) {
        smaller = right;
        below += 1;
      }
      if (!isBefore(smaller, last)) break;
      heap[at] = smaller;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}
