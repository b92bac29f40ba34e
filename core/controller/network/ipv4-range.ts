import { formatIpv4, type Network, parseIpv4 } from "../../../model/addresses/addresses.ts";
import { type Ipv4, ipv4, type Mac, mac } from "../../../model/cell/identifiers.ts";

export const contains = (outer: Network, inner: Network): boolean =>
  outer.first <= inner.first && inner.last <= outer.last;

export const addressOf = (number: number): Ipv4 => ipv4(formatIpv4(number));

/** MAC address of an interface that asks for none: a locally administered prefix and the four bytes of its address. */
export function macOf(address: Ipv4): Mac {
  const number = parseIpv4(address) ?? 0;
  const bytes = [24, 16, 8, 0].map((shift) => ((number >>> shift) & 255).toString(16).padStart(2, "0"));
  return mac(["02", "ce", ...bytes].join(":"));
}

/**
 * Addresses that a VM may have: all of the range but the network, the gateway (first usable) and the broadcast address.
 */
export const isUsable = (range: Network, address: number): boolean => address > range.first + 1 && address < range.last;

/** The lowest usable address that is not taken; null when the range is full. */
export function lowestFree(range: Network, isTaken: (address: number) => boolean): number | null {
  for (let address = range.first + 2; address < range.last; address += 1) {
    if (!isTaken(address)) return address;
  }
  return null;
}
