import type { CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { formatIpv4, type Network, parseIpv4, parseNetwork } from "../../../../../model/addresses.ts";
import { type Ipv4, ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { fanoutKey, member, mostMembers, word } from "../program/layout.ts";
import { createArray, openInner } from "../program/libbpf.ts";
import { tapName } from "../taps/devices.ts";
import type { DeviceOf } from "../taps/slots.ts";

/**
 * Who may get a copy of what is sent to many: one list for each subnet, and one for each group of a subnet or a cell. A list
 * says who is there; whether rules let a member have a copy is judged for each packet. Members here come first, then those
 * of one host behind one another, so that a host gets one copy.
 */
export interface FanOut {
  isInForce(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): boolean;
  implement(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): void;
  doubt(): void;
}
/** Groups that the guest behind a device has joined. */
export type Joined = (ifindex: number) => readonly Ipv4[];
const everybody = ipv4("255.255.255.255");
const nowhere = mac("00:00:00:00:00:00");

/** Groups that a subnet has to itself (RFC 5771, RFC 2365); every other one is of the cell. */
export const isOfSubnet = (group: Ipv4): boolean => group.startsWith("224.0.0.") || group.startsWith("239.255.");

/** Broadcast addresses of networks with room for more than two machines. */
export const broadcastOf = (cidr: string): { readonly address: Ipv4; readonly range: Network } | null => {
  const range = parseNetwork(cidr);
  return range === null || range.last - range.first < 3 ? null : { address: ipv4(formatIpv4(range.last)), range };
};
export const isOpenToMany = ({ broadcast }: CellPolicy): boolean => broadcast !== "off";

interface Member {
  readonly cell: number;
  readonly identity: number;
  readonly subnet: number;
  readonly address: Ipv4;
  readonly bytes: Buffer;
  /** Empty for one that is here. */
  readonly host: string;
  /** That its guest has joined. */
  readonly joined: readonly Ipv4[];
}
function membersOf({ interfaces, locations }: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): readonly Member[] {
  const here = interfaces.flatMap(({ cellNumber: cell, desired }): Member[] => {
    const device = desired.management === true ? null : deviceOf(tapName(desired.uid));
    if (device === null) return [];
    const { address, identity, subnetIdentity: subnet } = desired;
    const bytes = member.encode({ address, ifindex: device.index, mac: nowhere });
    return [{ cell, identity, subnet, address, bytes, host: "", joined: joined(device.index) }];
  });
  const taken = new Set(here.map(({ address }) => address));
  const elsewhere = locations.flatMap(({ cellNumber: cell, address, hostMac, ...found }): Member[] => {
    if (taken.has(address)) return [];
    const { identity, subnetIdentity: subnet } = found;
    return [
      {
        cell,
        identity,
        subnet,
        address,
        bytes: member.encode({ address, ifindex: 0, mac: hostMac }),
        host: hostMac,
        joined: found.groups ?? [],
      },
    ];
  });
  return [...here, ...elsewhere].sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0));
}

/** Lists by their key as hexadecimal text. */
export function wantedLists(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): ReadonlyMap<string, Buffer> {
  const lists = new Map<string, Buffer[]>();
  const put = (cell: number, subnet: number, group: Ipv4, { bytes }: Member): void => {
    const key = fanoutKey.encode({ cell, subnet, group }).toString("hex");
    const list = lists.get(key) ?? [];
    if (list.length < mostMembers) list.push(bytes);
    lists.set(key, list);
  };
  const all = membersOf(global, deviceOf, joined);
  const byCell = Map.groupBy(all, ({ cell }) => cell);
  for (const policy of global.policies) {
    if (!isOpenToMany(policy)) continue;
    const { cellNumber: cell, networks, traits = [] } = policy;
    const groups = new Map(traits.map((each) => [each.identity, each.groups]));
    for (const each of byCell.get(cell) ?? []) {
      put(cell, each.subnet, everybody, each);
      for (const group of new Set([...(groups.get(each.identity) ?? []), ...each.joined]))
        put(cell, isOfSubnet(group) ? each.subnet : 0, group, each);
    }
    for (const { cidr, identity, subnet } of networks) {
      const range = subnet === true ? broadcastOf(cidr)?.range : undefined;
      if (range === undefined) continue;
      for (const each of all) {
        const number = parseIpv4(each.address) ?? -1;
        if (each.cell !== cell && number >= range.first && number <= range.last) put(cell, identity, everybody, each);
      }
    }
  }
  return new Map([...lists].map(([key, members]) => [key, Buffer.concat(members)]));
}

/** Lists in force, by their key. */
function readLists({ maps }: Dataplane): ReadonlyMap<string, Buffer> {
  const lists = new Map<string, Buffer>();
  for (const key of maps.fanout.keys()) {
    const id = maps.fanout.get(key);
    const list = id === null ? null : openInner(word.decode(id).value, 4, member.size);
    if (list === null) continue;
    lists.set(key.toString("hex"), Buffer.concat(list.entries().map(({ value }) => value)));
    list.close();
  }
  return lists;
}

export function createFanOut(dataplane: Dataplane): FanOut {
  const { maps } = dataplane;
  /** What this process wrote, or found; null: nobody knows what is there. */
  let inForce: ReadonlyMap<string, Buffer> | null = null;
  const isSame = (wanted: ReadonlyMap<string, Buffer>): boolean => {
    inForce ??= readLists(dataplane);
    const found = inForce;
    return found.size === wanted.size && [...wanted].every(([key, list]) => found.get(key)?.equals(list) === true);
  };
  return {
    isInForce: (global, deviceOf, joined) => isSame(wantedLists(global, deviceOf, joined)),
    implement: (global, deviceOf, joined) => {
      const wanted = wantedLists(global, deviceOf, joined);
      const before = inForce ?? readLists(dataplane);
      inForce = null;
      for (const key of maps.fanout.keys()) if (!wanted.has(key.toString("hex"))) maps.fanout.delete(key);
      for (const [key, list] of wanted) {
        if (before.get(key)?.equals(list) === true) continue;
        const made = createArray("member_list", member.size, list);
        try {
          maps.fanout.set(Buffer.from(key, "hex"), word.encode({ value: made.fd }));
        } finally {
          made.close();
        }
      }
      inForce = wanted;
    },
    doubt: () => {
      inForce = null;
    },
  };
}
