import type { CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { formatIpv4, type Network, parseIpv4, parseNetwork } from "../../../../../model/addresses.ts";
import { type Ipv4, ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { fanoutKey, member, mostGroups, mostMembers, word } from "../program/layout.ts";
import { type BpfMap, createArray, openInner } from "../program/libbpf.ts";
import { tapName } from "../taps/devices.ts";
import type { DeviceOf } from "../taps/slots.ts";

/**
 * Who may get a copy of what is sent to many: one list for each subnet, and one for each group of a subnet or a cell. A list
 * says who is there; whether rules let a member have a copy is judged for each packet. Members here come first, then those
 * of one host behind one another, so that a host gets one copy.
 */
export interface FanOut {
  /** Lists of subnets; those of groups come behind. */
  isInForce(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): boolean;
  /** All lists of subnets, and some of groups. */
  implement(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): void;
  /** Some more lists of groups, where any are not as they should be. */
  catchUp(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): void;
  /** As far as is known without looking: some lists of groups have yet to be written. */
  isBehind(): boolean;
  doubt(): void;
}
/** Groups that the guest behind a device has joined. */
export type Joined = (ifindex: number) => readonly Ipv4[];
const everybody = ipv4("255.255.255.255");
const nowhere = mac("00:00:00:00:00:00");
/**
 * Lists of groups that one cell has here, and that there are for all: whatever its controller declares, its guests join, or a host says
 * of them, the table has room for each subnet's own list, and no cell has the others' places. One list is one map of the kernel.
 */
export const mostLists = { ofCell: 1024, inAll: 49_152 } as const;
const isGroup = (address: Ipv4): boolean => (parseIpv4(address) ?? 0) >>> 28 === 0xe;

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
        // What a host says of a guest is no more than that guest could have joined.
        joined: found.groups?.slice(0, mostGroups) ?? [],
      },
    ];
  });
  return [...here, ...elsewhere].sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0));
}

/** Lists by their key as hexadecimal text. */
export function wantedLists(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): ReadonlyMap<string, Buffer> {
  const lists = new Map<string, { readonly key: Parameters<typeof fanoutKey.encode>[0]; readonly members: Buffer[] }>();
  const ofCell = new Map<number, number>();
  let inAll = 0;
  const put = (cell: number, subnet: number, group: Ipv4, { bytes }: Member): void => {
    // A list is written under its key; of those that get no place not even that is made.
    const name = `${cell} ${subnet} ${group}`;
    const known = lists.get(name);
    if (known === undefined && group !== everybody) {
      const own = ofCell.get(cell) ?? 0;
      if (!isGroup(group) || own >= mostLists.ofCell || inAll >= mostLists.inAll) return;
      ofCell.set(cell, own + 1);
      inAll += 1;
    }
    const list = known ?? { key: { cell, subnet, group }, members: [] };
    if (list.members.length < mostMembers) list.members.push(bytes);
    lists.set(name, list);
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
  return new Map(
    [...lists.values()].map(({ key, members }) => [fanoutKey.encode(key).toString("hex"), Buffer.concat(members)]),
  );
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

/**
 * The kernel waits for all that might still walk a former list, some ten milliseconds in which this process does nothing else: once for
 * all that is written together. Each list is open meanwhile.
 */
const listsTogether = 256;
/** So many lists of groups are written at a look. A guest joins and leaves as often as it likes. */
const writesAtATime = 32;

const keyOf = (key: string) => fanoutKey.decode(Buffer.from(key, "hex"));
const isOfGroup = (key: string): boolean => keyOf(key).group !== everybody;

/** Whose turn it is: one list of each cell after the other, and within a cell as well. */
export class Turns {
  #lastCell = -1;
  readonly #lastKeys = new Map<number, string>();

  take(keys: readonly string[], count: number): readonly string[] {
    const byCell = new Map<number, string[]>();
    for (const [cell, own] of Map.groupBy(keys, (key) => Number(keyOf(key).cell)))
      byCell.set(
        cell,
        rotated(own.sort(), (key) => key > (this.#lastKeys.get(cell) ?? "")),
      );
    const taken: string[] = [];
    const cells = [...byCell.keys()].sort((one, other) => one - other);
    const order = rotated(cells, (cell) => cell > this.#lastCell);
    for (let round = 0; taken.length < Math.min(count, keys.length); round += 1)
      for (const cell of order) {
        const key = byCell.get(cell)?.[round];
        if (key === undefined || taken.length >= count) continue;
        taken.push(key);
        this.#lastCell = cell;
        this.#lastKeys.set(cell, key);
      }
    return taken;
  }
}
/** Those behind the last one that had its turn, and then from the beginning. */
const rotated = <T>(all: readonly T[], isBehind: (each: T) => boolean): T[] => {
  const at = all.findIndex(isBehind);
  return at <= 0 ? [...all] : [...all.slice(at), ...all.slice(0, at)];
};

export function createFanOut(dataplane: Dataplane): FanOut {
  const { maps } = dataplane;
  const turns = new Turns();
  /** What this process wrote, or found; null: nobody knows what is there. */
  let inForce: Map<string, Buffer> | null = null;
  let behind = false;

  const changed = (wanted: ReadonlyMap<string, Buffer>): readonly string[] => {
    inForce ??= new Map(readLists(dataplane));
    const found = inForce;
    const gone = [...found.keys()].filter((key) => !wanted.has(key));
    return [...gone, ...[...wanted].flatMap(([key, list]) => (found.get(key)?.equals(list) === true ? [] : [key]))];
  };
  const writeTogether = (keys: readonly string[], wanted: ReadonlyMap<string, Buffer>): void => {
    const lists = keys.flatMap((key) => {
      const list = wanted.get(key);
      return list === undefined ? [] : [{ key: Buffer.from(key, "hex"), list }];
    });
    const made: BpfMap[] = [];
    try {
      for (const { list } of lists) made.push(createArray("member_list", member.size, list));
      maps.fanout.setAll(lists.map(({ key }, at) => ({ key, value: word.encode({ value: made[at]?.fd ?? 0 }) })));
    } finally {
      for (const each of made) each.close();
    }
    maps.fanout.deleteAll(keys.filter((key) => !wanted.has(key)).map((key) => Buffer.from(key, "hex")));
  };
  const write = (keys: readonly string[], wanted: ReadonlyMap<string, Buffer>): void => {
    const found = inForce;
    // Until it is written, nobody knows what is there.
    inForce = null;
    for (let at = 0; at < keys.length; at += listsTogether) writeTogether(keys.slice(at, at + listsTogether), wanted);
    for (const key of keys) {
      const list = wanted.get(key);
      if (list === undefined) found?.delete(key);
      else found?.set(key, list);
    }
    inForce = found;
  };
  const writeSome = (wanted: ReadonlyMap<string, Buffer>, all: readonly string[]): void => {
    const groups = all.filter(isOfGroup);
    write(turns.take(groups, writesAtATime), wanted);
    behind = groups.length > writesAtATime;
  };
  return {
    isInForce: (global, deviceOf, joined) => changed(wantedLists(global, deviceOf, joined)).every(isOfGroup),
    implement: (global, deviceOf, joined) => {
      const wanted = wantedLists(global, deviceOf, joined);
      const all = changed(wanted);
      write(
        all.filter((key) => !isOfGroup(key)),
        wanted,
      );
      writeSome(wanted, all);
    },
    catchUp: (global, deviceOf, joined) => {
      const wanted = wantedLists(global, deviceOf, joined);
      writeSome(wanted, changed(wanted));
    },
    isBehind: () => behind,
    doubt: () => {
      inForce = null;
    },
  };
}
