import { networkOf } from "../../../../model/eucalyptus/addresses/ranges.ts";
import type { NetworkView } from "../../../../model/eucalyptus/view/network-view.ts";
import { dhcpPlan } from "./plan/dhcp.ts";
import { tapPlan } from "./plan/guard.ts";
import { lookUp, unknownSelf } from "./plan/lookup.ts";
import { emptyPlan, frozen, type LocalConfiguration, type LocalPlan, type Self } from "./plan/plan.ts";

/** Taps of this node's instances at the machine's own bridge, and nothing more: who is there speaks as the site's other machines do. */
export function planPlainNode(view: NetworkView, self: Self, local: LocalConfiguration, learns = false): LocalPlan {
  const lookup = lookUp(view, self.address);
  if (lookup.node === null) return frozen(emptyPlan(view, self, [unknownSelf(self.address)]));
  return frozen({
    ...emptyPlan(view, self),
    bridge: { name: local.bridge, mac: local.bridgeMac },
    learns,
    taps: lookup.instancesOf(lookup.node).map((instance) => tapPlan(instance, local.bridge)),
  });
}

/** STATIC: a bridge on each node, and one DHCP server in the cluster, which gives each MAC its address. Nothing is isolated. */
export function planStatic(view: NetworkView, self: Self, local: LocalConfiguration): LocalPlan {
  const lookup = lookUp(view, self.address);
  const subnet = lookup.cluster?.subnet;
  if (self.peer === "node") return planPlainNode(view, self, local);
  if (lookup.cluster === null || subnet === undefined)
    return frozen(emptyPlan(view, self, [unknownSelf(self.address)]));
  const { first, last } = networkOf(subnet.subnet, subnet.netmask);
  const subnets = [
    { subnet: first, netmask: subnet.netmask, broadcast: last, router: subnet.gateway, device: local.privateInterface },
  ];
  const own = lookup.cluster.nodes.flatMap((node) => lookup.instancesOf(node));
  return frozen({ ...emptyPlan(view, self), dhcp: dhcpPlan(view, subnets, own) });
}
