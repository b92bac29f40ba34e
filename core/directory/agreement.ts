import { type Network, parseNetwork } from "../../model/addresses/addresses.ts";
import type { HostName, Ipv4 } from "../../model/cell/identifiers.ts";
import type { ActualReach, DesiredReach, ReachOpening } from "../documents/cells.ts";

/**
 * Do rules of two cells say the same? Each has one end in its own cell, which only it knows as a whole, and one in the
 * other, which the other has made public. A packet passes between them exactly where both open it (decision 30), so
 * whoever's place is told is an interface of the one that the other names and of the other that the one names, under
 * rules that have a protocol, ports and a direction in common.
 */
export interface Side {
  readonly reach: DesiredReach;
  /** Networks of the public element in the other cell that this rule names. */
  readonly names: readonly string[];
}

/** What the cell of `own` may know, given the rules of the other cell that name it. */
export function agreementOf(own: Side, others: readonly Side[]): ActualReach {
  const mine = networksOf(own.reach.networks);
  const named = networksOf(own.names);
  const hosts = new Map<Ipv4, Set<HostName>>();
  const places = new Map<string, { readonly address: Ipv4; readonly host: HostName }>();
  let agreed = false;
  for (const other of others) {
    if (!own.reach.openings.some((one) => other.reach.openings.some((two) => overlap(one, two)))) continue;
    const namesMine = networksOf(other.names);
    if (!meet(mine, namesMine) || !meet(networksOf(other.reach.networks), named)) continue;
    agreed = true;
    const reached = other.reach.placed.filter(({ address }) => isIn(address, named));
    if (reached.length === 0) continue;
    const there = reached.map(({ host }) => host);
    for (const { address, host } of reached) places.set(`${address} ${host}`, { address, host });
    for (const { address } of own.reach.placed) {
      if (!isIn(address, namesMine)) continue;
      const known = hosts.get(address) ?? new Set<HostName>();
      for (const host of there) known.add(host);
      hosts.set(address, known);
    }
  }
  const sorted = [...hosts].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    agreed,
    hosts: sorted.map(([address, known]) => ({ address, hosts: [...known].sort() })),
    // Whose own ends are nowhere has nobody to tell.
    ...(sorted.length === 0
      ? {}
      : { there: [...places].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, place]) => place) }),
  };
}

export const networksOf = (texts: readonly string[]): readonly Network[] =>
  texts.flatMap((text) => parseNetwork(text) ?? []);
const isIn = (address: string, networks: readonly Network[]): boolean => meet(networksOf([address]), networks);
const meet = (some: readonly Network[], others: readonly Network[]): boolean =>
  some.some((a) => others.some((b) => a.first <= b.last && b.first <= a.last));

/** One's "out" is the other's "in". */
const overlap = (one: ReachOpening, two: ReachOpening): boolean =>
  one.direction !== two.direction &&
  (one.protocol === "any" || two.protocol === "any" || one.protocol === two.protocol) &&
  share(one.ports, two.ports) &&
  share(one.sourcePorts, two.sourcePorts);
const share = (a: ReachOpening["ports"], b: ReachOpening["ports"]): boolean => a.from <= b.to && b.from <= a.to;
