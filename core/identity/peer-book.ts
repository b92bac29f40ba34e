import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import { digestOf } from "../distribution/node/digest.ts";
import type { IdentityGrant } from "../documents/identity.ts";
import type { CurrentKeys } from "./current-keys.ts";
import type { Ring } from "./gossip-ring.ts";

/**
 * Where everybody is, as one book with a version. Each enrolment that stands says it of the names that it grants; names
 * that nobody enrols, as a process testbed's, are fixed. The book follows from what is durable, so only its version is a
 * record of its own, with a digest: after a restart an unchanged book keeps its version, and nobody is sent it again. A
 * follower that knows any other version, a later one too, gets the whole.
 */
export type PeerEntries = { readonly [name: string]: string };

/** A name in an enrolment that stands. `key`: of who spent its token; null: nobody has. */
export interface GrantedPlace {
  readonly grant: IdentityGrant;
  readonly key: string | null;
}
/** By controller: the UID of its cell, which no later cell of that name has. Of one that an earlier version enrolled nothing is said. */
export type PeerCells = { readonly [name: string]: Uid };
export interface Places {
  readonly peers: PeerEntries;
  readonly cells: PeerCells;
}
/** Record `book`. */
export interface BookRecord {
  readonly version: number;
  readonly digest: readonly number[];
}

/** `<address>`, or with the ports `<address>:<distribution>:<http>`, of its first address; null: it has none. */
export function entryOf({ addresses, ports }: IdentityGrant): string | null {
  const [address] = addresses;
  if (address === undefined) return null;
  return ports === undefined ? address : `${address}:${ports.distribution}:${ports.http}`;
}

/**
 * The whole book. Where several enrolments grant a name, as while a service moves: the one whose key is the name's own by
 * now, before that the place where it was last, and of names that nobody had yet the first one's.
 *
 * @param places by name, in the order of their enrolments' desires
 * @param keyOf the key that a name has, and where it was when it last enrolled; null: nobody has the name yet
 */
export function bookOf(
  places: ReadonlyMap<PeerName, readonly GrantedPlace[]>,
  keyOf: (name: PeerName) => { readonly key: string; readonly entry: string | null } | null,
  fixed: PeerEntries,
): Places {
  const book = new Map<string, string>(Object.entries(fixed));
  const cells = new Map<string, Uid>();
  for (const [name, granted] of places) {
    const has = keyOf(name);
    const found =
      granted.find(({ key }) => key !== null && key === has?.key) ??
      granted.find(({ grant }) => has !== null && entryOf(grant) === has.entry) ??
      granted[0];
    const entry = found === undefined ? null : entryOf(found.grant);
    if (entry !== null) book.set(name, entry);
    if (found?.grant.cellUid !== undefined) cells.set(name, found.grant.cellUid);
  }
  return { peers: sorted(book), cells: sorted(cells) };
}
const sorted = <Value>(entries: ReadonlyMap<string, Value>): { readonly [name: string]: Value } =>
  Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));

/** What is to be recorded of a book, given what was; the record itself when the book is the same. */
export function recordOf(
  { peers, cells }: Places,
  keys: CurrentKeys,
  ring: Ring,
  before: BookRecord | null,
): BookRecord {
  const places = Object.entries(peers).map(([name, entry]): [string, number] => [`${name} ${entry}`, 0]);
  const uids = Object.entries(cells).map(([name, cell]): [string, number] => [`cell ${name} ${cell}`, 0]);
  const current = [...keys].map(([name, { key, sinceMs }]): [string, number] => [`${name} ${key} ${sinceMs}`, 0]);
  // As it was before there were epochs, a book keeps its version.
  const epochs: [string, number][] = ring.newest === 0 ? [] : [[`${ring.oldest} ${ring.send} ${ring.newest}`, 0]];
  const words = digestOf([...places, ...uids, ...current, ...epochs]);
  // Its 64 buckets in one: only whether anything differs matters.
  const digest = [0, 1].map((half) => words.reduce((all, word, at) => (at % 2 === half ? (all ^ word) >>> 0 : all), 0));
  if (before !== null && before.digest.join() === digest.join()) return before;
  return { version: (before?.version ?? 0) + 1, digest };
}
