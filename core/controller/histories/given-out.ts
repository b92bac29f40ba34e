import type { ControllerState, CountersRecord } from "../state.ts";

/**
 * Which UIDs this store itself has given out. A store that was lost or put back goes on far above what it knows, and below
 * that lie the UIDs of the store that was lost: their elements may be what the cell's people want, and only those of whose
 * end this store knows may be taken for ended.
 */
type Ranges = NonNullable<CountersRecord["skipped"]>;

/** A range comes with each fork that an operator ends. Beyond this the first ones become one, with what lies between them. */
const mostRanges = 256;

/** To go on at that number, which may be the next one anyway. */
export function goOnAt({ nextNumber, skipped = [] }: CountersRecord, to: number): Partial<CountersRecord> {
  if (to <= nextNumber) return {};
  const last = skipped.at(-1);
  const ranges: Ranges =
    last?.[1] === nextNumber ? [...skipped.slice(0, -1), [last[0], to]] : [...skipped, [nextNumber, to]];
  const [first, second, ...rest] = ranges;
  const isTooMany = ranges.length > mostRanges && first !== undefined && second !== undefined;
  return { nextNumber: to, skipped: isTooMany ? [[first[0], second[1]], ...rest] : ranges };
}

/**
 * Did this store give out what the document of that name is about? Of what has no UID, as a cell's rules, it is not known as soon as
 * another store of this cell said things of which this one does not know.
 */
export function isOwn({ options, counters, hasLost }: ControllerState, name: string): boolean {
  const { nextNumber, skipped } = counters;
  // It was let count by the previous version, which did not note what it skipped.
  if (skipped === undefined && hasLost) return false;
  const number = numberOf(options.cellUid, name);
  if (number === null) return skipped === undefined;
  return number < nextNumber && !(skipped ?? []).some(([from, to]) => number >= from && number < to);
}

/** Of a UID of this cell's elements; null: it is none. */
export function numberOf(cell: string, name: string): number | null {
  const number = name.startsWith(`${cell}-`) ? name.slice(cell.length + 1) : "";
  return /^[1-9][0-9]*$/.test(number) ? Number(number) : null;
}
