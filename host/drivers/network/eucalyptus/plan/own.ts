import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { IngressRule, Instance, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import { tapOf } from "./guard.ts";
import { matchOf } from "./ingress.ts";
import type { Lookup } from "./lookup.ts";
import { metadataPort, metadataText } from "./metadata.ts";
import type { AddressSet, LocalConfiguration, LocalPlan, Rule, Table, TunnelPlan } from "./plan.ts";
import { joined, TableBuilder } from "./tables.ts";

/*
 * What the original has not, in chains of other names beside its own: what instances may send, what of a node they reach, and what they
 * may not say at the bridge. There an instance could answer others' DHCP requests, since its rules for DHCP ask neither for an address nor
 * for a direction; and nothing kept it from a node's own services.
 */

export const ownPrefix = "CELLS_";
const [guard, asked, announced] = ["CELLS_GUARD", "CELLS_ASKED", "CELLS_ANNOUNCED"] as const;
const aloof = "CELLS_ALOOF";
const [leases, asking] = ["CELLS_LEASES", "CELLS_ASKING"] as const;
const [tunnelled, between] = ["CELLS_TUNNELS", "CELLS_BETWEEN"] as const;
const [input, outgoing, metadata] = ["CELLS_INPUT", "CELLS_OUTGOING", "CELLS_METADATA"] as const;

/** Where groups share one bridge, an instance that is held to its group's segment there: what is for others goes by the gateway. */
export interface GuardedSegment {
  readonly tap: string;
  /** `a.b.c.d/n` */
  readonly segment: string;
  /** Of instances: two bytes. */
  readonly macPrefix: string;
}
/**
 * At the bridge: no instance is a DHCP server, and with `gateway` none is heard by others' servers, and the gateway's address is known
 * to this machine's instances alone, since each node has it.
 */
export function ownGuard(
  gateway: number | null,
  isServed: boolean,
  segments: readonly GuardedSegment[] = [],
): readonly Table[] {
  const filter = new TableBuilder("filter", ["INPUT", "FORWARD", "OUTPUT"]);
  filter.chain(guard);
  filter.add("FORWARD", `-j ${guard}`);
  const ports = isServed ? "67:68" : "68";
  filter.add(guard, `-p IPv4 -i vn_i+ --ip-proto udp --ip-dport ${ports} -j DROP`);
  for (const { tap, segment, macPrefix } of segments) {
    // Who sends to all asks for an address, or speaks within its segment; to an instance's MAC goes what is for its segment.
    filter.add(guard, `-p IPv4 -i ${tap} -d Broadcast --ip-proto udp --ip-dport 67 -j ACCEPT`);
    for (const to of ["Multicast", macsOf(macPrefix)])
      filter.add(guard, `-p IPv4 -i ${tap} -d ${to} --ip-dst ! ${segment} -j DROP`);
  }
  if (gateway !== null) {
    for (const [chain, own, rule] of [
      ["INPUT", asked, `-i ! vn_i+ --arp-ip-dst`],
      ["OUTPUT", announced, `-o ! vn_i+ --arp-ip-src`],
    ] as const) {
      filter.chain(own);
      filter.add(chain, `-j ${own}`);
      filter.add(own, `-p ARP ${rule} ${formatIpv4(gateway)} -j DROP`);
    }
  }
  return [filter.table()];
}

const macsOf = (prefix: string): string => `${prefix}:00:00:00:00/FF:FF:00:00:00:00`;

/**
 * The original lets whatever goes to a port of DHCP pass before it asks for an address. Here who has none asks everybody, and all else there comes
 * from the instance's own: with another one, it would leave past the rules of all groups, which know instances by their addresses.
 */
export function ownSource(instances: readonly Instance[]): readonly Table[] {
  const nat = new TableBuilder("nat", ["PREROUTING"]);
  nat.chain(leases);
  nat.chain(asking);
  nat.add("PREROUTING", `-j ${leases}`);
  nat.add(leases, `-p IPv4 -i vn_i+ --ip-proto udp --ip-dport 67:68 -j ${asking}`);
  // Its end would let all pass.
  nat.add(leases, "-j RETURN");
  nat.add(asking, "-p IPv4 --ip-src 0.0.0.0 --ip-dst 255.255.255.255 --ip-proto udp --ip-dport 67 -j RETURN");
  for (const { id, privateIp } of instances)
    if (privateIp !== undefined)
      nat.add(asking, `-p IPv4 -i ${tapOf({ id })} --ip-src ${formatIpv4(privateIp)} -j RETURN`);
  nat.add(asking, "-j DROP");
  return [nat.table()];
}

/**
 * Of a node that is not the gateway of its instances: nothing that they say is for the machine itself, which would answer for each address that it
 * has, whatever device that is at. `vl_+`: instances of the same group on other nodes.
 * @param macPrefixes of instances (two bytes each), where those on other nodes come by the same device as the site's own machines
 */
export function planAloof(macPrefixes: readonly string[] = []): readonly Table[] {
  const filter = new TableBuilder("filter", ["INPUT"]);
  filter.chain(aloof);
  filter.add("INPUT", `-j ${aloof}`);
  for (const device of ["vn_i+", "vl_+"]) filter.add(aloof, `-i ${device} -j DROP`);
  for (const prefix of macPrefixes) filter.add(aloof, `-s ${macsOf(prefix)} -j DROP`);
  return [filter.table()];
}
/**
 * What instances reach of the machine itself: echoes, DHCP and, where it is their name server, names; where it answers for metadata, its answers.
 * @param from arguments for packets of instances, which come by a device and never from the machine itself
 * @param elastic addresses of instances that this machine has: what comes to one and is not translated is for nobody here
 */
export function planInput(
  from: string,
  { metadataHere }: Pick<LocalConfiguration, "metadataHere">,
  elastic: readonly number[] = [],
): Table {
  const filter = new TableBuilder("filter", ["INPUT"]);
  filter.chain(input);
  filter.add("INPUT", `-j ${input}`);
  for (const address of elastic) filter.add(input, `-d ${formatIpv4(address)}/32 -j DROP`);
  filter.add(input, "-m conntrack --ctstate ESTABLISHED -j RETURN");
  filter.add(input, `${from} -p icmp -m icmp --icmp-type 8 -j RETURN`);
  filter.add(input, `${from} -p udp -m udp --dport 67 -j RETURN`);
  for (const protocol of ["udp", "tcp"])
    filter.add(input, `${from} -d ${localResolver}/32 -p ${protocol} -m ${protocol} --dport 53 -j RETURN`);
  if (metadataHere)
    filter.add(
      input,
      `${from} -p tcp -m tcp --dport ${metadataPort} -m conntrack --ctorigdst ${metadataText} -j RETURN`,
    );
  filter.add(input, `${from} -j DROP`);
  return filter.table();
}
/**
 * Of tunnels between clusters: they are spoken to by the network hosts at their other ends alone, and each cluster has a DHCP server of its own,
 * which would say no to what the other's instances ask for. What goes out by a network host has its address: passed on to the other end, it would
 * be believed there, whatever group it names.
 */
export function planTunnels(tunnels: readonly TunnelPlan[]): {
  readonly [tool in "iptables" | "ebtables"]: readonly Table[];
} {
  if (tunnels.length === 0) return { iptables: [], ebtables: [] };
  const [filter, bridged] = [new TableBuilder("filter", ["INPUT", "FORWARD"]), new TableBuilder("filter", [])];
  filter.chain(tunnelled);
  filter.add("INPUT", `-j ${tunnelled}`);
  filter.chain(between);
  filter.add("FORWARD", `-j ${between}`);
  const port = `-p udp -m udp --dport ${tunnelPort}`;
  for (const remote of new Set(tunnels.flatMap(({ remotes }) => remotes)))
    for (const [chain, rule] of [
      [tunnelled, `-s ${remote}/32 ${port} -j RETURN`],
      [between, `-d ${remote}/32 ${port} -j DROP`],
    ] as const)
      filter.add(chain, rule);
  filter.add(tunnelled, `${port} -j DROP`);
  bridged.chain(tunnelled);
  for (const chain of ["INPUT", "FORWARD", "OUTPUT"]) {
    bridged.chain(chain, "ACCEPT");
    bridged.add(chain, `-j ${tunnelled}`);
  }
  for (const side of ["-i", "-o"])
    bridged.add(tunnelled, `-p IPv4 ${side} vx_+ --ip-proto udp --ip-dport 67:68 -j DROP`);
  return { iptables: [filter.table()], ebtables: [bridged.table()] };
}
/** VXLAN's. */
const tunnelPort = 4789;
/** What instances ask for metadata stays on this machine, before it could go to the cloud controller. @param from as for `planInput` */
export function planMetadata(from: string): Table {
  const nat = new TableBuilder("nat", ["PREROUTING"]);
  nat.chain(metadata);
  nat.add("PREROUTING", `-j ${metadata}`);
  nat.add(metadata, `${from} -d ${metadataText}/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports ${metadataPort}`);
  return nat.table();
}
/** Where instances ask for names if nobody says another address, as in EC2. */
const localResolver = "169.254.169.253";

/**
 * What instances of this machine may send beyond it: what a rule of one of their groups lets out, answers, and what all need (metadata,
 * names). Members of a group reach one another. A rule is about the address that the instance asked for, public or private.
 * @param from chain from which it is entered
 * @param matchGroup arguments for packets to members of a group; null: nobody knows them here
 * @param local of which networks no rule about a network, however wide, is
 * @param strangers arguments for packets of instances that are none of this machine's, where such ones come: no rule here lets them out
 */
export function planOutgoing(
  view: NetworkView,
  { groups }: Lookup,
  own: readonly Instance[],
  from: string,
  matchGroup: (group: string) => string | null,
  { underlay, underlayOpen, metadataHere }: Pick<LocalConfiguration, "underlay" | "underlayOpen" | "metadataHere">,
  strangers: string | null = null,
): Table {
  const filter = new TableBuilder("filter", ["FORWARD"]);
  filter.chain(from, from === "FORWARD" ? "ACCEPT" : null);
  filter.chain(outgoing);
  filter.add(from, `-j ${outgoing}`);
  filter.add(outgoing, "-m conntrack --ctstate ESTABLISHED -j RETURN");
  if (!metadataHere)
    filter.add(outgoing, `-d ${formatIpv4(view.enabledClcIp)}/32 -p tcp -m tcp --dport ${metadataPort} -j RETURN`);
  for (const server of view.instanceDnsServers)
    for (const protocol of ["udp", "tcp"])
      filter.add(outgoing, `-d ${formatIpv4(server)}/32 -p ${protocol} -m ${protocol} --dport 53 -j RETURN`);
  for (const { id, privateIp, securityGroups } of own) {
    if (privateIp === undefined) continue;
    const chain = `${ownPrefix}${id}`;
    filter.chain(chain);
    // What is let out goes on behind the chain from which all this was entered.
    filter.add(outgoing, `-s ${formatIpv4(privateIp)}/32 -g ${chain}`);
    const networks: string[] = [];
    for (const name of new Set(securityGroups)) {
      const group = groups.get(name);
      const members = matchGroup(name);
      if (members !== null) filter.add(chain, `${members} -j RETURN`);
      for (const rule of group?.egress ?? []) {
        const match = letOut(rule, matchGroup);
        if (match === null) continue;
        if (rule.group === undefined) networks.push(match);
        else filter.add(chain, `${match} -j RETURN`);
      }
    }
    for (const network of underlayOpen ? [] : underlay) filter.add(chain, `-d ${network} -j DROP`);
    for (const match of networks) filter.add(chain, `${match} -j RETURN`);
    filter.add(chain, "-j DROP");
  }
  if (strangers !== null) filter.add(outgoing, `${strangers} -j DROP`);
  return filter.table();
}

const letOut = (rule: IngressRule, matchGroup: (group: string) => string | null): string | null => {
  const { cidr, group, ...what } = rule;
  if (group === undefined && cidr === undefined) return null;
  const to = group === undefined ? `-m conntrack --ctorigdst ${cidr}` : matchGroup(group);
  return to === null ? null : joined(to, matchOf(what));
};

/** Tables as one of each name: chains of both, and the jumps of those that both have. */
export function merged(...parts: readonly (readonly Table[])[]): readonly Table[] {
  const tables = new Map<string, Map<string, Table["chains"][number]>>();
  for (const { name, chains } of parts.flat()) {
    const known = tables.get(name) ?? new Map<string, Table["chains"][number]>();
    tables.set(name, known);
    for (const chain of chains) {
      const before = known.get(chain.name);
      if (before === undefined) known.set(chain.name, chain);
      // The first says what becomes of the rest, and the second's jumps come before it takes anything.
      else known.set(chain.name, { ...before, rules: eachOnce([...chain.rules, ...before.rules]) });
    }
  }
  return [...tables].map(([name, chains]) => ({ name, chains: [...chains.values()] }));
}
/** A jump that both have stands where the second has it. */
const eachOnce = (rules: readonly Rule[]): readonly Rule[] => [
  ...new Map(rules.map((rule) => [rule.join(" "), rule])).values(),
];
/** All that a machine has to have in its tables. */
export const allTables = ({ iptables, ebtables, own }: LocalPlan): Pick<LocalPlan, "iptables" | "ebtables"> => ({
  iptables: merged(iptables, own.iptables),
  ebtables: merged(ebtables, own.ebtables),
});
export const allSets = ({ sets, own }: LocalPlan): readonly AddressSet[] => [...sets, ...(own.sets ?? [])];
