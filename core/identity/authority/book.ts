import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Instant } from "../../env.ts";
import { isObject, write } from "../../outbox.ts";
import type { CurrentKeys } from "../current-keys.ts";
import { type BookRecord, bookOf, entryOf, type GrantedPlace, type PeerEntries, recordOf } from "../peer-book.ts";
import { isMachine } from "../presented.ts";
import { rotateGossip } from "./gossip-epochs.ts";
import { publishedKeys, settleKeys } from "./key-records.ts";
import { defaultLifetimeMs, validFromOf } from "./lifetime.ts";
import type { AuthorityState, Book } from "./state.ts";

/* What the authority tells everybody, as it follows from its state: where all are, and which keys are theirs. */

export const selfRecord = "self";
export const bookRecord = "book";
export function newBook(state: AuthorityState, now: Instant): Book {
  const places = new Map<PeerName, GrantedPlace[]>();
  for (const [desire, { document }] of [...state.enrolments].sort(([a], [b]) => (a < b ? -1 : 1)))
    for (const grant of document.grants) {
      const granted = places.get(grant.name) ?? [];
      places.set(grant.name, granted);
      granted.push({ grant, key: state.spent.get(desire)?.key ?? null });
    }
  const had = (name: PeerName) => {
    const identity = state.identities.get(name);
    return identity === undefined ? null : { key: identity.key, entry: entryOf(identity) };
  };
  const book = bookOf(places, had, { ...formerPeers(state), ...state.options.fixedPeers });
  const { keys, changed } = keysNow(state, new Set(places.keys()), now);
  // One that is gone, or another machine in its place: either way somebody has the key of the hosts' datagrams and is none.
  if (changed.some((name) => name.startsWith("host."))) rotateGossip(state.outbox, state.gossip);
  const { ring } = state.gossip;
  const before = (state.outbox.records.get(bookRecord) ?? null) as BookRecord | null;
  const record = recordOf(book, keys, ring, before);
  write(state.outbox, bookRecord, record);
  return { version: record.version, ...book, keys, ring };
}

/** After a loss of the store: where those were whom nobody has had enrolled again yet. Of machines everything is known. */
function formerPeers({ lost }: AuthorityState): PeerEntries {
  return Object.fromEntries(Object.entries(lost ?? {}).filter(([name]) => !isMachine(peerName(name))));
}

function keysNow(
  state: AuthorityState,
  granted: ReadonlySet<PeerName>,
  now: Instant,
): { readonly keys: CurrentKeys; readonly changed: readonly PeerName[] } {
  const { self, lifetimeMs = defaultLifetimeMs } = state.options;
  const identities = new Map([...state.identities].map(([name, { key }]) => [name, key]));
  const own = state.outbox.records.get(selfRecord);
  if (isObject(own) && typeof own.key === "string") identities.set(self, own.key);
  const nowMs = validFromOf(state, now);
  const changed = settleKeys({ outbox: state.outbox, keys: state.keys, identities, granted, nowMs, lifetimeMs });
  return { keys: publishedKeys(state.keys, nowMs, lifetimeMs), changed };
}
