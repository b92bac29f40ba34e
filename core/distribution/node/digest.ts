/**
 * Do two sides hold the same? A digest answers for a set of (key, number) pairs without naming them: the keys fall into
 * buckets by their hash, and a bucket's digest is the exclusive or of the hashes of its pairs. It is kept up to date pair
 * by pair, so a change costs the same however many pairs there are, and what differs is narrowed down to some 64th of all.
 *
 * The hashes are no secret and no protection: they find what was lost by mistake. A source that forges one harms what it
 * says itself, which it could as well have said wrong. Two sets that differ are taken for the same once in 2^64 times.
 */
export const digestBuckets = 64;

/** Two words of 32 bits a bucket, as numbers: JSON carries them as they are. */
export type Digest = readonly number[];

const emptyWords: Digest = Object.freeze(new Array<number>(2 * digestBuckets).fill(0));

/** Of a set that changes. Each pair that comes in must go out with the same number. */
export class RunningDigest {
  readonly #words: number[] = [...emptyWords];

  /** Puts a pair in that is not there, or takes one out that is. */
  toggle(key: string, sequence: number): void {
    const [first, second] = hashOf(key, sequence);
    const at = 2 * bucketOf(key);
    this.#words[at] = ((this.#words[at] ?? 0) ^ first) >>> 0;
    this.#words[at + 1] = ((this.#words[at + 1] ?? 0) ^ second) >>> 0;
  }
  value(): Digest {
    return [...this.#words];
  }
}

export function digestOf(pairs: Iterable<readonly [key: string, sequence: number]>): Digest {
  const digest = new RunningDigest();
  for (const [key, sequence] of pairs) digest.toggle(key, sequence);
  return digest.value();
}

/** Buckets in which the two differ; every one of those that the other does not have. */
export function differing(one: Digest, other: Digest): readonly number[] {
  const buckets: number[] = [];
  for (let bucket = 0; bucket < digestBuckets; bucket += 1) {
    const at = 2 * bucket;
    if (one[at] !== other[at] || one[at + 1] !== other[at + 1]) buckets.push(bucket);
  }
  return buckets;
}

/** The bucket of a key, from 0. */
export const bucketOf = (key: string): number => hash(key, 0x9e3779b9) % digestBuckets;

const isWord = (value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
export const isDigest = (value: unknown): value is Digest =>
  Array.isArray(value) && value.length === 2 * digestBuckets && value.every(isWord);
/** A list of buckets without one twice. */
export const isBuckets = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.every((bucket) => Number.isInteger(bucket) && bucket >= 0 && bucket < digestBuckets) &&
  new Set(value).size === value.length;

function hashOf(key: string, sequence: number): readonly [number, number] {
  const low = sequence >>> 0;
  const high = Math.floor(sequence / 2 ** 32);
  return [mixed(hash(key, 1) ^ mixed(low) ^ mixed(high + 7)), mixed(hash(key, 2) + Math.imul(low, 31) + high)];
}

/** 32 bits of a text; another seed is another hash. */
export const textHash = (text: string, seed: number): number => hash(text, seed);

/** FNV-1a over UTF-16 units, then mixed: short keys that differ in one character must not end up beside one another. */
function hash(text: string, seed: number): number {
  let value = (0x811c9dc5 ^ seed) >>> 0;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return mixed(value);
}

/** The final mix of MurmurHash3 (public domain): every bit of the input changes about half of the output's. */
function mixed(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
