import { formatIpv4 } from "../../../../model/addresses/addresses.ts";
import { defaultMacPrefix } from "../../../../model/cell/network/modes.ts";
import { cidrOf, networkOf, prefixOfNetmask } from "../../../../model/eucalyptus/addresses/ranges.ts";
import {
  firstTag,
  gatewayOf,
  lastSegment,
  type ManagedSubnet,
  netmaskOf,
  type Segment,
  segmentAt,
  segmentOf,
} from "../../../../model/eucalyptus/addresses/segments.ts";
import type { Cluster, Instance, NetworkView, SecurityGroup } from "../../../../model/eucalyptus/view/network-view.ts";
import { dhcpPlan } from "./plan/dhcp.ts";
import { guardTables, tapOf, tapPlan } from "./plan/guard.ts";
import { matchOf, PublicAddresses, privateOf } from "./plan/ingress.ts";
import { type Lookup, lookUp, unknownSelf } from "./plan/lookup.ts";
import { metadataAddress, metadataRule } from "./plan/metadata.ts";
import {
  type GuardedSegment,
  merged,
  ownGuard,
  ownSource,
  planAloof,
  planInput,
  planOutgoing,
  planTunnels,
} from "./plan/own.ts";
import {
  type BridgePlan,
  type DeviceAddress,
  emptyPlan,
  frozen,
  type LocalConfiguration,
  type LocalPlan,
  type Self,
  type Table,
  type TapPlan,
  type TunnelPlan,
} from "./plan/plan.ts";
import { addCounters, counted, filterTable, joined, natTable, type TableBuilder } from "./plan/tables.ts";

/*
 * MANAGED: each active security group has a segment of one subnet, and with it a VLAN. The cluster's network host is the gateway of
 * all of them: between groups, to the outside, and for public addresses. MANAGED-NOVLAN has the same rules, and its gateways on the
 * private interface, since all groups share one bridge there.
 */

/** Of packets from the subnet to a public address, which get a public source. */
const publicMark = "0x15";

interface Subnets {
  readonly subnet: ManagedSubnet;
  readonly cidr: string;
  readonly prefixLength: number;
  /** Of a group: that of its first member that is in one. */
  segmentOf(group: string): Segment | null;
}
const subnetsOf = (subnet: ManagedSubnet, lookup: Lookup): Subnets => {
  const known = new Map<string, Segment | null>();
  const find = (group: string): Segment | null => {
    for (const { privateIp } of lookup.members(group)) {
      const segment = privateIp === undefined ? null : segmentAt(subnet, privateIp);
      if (segment !== null) return segment;
    }
    return null;
  };
  return {
    subnet,
    cidr: cidrOf(subnet.subnet, subnet.netmask),
    prefixLength: prefixOfNetmask(netmaskOf(subnet)) ?? 32,
    segmentOf: (group) => {
      const found = known.get(group);
      if (found !== undefined) return found;
      const segment = find(group);
      known.set(group, segment);
      return segment;
    },
  };
};
const cidrOfSegment = ({ first }: Segment, { prefixLength }: Subnets): string => `${formatIpv4(first)}/${prefixLength}`;

export const planManaged = (view: NetworkView, self: Self, local: LocalConfiguration): LocalPlan =>
  plan(view, self, local, true);
export const planManagedNoVlan = (view: NetworkView, self: Self, local: LocalConfiguration): LocalPlan =>
  plan(view, self, local, false);

function plan(view: NetworkView, self: Self, local: LocalConfiguration, withVlans: boolean): LocalPlan {
  const lookup = lookUp(view, self.address);
  const { managedSubnet } = view;
  if (managedSubnet === undefined || lookup.cluster === null || (self.peer === "node" && lookup.node === null))
    return frozen(nobody(view, self, local, withVlans));
  const subnets = subnetsOf(managedSubnet, lookup);
  const nodes = self.peer === "node" ? (lookup.node === null ? [] : [lookup.node]) : lookup.cluster.nodes;
  const own = nodes.flatMap((node) => lookup.instancesOf(node));
  const named = new Set(own.flatMap(({ securityGroups }) => securityGroups));
  const groups = view.securityGroups.filter(({ id }) => named.has(id));
  const segments = allSegments(managedSubnet);
  if (self.peer === "node") {
    const bridges = withVlans ? bridgesOf(groups, subnets, null) : [];
    return frozen({
      ...emptyPlan(view, self),
      bridges,
      wire: withVlans ? local.privateInterface : "",
      // The paper's modes hold no instance to its MAC or address, and without VLANs nothing keeps groups apart at the bridge.
      ebtables: guardTables(own, null, null),
      own: {
        iptables: [],
        ebtables: merged(
          ownGuard(null, false, withVlans ? [] : guarded(own, subnets, lookup)),
          ownSource(own),
          planAloof(withVlans ? [] : [...new Set(view.clusters.map(macPrefixOf))]),
        ),
      },
      bridge: withVlans ? null : { name: local.bridge, mac: local.bridgeMac },
      taps: withVlans ? tapsOf(own, bridges, subnets) : own.map((instance) => tapPlan(instance, local.bridge)),
      holds: true,
      segments,
    });
  }
  return frozen(networkHost(view, self, { lookup, subnets, groups, own, segments }, local, withVlans));
}

