import type { SliceDigest, Summary } from "../../documents/network/policy.ts";
import { textHash } from "../node/digest.ts";

/**
 * A view that is larger than a document: what one service desires at another, in slices under keys of their own beside a
 * manifest. Each slice is a document like any other, so loss, repetition and order are no concern of this file; what it adds
 * is that a change costs the slices that it touches, and that its receiver knows when it has all of one version.
 *
 * The manifest names no slices, or it would grow with them: it says how many there are and the exclusive or of their digests,
 * whatever their order. A slice carries its own digest, so who receives it compares numbers and no texts, and a later
 * version's slice may hold what an earlier one leaves out.
 *
 * Where an item lies follows from the items alone: they are in the order of the hashes of their keys, and a slice that would
 * be too long is cut where the next bit of the hash differs. So nothing of it has to be remembered, a change never moves
 * what it does not concern, and after a crash the same slices come out.
 *
 * Rejected: digests by name in the manifest, 200 KB for a change of one rule among 200,000. Slices of equal numbers of items
 * in their order: one that comes in moves all behind it. A chain of changes: who missed one has to ask for it.
 */
export interface Item<Value> {
  /** Which item it is: another one with the same key is the same one, changed. */
  readonly key: string;
  readonly value: Value;
  /** Its JSON text. */
  readonly text: string;
}
export interface CutSlice<Value> {
  /** `<group>`, or `<group>.<bits>`: the first bits of the hashes in it. */
  readonly name: string;
  readonly digest: SliceDigest;
  /** In the order of their hashes. */
  readonly values: readonly Value[];
}

/** Characters of the items of a slice; one item alone may be longer. */
export const mostInSlice = 4000;

export const digestOfText = (text: string): SliceDigest => [textHash(text, 1), textHash(text, 2)];
/** Of what is asked for at each step and is seldom another object: of one object its text is written and digested once. */
export function digestOnce<Value extends object>(textOf: (value: Value) => string): (value: Value) => SliceDigest {
  const known = new WeakMap<Value, SliceDigest>();
  return (value) => {
    const digest = known.get(value) ?? digestOfText(textOf(value));
    known.set(value, digest);
    return digest;
  };
}

/** Cuts the items of a group. No two have the same key. @returns none of nothing */
export function cut<Value>(
  group: string,
  items: readonly Item<Value>[],
  most: number = mostInSlice,
): readonly CutSlice<Value>[] {
  if (items.length === 0) return [];
  const placed = items
    .map((item) => ({ item, hash: textHash(item.key, 3) }))
    .sort((one, other) => one.hash - other.hash || (one.item.key < other.item.key ? -1 : 1));
  const slices: CutSlice<Value>[] = [];
  const within = (from: number, to: number, bits: string): void => {
    if (from === to) return;
    let length = 0;
    for (let at = from; at < to && length <= most; at += 1) length += placed[at]!.item.text.length + 1;
    if (length > most && to - from > 1 && bits.length < 32) {
      let middle = from;
      const bit = 2 ** (31 - bits.length);
      while (middle < to && Math.floor(placed[middle]!.hash / bit) % 2 === 0) middle += 1;
      within(from, middle, `${bits}0`);
      within(middle, to, `${bits}1`);
      return;
    }
    const name = bits === "" ? group : `${group}.${bits}`;
    const own = placed.slice(from, to).map(({ item }) => item);
    const text = own.map((item) => item.text).join("\n");
    slices.push({
      name,
      digest: digestOfText(`${name}\n${text}`),
      values: own.map(({ value }) => value),
    });
  };
  within(0, placed.length, "");
  return slices;
}

/** The group that a slice is of, by its name. */
export const groupOf = (name: string): string => {
  const dot = name.indexOf(".");
  return dot < 0 ? name : name.slice(0, dot);
};

/** Of no slices; and with one more, or without one that is in it. */
export const noSlices: SliceDigest = [0, 0];
export const toggled = ([one, two]: SliceDigest, [first, second]: SliceDigest): SliceDigest => [
  (one ^ first) >>> 0,
  (two ^ second) >>> 0,
];

export function summaryOf(slices: Iterable<{ readonly digest: SliceDigest }>): Summary {
  let [count, digest] = [0, noSlices];
  for (const slice of slices) {
    count += 1;
    digest = toggled(digest, slice.digest);
  }
  return { count, digest };
}
