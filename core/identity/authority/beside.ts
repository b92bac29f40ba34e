import type { Json } from "../../../model/json/json.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { isObject, log, write } from "../../outbox.ts";
import type { PeerEntries } from "../peer-book.ts";
import { bookRecord, selfRecord } from "./book.ts";
import { gossipRecord } from "./gossip-epochs.ts";
import type { Beside } from "./requests.ts";
import type { AuthorityState } from "./state.ts";

/*
 * What an operator had enrolled is in the authority's store and in nobody else's. A store that is blank beside the key of an authority that
 * has run was lost; to begin with it anew would take every machine out of the book of peers that everybody follows, and refuse its renewals. So
 * these records lie in a file beside the key as well, with the last book. It is written before anybody is answered or told, and it is
 * the mark, too: where it is there and the store is blank, the store was lost.
 *
 * The authority then goes on with these records, and says that its store was lost until an operator has looked and lets it count. What
 * controllers wish for they say again; until the operator's word nobody whom one of them had enrolled is taken out of the book. Its services show
 * their tokens again, as they do whenever a renewal is refused.
 *
 * Rejected: a mark alone, with machines let in by the certificates that they have. A certificate says nothing of the enrolment that an operator takes
 * back later, and a machine that was removed today has one as well.
 */
const lostRecord = "lost";

/** What lies beside: the operator's enrolments, who spent their tokens, the identities that they grant; and the last book. */
export function besideOf({ outbox, options, enrolments, book, lost }: AuthorityState): Beside {
  const own = actualKey(options.self, "");
  const names = new Set<string>();
  for (const { client, document } of enrolments.values())
    if (client === options.self) for (const { name } of document.grants) names.add(name);
  const isOwn = (key: string): boolean =>
    key === bookRecord ||
    key === gossipRecord ||
    key.startsWith("enrolment/") ||
    key.startsWith(`spent/${own}`) ||
    (key.startsWith("identity/") && names.has(key.slice("identity/".length)));
  const records = Object.fromEntries(
    [...outbox.records].filter(([key]) => isOwn(key)).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  return { records, peers: book?.peers ?? lost ?? {} };
}

/** The records of a store: of one that was lost what lies beside. */
export function recordsWith(
  records: ReadonlyMap<string, Json>,
  beside: Beside | undefined,
): { readonly records: ReadonlyMap<string, Json>; readonly isLost: boolean } {
  if (beside === undefined || records.has(selfRecord)) return { records, isLost: false };
  const found: [string, Json][] = [...Object.entries(beside.records), [lostRecord, { peers: beside.peers }]];
  return { records: new Map([...found, ...records]), isLost: true };
}

/** The book of before a loss that no operator has looked at; null: nothing was lost. */
export function lostIn(records: ReadonlyMap<string, Json>): PeerEntries | null {
  const record = records.get(lostRecord);
  return isObject(record) && isObject(record.peers) ? (record.peers as PeerEntries) : null;
}

/** At a start, before anything follows from them. */
export function keepFound(state: AuthorityState): void {
  for (const [key, value] of state.found) write(state.outbox, key, value as object);
  if (state.found.size === 0) return;
  const enrolments = [...state.found.keys()].filter((key) => key.startsWith("enrolment/")).length;
  const why = "it was blank beside the key of an authority that has run; look with `cells orphans list`";
  log(state.outbox, "store/lost", { enrolments, why });
  state.found.clear();
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
