import type { HostName, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type HostUse, noteTaken, type Reservation, release, reserve, UsageTable } from "../candidate.ts";
import { createIndex, ranksOf, refresh } from "../index/classes.ts";
import { OwnerTable } from "../index/owner-table.ts";
import { knownVms } from "../index/vms.ts";
import { askerOf } from "../owners.ts";
import type { KnownGroups, PlacerState } from "../state.ts";
import { HostTable } from "../tables.ts";
import type { Sliced } from "./sliced.ts";

/** So many VMs are copied in the time in which one host is looked at. */
const vmsOfUnit = 3;

/**
 * The same hosts and places once more, to be changed in thought: nothing of it reaches the Placer itself. It is made in slices, between which
 * VMs are placed: hosts of which something else is known meanwhile are taken anew, until there are none, so that in the end it is what
 * was so at one moment.
 *
 * @param isIndexed so that a host is found in it by looking at few
 */
export function* thought(state: PlacerState, isIndexed = false): Sliced<PlacerState> {
  const { wanted, reservations, places } = knownVms();
  const copy: PlacerState = {
    ...state,
    hosts: new HostTable(),
    usage: new UsageTable(places),
    index: createIndex(ranksIn(state)),
    wanted,
    reservations,
    owners: new OwnerTable(state.owners),
    groups: new Map(state.groups),
    groupsByName: new Map([...state.groupsByName].map(([name, named]) => [name, copyOf(named)])),
  };
  const { accountOf } = askerOf(copy, nobodys);
  const changed = new Set<HostName>();
  try {
    [state.hosts.since, state.usage.since] = [changed, changed];
    for (const { host } of state.hosts.values()) changed.add(host);
    for (const host of state.usage.keys()) changed.add(host);
    const peers = new Map([...state.hosts].map(([peer, { host }]) => [host, peer]));
    for (const host of changed) {
      changed.delete(host);
      const copied = copyHost(state, copy, host, peers.get(host));
      if (isIndexed) refresh(copy, accountOf);
      yield 1 + copied / vmsOfUnit;
    }
  } finally {
    [state.hosts.since, state.usage.since] = [null, null];
  }
  return { ...copy, leaving: new Map(state.leaving), next: new Map(state.next) };
}
const copyOf = (named: KnownGroups): KnownGroups => new Map([...named].map(([cell, all]) => [cell, new Map(all)]));
/** It gets its hosts one after the other, and is to know their order before. */
const ranksIn = ({ hosts, index: { ranks } }: PlacerState): ReadonlyMap<HostName, number> =>
  ranks.size === hosts.size ? ranks : ranksOf([...hosts.values()].map(({ host }) => host));
const nobodys = "controller." as PeerName;

/** @returns of how many VMs */
function copyHost(from: PlacerState, to: PlacerState, host: HostName, peer: PeerName | undefined): number {
  const view = peer === undefined ? undefined : from.hosts.get(peer);
  if (peer !== undefined && view !== undefined && to.hosts.get(peer) !== view) to.hosts.set(peer, view);
  const before = to.usage.get(host);
  if (before !== undefined) forget(to, host, before);
  const { reservations, taken } = from.usage.get(host) ?? { reservations: new Map<Uid, Reservation>(), taken: [] };
  for (const reservation of reservations.values()) {
    const { vm } = reservation;
    reserve(to.usage, reservation);
    const own = from.reservations.get(vm);
    if (own?.host === host) to.reservations.set(vm, own);
    const wanted = from.wanted.get(vm);
    if (wanted !== undefined) to.wanted.set(vm, wanted);
  }
  let said = 0;
  for (const [vm, share] of taken) {
    noteTaken(to.usage, host, vm, share);
    said += 1;
  }
  return reservations.size + said;
}
function forget({ usage, reservations: own }: PlacerState, host: HostName, { reservations, taken }: HostUse): void {
  for (const reservation of [...reservations.values()]) {
    release(usage, reservation);
    if (own.get(reservation.vm)?.host === host) own.delete(reservation.vm);
  }
  for (const vm of [...taken.keys()]) noteTaken(usage, host, vm, null);
}

/** What a VM asks for wherever it is now. */
export function anew({ avoid, on, at, moveTo, restart, off, has, ...wishes }: DesiredPlacement): DesiredPlacement {
  return wishes;
}

/** In thought, a VM has its place at another host. */
export function shift(usage: UsageTable, reservation: Reservation, to: HostName): Reservation {
  const { host, vm } = reservation;
  const taken = takenAt(usage, host, vm);
  const there = { ...reservation, host: to };
  release(usage, reservation);
  if (taken !== undefined) noteTaken(usage, host, vm, null);
  reserve(usage, there);
  if (taken !== undefined) noteTaken(usage, to, vm, taken);
  return there;
}
const takenAt = (usage: UsageTable, host: HostName, vm: Uid) => usage.get(host)?.taken.get(vm);
