import { setImmediate } from "node:timers/promises";
import type { AuditHead, AuditPart, AuditRecord } from "../../model/contract/audit/audit.ts";
import type { QueryOf } from "../../model/contract/route.ts";
import type { Routes } from "../../model/contract/routes.ts";

/** What is asked of a service's audit: the same at each of them. */
export type AuditQuery = Omit<QueryOf<Routes["readCellAudit"]["query"]>, never>;

/** Looked at in one go: others are waiting meanwhile. */
const chunk = 256;
/** A question looks at no more than this, and says how far it has come. */
const mostLooked = 16_384;
export const usualLimit = 200;

const isWanted = ({ since, until, who, verb, outcome, target }: AuditQuery, record: AuditRecord): boolean =>
  (since === undefined || record.time >= since) &&
  (until === undefined || record.time < until) &&
  (who === undefined || record.who === who) &&
  (verb === undefined || record.verb === verb) &&
  (outcome === undefined || record.outcome === outcome) &&
  (target === undefined || record.target === target || record.target.startsWith(`${target}/`));

/** Where records are: `audit` of a running service. */
type Read = (from: number, most: number) => readonly AuditRecord[];

/** What whoever asks may see of it. */
export type Seen = "all" | ((record: AuditRecord) => boolean);

/** The newest that are wanted; or, where `after` is given, those that come next, for whoever reads all of them. */
export async function readAudit(read: Read, head: AuditHead, query: AuditQuery, seen: Seen): Promise<AuditPart> {
  return seen === "all" ? readWhole(read, head, query) : readOwn(read, head, query, seen);
}

/**
 * Whoever sees a part has a count of his own. Numbers of the whole chain say how much others do, its hashes what others did to whoever tries
 * what it might have been, and how many refusals were left out is a matter of all.
 */
async function readOwn(
  read: Read,
  { first, next }: AuditHead,
  query: AuditQuery,
  isSeen: (record: AuditRecord) => boolean,
): Promise<AuditPart> {
  const { limit = usualLimit, after } = query;
  const found: AuditRecord[] = [];
  let count = 0;
  for (let from = first; from < next; from += chunk) {
    for (const record of read(from, Math.min(chunk, next - from))) {
      if (!isSeen(record)) continue;
      count += 1;
      if (count <= (after ?? 0) || !isWanted(query, record)) continue;
      if (after !== undefined && found.length >= limit) continue;
      const { leftOut: _, ...own } = record;
      found.push({ ...own, n: count, previous: "", hash: "" });
      if (found.length > limit) found.shift();
    }
    await setImmediate();
  }
  return { first: 1, next: count + 1, hash: "", records: found };
}

async function readWhole(read: Read, head: AuditHead, query: AuditQuery): Promise<AuditPart> {
  const { first, next, hash } = head;
  const { limit = usualLimit, after, since } = query;
  const found: AuditRecord[] = [];
  const take = (records: readonly AuditRecord[]): void => {
    for (const record of records) if (isWanted(query, record)) found.push(record);
  };
  if (after !== undefined) {
    for (let from = Math.max(first, after + 1); from < next && found.length < limit; from += chunk) {
      take(read(from, Math.min(chunk, next - from)));
      await setImmediate();
    }
    return { first, next, hash, records: found.slice(0, limit) };
  }
  const parts: AuditRecord[][] = [];
  let count = 0;
  for (let to = next; to > first && count < limit && next - to < mostLooked; to -= chunk) {
    const from = Math.max(first, to - chunk);
    const records = read(from, to - from);
    take(records);
    parts.push(found.splice(0));
    count += parts.at(-1)?.length ?? 0;
    if (since !== undefined && records[0] !== undefined && records[0].time < since) break;
    await setImmediate();
  }
  return { first, next, hash, records: parts.reverse().flat().slice(-limit) };
}
