import { isLearnt, isManaged, otherMode } from "../../model/cell/network/modes.ts";
import type { AddressRange } from "../../model/eucalyptus/addresses/ranges.ts";
import {
  instancesOf,
  type ManagedSubnet,
  type Segment,
  segmentAt,
  segmentOf,
  usableTags,
} from "../../model/eucalyptus/addresses/segments.ts";
import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import { managedSubnetOf, type NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { privateAddressesOf } from "../../model/eucalyptus/configuration/effective.ts";
import type { NetworkHosts } from "./network-hosts/carriers.ts";

/*
 * Who has which address of an installation under the rules of Eucalyptus, and where it may still be in force.
 *
 * An address is free, pending, assigned or releasing. It is lost in the original where a machine went silent: nobody said that it was put
 * in place, and nobody that it was gone. Here each address keeps the hosts that were ever told of it, each with the version of the view
 * from which on it is told of it no more; only the host's own word about that version or a later one, or a fence, strikes a host off,
 * and what stands at no host and belongs to nobody is free. Time frees nothing.
 *
 * Rejected: to believe what a host says last. What it said before it heard of an address looks like what it says when that is gone.
 */

/** An instance and what it is in the view. */
export interface BookedInstance {
  readonly id: string;
  readonly owner: string;
  readonly cluster: string;
  /** The host that it is at; null: it was at one of which nothing runs any more, and is in no view. */
  readonly node: string | null;
  readonly mac: string;
  readonly groups: readonly string[];
  /** 0: none is given to it, the site does that (SYSTEM). */
  readonly privateIp: number;
  /** Its host says that its private address is in place, or without one that it is of its view: it may start. */
  readonly ready: boolean;
  /** Of one without an address: version of the view that first told its host of it. */
  readonly since?: number;
}
export type AddressKind = "private" | "elastic";
/** An address that is not free. */
export interface BookedAddress {
  readonly kind: AddressKind;
  readonly address: number;
  /** Null: it belongs to nobody any more, and is free as soon as no host has it. */
  readonly instance: string | null;
  /**
   * Hosts that may have it in place, by name. `since`: the version of the view that first told of it; `until`: that first told no more of
   * it, null while it is told.
   */
  readonly hosts: ReadonlyMap<string, Told>;
  /** Of a private address in a MANAGED mode. */
  readonly segment: string | null;
}
export interface Told {
  readonly since: number;
  readonly until: number | null;
}
/** An elastic address that an account has, whether or not an instance uses it. */
export interface ElasticLease {
  readonly address: number;
  readonly account: string;
  /** For which it is leased, whether or not that is in the book now. Absent: for none. */
  readonly instance?: string;
}
export interface Book {
  configuration: NetworkConfiguration | null;
  /** Of the view: grows with each change. */
  version: number;
  readonly instances: Map<string, BookedInstance>;
  /** By `addressKey`. */
  readonly addresses: Map<string, BookedAddress>;
  readonly elastic: Map<number, ElasticLease>;
  /** Tag of each active group, MANAGED modes. */
  readonly segments: Map<string, number>;
  /** Of each cluster, MANAGED modes. */
  readonly networkHosts: Map<string, NetworkHosts>;
  /** What this store knew was lost, or is old. Null: it was not. */
  recovery: Recovery | null;
}
/**
 * A store that was lost or is an older one. Nothing that is free by it is given out before all hosts have said what they have in place:
 * whoever is silent may have anything. What they say counts more than this store; what it has and none of them names is given up, and
 * its owner asks for it again.
 */
export interface Recovery {
  /** All that are to be heard: durable, so that a crash begins anew. */
  readonly hosts: readonly string[];
  readonly unheard: ReadonlySet<string>;
  /** Of addresses that a host has named. */
  readonly found: ReadonlySet<string>;
  /** Hosts that have said that they carry a cluster to the outside, with its name. */
  readonly carriers: ReadonlyMap<string, string>;
}
/** Why nothing is given out at all; null: it is. */
export function whyForgotten({ recovery }: Book): string | null {
  const silent = [...(recovery?.unheard ?? [])];
  if (silent.length === 0) return null;
  return `what was known of addresses is lost or old, and ${silent.slice(0, 5).join(", ")} has yet to say what is in place there`;
}
/** Why nothing is given out that nobody has in place; null: it is. */
export const whyUnsettled = (book: Book): string | null =>
  book.recovery === null
    ? null
    : (whyForgotten(book) ??
      "what was known of addresses is lost or old, and its owners have yet to say what they have");
export const emptyBook = (): Book => ({
  configuration: null,
  version: 0,
  instances: new Map(),
  addresses: new Map(),
  elastic: new Map(),
  segments: new Map(),
  networkHosts: new Map(),
  recovery: null,
});
export const addressKey = (kind: AddressKind, address: number): string => `${kind}/${address}`;

/** That a host has named it, whatever address it has. */
export const instanceKey = (id: string): string => `instance/${id}`;
export const privateKeys = ({ addresses }: Book): readonly string[] =>
  [...addresses].flatMap(([key, { kind }]) => (kind === "private" ? [key] : []));

/** Of all that a host names. */
export const keysOf = (allocated: readonly InstanceAllocation[]): ReadonlySet<string> =>
  new Set(
    allocated.flatMap(({ privateIp, publicIp }) => [
      ...(privateIp === undefined ? [] : [addressKey("private", privateIp.address)]),
      ...(publicIp === undefined ? [] : [addressKey("elastic", publicIp.address)]),
    ]),
  );

export const isInSegments = ({ mode }: NetworkConfiguration): boolean => mode !== otherMode && isManaged(mode);
export const givesNone = ({ mode }: NetworkConfiguration): boolean => mode !== otherMode && isLearnt(mode);
export const managedOf = (configuration: NetworkConfiguration): ManagedSubnet | null =>
  isInSegments(configuration) && configuration.managedSubnet !== undefined
    ? managedSubnetOf(configuration.managedSubnet)
    : null;

/**
 * The segment of a group: its own, or the first that no group has. Null: all are taken, or there are none.
 * @param address that a member of it has in place: its segment is the group's
 */
export function segmentFor(
  book: Book,
  configuration: NetworkConfiguration,
  group: string,
  address?: number,
): Segment | null {
  const subnet = managedOf(configuration);
  if (subnet === null) return null;
  const own = book.segments.get(group);
  if (own !== undefined) return segmentOf(subnet, own);
  const taken = new Set(book.segments.values());
  const found = address === undefined ? null : segmentAt(subnet, address);
  if (found !== null) return taken.has(found.tag) ? null : found;
  // Hosts have addresses there of a group that has not said yet that they are its own.
  for (const { kind, address: held, segment } of book.addresses.values())
    if (kind === "private" && segment === null) taken.add(segmentAt(subnet, held)?.tag ?? 0);
  const { first, last } = usableTags(subnet);
  for (let tag = first; tag <= last; tag += 1) if (!taken.has(tag)) return segmentOf(subnet, tag);
  return null;
}

/** From which an instance gets its private address. */
export const privateRanges = (
  configuration: NetworkConfiguration,
  cluster: string,
  segment: Segment | null,
): readonly AddressRange[] =>
  isInSegments(configuration)
    ? segment === null
      ? []
      : [instancesOf(segment)]
    : privateAddressesOf(configuration, cluster);

/** Where an instance's address of a kind is put in place; null: nowhere yet. In the MANAGED modes a cluster's network host has the elastic ones. */
export const placeOf = (
  { configuration, networkHosts }: Book,
  kind: AddressKind,
  { node, cluster }: Pick<BookedInstance, "node" | "cluster">,
): string | null =>
  kind === "elastic" && configuration !== null && isInSegments(configuration)
    ? (networkHosts.get(cluster)?.active ?? null)
    : node;

/** An address is told to a host from the next version on. */
export const toldAt = (entry: BookedAddress, host: string, version: number): BookedAddress => {
  const before = entry.hosts.get(host);
  // Told again before it had said that it is gone: what it says of versions in between counts no more.
  const told = before !== undefined && before.until === null ? before : { since: version, until: null };
  return { ...entry, hosts: new Map([...entry.hosts, [host, told]]) };
};
/** From the next version on no host but `except` is told of it. */
export const endedAt = (entry: BookedAddress, version: number, except: string | null = null): BookedAddress => ({
  ...entry,
  hosts: new Map(
    [...entry.hosts].map(([host, told]) => [
      host,
      host === except || told.until !== null ? told : { ...told, until: version },
    ]),
  ),
});
export const without = (entry: BookedAddress, host: string): BookedAddress => ({
  ...entry,
  hosts: new Map([...entry.hosts].filter(([name]) => name !== host)),
});

type Stand = Pick<BookedInstance, "node" | "cluster">;
/** An elastic address is told to where it is put in place now, once every other host has let it go: two would answer for it. */
export function elasticAt(book: Book, entry: BookedAddress, instance: Stand, version: number): BookedAddress {
  const place = placeOf(book, "elastic", instance);
  const ended = endedAt(entry, version, place);
  const isElsewhere = [...entry.hosts.keys()].some((host) => host !== place);
  return place === null || isElsewhere ? ended : toldAt(ended, place, version);
}
/** False: where it is to be put in place is not told of it yet. */
export function isElasticTold(book: Book, entry: BookedAddress, instance: Stand): boolean {
  const place = placeOf(book, "elastic", instance);
  return place === null || entry.hosts.get(place)?.until === null;
}

/** `pending → assigned → releasing`; what is free is not in the book. */
export type AddressState = "pending" | "assigned" | "releasing";
export const stateOf = (book: Book, { instance }: BookedAddress): AddressState =>
  instance === null ? "releasing" : book.instances.get(instance)?.ready === true ? "assigned" : "pending";
