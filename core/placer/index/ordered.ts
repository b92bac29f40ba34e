import type { HostName } from "../../../model/cell/identifiers.ts";

/** What hosts of a class differ in. */
export interface Roomy {
  readonly host: HostName;
  readonly freeMiB: number;
}
const mostInBucket = 128;
const isBefore = (one: Roomy, other: Roomy): boolean =>
  one.freeMiB > other.freeMiB || (one.freeMiB === other.freeMiB && one.host < other.host);

/**
 * Hosts by free memory, the most first, then by name, in buckets: of thousands one moves within two short lists, where in one list all behind it
 * would move. Nobody is in it twice.
 */
export class Ordered<Entry extends Roomy> {
  /** In order, none of them empty. */
  readonly buckets: Entry[][] = [];

  add(entry: Entry): void {
    const at = Math.min(this.#bucketOf(entry), this.buckets.length - 1);
    const bucket = this.buckets[at];
    if (bucket === undefined) {
      this.buckets.push([entry]);
      return;
    }
    bucket.splice(placeIn(bucket, entry), 0, entry);
    if (bucket.length > mostInBucket) this.buckets.splice(at + 1, 0, bucket.splice(mostInBucket / 2));
  }
  remove(entry: Entry): void {
    const at = this.#bucketOf(entry);
    const bucket = this.buckets[at];
    if (bucket === undefined) return;
    const place = placeIn(bucket, entry);
    if (bucket[place]?.host !== entry.host) return;
    if (bucket.length === 1) this.buckets.splice(at, 1);
    else bucket.splice(place, 1);
  }

  /** The first bucket whose last host does not come before. */
  #bucketOf(entry: Entry): number {
    let [low, high] = [0, this.buckets.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const last = this.buckets[middle]?.at(-1) as Entry;
      if (isBefore(last, entry)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Where it stands, or would stand. */
function placeIn(bucket: readonly Roomy[], entry: Roomy): number {
  let [low, high] = [0, bucket.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(bucket[middle] as Roomy, entry)) low = middle + 1;
    else high = middle;
  }
  return low;
}
