import { formatIpv4 } from "../../../../model/addresses/addresses.ts";
import { cidrOf, networkOf, prefixOfNetmask } from "../../../../model/eucalyptus/addresses/ranges.ts";
import type { Subnet } from "../../../../model/eucalyptus/configuration/effective.ts";
import type { Instance, NetworkView, SecurityGroup } from "../../../../model/eucalyptus/view/network-view.ts";
import { dhcpPlan } from "./plan/dhcp.ts";
import { guardTables, tapPlan } from "./plan/guard.ts";
import { matchOf, PublicAddresses, privateOf } from "./plan/ingress.ts";
import { type Lookup, lookUp, unknownSelf } from "./plan/lookup.ts";
import { planManyGroups } from "./plan/many-groups.ts";
import { metadataRule, metadataText } from "./plan/metadata.ts";
import { merged, ownGuard, ownSource, planInput, planMetadata, planOutgoing } from "./plan/own.ts";
import {
  type AddressSet,
  type DeviceAddress,
  emptyPlan,
  frozen,
  type LocalConfiguration,
  type LocalPlan,
  type Self,
  type Table,
} from "./plan/plan.ts";
import { addCounters, counted, filterTable, joined, natTable, type TableBuilder } from "./plan/tables.ts";

/*
 * EDGE: each node guards its own instances. One bridge with their taps; chains and sets of all groups of the cloud, so that a packet
 * dies where it is sent; public addresses of its own instances on the public interface.
 */

const hook = "EUCA_FILTER_FWD_PREUSERHOOK";
const [allPrivate, allOthers] = ["EUCA_ALLPRIVATE", "EUCA_ALLNONEUCA"] as const;
/** Of packets to private addresses, which keep their source. */
const privateMark = "0x2a";

export function planEdge(view: NetworkView, self: Self, local: LocalConfiguration): LocalPlan {
  // Network hosts carry nothing in this mode, and may have been something else before.
  if (self.peer === "network") return frozen({ ...emptyPlan(view, self), managed: publicOf(view, local) });
  const lookup = lookUp(view, self.address);
  const { cluster, node } = lookup;
  const own = node === null ? [] : lookup.instancesOf(node);
  const warnings: string[] = [];
  const [filter, nat] = [filterTable(), natTable()];
  const gateway = cluster?.subnet?.gateway ?? null;
  const sets = planGroups(view, lookup, own, gateway, filter, warnings);
  const subnet = cluster?.subnet;
  if (subnet === undefined) {
    warnings.push(unknownSelf(self.address));
    return frozen({
      ...emptyPlan(view, self, warnings),
      iptables: [nat.table(), filter.table()],
      sets,
      // It may have been in one before: what it had goes, and nobody is let through at the bridge.
      own: { iptables: [], ebtables: merged(guardTables([], null, null), ownGuard(null, true)) },
      managed: [...publicOf(view, local), ...gatewaysOf(view, local)],
    });
  }
  planAddresses(view, own, subnet, local, nat, filter);
  const { first, last } = networkOf(subnet.subnet, subnet.netmask);
  const dhcp =
    node === null
      ? null
      : dhcpPlan(
          view,
          [{ subnet: first, netmask: subnet.netmask, broadcast: last, router: subnet.gateway, device: local.bridge }],
          own,
        );
  const ebtables: readonly Table[] = guardTables(own, subnet.gateway, local.bridgeMac);
  const prefixLength = prefixOfNetmask(subnet.netmask) ?? 32;
  const gateways: readonly DeviceAddress[] =
    node === null || local.siteGateway
      ? []
      : [{ device: local.bridge, address: subnet.gateway, prefixLength, announced: false }];
  const isClosed = local.outgoingClosed && node !== null;
  const many = planManyGroups(view.securityGroups, lookup, hook, allPrivate);
  const fromInstances = `-i ${local.bridge} -m set --match-set ${allPrivate} src`;
  return frozen({
    ...emptyPlan(view, self, warnings),
    iptables: [nat.table(), filter.table()],
    sets,
    ebtables,
    own: {
      iptables: [
        planInput(
          fromInstances,
          local,
          own.filter(isPublic).flatMap(({ publicIp }) => publicIp ?? []),
        ),
        ...(local.metadataHere && node !== null ? [planMetadata(fromInstances)] : []),
        ...(isClosed ? [planOutgoing(view, lookup, own, hook, (id) => `-m set --match-set ${id} dst`, local)] : []),
        ...many.tables,
      ],
      sets: many.sets,
      ebtables: merged(ownGuard(local.siteGateway ? null : subnet.gateway, true), ownSource(own)),
    },
    dhcp,
    bridge: node === null ? null : { name: local.bridge, mac: local.bridgeMac },
    taps: own.map((instance) => tapPlan(instance, local.bridge)),
    holds: true,
    forwards: true,
    filtersBridges: true,
    addresses: [...gateways, ...publicAddresses(own, local)],
    managed: [...publicOf(view, local), ...gatewaysOf(view, local)],
  });
}
/** Elastic addresses, of which a machine has those alone that its plan has. */
const publicOf = ({ publicIps }: NetworkView, { publicInterface }: LocalConfiguration): LocalPlan["managed"] => [
  { device: publicInterface, ranges: publicIps },
];
/** Gateways of all clusters: a machine may have been in another one. */
const gatewaysOf = ({ clusters }: NetworkView, { siteGateway, bridge }: LocalConfiguration): LocalPlan["managed"] => {
  const gateways = new Set(clusters.flatMap(({ subnet }) => (subnet === undefined ? [] : [subnet.gateway])));
  return siteGateway ? [] : [{ device: bridge, ranges: [...gateways].map((first) => ({ first, last: first })) }];
};

