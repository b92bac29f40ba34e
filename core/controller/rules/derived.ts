import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredPlace, DesiredPlaces } from "../../documents/network/network.ts";
import type { CellPolicy } from "../../documents/vocabulary.ts";
import { TrackedMap, type Tracking } from "../changes/tracked.ts";
import type { PlacedInterface, PolicyInterface, PolicySubnet } from "../network/policy.ts";
import type { RulesAtHost } from "../records.ts";

/** What steps of a pass work out for later ones. It changes only where it says something else: who rests on it is not disturbed. */
export interface Derived {
  readonly interfaces: TrackedMap<Uid, PolicyInterface>;
  readonly subnets: TrackedMap<Uid, PolicySubnet>;
  /** Its one value, under "": that of the present model. */
  readonly policy: TrackedMap<"", CellPolicy>;
  /** Its one value, under "": by identity, those that a rule connects with it, of whoever may live somewhere. */
  readonly neighbours: TrackedMap<"", ReadonlyMap<number, ReadonlySet<number>>>;
  /** By VM. */
  readonly placed: TrackedMap<Uid, readonly PlacedInterface[]>;
  /** By an interface's identity, the other hosts that may know where it is. */
  readonly audience: TrackedMap<number, readonly HostName[]>;
  /** By host, what it may know: by an interface's identity. */
  readonly places: TrackedMap<HostName, Map<number, DesiredPlace>>;
  /** As hosts were told last, the audience in the document of the interface's VM; the same, or on its way there (told-places.ts). */
  readonly toldAudience: TrackedMap<number, readonly HostName[]>;
  readonly toldPlaces: TrackedMap<HostName, readonly DesiredPlace[]>;
  /** Of other cells, by host of this one. */
  readonly foreignPlaces: TrackedMap<HostName, DesiredPlaces["foreign"]>;
  /** By address of this cell, hosts of other cells that may know where it is. */
  readonly foreignAudience: TrackedMap<string, readonly HostName[]>;
  readonly rulesAt: TrackedMap<HostName, RulesAtHost>;
  /** By version, the hosts that are not that far, in their order; none is kept as nothing. A rule rests on its own version's. */
  readonly behind: TrackedMap<number, readonly RulesAtHost[]>;
  /** Its one value, under "": by path of a rule, the version in which what comes of it changed last; a number: of all rules. */
  readonly since: TrackedMap<"", number | Readonly<Record<string, number>>>;
  /** Hosts whose rules count and that were not heard of since the start. */
  readonly unheard: TrackedMap<HostName, true>;
  /** Hosts of `rulesAt` that may run what this store has forgotten. */
  mayRun: ReadonlySet<HostName>;
}

export function createDerived(tracking: Tracking): Derived {
  const map = <Key, Value>(): TrackedMap<Key, Value> => new TrackedMap(tracking);
  return {
    interfaces: map(),
    subnets: map(),
    policy: map(),
    neighbours: map(),
    placed: map(),
    audience: map(),
    places: map(),
    toldAudience: map(),
    toldPlaces: map(),
    foreignPlaces: map(),
    foreignAudience: map(),
    rulesAt: map(),
    behind: map(),
    since: map(),
    unheard: map(),
    mayRun: new Set(),
  };
}

/** Takes over what was worked out anew as a whole. */
export function takeOver<Key, Value>(
  known: TrackedMap<Key, Value>,
  now: ReadonlyMap<Key, Value>,
  isSame: (one: Value, other: Value) => boolean,
): void {
  for (const key of [...known.keys()]) if (!now.has(key)) known.delete(key);
  for (const [key, value] of now) {
    const before = known.peek(key);
    if (before === undefined || !isSame(before, value)) known.set(key, value);
  }
}
