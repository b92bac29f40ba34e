import type { ActualLocation, CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { formatIpv4, type Network, parseIpv4, parseNetwork } from "../../../../../model/addresses/addresses.ts";
import { type Ipv4, ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork } from "../../driver.ts";
import { fanoutKey, member, mostGroups, mostMembers } from "../program/layout.ts";
import { tapName } from "../taps/devices.ts";
import type { DeviceOf } from "../taps/slots.ts";

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
const inOrderOfHosts = (a: Member, b: Member): number => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0);
const isSameMember = (a: Member | undefined, b: Member): boolean =>
  a?.cell === b.cell &&
  a.identity === b.identity &&
  a.subnet === b.subnet &&
  a.bytes.equals(b.bytes) &&
  isSameList(a.joined, b.joined);
const isSameList = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a.length === b.length && a.every((each, at) => each === b[at]);

/** Members by their cell, and by their address, in order. */
interface Elsewhere {
  readonly locations: GlobalNetwork["locations"];
  readonly byCell: ReadonlyMap<number, readonly Member[]>;
  readonly byAddress: readonly (readonly [address: number, each: Member])[];
}
/** Lists of one cell by their key as hexadecimal text. */
export type ListsOfCell = ReadonlyMap<string, Buffer>;
interface Known {
  readonly policy: CellPolicy;
  /** Members of the cell, and those of other cells in each of the subnets that it names. */
  readonly members: readonly Member[];
  readonly others: readonly (readonly Member[])[];
  readonly lists: ListsOfCell;
  /** How many of them are of groups. */
  readonly groups: number;
}
interface Foreign {
  readonly identity: number;
  readonly range: Network;
}

/** The lists that should be in force. Made anew for a cell when its rules or a member of it are others. */
export class Lists {
  #here: readonly Member[] = [];
  #elsewhere: Elsewhere = { locations: [], byCell: new Map(), byAddress: [] };
  #known = new Map<number, Known>();
  readonly #members = new WeakMap<ActualLocation, Member>();
  readonly #foreign = new WeakMap<CellPolicy, readonly Foreign[]>();

  /** By cell; the same map for one whose lists are as they were. */
  of(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): ReadonlyMap<number, ListsOfCell> {
    const isSame = this.#look(global, deviceOf, joined);
    const taken = new Set(this.#here.map(({ address }) => address));
    const known = new Map<number, Known>();
    const all = new Map<number, ListsOfCell>();
    let groups = 0;
    for (const policy of global.policies) {
      if (!isOpenToMany(policy)) continue;
      const { cellNumber: cell } = policy;
      const before = this.#known.get(cell);
      const own = isSame && before?.policy === policy ? before : this.#ofCell(policy, taken, before);
      known.set(cell, own);
      const room = mostLists.inAll - groups;
      all.set(cell, own.groups <= room ? own.lists : withoutGroups(own.lists, own.groups - room));
      groups += Math.min(own.groups, room);
    }
    this.#known = known;
    return all;
  }

  /** @returns whether all members are as they were */
  #look({ interfaces, locations }: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): boolean {
    const [formerly, before] = [this.#here, this.#elsewhere];
    const found = interfaces.flatMap(({ cellNumber: cell, desired }): Member[] => {
      const device = desired.management === true ? null : deviceOf(tapName(desired.uid));
      if (device === null) return [];
      const { address, identity, subnetIdentity: subnet } = desired;
      const bytes = member.encode({ address, ifindex: device.index, mac: nowhere });
      return [{ cell, identity, subnet, address, bytes, host: "", joined: joined(device.index) }];
    });
    const here = found.map((each, at) => {
      const former = formerly[at];
      return former !== undefined && isSameMember(former, each) ? former : each;
    });
    if (!isSameList(here, formerly)) this.#here = here;
    if (locations !== before.locations) {
      const members = locations.map((location) => this.#memberAt(location));
      const inOrder = members.toSorted(inOrderOfHosts);
      const byAddress = members.map((each) => [parseIpv4(each.address) ?? -1, each] as const).sort(([a], [b]) => a - b);
      this.#elsewhere = { locations, byCell: Map.groupBy(inOrder, ({ cell }) => cell), byAddress };
    }
    return this.#here === formerly && this.#elsewhere === before;
  }
  #memberAt(location: ActualLocation): Member {
    const known = this.#members.get(location);
    if (known !== undefined) return known;
    const { cellNumber: cell, address, hostMac, identity, subnetIdentity: subnet, groups } = location;
    const bytes = member.encode({ address, ifindex: 0, mac: hostMac });
    // What a host says of a guest is no more than that guest could have joined.
    const made = { cell, identity, subnet, address, bytes, host: hostMac, joined: groups?.slice(0, mostGroups) ?? [] };
    this.#members.set(location, made);
    return made;
  }

  #ofCell(policy: CellPolicy, taken: ReadonlySet<Ipv4>, before: Known | undefined): Known {
    const { cellNumber: cell } = policy;
    const isFree = ({ address }: Member): boolean => !taken.has(address);
    const members = [
      ...this.#here.filter((each) => each.cell === cell),
      ...(this.#elsewhere.byCell.get(cell) ?? []).filter(isFree),
    ];
    const foreign = this.#foreignOf(policy);
    const others = foreign.map(({ range }) => {
      const isOther = (each: Member): boolean => each.cell !== cell;
      const here = this.#here.filter((each) => isOther(each) && isWithin(range, parseIpv4(each.address) ?? -1));
      const elsewhere = within(this.#elsewhere.byAddress, range).filter((each) => isOther(each) && isFree(each));
      return [...here, ...elsewhere.sort(inOrderOfHosts)];
    });
    if (
      before?.policy === policy &&
      isSameList(before.members, members) &&
      before.others.every((each, at) => isSameList(each, others[at] ?? []))
    )
      return before;
    const lists = listsOf(policy, members, foreign, others);
    const groups = [...lists.keys()].filter((key) => isOfGroup(key)).length;
    return { policy, members, others, lists, groups };
  }
  /** Subnets of other cells that a cell's rules name. */
  #foreignOf(policy: CellPolicy): readonly Foreign[] {
    const known = this.#foreign.get(policy);
    if (known !== undefined) return known;
    const foreign = policy.networks.flatMap(({ cidr, identity, subnet }) => {
      const range = subnet === true ? broadcastOf(cidr)?.range : undefined;
      return range === undefined ? [] : [{ identity, range }];
    });
    this.#foreign.set(policy, foreign);
    return foreign;
  }
}

const isWithin = ({ first, last }: Network, address: number): boolean => first <= address && address <= last;
/** Members with an address in a range, of all by their address in order. */
function within(all: Elsewhere["byAddress"], range: Network): Member[] {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle]?.[0] ?? 0) < range.first) low = middle + 1;
    else high = middle;
  }
  const found: Member[] = [];
  for (let at = low; at < all.length; at += 1) {
    const [address, each] = all[at]!;
    if (!isWithin(range, address)) break;
    found.push(each);
  }
  return found;
}