class SetBuilder {
  readonly #sets = new Map<string, Set<string>>();
  set(name: string): Set<string> {
    const found = this.#sets.get(name) ?? new Set<string>();
    this.#sets.set(name, found);
    return found;
  }
  add(name: string, address: number): void {
    this.set(name).add(`${formatIpv4(address)}/32`);
  }
  all(): readonly AddressSet[] {
    return [...this.#sets].map(([name, members]) => ({ name, members: [...members] }));
  }
}
const localhost = 0x7f000001;

/** Sets and chains of all groups. */
function planGroups(
  view: NetworkView,
  lookup: Lookup,
  own: readonly Instance[],
  gateway: number | null,
  filter: TableBuilder,
  warnings: string[],
): readonly AddressSet[] {
  for (const chain of [hook, "EUCA_FILTER_FWD", "EUCA_FILTER_FWD_POSTUSERHOOK"]) {
    filter.chain(chain);
    filter.add("FORWARD", `-j ${chain}`);
  }
  addCounters(filter, "EUCA_FILTER_FWD");
  filter.add("EUCA_FILTER_FWD", "-m conntrack --ctstate ESTABLISHED -j ACCEPT");
  const sets = new SetBuilder();
  sets.add(allPrivate, localhost);
  sets.add(allOthers, localhost);
  for (const { subnet, netmask } of view.subnets) sets.set(allOthers).add(cidrOf(subnet, netmask));
  const locals = new PublicAddresses(own);
  for (const group of view.securityGroups) {
    const { id } = group;
    // A group that was named by a rule of one before is begun anew here, as the original does.
    sets.set(id).clear();
    if (gateway !== null) {
      sets.add(id, gateway);
      sets.add(allOthers, gateway);
    }
    for (const { privateIp, publicIp } of lookup.members(id)) {
      if (privateIp !== undefined) {
        sets.add(id, privateIp);
        sets.add(allPrivate, privateIp);
      }
      if (publicIp !== undefined) sets.add(id, publicIp);
    }
    filter.chain(id);
    filter.add("EUCA_FILTER_FWD", `-m set --match-set ${id} dst -j ${id}`);
    filter.add(id, `-m set --match-set ${id} src -j ACCEPT`);
    planRules(group, lookup, locals, filter, sets, warnings);
  }
  filter.add("EUCA_FILTER_FWD", `-m set --match-set ${allPrivate} dst -j DROP`);
  return sets.all();
}

function planRules(
  { id, ingress }: SecurityGroup,
  { groups }: Lookup,
  locals: PublicAddresses,
  filter: TableBuilder,
  sets: SetBuilder,
  warnings: string[],
): void {
  for (const rule of ingress) {
    if (rule.group !== undefined) {
      if (!groups.has(rule.group)) {
        warnings.push(
          `a rule of ${id} names the security group ${rule.group}, which is not in the view; it is left out`,
        );
        continue;
      }
      sets.add(rule.group, localhost);
      filter.add(id, joined(`-m set --match-set ${rule.group} src`, matchOf(rule), "-j ACCEPT"));
      continue;
    }
    filter.add(id, joined(matchOf(rule), "-j ACCEPT"));
    // A network that holds the public address alone: from the same node packets come with the private one, unless they keep it.
    for (const instance of rule.cidr === undefined ? [] : (locals.only(rule.cidr) ?? []))
      filter.add(id, joined(matchOf(rule, privateOf(instance)), `-m mark ! --mark ${privateMark} -j ACCEPT`));
  }
}

/** With a public address that is another one than the private. */
const isPublic = ({ publicIp, privateIp }: Instance): boolean =>
  publicIp !== undefined && privateIp !== undefined && publicIp !== privateIp;

function planAddresses(
  view: NetworkView,
  own: readonly Instance[],
  subnet: Subnet,
  { metadataPrivate, outgoingClosed }: LocalConfiguration,
  nat: TableBuilder,
  filter: TableBuilder,
): void {
  for (const [from, name] of [
    ["PREROUTING", "PRE"],
    ["POSTROUTING", "POST"],
    ["OUTPUT", "OUT"],
  ] as const)
    for (const end of ["_PREUSERHOOK", "", "_POSTUSERHOOK"]) {
      nat.chain(`EUCA_NAT_${name}${end}`);
      nat.add(from, `-j EUCA_NAT_${name}${end}`);
    }
  const network = cidrOf(subnet.subnet, subnet.netmask);
  const mark = `-j MARK --set-xmark ${privateMark}/0xffffffff`;
  if (metadataPrivate) nat.add("EUCA_NAT_PRE", `-s ${network} -d ${metadataText}/32 ${mark}`);
  for (const set of [allPrivate, allOthers])
    nat.add("EUCA_NAT_PRE", `-s ${network} -m set --match-set ${set} dst ${mark}`);
  counted(filter, network);
  // The original counts instances with a public address alone. Here each is a cell's, which is told what its machine sends.
  if (outgoingClosed)
    for (const instance of own)
      if (!isPublic(instance) && instance.privateIp !== undefined) counted(filter, `${privateOf(instance)}/32`);
  for (const instance of own.filter(isPublic)) {
    const [inside, outside] = [privateOf(instance), formatIpv4(instance.publicIp ?? 0)];
    nat.add("EUCA_NAT_PRE", `-d ${outside}/32 -j DNAT --to-destination ${inside}`);
    nat.add("EUCA_NAT_OUT", `-d ${outside}/32 -j DNAT --to-destination ${inside}`);
    nat.add("EUCA_NAT_POST", `-s ${inside}/32 -m mark ! --mark ${privateMark} -j SNAT --to-source ${outside}`);
    counted(filter, `${inside}/32`);
  }
  nat.add("EUCA_NAT_PRE", metadataRule(view.enabledClcIp));
}

const publicAddresses = (own: readonly Instance[], { publicInterface }: LocalConfiguration): readonly DeviceAddress[] =>
  own.filter(isPublic).map(({ publicIp }) => ({
    device: publicInterface,
    address: publicIp ?? 0,
    prefixLength: 32,
    announced: true,
  }));
