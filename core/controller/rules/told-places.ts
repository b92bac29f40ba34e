import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Outbox } from "../../outbox.ts";
import type { Derived } from "./derived.ts";

/**
 * When hosts are told where interfaces are. Each VM that starts is news for every host with an endpoint that a rule connects
 * with it, and in a large cell that is all of them: a host was told its list of a thousand places anew for each one that came.
 *
 * So news goes out in turns. The first goes at once, and with it whatever a host needs that knows nothing yet; what comes up
 * before the next turn goes with that, one word for all of it. A turn takes so much and no more, lest somebody who asks
 * meanwhile waits for it; whoever has waited longest in the order of names has the next one. An idle cloud waits for nothing, and a busy one
 * is told less often the larger it is.
 *
 * Rejected: one document for each place (as many words as before, and another protocol with hosts of the previous version); a
 * longer pause for all (a small cell would wait for what costs nothing there).
 */
export const turnTimer = "places";
const turnMs = 20;
/** Places that are written out in a turn; one host's list goes as a whole. */
const mostPlaces = 4_000;
/** What a VM's document, in which its interface's audience stands, counts for. */
const perAudience = 32;

export interface Turns {
  readonly hosts: Turn<HostName>;
  readonly audiences: Turn<number>;
  /** The timer of the next turn runs. */
  isSet: boolean;
}

/** Of a controller. */
export interface Teller {
  readonly turns: Turns;
  readonly derived: Derived;
  readonly outbox: Outbox;
}

/** News of one kind. */
class Turn<Key extends string | number> {
  /** Whoever has been told something, and has to wait for what is new. */
  readonly #waiting = new Set<Key>();
  /** Whoever knows nothing yet. */
  readonly #first = new Set<Key>();
  #last: Key | null = null;

  note(key: Key, isFirst: boolean): void {
    (isFirst ? this.#first : this.#waiting).add(key);
  }
  forget(key: Key): void {
    this.#first.delete(key);
    this.#waiting.delete(key);
  }
  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }
  takeFirst(): readonly Key[] {
    if (this.#first.size === 0) return [];
    const keys = [...this.#first];
    for (const key of keys) this.forget(key);
    return keys;
  }
  /** Those whose turn it is, going on behind the last one, until `cost` has reached `most`. */
  take(most: number, cost: (key: Key) => number): readonly Key[] {
    if (this.#waiting.size === 0) return [];
    const sorted = [...this.#waiting].sort((one, other) => (one < other ? -1 : 1));
    const last = this.#last;
    const at = last === null ? 0 : sorted.findIndex((key) => key > last);
    const taken: Key[] = [];
    let spent = 0;
    for (const key of at < 0 ? sorted : [...sorted.slice(at), ...sorted.slice(0, at)]) {
      if (spent >= most) break;
      spent += cost(key);
      taken.push(key);
      this.#waiting.delete(key);
      this.#last = key;
    }
    return taken;
  }
}

const isNothing = (told: readonly unknown[] | undefined): boolean => (told?.length ?? 0) === 0;

export function createTurns({ audience, toldAudience, toldPlaces }: Derived): Turns {
  const turns: Turns = { hosts: new Turn(), audiences: new Turn(), isSet: false };
  audience.watch((identity, _before, after) => {
    if (after !== undefined) turns.audiences.note(identity, isNothing(toldAudience.peek(identity)));
    else {
      turns.audiences.forget(identity);
      toldAudience.delete(identity);
    }
  });
  toldPlaces.watch((host, _before, after) => void (after === undefined && turns.hosts.forget(host)));
  return turns;
}

/** What a host may know has changed. */
export const notePlaces = ({ turns, derived }: Teller, host: HostName): void =>
  turns.hosts.note(host, isNothing(derived.toldPlaces.peek(host)));

/** The next turn has come. */
export function turnDue({ turns }: Teller): void {
  turns.isSet = false;
}

/** Tells whose turn it is, for the steps of this pass that rest on it. */
export function settleTold(state: Teller): void {
  const { turns, derived } = state;
  for (const host of turns.hosts.takeFirst()) tellPlaces(derived, host);
  for (const identity of turns.audiences.takeFirst()) tellAudience(derived, identity);
  if (turns.isSet || (turns.hosts.isEmpty && turns.audiences.isEmpty)) return;
  for (const host of turns.hosts.take(mostPlaces, (each) => derived.places.peek(each)?.size ?? 0))
    tellPlaces(derived, host);
  for (const identity of turns.audiences.take(mostPlaces, () => perAudience)) tellAudience(derived, identity);
  turns.isSet = true;
  state.outbox.effects.push({ kind: "timer", name: turnTimer, afterMs: turnMs });
}

function tellAudience({ audience, toldAudience }: Derived, identity: number): void {
  const hosts = audience.peek(identity);
  if (hosts !== undefined) toldAudience.set(identity, hosts);
}
function tellPlaces({ places, toldPlaces }: Derived, host: HostName): void {
  const known = places.peek(host);
  // In the order of identities where an address is there twice.
  const own = [...(known ?? [])].sort(([one], [other]) => one - other).map(([, place]) => place);
  toldPlaces.set(
    host,
    own.sort((a, b) => (a.address < b.address ? -1 : 1)),
  );
}
