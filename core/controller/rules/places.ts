import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredPlace, DesiredPlaces } from "../../documents/network/network.ts";
import type { CellPolicy } from "../../documents/vocabulary.ts";
import { sameJson, toJson } from "../../outbox.ts";
import { audiences, connectionsIn, type PlacedInterface } from "../network/policy.ts";
import type { ControllerState } from "../state.ts";
import { placedInterfaces } from "../vm/virtual-machines.ts";
import { hostsAt, identitiesOf, type Said } from "./audiences.ts";
import { takeOver } from "./derived.ts";
import { reaches } from "./directory-desires.ts";
import { notePlaces, settleTold } from "./told-places.ts";

export function settlePlaces(state: ControllerState): void {
  settleForeign(state);
  const { audience, placed } = state.derived;
  if (state.pass.isWhole) {
    const policy = state.derived.policy.get("") ?? { rules: [] };
    takeOver(audience, withForeign(state, audiences(policy, placedInterfaces(state))), sameHosts);
  } else {
    state.pass.whole("neighbours", () => settleNeighbours(state));
    state.pass.each("audiences", placed, (entries) => {
      for (const entry of entries) settleAudience(state, entry);
    });
  }
  state.pass.each("known places", placed, (entries, vm) => settleKnown(state, vm, entries));
  state.pass.always("left places", () => {
    for (const vm of state.audiences.left) if (!placed.has(vm)) settleKnown(state, vm, []);
    state.audiences.left.clear();
    settleTold(state);
  });
}

const sameHosts = (one: readonly HostName[], other: readonly HostName[]): boolean =>
  one.length === other.length && one.every((host, index) => host === other[index]);

function withForeign(
  state: ControllerState,
  found: ReadonlyMap<number, readonly HostName[]>,
): ReadonlyMap<number, readonly HostName[]> {
  const hostOf = new Map(placedInterfaces(state).map((entry) => [entry.identity, entry]));
  return new Map(
    [...found].map(([identity, hosts]) => {
      const entry = hostOf.get(identity);
      const more = entry === undefined ? [] : (state.derived.foreignAudience.get(entry.address) ?? []);
      return [identity, [...new Set([...hosts, ...more])].filter((host) => host !== entry?.host).sort()];
    }),
  );
}

function settleAudience(state: ControllerState, entry: PlacedInterface): void {
  const { hostsOf } = state.audiences;
  const neighbours = state.derived.neighbours.get("");
  const hosts = new Set(state.derived.foreignAudience.get(entry.address) ?? []);
  for (const identity of identitiesOf(entry))
    for (const other of neighbours?.get(identity) ?? [])
      for (const host of hostsAt(hostsOf, state.tracking, other).present.keys()) hosts.add(host);
  hosts.delete(entry.host);
  const now = [...hosts].sort();
  const before = state.derived.audience.peek(entry.identity);
  if (before === undefined || !sameHosts(before, now)) state.derived.audience.set(entry.identity, now);
}

/** Whom rules connect with whom: another host, or another word of the same rules, makes no difference to it. */
function settleNeighbours({ derived, audiences: known }: ControllerState): void {
  const policy = derived.policy.get("");
  const before = known.neighbours;
  if (policy === undefined) derived.neighbours.delete("");
  else if (before?.rules !== policy.rules || before.routers !== policy.routers || !derived.neighbours.has(""))
    derived.neighbours.set("", neighboursOf(policy));
  known.neighbours = policy ?? null;
}
function neighboursOf(policy: CellPolicy): ReadonlyMap<number, ReadonlySet<number>> {
  const of = new Map<number, Set<number>>();
  // Nobody lives there.
  const places = new Set(policy.networks.map(({ identity }) => identity));
  const join = (one: number, other: number): void => {
    const others = of.get(one) ?? new Set<number>();
    of.set(one, others.add(other));
  };
  for (const { from, to } of connectionsIn(policy)) {
    if (places.has(from) || places.has(to)) continue;
    join(from, to);
    join(to, from);
  }
  return of;
}

/**
 * Tells each host of its audience where an interface is, and takes back what was said of it before. Only of hosts that came or
 * went anything is looked up, as long as it stays where it is.
 */
