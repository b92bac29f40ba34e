import { setImmediate } from "node:timers/promises";
import {
  type AuditHead,
  type AuditPart,
  type AuditRecord,
  type Ring,
  rings,
} from "../../model/contract/audit/audit.ts";
import { inOrder } from "../../model/contract/audit/rings.ts";
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
type Read = (ring: Ring, from: number, most: number) => readonly AuditRecord[];

/** What whoever asks may see of it. */
export type Seen = "all" | ((record: AuditRecord) => boolean);

/** The newest that are wanted; or, where `after` is given, those that come next, for whoever reads all of them. */
export async function readAudit(read: Read, head: AuditHead, asked: AuditQuery, seen: Seen): Promise<AuditPart> {
  const query = { ...asked, ...timeIn("since", asked.since), ...timeIn("until", asked.until) };
  if (seen !== "all") return readOwn(read, head, query, seen);
  const { after, chain, limit = usualLimit } = query;
  if (after !== undefined)
    return { ...head, records: await readOn(read, spanOf(head, chain ?? "changes"), after, query) };
  const parts: (readonly AuditRecord[])[] = [];
  for (const ring of chain === undefined ? rings : [chain])
    parts.push(await readNewest(read, spanOf(head, ring), query));
  return { ...head, records: parts.flat().sort(inOrder).slice(-limit) };
}

/** As records have it, by which it is compared with theirs. */
const timeIn = (name: "since" | "until", time: string | undefined): Pick<AuditQuery, "since" | "until"> =>
  time === undefined ? {} : { [name]: new Date(time).toISOString() };

/** What is kept of a chain. */
interface Span extends Pick<AuditHead, "first" | "next"> {
  readonly ring: Ring;
}
const spanOf = (head: AuditHead, ring: Ring): Span => {
  const { first, next } = ring === "changes" ? head : (head.refusals ?? { first: 1, next: 1 });
  return { ring, first, next };
};

/**
 * Whoever sees a part has a count of his own, of changes and refusals in their order. Numbers of the whole chains say how much others do, their
 * hashes what others did to whoever tries what it might have been, and how many refusals were left out is a matter of all.
 */
async function readOwn(
  read: Read,
  head: AuditHead,
  query: AuditQuery,
  isSeen: (record: AuditRecord) => boolean,
): Promise<AuditPart> {
  const { limit = usualLimit, after } = query;
  const found: AuditRecord[] = [];
  let count = 0;
  for await (const records of bothInOrder(read, head))
    for (const record of records) {
      if (!isSeen(record)) continue;
      count += 1;
      if (count <= (after ?? 0) || !isWanted(query, record)) continue;
      if (after !== undefined && found.length >= limit) continue;
      const { leftOut: _, behind: __, ...own } = record;
      found.push({ ...own, n: count, previous: "", hash: "" });
      if (found.length > limit) found.shift();
    }
  return { first: 1, next: count + 1, hash: "", records: found };
}

async function* bothInOrder(read: Read, head: AuditHead): AsyncGenerator<readonly AuditRecord[]> {
  const [changes, refusals] = [spanOf(head, "changes"), spanOf(head, "refusals")];
  let pending: readonly AuditRecord[] = [];
  let next = refusals.first;
  /** Refusals behind what has been told of changes. */
  function* refusedUpTo(last: number): Generator<readonly AuditRecord[]> {
    for (;;) {
      if (pending.length === 0) {
        if (next >= refusals.next) return;
        pending = read("refusals", next, Math.min(chunk, refusals.next - next));
        next += chunk;
      }
      const later = pending.findIndex(({ behind = 0 }) => behind > last);
      yield later === -1 ? pending : pending.slice(0, later);
      pending = later === -1 ? [] : pending.slice(later);
      if (later !== -1) return;
    }
  }
  for (let from = changes.first; from < changes.next; from += chunk) {
    const to = Math.min(from + chunk, changes.next);
    const told = read("changes", from, to - from);
    const refused = [...refusedUpTo(to - 1)].flat();
    yield refused.length === 0 ? told : [...told, ...refused].sort(inOrder);
    await setImmediate();
  }
  for (const refused of refusedUpTo(Number.POSITIVE_INFINITY)) {
    yield refused;
    await setImmediate();
  }
}

async function readOn(
  read: Read,
  { ring, first, next }: Span,
  after: number,
  query: AuditQuery,
): Promise<readonly AuditRecord[]> {
  const { limit = usualLimit } = query;
  const found: AuditRecord[] = [];
  for (let from = Math.max(first, after + 1); from < next && found.length < limit; from += chunk) {
    for (const record of read(ring, from, Math.min(chunk, next - from)))
      if (isWanted(query, record)) found.push(record);
    await setImmediate();
  }
  return found.slice(0, limit);
}

async function readNewest(read: Read, { ring, first, next }: Span, query: AuditQuery): Promise<readonly AuditRecord[]> {
  const { limit = usualLimit, since } = query;
  const parts: (readonly AuditRecord[])[] = [];
  let count = 0;
  for (let to = next; to > first && count < limit && next - to < mostLooked; to -= chunk) {
    const from = Math.max(first, to - chunk);
    const records = read(ring, from, to - from);
    const wanted = records.filter((record) => isWanted(query, record));
    parts.push(wanted);
    count += wanted.length;
    if (since !== undefined && records[0] !== undefined && records[0].time < since) break;
    await setImmediate();
  }
  return parts.reverse().flat().slice(-limit);
}
