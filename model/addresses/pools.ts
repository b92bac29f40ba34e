import { formatNetwork, type Network, parseNetwork } from "./addresses.ts";

/** Addresses that no machine has as its own (RFC 6890), and groups. */
export const nobodys = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"];
/** External pools of an installation, and prefix lengths of the largest and the smallest. */
export const mostPools = 8;
const [largest, smallest] = [8, 29];

const overlap = (one: Network, other: Network): boolean => one.first <= other.last && other.first <= one.last;
/** The first of `others`, in CIDR notation, that has an address in common with `network`. */
export const whatOverlaps = (network: Network, others: readonly string[]): string | undefined =>
  others.find((text) => {
    const other = parseNetwork(text);
    return other !== null && overlap(network, other);
  });
/** The first of `others`, in CIDR notation, that has all of these addresses. */
export const whatHolds = (network: Network, others: readonly string[]): string | undefined =>
  others.find((text) => {
    const other = parseNetwork(text);
    return other !== null && network.first >= other.first && network.last <= other.last;
  });
/** Has one of these networks all addresses of that one? What is no network is in none. */
export function isWithin(text: string, networks: readonly string[]): boolean {
  const network = parseNetwork(text);
  return network !== null && whatHolds(network, networks) !== undefined;
}

export interface PoolFault {
  /** What follows the name of the attribute. */
  readonly why: string;
  /** What would be right. */
  readonly right: string;
}

/**
 * What keeps networks from being the external pools of an installation; null: nothing.
 * @param own other networks of the installation, as far as they are known
 */
export function poolFault(pools: readonly string[], own: readonly string[]): PoolFault | null {
  if (pools.length === 0 || pools.length > mostPools)
    return {
      why: `has ${pools.length} networks`,
      right: `Name from one to ${mostPools}, or leave the attribute out for the installation's own pool.`,
    };
  for (const [at, text] of pools.entries()) {
    const fault = faultOf(text, pools.slice(0, at), own);
    if (fault !== null) return { why: `has ${text}, ${fault.why}`, right: fault.right };
  }
  return null;
}

function faultOf(text: string, before: readonly string[], own: readonly string[]): PoolFault | null {
  const network = parseNetwork(text);
  if (network === null)
    return { why: "which is no network in CIDR notation", right: 'Write it as in ["203.0.113.0/24"].' };
  const { prefixLength, hostBits } = network;
  if (hostBits)
    return { why: "which has bits set beyond its prefix", right: `The network is ${formatNetwork(network)}.` };
  const clash = whatOverlaps(network, nobodys);
  if (clash !== undefined)
    return { why: `and no machine has an address of ${clash}`, right: "Name networks that machines can have." };
  if (prefixLength < largest || prefixLength > smallest)
    return {
      why: `a /${prefixLength}`,
      right: `A pool is between /${largest} and /${smallest}, so that a subnet has room in it.`,
    };
  const twin = whatOverlaps(network, before);
  if (twin !== undefined)
    return {
      why: `which overlaps ${twin} before it: an address would be of two pools`,
      right: "Leave out one of them, or the part of one that the other has.",
    };
  const other = whatOverlaps(network, own);
  return other === undefined
    ? null
    : {
        why: `which overlaps ${other}, addresses of the installation that nobody outside knows`,
        right: `Name networks that are routed to the hosts, outside ${own.join(", ")}.`,
      };
}
