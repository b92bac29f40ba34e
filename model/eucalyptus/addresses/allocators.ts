import { type AddressRange, sizeOf } from "./ranges.ts";

/**
 * Private addresses, by the paper's two ways: the first free one, or a free one by chance. Neither keeps anything: whoever calls
 * knows what is taken, durably. Both take as many steps as there are taken addresses in a row, and need no list of all.
 */
export type Taken = (address: number) => boolean;

/** Null: all are taken. */
export function firstFree(ranges: readonly AddressRange[], isTaken: Taken): number | null {
  for (const { first, last } of ranges)
    for (let address = first; address <= last; address += 1) if (!isTaken(address)) return address;
  return null;
}

/**
 * The first free one from an address that chance names, going round. Null: all are taken.
 * @param random from 0 to below 1
 */
export function randomFree(ranges: readonly AddressRange[], isTaken: Taken, random: number): number | null {
  let start = Math.floor(random * ranges.reduce((sum, range) => sum + sizeOf(range), 0));
  const at = ranges.findIndex((range) => {
    if (start < sizeOf(range)) return true;
    start -= sizeOf(range);
    return false;
  });
  const range = ranges[at];
  if (range === undefined) return null;
  const split = range.first + start;
  const behind = [{ first: split, last: range.last }, ...ranges.slice(at + 1)];
  const before = [...ranges.slice(0, at), ...(split > range.first ? [{ first: range.first, last: split - 1 }] : [])];
  return firstFree(behind, isTaken) ?? firstFree(before, isTaken);
}
