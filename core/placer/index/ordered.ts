/** What hosts of a class stand by. */
export interface Roomy {
  /** The more the earlier; no two have the same (`orderOf`), unless there are more hosts or MiB than that counts. */
  readonly order: number;
}
const mostInBucket = 128;

/**
 * Hosts by free memory, the most first, then by name, in buckets: of thousands one moves within two short lists, where in one list all behind it
 * would move. Nobody is in it twice. Numbers are looked through beside the hosts, which are all over memory.
 */
export class Ordered<Entry extends Roomy> {
  /** In order, none of them empty. */
  readonly buckets: Entry[][] = [];
  /** Orders of these. */
  readonly #orders: number[][] = [];
  /** The last of each bucket. */
  readonly #lasts: number[] = [];

  add(entry: Entry): void {
    const at = Math.min(placeIn(this.#lasts, entry.order), this.buckets.length - 1);
    const [bucket, orders] = [this.buckets[at], this.#orders[at]];
    if (bucket === undefined || orders === undefined) {
      this.buckets.push([entry]);
      this.#orders.push([entry.order]);
      this.#lasts.push(entry.order);
      return;
    }
    const place = placeIn(orders, entry.order);
    bucket.splice(place, 0, entry);
    orders.splice(place, 0, entry.order);
    if (bucket.length > mostInBucket) {
      this.buckets.splice(at + 1, 0, bucket.splice(mostInBucket / 2));
      this.#orders.splice(at + 1, 0, orders.splice(mostInBucket / 2));
      this.#lasts.splice(at + 1, 0, 0);
      this.#noteLast(at + 1);
    }
    this.#noteLast(at);
  }
  remove(entry: Entry): void {
    const { order } = entry;
    // By the number it is found, and by itself it is known: whatever hosts say, none goes in place of another.
    for (let at = placeIn(this.#lasts, order); at < this.buckets.length; at += 1) {
      const [bucket, orders] = [this.buckets[at] ?? [], this.#orders[at] ?? []];
      for (let place = placeIn(orders, order); orders[place] === order; place += 1) {
        if (bucket[place] !== entry) continue;
        this.#take(at, place);
        return;
      }
      if (this.#lasts[at] !== order) return;
    }
  }
  #take(at: number, place: number): void {
    if (this.buckets[at]?.length === 1) {
      for (const each of [this.buckets, this.#orders, this.#lasts]) each.splice(at, 1);
      return;
    }
    for (const each of [this.buckets, this.#orders]) each[at]?.splice(place, 1);
    this.#noteLast(at);
  }
  #noteLast(at: number): void {
    this.#lasts[at] = this.#orders[at]?.at(-1) ?? 0;
  }
}

/** Where it stands, or would stand, in a list of which the most come first. */
function placeIn(orders: readonly number[], order: number): number {
  let [low, high] = [0, orders.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((orders[middle] as number) > order) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** One number by free memory and then by name, of which `rank` is the place among all. */
export const orderOf = (freeMiB: number, rank: number): number => freeMiB * mostRanks - rank;
/** With that many hosts, of up to a pebibyte each (`mostMemoryMiB`), every order of whole MiB is exact. */
const mostRanks = 2 ** 21;