function settleKnown(state: ControllerState, vm: Uid, entries: readonly PlacedInterface[]): void {
  const { said } = state.audiences;
  const { audience } = state.derived;
  const before = said.get(vm) ?? [];
  const now = entries.map(({ address, host, identity, vmIdentity, subnetIdentity }): Said => {
    const place: DesiredPlace = { address, host, identity, vmIdentity, subnetIdentity };
    const known = before.find((each) => each.place.identity === identity)?.place;
    const isSame = known !== undefined && sameJson(toJson(known), toJson(place));
    return { place: isSame ? known : place, hosts: audience.get(identity) ?? [] };
  });
  for (const { place, hosts } of before) {
    const still = now.find((each) => each.place.identity === place.identity);
    if (still?.place === place && still.hosts === hosts) continue;
    for (const host of onlyIn(hosts, still?.hosts ?? [], still?.place.host)) takeBack(state, host, place.identity);
  }
  for (const { place, hosts } of now) {
    const known = before.find((each) => each.place === place)?.hosts;
    if (known === hosts) continue;
    for (const host of onlyIn(hosts, known ?? [])) if (host !== place.host) tell(state, host, place);
  }
  if (now.length === 0) said.delete(vm);
  else said.set(vm, now);
}

/** Of the first list, what the second one lacks, or has as `except` alone; both are sorted. Nothing is made for what is in both. */
function* onlyIn(
  hosts: readonly HostName[],
  others: readonly HostName[],
  except?: HostName,
): Generator<HostName, undefined> {
  let at = 0;
  for (const host of hosts) {
    for (let other = others[at]; other !== undefined && other < host; other = others[at]) at += 1;
    if (others[at] !== host || host === except) yield host;
  }
  return undefined;
}

function takeBack(state: ControllerState, host: HostName, identity: number): void {
  if (state.derived.places.peek(host)?.delete(identity) === true) notePlaces(state, host);
}
function tell(state: ControllerState, host: HostName, place: DesiredPlace): void {
  const known = state.derived.places.peek(host) ?? new Map<number, DesiredPlace>();
  state.derived.places.set(host, known);
  const before = known.get(place.identity);
  if (before !== undefined && sameJson(toJson(before), toJson(place))) return;
  known.set(place.identity, place);
  notePlaces(state, host);
}

/** What other cells' ends may know of this one's, and the other way round. */
function settleForeign(state: ControllerState): void {
  state.pass.whole("foreign places", () => {
    const all = reaches(state);
    const known = new Map<string, Set<HostName>>();
    for (const { address, hosts } of all.flatMap((reach) => reach.hosts)) {
      const there = known.get(address) ?? new Set<HostName>();
      known.set(address, there);
      for (const host of hosts) there.add(host);
    }
    const audience = new Map([...known].map(([address, hosts]) => [address, [...hosts].sort()]));
    takeOver(state.derived.foreignAudience, audience, sameHosts);
    const places = all.length === 0 ? new Map() : foreignPlaces(state, all);
    takeOver(state.derived.foreignPlaces, places, (one, other) => sameJson(toJson({ one }), toJson({ one: other })));
  });
}

/**
 * Where interfaces of other cells are, for each host of this one with an end that may talk to them; null: the directory is of
 * the previous version and does not say.
 */
function foreignPlaces(
  state: ControllerState,
  all: ReturnType<typeof reaches>,
): ReadonlyMap<HostName, DesiredPlaces["foreign"]> {
  const hostOf = new Map(placedInterfaces(state).map(({ address, host }) => [address, host]));
  const places = new Map<HostName, Map<string, Pick<DesiredPlace, "address" | "host">> | null>();
  for (const { hosts, there } of all) {
    for (const { address } of hosts) {
      const host = hostOf.get(address);
      if (host === undefined) continue;
      const known = places.get(host) ?? (places.has(host) ? null : new Map());
      if (known === null || there === undefined) places.set(host, null);
      else {
        for (const place of there) if (place.host !== host) known.set(`${place.address} ${place.host}`, place);
        places.set(host, known);
      }
    }
  }
  const sorted = [...places].map(([host, known]): [HostName, DesiredPlaces["foreign"]] => [
    host,
    known === null ? null : [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, place]) => place),
  ]);
  return new Map(sorted);
}
