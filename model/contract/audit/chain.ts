import { isoTime } from "../../cell/iso-time.ts";
import type { AuditEntry, AuditHead, AuditPart, AuditRecord } from "./audit.ts";
import { sha256 } from "./sha256.ts";

/*
 * A chain of one service's records, and what is kept of it. Numbers have no gaps; each record holds the hash of the one before; the head says
 * where the chain begins and ends. So a record that was altered, taken out, or cut off at either end shows.
 *
 * A chain says nothing of who wrote it: whoever has a service's store may make all of it anew. That shows against an export that was taken
 * before (`compare`).
 */
export interface Chain extends Omit<AuditHead, "refusals"> {
  /** Where each week begins: `[week, n]`, weeks since 1970, oldest first. By these it is known what is old. */
  readonly weeks: readonly (readonly [week: number, n: number])[];
}
export const beginning = "0".repeat(64);
export const emptyChain: Chain = { first: 1, next: 1, hash: beginning, weeks: [] };

/** At least so long, if there are not too many. */
export const keptDays = 400;
const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
/** Of a controller; more would make the store longer than what can be given back to it. */
export const mostRecords = 8192;
/** With each record at most so many of the oldest go: a clock that is wrong for a while empties nothing. */
const mostDropped = 2;

/** In characters. */
export const lengths = {
  who: 200,
  account: 1200,
  by: 80,
  door: 40,
  source: 64,
  verb: 64,
  target: 256,
  what: 512,
  why: 400,
} as const;
type Clipped = keyof typeof lengths;

/** What is to be recorded, of a refusal with its place among the changes. */
export type Placed = AuditEntry & Pick<AuditRecord, "behind">;
export interface Linked {
  readonly chain: Chain;
  readonly record: AuditRecord;
  /** Numbers of records that are kept no longer. */
  readonly dropped: readonly number[];
}
export function linked(chain: Chain, entry: Placed, wallMs: number, most = mostRecords): Linked {
  const n = chain.next;
  const unhashed = { ...clipped(entry), n, time: isoTime(wallMs), previous: chain.hash };
  const record: AuditRecord = { ...unhashed, hash: hashOf(unhashed) };
  const week = Math.floor(wallMs / weekMs);
  const weeks = chain.weeks.some(([known]) => known >= week) ? chain.weeks : [...chain.weeks, [week, n] as const];
  const wanted = Math.max(youngIn(weeks, wallMs) ?? n, n + 1 - most);
  const first = Math.min(Math.max(chain.first, wanted), chain.first + mostDropped, n);
  const dropped = numbersFrom(chain.first, first);
  return { chain: { first, next: n + 1, hash: record.hash, weeks: weeksFrom(first, weeks, n + 1) }, record, dropped };
}
/** The first record of the first week that is kept; undefined: all are older. */
function youngIn(weeks: Chain["weeks"], wallMs: number): number | undefined {
  const oldest = Math.floor((wallMs - keptDays * dayMs) / weekMs);
  return weeks.find(([begun]) => begun >= oldest)?.[1];
}
const numbersFrom = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);
/** Of what is kept the first week stays, wherever in it that begins. */
const weeksFrom = (first: number, weeks: Chain["weeks"], next: number): Chain["weeks"] =>
  weeks.filter((_each, index) => (weeks[index + 1]?.[1] ?? next) > first);

/** The same of a chain that takes none now, but for how many there are. Null: nothing of it is too old. */
export function aged(chain: Chain, wallMs: number): Omit<Linked, "record"> | null {
  const wanted = youngIn(chain.weeks, wallMs) ?? chain.next;
  const first = Math.min(Math.max(chain.first, wanted), chain.first + mostDropped, chain.next);
  if (first === chain.first) return null;
  const weeks = weeksFrom(first, chain.weeks, chain.next);
  return { chain: { ...chain, first, weeks }, dropped: numbersFrom(chain.first, first) };
}

function clipped(entry: Placed): Placed {
  const fields = Object.entries(entry).map(([name, value]) => {
    const most = lengths[name as Clipped] as number | undefined;
    return [name, most !== undefined && typeof value === "string" ? shortened(value, most) : value];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as Placed;
}
const shortened = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/** Of all but itself, in whatever order the fields come. */
export function hashOf(record: Omit<AuditRecord, "hash"> & { readonly hash?: string }): string {
  const { hash: _, ...rest } = record;
  const fields = Object.entries(rest).sort(([one], [other]) => (one < other ? -1 : 1));
  return sha256(JSON.stringify(fields));
}

/** What is wrong with a whole chain, one of the two, a sentence each; empty: nothing. */
export function faultsIn({ first, next, hash, records }: AuditPart): readonly string[] {
  const faults: string[] = [];
  let expected = first;
  let previous: string | null = first === 1 ? beginning : null;
  for (const record of records) {
    if (record.n !== expected) faults.push(missing(expected, record.n));
    if (previous !== null && record.previous !== previous)
      faults.push(
        `record ${record.n} does not follow on what is before it: one of the two was altered, or others were there`,
      );
    if (hashOf(record) !== record.hash)
      faults.push(`record ${record.n} was altered: its hash is that of other content`);
    expected = record.n + 1;
    previous = record.hash;
  }
  if (expected !== next) faults.push(missing(expected, next));
  else if (records.length > 0 && previous !== hash)
    faults.push(`the last record, ${next - 1}, is not the one that was written last`);
  return faults;
}
const missing = (expected: number, found: number): string =>
  found > expected
    ? `${found - expected === 1 ? `record ${expected} is` : `records ${expected} to ${found - 1} are`} missing`
    : `record ${found} comes where ${expected} is expected`;

/** What an earlier export has that is otherwise now, a sentence each. What is kept no longer cannot be compared. */
export function differences(earlier: readonly AuditRecord[], { first, next, records }: AuditPart): readonly string[] {
  const now = new Map(records.map((record) => [record.n, record]));
  return earlier.flatMap((record) => {
    if (hashOf(record) !== record.hash) return [`record ${record.n} of the export was altered`];
    if (record.n < first) return [];
    if (record.n >= next) return [`record ${record.n} of the export is not there: the chain ends before it`];
    return now.get(record.n)?.hash === record.hash ? [] : [`record ${record.n} is another one than in the export`];
  });
}
