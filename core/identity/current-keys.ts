import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { isoTime } from "../../model/cell/iso-time.ts";
import type { Json } from "../../model/json/json.ts";
import { type Document, dictionary, document, nullable, object, wallMs } from "../../model/json/reader.ts";
import { sha256 } from "../documents/readers/values.ts";
import { isPinnable, type Presented } from "./presented.ts";

/**
 * Which key a name has now, told to everybody beside where everybody is: a certificate is good for a day, and within it the
 * name may have got another key, or have ended (decision 58).
 *
 * A certificate is refused when it is over another key than the name's *and* the authority issued it before the name got
 * that key. The authority issues nothing over a key that was replaced, so every certificate of its later ones begins later.
 * By that a book that is old, whether a follower missed a newer one or the authority was set back, refuses nobody who
 * enrolled since: no order of messages, versions or restores locks a valid holder out. Both dates are the authority's own,
 * so no two clocks are compared.
 *
 * Rejected: the key alone counts (an old book locks out whoever is newer, for good where the authority was set back); a list
 * of revoked certificates (it grows with each renewal, and an authority that was set back has forgotten it).
 */
export interface CurrentKey {
  /** Fingerprint; null: nobody has the name. */
  readonly key: string | null;
  /** What begins up to then, in milliseconds since 1970, and is over another key is refused. */
  readonly sinceMs: number;
}
export type CurrentKeys = ReadonlyMap<PeerName, CurrentKey>;

/** The previous version reads no book of more. */
const mostKeys = 4096;
/** Of them, of machines and the root controller, whose keys are pinned; more where there is room. */
const mostPinned = 3072;
/** What a book no longer has is kept for so long, of who is pinned for good: certificates of before have ended by then. */
const keptMs = 3 * 86_400_000;

const nameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const reader: Document<{ readonly keys: Readonly<Record<string, CurrentKey>> }> = document(
  object({ keys: dictionary(object<CurrentKey>({ key: nullable(sha256), sinceMs: wallMs }), nameForm, mostKeys) }),
);

/** Null for what is no such object. Absent, as the previous version has it: of nobody. */
export function readCurrentKeys(value: Json | undefined): CurrentKeys | null {
  if (value === undefined) return new Map();
  const read = reader.of({ keys: value });
  return read === null ? null : new Map(Object.entries(read.keys).map(([name, each]) => [peerName(name), each]));
}

/** Why whoever holds this certificate is not the one that has its name now, as a sentence; null: nothing says so. */
export function supersededFault(shown: Presented | null, current: CurrentKeys, nowMs: number): string | null {
  const name = shown?.name ?? null;
  const has = name === null ? undefined : current.get(name);
  if (shown === null || has === undefined || has.key === shown.key) return null;
  // From the future by this machine's clock: one of the two clocks is wrong, and nothing rests on clocks.
  if (has.sinceMs > nowMs || shown.validFromMs > has.sinceMs) return null;
  return has.key === null
    ? `"${name}" was taken out of the installation after this certificate was issued, at ${isoTime(shown.validFromMs)}`
    : `"${name}" has another key since, and this certificate was issued before, at ${isoTime(shown.validFromMs)}: ` +
        "whoever shows it had the name earlier, or its key was copied";
}

/** What is to be believed with a further book: of each name what came later, whichever of the two says it. */
export function mergeKeys(own: CurrentKeys, book: CurrentKeys, nowMs: number): CurrentKeys {
  const merged = new Map<PeerName, CurrentKey>(book);
  for (const [name, kept] of own) {
    const said = book.get(name);
    const isForgotten = !isPinnable(name) && kept.sinceMs + keptMs < nowMs;
    const isOver = said === undefined ? isForgotten : said.sinceMs >= kept.sinceMs;
    if (!isOver && kept.sinceMs <= nowMs) merged.set(name, kept);
  }
  return bounded(merged);
}

const newest = (keys: readonly (readonly [PeerName, CurrentKey])[], most: number): typeof keys =>
  keys.length <= most ? keys : [...keys].sort(([, a], [, b]) => b.sinceMs - a.sinceMs).slice(0, most);

/**
 * The newest ones, where there are more than a book may have: names of cells, which come and go, take nothing from those of
 * machines and the root controller.
 */
export function bounded(keys: CurrentKeys): CurrentKeys {
  if (keys.size <= mostKeys) return keys;
  const all = [...keys];
  const others = all.filter(([name]) => !isPinnable(name));
  const machines = all.filter(([name]) => isPinnable(name));
  const pinned = newest(machines, Math.max(mostPinned, mostKeys - others.length));
  return new Map([...pinned, ...newest(others, mostKeys - pinned.length)]);
}

/** Sorted, so that equal ones are equal as text. */
export const writeCurrentKeys = (keys: CurrentKeys): Readonly<Record<string, CurrentKey>> =>
  Object.fromEntries(
    [...keys].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, { key, sinceMs }]) => [name, { key, sinceMs }]),
  );
