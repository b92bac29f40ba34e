import { type Ipv4, ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { PacketCheck } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import {
  addressKey,
  identities,
  identityKey,
  location,
  networkKey,
  networkKinds,
  policyEntry,
  policyKey,
  sourceRange,
  word,
} from "../program/layout.ts";
import { openInner } from "../program/libbpf.ts";
import { kinds } from "../rules/policy.ts";

/** What the program says of a packet between a machine here and somebody outside, where its subnet has a router (`x.router`). */
const pass = (check: string, detail: string): PacketCheck => ({ check, passes: true, detail });
const stop = (check: string, detail: string): PacketCheck => ({ check, passes: false, detail });

/** An address as a number of the machine, in the order that it has in packets. */
const numberOf = (address: Ipv4): number => addressKey.encode({ address }).readUInt32LE();
const addressOf = (number: number): Ipv4 => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(number);
  return ipv4([...bytes].join("."));
};

interface Router {
  readonly address: Ipv4;
  /** It may answer for who is asked about. */
  readonly forwards: boolean;
}
function routerOf({ maps }: Dataplane, cell: number, own: Ipv4, remote: Ipv4): Router | null {
  const known = maps.identities.get(identityKey.encode({ cell, address: own }));
  const id = maps.rules.get(word.encode({ value: cell }));
  const rules = id === null ? null : openInner(word.decode(id).value, policyKey.size, policyEntry.size);
  if (known === null || rules === null) return null;
  try {
    const from = identities.decode(known).subnet_identity;
    const found = rules.get(policyKey.encode({ prefix_length: 64, kind: kinds.router, from }));
    if (found === null) return null;
    const { ranges } = policyEntry.decode(found);
    const [address, identity] = [0, 1].map((at) => sourceRange.decode(ranges.subarray(at * sourceRange.size)).rule);
    const key = { prefix_length: 96, kind: kinds.forwards, from: identity!, to: numberOf(remote) };
    return { address: addressOf(address!), forwards: rules.get(policyKey.encode(key)) !== null };
  } finally {
    rules.close();
  }
}
const isOutside = ({ maps }: Dataplane, address: Ipv4): boolean => {
  const found = maps.networks.get(networkKey.encode({ prefix_length: 32, address }));
  return found === null || word.decode(found).value === networkKinds.elsewhere;
};

/**
 * Where a packet goes, or from where it is believed. Null: the subnet of the machine here has no router, or it is one that the
 * router's own interface sends.
 *
 * @param side of the machine here
 */
export function examineOwnRouter(
  dataplane: Dataplane,
  side: "sender" | "receiver",
  cell: number,
  own: Ipv4,
  remote: Ipv4,
): PacketCheck | null {
  const router = routerOf(dataplane, cell, own, remote);
  if (router === null || router.address === own) return null;
  const { address, forwards } = router;
  if (!isOutside(dataplane, remote)) return null;
  if (!forwards)
    return stop("router", `the router of its subnet, ${address}, may not speak for ${remote}: see its \`x.forwards\``);
  const here = dataplane.maps.endpoints.get(addressKey.encode({ address }));
  const found = dataplane.maps.locations.get(addressKey.encode({ address }));
  const place =
    here !== null
      ? `on device ${word.decode(here).value} of this host`
      : found !== null
        ? `behind ${location.decode(found).mac}, its host`
        : null;
  if (place === null)
    return stop("router", `the router of its subnet, ${address}, runs nowhere, as far as this host was told`);
  return side === "sender"
    ? pass("router", `${remote} is outside, by the router of the subnet, ${address}, ${place}`)
    : pass("router", `packets from ${remote} are accepted from the router of the subnet alone, ${address}, ${place}`);
}
