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

/**
 * The newest that are wanted; or, where `after` is given, those that come next, for whoever reads all of them.
 * @param isSeen whether whoever asks may see this one
 */
export async function readAudit(
  read: Read,
  head: AuditHead,
  query: AuditQuery,
  isSeen: (record: AuditRecord) => boolean,
): Promise<AuditPart> {
  const { first, next, hash } = head;
  const { limit = usualLimit, after, since } = query;
  const found: AuditRecord[] = [];
  const take = (records: readonly AuditRecord[]): void => {
    for (const record of records) if (isSeen(record) && isWanted(query, record)) found.push(record);
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