function listsOf(
  { cellNumber: cell, traits = [] }: CellPolicy,
  members: readonly Member[],
  foreign: readonly Foreign[],
  others: readonly (readonly Member[])[],
): ListsOfCell {
  const lists = new Map<string, { readonly key: Parameters<typeof fanoutKey.encode>[0]; readonly members: Buffer[] }>();
  let ofGroups = 0;
  const put = (subnet: number, group: Ipv4, { bytes }: Member): void => {
    // A list is written under its key; of those that get no place not even that is made.
    const name = `${subnet} ${group}`;
    const known = lists.get(name);
    if (known === undefined && group !== everybody) {
      if (!isGroup(group) || ofGroups >= mostLists.ofCell) return;
      ofGroups += 1;
    }
    const list = known ?? { key: { cell, subnet, group }, members: [] };
    if (list.members.length < mostMembers) list.members.push(bytes);
    lists.set(name, list);
  };
  const declared = new Map(traits.map((each) => [each.identity, each.groups]));
  for (const each of members) {
    put(each.subnet, everybody, each);
    for (const group of new Set([...(declared.get(each.identity) ?? []), ...each.joined]))
      put(isOfSubnet(group) ? each.subnet : 0, group, each);
  }
  for (const [at, { identity }] of foreign.entries())
    for (const each of others[at] ?? []) put(identity, everybody, each);
  return new Map(
    [...lists.values()].map((list) => [fanoutKey.encode(list.key).toString("hex"), Buffer.concat(list.members)]),
  );
}

/** Without the last so many lists of groups. */
function withoutGroups(lists: ListsOfCell, count: number): ListsOfCell {
  const last = [...lists.keys()].filter((key) => isOfGroup(key)).slice(-count);
  const gone = new Set(count > 0 ? last : []);
  return new Map([...lists].filter(([key]) => !gone.has(key)));
}

/** The last word of a key, as its text ends. */
const groupIn = (group: Ipv4): string => fanoutKey.encode({ cell: 0, subnet: 0, group }).toString("hex").slice(-8);
const toEverybody = groupIn(everybody);
export const isOfGroup = (key: string): boolean => !key.endsWith(toEverybody);

/** All of it at once, by key. */
export const wantedLists = (global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): ListsOfCell =>
  new Map([...new Lists().of(global, deviceOf, joined).values()].flatMap((lists) => [...lists]));
