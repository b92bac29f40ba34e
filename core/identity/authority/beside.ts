import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { isObject, log, write } from "../../outbox.ts";
import type { PeerEntries } from "../peer-book.ts";
import { bookRecord, selfRecord } from "./book.ts";
import { gossipRecord } from "./gossip-epochs.ts";
import { readEnrolment } from "./grants.ts";
import type { Beside } from "./requests.ts";
import type { AuthorityOptions, AuthorityState } from "./state.ts";

/*
 * What an operator had enrolled is in the authority's store and in nobody else's. A store that is blank beside the key of an authority that
 * has run was lost; to begin with it anew would take every machine out of the book of peers that everybody follows, and refuse its renewals. So
 * these records lie in a file beside the key as well, with the last book. It is written before anybody is answered or told, and it is
 * the mark, too: where it is there and the store is blank, or has an earlier book, the store was lost or is older.
 *
 * The authority then goes on with these records, and says that its store was lost until an operator has looked and lets it count. What
 * controllers desire they say again; until the operator's word nobody whom one of them had enrolled is taken out of the book. Its services show
 * their tokens again, as they do whenever a renewal is refused.
 *
 * Rejected: a mark alone, with machines let in by the certificates that they have. A certificate says nothing of the enrolment that an operator takes
 * back later, and a machine that was removed today has one as well.
 */
const lostRecord = "lost";

/** Records that lie beside: the operator's enrolments, who spent their tokens, the identities that they grant; and the last book. */
function ownOf(records: ReadonlyMap<string, Json>, self: PeerName): (key: string) => boolean {
  const own = actualKey(self, "");
  const grants = [...records].flatMap(([key, value]) =>
    key.startsWith("enrolment/") ? (readEnrolment(value)?.grants ?? []) : [],
  );
  const names = new Set(grants.map(({ name }) => `identity/${name}`));
  return (key) =>
    key === bookRecord ||
    key === gossipRecord ||
    key.startsWith("enrolment/") ||
    key.startsWith(`spent/${own}`) ||
    names.has(key);
}

export function besideOf({ outbox, options, book, lost }: AuthorityState): Beside {
  const isOwn = ownOf(outbox.records, options.self);
  const records = [...outbox.records].filter(([key]) => isOwn(key)).sort(([a], [b]) => (a < b ? -1 : 1));
  return { records: Object.fromEntries(records), peers: book?.peers ?? lost ?? {} };
}

/** Of the last book; a store has each version before the file does. */
const versionOf = (book: Json | undefined): number =>
  isObject(book) && typeof book.version === "number" ? book.version : 0;

/** The records of a store: of one that was lost, or is older, as what lies beside has them. */
export function recordsWith(
  records: ReadonlyMap<string, Json>,
  { self, beside }: Pick<AuthorityOptions, "self" | "beside">,
): { readonly records: ReadonlyMap<string, Json>; readonly isLost: boolean } {
  const isBlank = !records.has(selfRecord);
  const isWhole = beside === undefined || versionOf(beside.records[bookRecord]) <= versionOf(records.get(bookRecord));
  if (beside === undefined || (!isBlank && isWhole)) return { records, isLost: false };
  const isOwn = ownOf(records, self);
  const others = [...records].filter(([key]) => isBlank || !isOwn(key));
  return {
    records: new Map([...others, ...Object.entries(beside.records), [lostRecord, { peers: beside.peers }]]),
    isLost: true,
  };
}

/** The book of before a loss that no operator has looked at; null: nothing was lost. */
export function lostIn(records: ReadonlyMap<string, Json>): PeerEntries | null {
  const record = records.get(lostRecord);
  return isObject(record) && isObject(record.peers) ? (record.peers as PeerEntries) : null;
}

/** At a start, before anything follows from them. */
export function keepFound(state: AuthorityState): void {
  const { found, outbox } = state;
  if (found.size === 0) return;
  const isBlank = !outbox.records.has(selfRecord);
  for (const key of [...outbox.records.keys()]) if (!found.has(key)) write(outbox, key, null);
  for (const [key, value] of found) write(outbox, key, value as object);
  const enrolments = [...found.keys()].filter((key) => key.startsWith("enrolment/")).length;
  const why = `it was ${isBlank ? "blank" : "older"} beside the key of an authority that has run; look with \`cells orphans list\``;
  log(outbox, "store/lost", { enrolments, why });
  found.clear();
}

/** Nothing could be read of what lay beside: everybody keeps the book of before until an operator has looked. */
export const knowsNobody = ({ lost }: AuthorityState): boolean => lost !== null && Object.keys(lost).length === 0;

/** An operator has looked. @returns whether there was anything to look at */
export function release(state: AuthorityState): boolean {
  if (state.lost === null) return false;
  state.lost = null;
  state.book = null;
  write(state.outbox, lostRecord, null);
  return true;
}
