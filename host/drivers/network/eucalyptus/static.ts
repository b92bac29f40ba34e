import { networkOf } from "../../../../model/eucalyptus/addresses/ranges.ts";
import type { NetworkView } from "../../../../model/eucalyptus/view/network-view.ts";
import { dhcpPlan } from "./plan/dhcp.ts";
import { lookUp, unknownSelf } from "./plan/lookup.ts";
import { emptyPlan, frozen, type LocalConfiguration, type LocalPlan, type Self } from "./plan/plan.ts";

/** STATIC: a bridge on each node, and one DHCP server in the cluster, which gives each MAC its address. Nothing is isolated. */
export function planStatic(view: NetworkView, self: Self, local: LocalConfiguration): LocalPlan {
  const lookup = lookUp(view, self.address);
  const subnet = lookup.cluster?.subnet;
  if (self.peer === "node") return frozen(emptyPlan(view, self));
  if (lookup.cluster === null || subnet === undefined)
    return frozen(emptyPlan(view, self, [unknownSelf(self.address)]));
  const { first, last } = networkOf(subnet.subnet, subnet.netmask);
  const subnets = [
    { subnet: first, netmask: subnet.netmask, broadcast: last, router: subnet.gateway, device: local.privateInterface },
  ];
  const own = lookup.cluster.nodes.flatMap((node) => lookup.instancesOf(node));
  return frozen({ ...emptyPlan(view, self), dhcp: dhcpPlan(view, subnets, own) });
}
