import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { desire, type Outbox } from "../../outbox.ts";
import { TrackedMap, type Tracking } from "./tracked.ts";

/** The documents that should be desired now. */
export interface Desires {
  /** The last one for a key counts. */
  add(peer: PeerName, key: string, document: Json): void;
  /** What was desired so far. */
  get(peer: PeerName, key: string): Json | undefined;
}

/** Who desires: the step of a pass, and within it the element. Later ones overrule earlier ones. */
export interface Place {
  readonly rank: number;
  order: number;
}

/** One desire of one place. */
export interface Entry {
  readonly place: Place;
  /** Among those of one place. */
  readonly sequence: number;
  readonly peer: PeerName;
  readonly key: string;
  document: Json;
}

const byPlace = (one: Entry, other: Entry): number =>
  one.place.rank - other.place.rank || one.place.order - other.place.order || one.sequence - other.sequence;

/**
 * All desires, kept from pass to pass: each with who made it, so that who desires anew takes back what it desired before. Only
 * documents that something was said about since the last time are compared with what is desired.
 */
export class DesireBook {
  /** What counts, for those who ask for it. */
  readonly #tracking: Tracking;
  readonly #counts = new Map<PeerName, TrackedMap<string, Json>>();
  readonly #entries = new Map<PeerName, Map<string, readonly Entry[]>>();
  /** Entries by peer and rank: which peer comes first is seen by the first step that desires anything there. */
  readonly #ranks = new Map<PeerName, number[]>();
  readonly #touched = new Map<PeerName, Set<string>>();

  constructor(tracking: Tracking, outbox: Outbox) {
    this.#tracking = tracking;
    // What is desired already and nobody wants any more is to be taken back.
    for (const [peer, documents] of outbox.desired) for (const key of documents.keys()) this.#touch(peer, key);
  }

  /** @returns what was desired now, to be handed in next time; `before`: what was last time */
  collect(place: Place, before: readonly Entry[], work: (desires: Desires) => void): readonly Entry[] {
    const now: Entry[] = [];
    const own = new Map<string, Entry>();
    work({
      add: (peer, key, document) => {
        const name = `${peer} ${key}`;
        const same = own.get(name);
        if (same !== undefined) {
          same.document = document;
          return;
        }
        const entry = { place, sequence: now.length, peer, key, document };
        now.push(entry);
        own.set(name, entry);
      },
      get: (peer, key) => own.get(`${peer} ${key}`)?.document ?? this.#below(place, peer, key),
    });
    if (before.length === 0 && now.length === 0) return now;
    for (const entry of before) this.#remove(entry);
    for (const entry of now) this.#insert(entry);
    for (const { peer, key } of [...before, ...now]) this.#settle(peer, key);
    return now;
  }
  drop(before: readonly Entry[]): void {
    for (const entry of before) this.#remove(entry);
    for (const { peer, key } of before) this.#settle(peer, key);
  }

  get(peer: PeerName, key: string): Json | undefined {
    return this.#countsAt(peer).get(key);
  }
  #countsAt(peer: PeerName): TrackedMap<string, Json> {
    let counts = this.#counts.get(peer);
    if (counts === undefined) {
      counts = new TrackedMap(this.#tracking);
      this.#counts.set(peer, counts);
    }
    return counts;
  }

