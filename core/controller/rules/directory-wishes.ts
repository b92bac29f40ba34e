import type { NetworkRuleElement } from "../../../model/cell/cell.ts";
import { type Cidr, cidr, type ElementPath, type HostName, type Uid } from "../../../model/cell/identifiers.ts";
import { openings } from "../../../model/check/rule-openings.ts";
import {
  type ActualReach,
  type DesiredPublic,
  type DesiredReach,
  directoryKey,
  type PublicElement,
  type ReachOpening,
} from "../../documents/cells.ts";
import type { DesiredPlace, DesiredPlaces } from "../../documents/network.ts";
import { actualReach, desiredPublic } from "../../documents/readers/cells.ts";
import { actualVolume } from "../../documents/readers/storage.ts";

import { serviceNumber } from "../../service-roles.ts";
import { isManagement, isOnManagement } from "../network/management.ts";
import type { PlacedInterface } from "../network/policy.ts";
import { foreignEnd, longestKey, saveAbroad, wantsOf } from "../references/foreign.ts";
import {
  actualOf,
  type ControllerState,
  desiredNow,
  directory,
  type ElementRecord,
  elementOf,
  keepWish,
  recordAt,
  storageManagerOf,
  type Wishes,
  wish,
} from "../state.ts";
import { seenByOthers } from "../upgrade-follow.ts";
import { placedInterfaces } from "../vm/virtual-machines.ts";
import { trueSizeMiB } from "../volumes/true-size.ts";

/** Everything that should be known at the directory. */
export function wishForDirectory(state: ControllerState, wishes: Wishes): void {
  if (state.options.directory !== true) return;
  const placed = placedInterfaces(state);
  const say = (key: string, document: object): void => {
    if (key.length > longestKey) return;
    if (!state.abroad.has(key)) saveAbroad(state, key, { answer: null });
    wish(wishes, directory, key, document);
  };
  const seenAs = seenByOthers(state);
  for (const record of state.elements.values()) {
    const element = elementOf(state, record);
    if (element === undefined) continue;
    const shows = element.public ? shownOf(state, record) : null;
    if (shows !== null) {
      const { uid, path } = record;
      const seen = seenAs(uid, path);
      if (seen === uid) say(directoryKey.public(uid), { uid, path, shows } satisfies DesiredPublic);
      else if (seen !== null) keepWish(state, wishes, directory, directoryKey.public(seen));
    }
    for (const want of wantsOf(element)) say(directoryKey.want(want), want);
    const reach = element.type === "NetworkRule" ? reachDocument(state, record.uid, element, placed) : null;
    if (reach !== null) say(directoryKey.reach(record.uid), reach);
  }
}

function shownOf(state: ControllerState, record: ElementRecord): PublicElement | null {
  if (record.type === "Subnet" || record.type === "VM" || record.type === "VirtualInterface") {
    return { kind: "addresses", type: record.type, networks: networksOf(state, record) };
  }
  if (record.type !== "Volume" && record.type !== "VolumeCopy") return null;
  const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${record.uid}`);
  // After a restart, what was said before holds until the Storage Manager has spoken.
  const before = desiredPublic.of(desiredNow(state, directory, directoryKey.public(record.uid)));
  if (actual === undefined && before !== null) return before.shows;
  const manager = serviceNumber(storageManagerOf(state));
  const more = manager === 1 ? {} : { manager };
  const [sizeMiB, server] = [trueSizeMiB(actual), actual?.server ?? null];
  return { kind: "volume", type: record.type, sizeMiB, server, ...more };
}

/** What an element with addresses stands for in rules of other cells. */
function networksOf(state: ControllerState, record: ElementRecord): readonly Cidr[] {
  // The management network is nobody else's to name.
  if (record.type === "Subnet") return record.range === null || isManagement(state, record) ? [] : [record.range.cidr];
  return [...state.elements.values()].flatMap((each) => {
    const element = elementOf(state, each);
    if (element?.type !== "VirtualInterface" || each.allocation === null || isOnManagement(state, each)) return [];
    const isOwn = each.uid === record.uid || recordAt(state, element.vm)?.uid === record.uid;
    return isOwn ? [cidr(`${each.allocation.address}/32`)] : [];
  });
}

/** Null for a rule without an end in another cell, and for one whose other end has no addresses to be reached at. */
function reachDocument(
  state: ControllerState,
  uid: Uid,
  rule: NetworkRuleElement,
  placed: readonly PlacedInterface[],
): DesiredReach | null {
  const end = foreignEnd(rule);
  const isFirst = end === rule.address1;
  const own = isFirst ? rule.address2 : rule.address1;
  const record = own.kind === "element" ? recordAt(state, own.path) : undefined;
  // A controller is reached from inside its cell only.
  if (end === null || record === undefined) return null;
  const { identity } = record;
  return {
    uid,
    other: { domain: end.domain, path: end.path },
    networks: networksOf(state, record),
    placed: placed
      .filter((each) => [each.identity, each.vmIdentity, each.subnetIdentity].includes(identity))
      .map(({ address, host }) => ({ address, host })),
    openings: openings(rule).map(
      ({ direction, sourcePorts, ports }): ReachOpening => ({
        direction: (direction === "1to2") === isFirst ? "in" : "out",
        protocol: rule.protocol,
        sourcePorts,
        ports,
      }),
    ),
  };
}

/** Hosts of other cells that may know of an interface's place: those with an end that both cells' rules let it talk to. */
export function withForeignAudiences(
  state: ControllerState,
  audiences: ReadonlyMap<ElementPath, readonly HostName[]>,
): ReadonlyMap<ElementPath, readonly HostName[]> {
  const known = new Map<string, Set<HostName>>();
  for (const reach of reaches(state)) {
    for (const { address, hosts } of reach.hosts) {
      const all = known.get(address) ?? new Set<HostName>();
      known.set(address, all);
      for (const host of hosts) all.add(host);
    }
  }
  if (known.size === 0) return audiences;
  const widened = new Map(audiences);
  for (const { path, address, host: own } of placedInterfaces(state)) {
    const more = known.get(address);
    if (more === undefined) continue;
    const all = new Set([...(audiences.get(path) ?? []), ...more]);
    all.delete(own);
    widened.set(path, [...all].sort());
  }
  return widened;
}
/**
 * Where interfaces of other cells are, for each host of this one with an end that may talk to them; null: the directory is of
 * the previous version and does not say.
 */
export function foreignPlaces(state: ControllerState): ReadonlyMap<HostName, DesiredPlaces["foreign"]> {
  const hostOf = new Map(placedInterfaces(state).map(({ address, host }) => [address, host]));
  const places = new Map<HostName, Map<string, Pick<DesiredPlace, "address" | "host">> | null>();
  for (const { hosts, there } of reaches(state)) {
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
/** Hosts of other cells that are asked for locations. */
export const foreignHosts = (state: ControllerState): ReadonlySet<HostName> =>
  new Set(reaches(state).flatMap(({ hosts }) => hosts.flatMap((each) => each.hosts)));

const reaches = (state: ControllerState): readonly ActualReach[] =>
  [...state.abroad].flatMap(([key, { answer }]) =>
    key.startsWith(directoryKey.reach("" as Uid)) && answer !== null ? (actualReach.of(answer) ?? []) : [],
  );