/**
 * Of a machine that is in no cluster, or is not the active network host of one: it may have been before. What it had goes; a network host
 * passes nothing on between groups, and at a node's bridge nobody is let through.
 */
function nobody(view: NetworkView, self: Self, local: LocalConfiguration, withVlans: boolean): LocalPlan {
  const nothing = emptyPlan(view, self, [unknownSelf(self.address)]);
  if (self.peer === "node")
    return { ...nothing, own: { iptables: [], ebtables: merged(guardTables([], null, null), ownGuard(null, false)) } };
  const empty = (name: string, policy: "ACCEPT" | "DROP") => ({ name, policy, rules: [], isWhole: true }) as const;
  const nat = { name: "nat", chains: ["PREROUTING", "OUTPUT", "POSTROUTING"].map((name) => empty(name, "ACCEPT")) };
  const { managedSubnet } = view;
  const ranges = managedSubnet === undefined ? [] : [networkOf(managedSubnet.subnet, managedSubnet.netmask)];
  return {
    ...nothing,
    own: { iptables: [nat, { name: "filter", chains: [empty("FORWARD", "DROP")] }], ebtables: [] },
    managed: [
      { device: local.publicInterface, ranges: view.publicIps },
      {
        device: local.privateInterface,
        ranges: [...(withVlans ? [] : ranges), { first: metadataAddress, last: metadataAddress }],
      },
    ],
  };
}

const macPrefixOf = (cluster: Pick<Cluster, "macPrefix"> | null): string => cluster?.macPrefix ?? defaultMacPrefix;
const guarded = (own: readonly Instance[], subnets: Subnets, { cluster }: Lookup): readonly GuardedSegment[] =>
  own.flatMap((instance) => {
    const [group] = instance.securityGroups;
    const segment = group === undefined ? null : subnets.segmentOf(group);
    if (segment === null) return [];
    return [{ tap: tapOf(instance), segment: cidrOfSegment(segment, subnets), macPrefix: macPrefixOf(cluster) }];
  });

const allSegments = (subnet: ManagedSubnet): readonly Segment[] => {
  const last = lastSegment(subnet);
  return Array.from({ length: Math.max(0, last - firstTag + 1) }, (_, index) => segmentOf(subnet, firstTag + index));
};

/** One for each active group; of several with one segment, which no controller gives, the first has it. */
const bridgesOf = (
  groups: readonly SecurityGroup[],
  subnets: Subnets,
  cluster: number | null,
): readonly BridgePlan[] => {
  const taken = new Set<number>();
  return groups.flatMap(({ id }) => {
    const segment = subnets.segmentOf(id);
    if (segment === null || taken.has(segment.tag)) return [];
    taken.add(segment.tag);
    const gateway = cluster === null ? null : gatewayOf(segment, cluster);
    return [{ name: id, tag: segment.tag, gateway, prefixLength: subnets.prefixLength }];
  });
};
/** Each instance is at the bridge of the segment in which its address is. */
const tapsOf = (own: readonly Instance[], bridges: readonly BridgePlan[], subnets: Subnets): readonly TapPlan[] => {
  const names = new Map(bridges.map(({ tag, name }) => [tag, name]));
  return own.flatMap((instance) => {
    const { privateIp } = instance;
    const segment = privateIp === undefined ? null : segmentAt(subnets.subnet, privateIp);
    const bridge = segment === null ? undefined : names.get(segment.tag);
    return bridge === undefined ? [] : [tapPlan(instance, bridge)];
  });
};
/** Of each group with members in other clusters, where these are. */
function elsewhere(view: NetworkView, { cluster }: Lookup): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  const groupsOf = new Map(view.instances.map(({ id, securityGroups }) => [id, securityGroups]));
  for (const other of view.clusters) {
    if (other === cluster) continue;
    const groups = other.nodes.flatMap(({ instances }) => instances.flatMap((id) => groupsOf.get(id) ?? []));
    for (const group of groups) found.set(group, (found.get(group) ?? new Set()).add(formatIpv4(other.enabledCcIp)));
  }
  return new Map([...found].map(([group, hosts]) => [group, [...hosts]]));
}

