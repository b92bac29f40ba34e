import type { GlobalNetwork } from "../../driver.ts";
import { encodeDhcpAnswer, maskOf } from "../dhcp.ts";
import {
  addressKey,
  identities,
  identityKey,
  interfaceState,
  location,
  type MapName,
  subnetKey,
  word,
} from "../program/layout.ts";
import type { BpfMap } from "../program/libbpf.ts";
import { tapName } from "../taps/devices.ts";
import type { DeviceOf } from "../taps/slots.ts";
import { broadcastOf, isOpenToMany } from "./lists.ts";

/** What the addressing maps should hold, and the difference to what they do hold. */
export type Entries = ReadonlyMap<string, { readonly key: Buffer; readonly value: Buffer }>;
export const addressingMaps = [
  "dhcp",
  "identities",
  "locations",
  "interfaces",
  "services",
  "endpoints",
  "broadcasts",
] as const;
export type AddressingMap = (typeof addressingMaps)[number] & MapName;

/**
 * An interface whose tap has no device (yet) stays closed.
 * @param cells whose subnets' broadcast addresses are asked for; absent: all
 */
export function wantedAddressing(
  global: GlobalNetwork,
  mtu: number,
  deviceOf: DeviceOf,
  cells?: ReadonlySet<number>,
): { readonly [map in AddressingMap]: Entries } {
  const wanted = {
    dhcp: new Map<string, { key: Buffer; value: Buffer }>(),
    identities: new Map<string, { key: Buffer; value: Buffer }>(),
    locations: new Map<string, { key: Buffer; value: Buffer }>(),
    interfaces: new Map<string, { key: Buffer; value: Buffer }>(),
    services: new Map<string, { key: Buffer; value: Buffer }>(),
    endpoints: new Map<string, { key: Buffer; value: Buffer }>(),
    broadcasts: new Map<string, { key: Buffer; value: Buffer }>(),
  };
  const put = (map: AddressingMap, key: Buffer, value: Buffer): void => {
    wanted[map].set(key.toString("hex"), { key, value });
  };
  const open = new Set(global.policies.filter(isOpenToMany).map(({ cellNumber }) => cellNumber));
  for (const { cellNumber: cell, subnets = [], networks } of global.policies) {
    if (!open.has(cell) || cells?.has(cell) === false) continue;
    for (const { identity, cidr } of [...subnets, ...networks.filter(({ subnet }) => subnet === true)]) {
      const many = broadcastOf(cidr);
      if (many === null) continue;
      put(
        "broadcasts",
        identityKey.encode({ cell, address: many.address }),
        subnetKey.encode({ cell, subnet: identity }),
      );
    }
  }
  for (const { cellNumber: cell, address, hostMac, ...found } of global.locations) {
    put("locations", addressKey.encode({ address }), location.encode({ mac: hostMac, cell }));
    put(
      "identities",
      identityKey.encode({ cell, address }),
      identities.encode({
        identity: found.identity,
        vm_identity: found.vmIdentity,
        subnet_identity: found.subnetIdentity,
      }),
    );
  }
  for (const { cellNumber: cell, desired } of global.interfaces) {
    const found = deviceOf(tapName(desired.uid));
    if (found === null) continue;
    const { address } = desired;
    const who = {
      identity: desired.identity,
      vm_identity: desired.vmIdentity,
      subnet_identity: desired.subnetIdentity,
    };
    const device = word.encode({ value: found.index });
    const state = {
      slot: found.slot,
      address,
      mask: maskOf(desired.prefixLength),
      gateway: desired.gateway,
      cell,
      mac: desired.mac,
      mtu,
    };
    put("interfaces", device, interfaceState.encode({ ...state, ...who }));
    /* No rule, no DHCP and no identity there: its guest is one of the machines on the underlay. */
    if (desired.management === true) {
      put("services", addressKey.encode({ address }), device);
      continue;
    }
    put("endpoints", addressKey.encode({ address }), device);
    put("identities", identityKey.encode({ cell, address }), identities.encode(who));
    put("dhcp", device, encodeDhcpAnswer(desired, mtu));
    const many = broadcastOf(`${address}/${desired.prefixLength}`);
    if (many !== null && open.has(cell))
      put(
        "broadcasts",
        identityKey.encode({ cell: 0, address: many.address }),
        subnetKey.encode({ cell, subnet: desired.subnetIdentity }),
      );
    /* An address that came here is here, whatever its former host last said. */
    wanted.locations.delete(addressKey.encode({ address }).toString("hex"));
  }
  return wanted;
}

export interface Difference {
  readonly remove: readonly Buffer[];
  /** Keys that hold another value now. */
  readonly change: readonly { readonly key: Buffer; readonly value: Buffer }[];
  readonly add: readonly { readonly key: Buffer; readonly value: Buffer }[];
}
/** Compares a map in force with what it should hold. */
export const difference = (map: BpfMap, wanted: Entries): Difference => entryDifference(map.entries(), wanted);
/** Compares entries that are there with those that should be. */
export function entryDifference(
  found: Iterable<{ readonly key: Buffer; readonly value: Buffer }>,
  wanted: Entries,
): Difference {
  const remove: Buffer[] = [];
  const change: { key: Buffer; value: Buffer }[] = [];
  const present = new Set<string>();
  for (const { key, value } of found) {
    const name = key.toString("hex");
    present.add(name);
    const entry = wanted.get(name);
    if (entry === undefined) remove.push(key);
    else if (!value.equals(entry.value)) change.push(entry);
  }
  const add = [...wanted].filter(([name]) => !present.has(name)).map(([, entry]) => entry);
  return { remove, change, add };
}
export const isEmpty = ({ remove, change, add }: Difference): boolean =>
  remove.length + change.length + add.length === 0;
