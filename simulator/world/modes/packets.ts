import { parseIpv4 } from "../../../model/addresses/addresses.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import { isManaged, isPlain } from "../../../model/cell/network/modes.ts";
import type { IngressRule, NetworkView } from "../../../model/eucalyptus/view/network-view.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Packet, Truth } from "../truth.ts";

/**
 * By the rules of groups in force where it leaves and where it arrives, in the MANAGED modes at the network host between; of another network nothing
 * comes and to none anything goes.
 */
export const sendByMode = (kernel: Kernel, truth: Truth, packet: Packet): boolean => {
  const { from, to, fromInterface, toInterface } = packet;
  const [source, target] = [fromInterface.instance, toInterface.instance];
  if (source === undefined || target === undefined) return false;
  const [leaves, arrives] = [truth.dataplane(from.host).mode, truth.dataplane(to.host).mode];
  // Nothing is kept from anybody, so no rule is asked, and what arrives says nothing of any.
  if (leaves.view !== null && isPlain(leaves.view.mode))
    return isIn(leaves.view, source) && isIn(arrives.view, target) && truth.machines.has(to);
  if (leaves.addresses.get(fromInterface.address) !== source) return false;
  if (arrives.addresses.get(toInterface.address) !== target || !truth.machines.has(to)) return false;
  const isManagedMode = leaves.view !== null && isManaged(leaves.view.mode);
  if (isManagedMode ? !goesByNetworkHost(kernel, truth, packet) : !goesByNodes(kernel, truth, packet)) return false;
  const cellOf = (view: NetworkView | null, id: string): number =>
    truth.cellNumbers.get(view?.instances.find((each) => each.id === id)?.owner ?? "") ?? 0;
  const [fromCell, toCell] = [cellOf(leaves.view, source), cellOf(arrives.view, target)];
  truth.tell((watcher) => watcher.delivered?.({ ...packet, fromCell, toCell }));
  return true;
};

const isOpen = (kernel: Kernel, one: HostName, other: HostName): boolean =>
  one === other || kernel.network.isOpen(one, other);
const goesByNodes = (kernel: Kernel, truth: Truth, packet: Packet): boolean => {
  const { from, to } = packet;
  const [leaves, arrives] = [truth.dataplane(from.host).mode.view, truth.dataplane(to.host).mode.view];
  if (!isOpen(kernel, from.host, to.host)) return false;
  return lets(leaves, "egress", packet) && lets(leaves, "ingress", packet) && lets(arrives, "ingress", packet);
};
/** Nodes have a VLAN for each group and ask no rule: what leaves a group goes by who carries the cluster, and by nobody if none does. */
const goesByNetworkHost = (kernel: Kernel, truth: Truth, packet: Packet): boolean => {
  const { from, to } = packet;
  const isOfOneGroup = [from, to].every(({ host }) => sharesGroup(truth.dataplane(host).mode.view, packet));
  if (isOfOneGroup) return isOpen(kernel, from.host, to.host);
  return [...truth.dataplanes].some(
    ([host, { mode }]) =>
      mode.carries !== null &&
      [from, to].every((end) => isOpen(kernel, end.host, host)) &&
      lets(mode.view, "egress", packet) &&
      lets(mode.view, "ingress", packet),
  );
};
const sharesGroup = (view: NetworkView | null, { fromInterface, toInterface }: Packet): boolean => {
  const [one = [], other = []] = [fromInterface, toInterface].map(
    ({ instance }) => view?.instances.find(({ id }) => id === instance)?.securityGroups,
  );
  return one.some((group) => other.includes(group));
};

const isIn = (view: NetworkView | null, instance: string): boolean =>
  view?.instances.some(({ id }) => id === instance) === true;

const lets = (view: NetworkView | null, way: "ingress" | "egress", packet: Packet): boolean => {
  const { fromInterface, toInterface, protocol, port } = packet;
  const groupsOf = (id: string | undefined): readonly string[] =>
    view?.instances.find((each) => each.id === id)?.securityGroups ?? [];
  const [froms, tos] = [groupsOf(fromInterface.instance), groupsOf(toInterface.instance)];
  const [own, others, address] =
    way === "ingress" ? [tos, froms, fromInterface.address] : [froms, tos, toInterface.address];
  // Members of a group reach one another.
  if (own.some((group) => others.includes(group))) return true;
  const meets = ({ cidr, group, ...rule }: IngressRule): boolean =>
    (rule.protocol === -1 ||
      (rule.protocol === (protocol === "tcp" ? 6 : 17) && rule.fromPort <= port && port <= rule.toPort)) &&
    (group !== undefined ? others.includes(group) : cidr !== undefined && isWithin(cidr, address));
  const groups = view?.securityGroups.filter(({ id }) => own.includes(id)) ?? [];
  return groups.some((group) => group[way].some(meets));
};
const isWithin = (cidr: string, address: string): boolean => {
  const [network = "", prefix = "32"] = cidr.split("/");
  const size = 2 ** (32 - Number(prefix));
  return Math.floor((parseIpv4(network) ?? 0) / size) === Math.floor((parseIpv4(address) ?? 0) / size);
};