interface Parts {
  readonly lookup: Lookup;
  readonly subnets: Subnets;
  readonly groups: readonly SecurityGroup[];
  readonly own: readonly Instance[];
  readonly segments: readonly Segment[];
}

function networkHost(
  view: NetworkView,
  self: Self,
  { lookup, subnets, groups, own, segments }: Parts,
  local: LocalConfiguration,
  withVlans: boolean,
): LocalPlan {
  const { subnet, cidr } = subnets;
  const [filter, nat] = [filterTable(), natTable()];
  const warnings: string[] = [];
  filter.chain("FORWARD", "DROP");
  addCounters(filter, "FORWARD");
  filter.add("FORWARD", "-m conntrack --ctstate ESTABLISHED -j ACCEPT");
  filter.add("FORWARD", `! -d ${cidr} -j ACCEPT`);
  counted(filter, cidr);
  const everywhere = new PublicAddresses(view.instances);
  for (const group of groups) planGroup(group, lookup, subnets, everywhere, filter, warnings);
  planAddresses(view, own, subnets, nat, filter);
  const bridges = bridgesOf(groups, subnets, lookup.clusterIndex);
  const others = elsewhere(view, lookup);
  if (!withVlans)
    for (const { name } of bridges)
      if (others.has(name))
        warnings.push(`${name} has members in several clusters, which reach one another in MANAGED alone`);
  const tunnels: readonly TunnelPlan[] =
    !withVlans || local.tunnelsDisabled
      ? []
      : bridges.flatMap(({ name, tag }) => {
          const remotes = others.get(name);
          return remotes === undefined ? [] : [{ tag, bridge: name, local: self.address, remotes }];
        });
  const tunnelled = planTunnels(tunnels);
  // No view says what the wires of two clusters have in common.
  if (tunnels.length > 0)
    warnings.push(
      `${tunnels.map(({ bridge }) => bridge).join(", ")} ${tunnels.length === 1 ? "has" : "have"} a tunnel to other clusters: where ${local.privateInterface} shares its VLANs with theirs, frames go in a circle, and DISABLE_TUNNELING=Y is needed at all network hosts`,
    );
  // The original declares the subnets of all groups of the view as soon as its cluster has an instance.
  const declared = own.length === 0 ? [] : view.securityGroups.flatMap(({ id }) => subnets.segmentOf(id) ?? []);
  const deviceOf = (tag: number): string | null => {
    const bridge = bridges.find((each) => each.tag === tag);
    return bridge === undefined ? null : withVlans ? bridge.name : local.privateInterface;
  };
  const dhcpSubnets = [...new Map(declared.map((segment) => [segment.tag, segment])).values()].map((segment) => ({
    subnet: segment.first,
    netmask: netmaskOf(subnet),
    broadcast: segment.last,
    router: gatewayOf(segment, lookup.clusterIndex),
    device: deviceOf(segment.tag),
  }));
  const outside: readonly DeviceAddress[] = own.flatMap(({ publicIp }) =>
    publicIp === undefined
      ? []
      : [{ device: local.publicInterface, address: publicIp, prefixLength: 32, announced: true }],
  );
  const inside: readonly DeviceAddress[] = bridges.map(({ name, gateway, prefixLength }) => ({
    device: withVlans ? name : local.privateInterface,
    address: gateway ?? 0,
    prefixLength,
    announced: withVlans,
  }));
  const toGroup = (group: string): string | null => {
    const segment = subnets.segmentOf(group);
    return segment === null ? null : `-d ${cidrOfSegment(segment, subnets)}`;
  };
  // A member of a group that is in another cluster is at the same bridge, and could take this cluster's gateway.
  const strangers = withVlans ? "-i sg-+" : `-s ${cidr}`;
  const service = { device: local.privateInterface, address: metadataAddress, prefixLength: 32, announced: false };
  return {
    ...emptyPlan(view, self, warnings),
    iptables: [withWhole(nat.table(), "OUTPUT"), filter.table()],
    dhcp: dhcpPlan(view, dhcpSubnets, own),
    bridges: withVlans ? bridges : [],
    wire: withVlans ? local.privateInterface : "",
    tunnels,
    own: {
      iptables: [
        ...tunnelled.iptables,
        planInput(`! -i lo -s ${cidr}`, { metadataHere: false }),
        ...(local.outgoingClosed ? [planOutgoing(view, lookup, own, "FORWARD", toGroup, local, strangers)] : []),
      ],
      ebtables: tunnelled.ebtables,
    },
    forwards: true,
    // Seen at a group's bridge, what an instance sends to its own public address would be bridged, and not come back by the port by which it came.
    filtersBridges: !withVlans,
    addresses: [...outside, ...inside, service],
    managed: [
      { device: local.publicInterface, ranges: view.publicIps },
      ...(withVlans ? bridges.map(({ name }) => name) : [local.privateInterface]).map((device) => ({
        device,
        ranges: [networkOf(subnet.subnet, subnet.netmask)],
      })),
    ],
    segments,
  };
}

