import { type AddressRange, networkOf, sizeOf } from "./ranges.ts";

/**
 * The subnet of the MANAGED modes, cut into segments of one size, of which each active security group has one.
 *
 * Segment i has the VLAN tag i + 2 and begins at i × size. Its address 0 is the network, 1 to 8 are gateways, one for each
 * cluster, and its last one is the broadcast address.
 *
 * With n = addresses of the subnet / size, the tags of n segments go to n + 1. The paper's cloud controller takes none above n - 1 (it
 * leaves one address out before it divides), and its network daemon's table ends there, so the last two segments are never used.
 * Addresses and tags of a running installation depend on the numbering, so it stays.
 */
export interface ManagedSubnet {
  readonly subnet: number;
  readonly netmask: number;
  readonly segmentSize: number;
  readonly minVlan: number;
  readonly maxVlan: number;
}

export interface Segment extends AddressRange {
  readonly tag: number;
}

/** The first segment's. */
export const firstTag = 2;
/** IEEE 802.1Q reserves 4095. */
const lastTag = 4094;
/** Gateways of a segment: as many clusters can be in one installation. */
export const gatewaysPerSegment = 8;
/** Network, gateways and broadcast. */
export const reservedPerSegment = gatewaysPerSegment + 2;

export const indexToAddress = ({ subnet, segmentSize }: ManagedSubnet, tag: number, index: number): number =>
  subnet + (tag - firstTag) * segmentSize + index;

export function addressToIndex({ subnet, segmentSize }: ManagedSubnet, address: number): readonly [number, number] {
  const offset = address - subnet;
  return [Math.floor(offset / segmentSize) + firstTag, offset % segmentSize];
}

const segmentsOf = ({ subnet, netmask, segmentSize }: ManagedSubnet): number =>
  Math.floor(sizeOf(networkOf(subnet, netmask)) / segmentSize);

/** The controller's bound: it takes no larger tag for this subnet. */
export const restrictToMaximumSegment = ({ subnet, netmask, segmentSize }: ManagedSubnet, tag: number): number =>
  Math.min(tag, Math.floor((sizeOf(networkOf(subnet, netmask)) - 1) / segmentSize));
export const isValidSegment = (subnet: ManagedSubnet, tag: number): boolean =>
  restrictToMaximumSegment(subnet, tag) === tag;

/** The daemon's table: the last tag that has a segment. */
export const lastSegment = (subnet: ManagedSubnet): number => Math.min(segmentsOf(subnet) - 1, lastTag);

/** The tags that groups are given, first to last; first > last where there is none. */
export const usableTags = (subnet: ManagedSubnet): AddressRange => ({
  first: Math.max(firstTag, subnet.minVlan),
  last: Math.min(subnet.maxVlan, lastSegment(subnet)),
});

export const segmentOf = (subnet: ManagedSubnet, tag: number): Segment => {
  const first = indexToAddress(subnet, tag, 0);
  return { tag, first, last: first + subnet.segmentSize - 1 };
};

/** The segment that an address is in, or null: outside of the subnet, or past the last one. */
export function segmentAt(subnet: ManagedSubnet, address: number): Segment | null {
  if (address < subnet.subnet) return null;
  const [tag] = addressToIndex(subnet, address);
  return tag > lastSegment(subnet) ? null : segmentOf(subnet, tag);
}

/** @param cluster the cluster's place among the clusters, from 0 */
export const gatewayOf = ({ first }: Segment, cluster: number): number => first + 1 + cluster;
export const netmaskOf = ({ segmentSize }: ManagedSubnet): number => 2 ** 32 - segmentSize;
/** What instances may have of a segment. */
export const instancesOf = ({ first, last }: Segment): AddressRange => ({
  first: first + 1 + gatewaysPerSegment,
  last: last - 1,
});