  #below(place: Place, peer: PeerName, key: string): Json | undefined {
    // Whoever reads it has to run again when it changes.
    this.#countsAt(peer).get(key);
    const entries = this.#entries.get(peer)?.get(key) ?? [];
    return entries.findLast((entry) => entry.place.rank < place.rank)?.document;
  }
  #insert(entry: Entry): void {
    const { peer, key, place } = entry;
    const documents = this.#entries.get(peer) ?? new Map<string, readonly Entry[]>();
    this.#entries.set(peer, documents);
    const others = documents.get(key);
    documents.set(key, others === undefined ? [entry] : [...others, entry].sort(byPlace));
    const ranks = this.#ranks.get(peer) ?? [];
    this.#ranks.set(peer, ranks);
    ranks[place.rank] = (ranks[place.rank] ?? 0) + 1;
  }
  #remove(entry: Entry): void {
    const { peer, key, place } = entry;
    const documents = this.#entries.get(peer);
    const left = documents?.get(key)?.filter((other) => other !== entry) ?? [];
    if (left.length === 0) documents?.delete(key);
    else documents?.set(key, left);
    const ranks = this.#ranks.get(peer) ?? [];
    ranks[place.rank] = (ranks[place.rank] ?? 0) - 1;
  }
  #settle(peer: PeerName, key: string): void {
    const document = this.#entries.get(peer)?.get(key)?.at(-1)?.document;
    const counts = this.#countsAt(peer);
    if (document === undefined) counts.delete(key);
    else counts.set(key, document);
    this.#touch(peer, key);
  }
  #touch(peer: PeerName, key: string): void {
    const keys = this.#touched.get(peer) ?? new Set();
    this.#touched.set(peer, keys.add(key));
  }

  /** Desires what is desired, and takes back the rest, of all that something was said about. Stops after each document. */
  *place(outbox: Outbox): Generator<void, void> {
    const touched = new Map(this.#touched);
    this.#touched.clear();
    const ranked = [...touched.keys()].map((peer) => ({ peer, first: this.#firstRank(peer) })).sort(byFirstRank);
    for (const { peer } of ranked) {
      const entries = [...(touched.get(peer) ?? [])].flatMap((key) => this.#entries.get(peer)?.get(key)?.[0] ?? []);
      for (const { key } of entries.sort(byPlace)) {
        desire(outbox, peer, key, this.get(peer, key) as object);
        yield;
      }
    }
    for (const [peer, keys] of touched)
      for (const key of keys) if (!this.#has(peer, key)) outbox.tooLong.get(peer)?.delete(key);
    // Not each peer that has something is looked at for the one that something was said about.
    const peers = touched.size > 1 ? [...outbox.desired.keys()].filter((peer) => touched.has(peer)) : touched.keys();
    for (const peer of peers) {
      const documents = outbox.desired.get(peer);
      if (documents === undefined) continue;
      const gone = [...(touched.get(peer) ?? [])].filter((key) => !this.#has(peer, key) && documents.has(key));
      // In the order in which they came to be desired.
      const ordered = gone.length < 2 ? gone : [...documents.keys()].filter(isIn(new Set(gone)));
      for (const key of ordered) {
        desire(outbox, peer, key, null);
        yield;
      }
    }
  }
  #has(peer: PeerName, key: string): boolean {
    return this.#entries.get(peer)?.has(key) === true;
  }
  #firstRank(peer: PeerName): number {
    const first = this.#ranks.get(peer)?.findIndex((count) => count > 0) ?? -1;
    return first < 0 ? Number.POSITIVE_INFINITY : first;
  }
}
const isIn =
  <Item>(items: ReadonlySet<Item>) =>
  (item: Item): boolean =>
    items.has(item);
const byFirstRank = (
  one: { readonly peer: PeerName; readonly first: number },
  other: { readonly peer: PeerName; readonly first: number },
): number => one.first - other.first || (one.peer < other.peer ? -1 : 1);

/** The desires of one pass over everything, collected anew. */
export class AllDesires implements Desires {
  readonly #documents = new Map<PeerName, Map<string, Json>>();
  /** By peer, the first step that desires anything there. */
  readonly #first = new Map<PeerName, number>();
  rank = 0;

  add(peer: PeerName, key: string, document: Json): void {
    const documents = this.#documents.get(peer) ?? new Map<string, Json>();
    this.#documents.set(peer, documents.set(key, document));
    if (!this.#first.has(peer)) this.#first.set(peer, this.rank);
  }
  get(peer: PeerName, key: string): Json | undefined {
    return this.#documents.get(peer)?.get(key);
  }

  place(outbox: Outbox): void {
    const ranked = [...this.#documents].map(([peer, documents]) => ({
      peer,
      documents,
      first: this.#first.get(peer) ?? 0,
    }));
    for (const { peer, documents } of ranked.sort(byFirstRank))
      for (const [key, document] of documents) desire(outbox, peer, key, document as object);
    for (const [peer, keys] of outbox.tooLong)
      for (const key of keys.keys()) if (this.get(peer, key) === undefined) keys.delete(key);
    for (const [peer, documents] of outbox.desired)
      for (const key of [...documents.keys()]) if (this.get(peer, key) === undefined) desire(outbox, peer, key, null);
  }
}