/** Without an elastic address the chain has no rule, and those of the last one are not the site's own. */
const withWhole = ({ name, chains }: Table, whole: string): Table => ({
  name,
  chains: chains.map((chain) => (chain.name === whole ? { ...chain, isWhole: true } : chain)),
});
function planGroup(
  { id, ingress }: SecurityGroup,
  lookup: Lookup,
  subnets: Subnets,
  everywhere: PublicAddresses,
  filter: TableBuilder,
  warnings: string[],
): void {
  const segment = subnets.segmentOf(id);
  if (segment === null) {
    warnings.push(`no instance of the security group ${id} has an address of a segment; it has no rules`);
    return;
  }
  const to = cidrOfSegment(segment, subnets);
  filter.chain(id);
  filter.add("FORWARD", `-j ${id}`);
  filter.add("FORWARD", `-s ${to} -d ${to} -j ACCEPT`);
  const members = new Set(lookup.members(id).map(({ publicIp }) => publicIp));
  for (const rule of ingress) {
    if (rule.group !== undefined) {
      const from = lookup.groups.has(rule.group) ? subnets.segmentOf(rule.group) : null;
      if (from === null)
        warnings.push(`a rule of ${id} names the security group ${rule.group}, which has no segment; it is left out`);
      else filter.add(id, joined(`-s ${cidrOfSegment(from, subnets)} -d ${to}`, matchOf(rule), "-j ACCEPT"));
      continue;
    }
    const hidden = rule.cidr === undefined ? null : everywhere.only(rule.cidr);
    // A network that holds a public address alone: what comes with the private one has asked for a public address of ours.
    for (const instance of hidden ?? [])
      if (!members.has(instance.publicIp))
        filter.add(
          id,
          joined(`-d ${to}`, matchOf(rule, privateOf(instance)), `-m mark --mark ${publicMark} -j ACCEPT`),
        );
    const mark = hidden === null ? "" : `-m mark ! --mark ${publicMark}`;
    filter.add(id, joined(`-d ${to}`, matchOf(rule), mark, "-j ACCEPT"));
  }
}

function planAddresses(
  { enabledClcIp }: NetworkView,
  own: readonly Instance[],
  { cidr }: Subnets,
  nat: TableBuilder,
  filter: TableBuilder,
): void {
  nat.add("PREROUTING", metadataRule(enabledClcIp));
  for (const { publicIp, privateIp } of own) {
    if (privateIp === undefined) continue;
    const inside = formatIpv4(privateIp);
    counted(filter, `${inside}/32`);
    if (publicIp === undefined) continue;
    const outside = formatIpv4(publicIp);
    for (const chain of ["PREROUTING", "OUTPUT"]) {
      nat.add(chain, `-s ${cidr} -d ${outside}/32 -j MARK --set-xmark ${publicMark}/0xffffffff`);
      nat.add(chain, `-d ${outside} -j DNAT --to-destination ${inside}`);
    }
    nat.add("POSTROUTING", `-s ${inside}/32 ! -d ${cidr} -j SNAT --to-source ${outside}`);
    nat.add("POSTROUTING", `-s ${inside}/32 -m mark --mark ${publicMark} -j SNAT --to-source ${outside}`);
    nat.add("POSTROUTING", `-s ${inside}/32 -d ${inside}/32 -j SNAT --to-source ${outside}`);
  }
  nat.add("POSTROUTING", `! -d ${cidr} -s ${cidr} -j MASQUERADE`);
}
