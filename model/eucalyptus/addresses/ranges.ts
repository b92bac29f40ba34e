import { formatIpv4, type Network, parseIpv4 } from "../../addresses/addresses.ts";
import { fail, ok, type Result } from "../../result.ts";

/** Addresses from `first` to `last`, both included; unsigned 32-bit numbers. Never empty. */
export interface AddressRange {
  readonly first: number;
  readonly last: number;
}

/** `a.b.c.d` or `a.b.c.d-e.f.g.h`, with spaces around either; the error is a sentence. */
export function readRange(text: string): Result<AddressRange, string> {
  const dash = text.indexOf("-");
  const [from, to] = dash < 0 ? [text, text] : [text.slice(0, dash), text.slice(dash + 1)];
  const [first, last] = [parseIpv4(from.trim()), parseIpv4(to.trim())];
  if (first === null || last === null)
    return fail(`${JSON.stringify(text.slice(0, 60))} is neither an address nor a range of addresses`);
  if (first > last) return fail(`the range ${text.trim()} ends before it begins`);
  return ok({ first, last });
}

/** As `readRange` reads it: one address is written as one. */
export const formatRange = ({ first, last }: AddressRange): string =>
  first === last ? formatIpv4(first) : `${formatIpv4(first)}-${formatIpv4(last)}`;

export const sizeOf = ({ first, last }: AddressRange): number => last - first + 1;
export const contains = (outer: AddressRange, inner: AddressRange): boolean =>
  outer.first <= inner.first && inner.last <= outer.last;
export const overlaps = (one: AddressRange, other: AddressRange): boolean =>
  one.first <= other.last && other.first <= one.last;

/** What is left of a range without one address: nothing, one range or two. */
export function without(range: AddressRange, address: number): readonly AddressRange[] {
  if (address < range.first || address > range.last) return [range];
  const below = address > range.first ? [{ first: range.first, last: address - 1 }] : [];
  const above = address < range.last ? [{ first: address + 1, last: range.last }] : [];
  return [...below, ...above];
}

/** Bits of a netmask, or null where its ones are not all before its zeros. */
export function prefixOfNetmask(netmask: number): number | null {
  const zeros = Math.log2(2 ** 32 - netmask);
  return Number.isInteger(zeros) ? 32 - zeros : null;
}

/** Network and broadcast address of the network that an address is in. */
export function networkOf(address: number, netmask: number): AddressRange {
  const size = 2 ** 32 - netmask;
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1 };
}

/** `a.b.c.d/n` of the network that an address is in. */
export const cidrOf = (address: number, netmask: number): string =>
  `${formatIpv4(networkOf(address, netmask).first)}/${prefixOfNetmask(netmask) ?? 32}`;

/** What hosts may have of a network: all but its first and last address; one of two addresses (RFC 3021) or of one has no others. */
export const hostsOf = ({ first, last }: AddressRange): AddressRange =>
  last - first < 2 ? { first, last } : { first: first + 1, last: last - 1 };
/** The same of a subnet as configurations say it, whose address may have host bits. */
export const hostsOfSubnet = (address: number, netmask: number): AddressRange => hostsOf(networkOf(address, netmask));
export const hostsOfNetwork = (network: Network): AddressRange => hostsOf(network);
