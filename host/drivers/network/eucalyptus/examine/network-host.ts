import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { isManaged } from "../../../../../model/cell/network/modes.ts";
import { segmentAt } from "../../../../../model/eucalyptus/addresses/segments.ts";
import type { Cluster, Instance, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { PacketCheck, PacketQuestion } from "../../driver.ts";
import type { DeviceAddress } from "../plan/plan.ts";
import type { Packet } from "./judge.ts";
import { type InstanceKnowledge, pass, stop } from "./knowledge.ts";

/*
 * In the MANAGED modes what leaves a group goes by the cluster's network host, where the rules of groups, the gateways and elastic addresses are: a node
 * says which host that is, and whoever asks goes on to it.
 */

type Between = PacketQuestion & { readonly side: "behind-sender" | "before-receiver" };
export const isBetween = (question: PacketQuestion): question is Between =>
  question.side === "behind-sender" || question.side === "before-receiver";
/** Whose end it is about. */
export const endOf = ({ side }: Pick<PacketQuestion, "side">): "source" | "destination" =>
  side === "sender" || side === "behind-sender" ? "source" : "destination";

export const unknownBetween: readonly PacketCheck[] = [
  stop(
    "network-host",
    "no view that has come to this host names it as one that carries a cluster: what goes by it is dropped",
  ),
];
/** Wherever it is. */
export const instanceOf = ({ instances }: NetworkView, address: string): Instance | null => {
  const number = parseIpv4(address);
  return instances.find(({ privateIp, publicIp }) => privateIp === number || publicIp === number) ?? null;
};
const clusterOf = ({ clusters }: NetworkView, { id }: Instance): Cluster | undefined =>
  clusters.find(({ nodes }) => nodes.some(({ instances }) => instances.includes(id)));
const sharesGroup = (one: Instance, other: Instance): boolean =>
  one.securityGroups.some((group) => other.securityGroups.includes(group));
const isPrivate = (view: NetworkView, address: string): boolean => {
  const number = parseIpv4(address);
  return view.managedSubnet !== undefined && number !== null && segmentAt(view.managedSubnet, number) !== null;
};

/** Of a node: who says what rules make of the packet. Null: this node does. */
export function toNetworkHost({ view }: InstanceKnowledge, question: PacketQuestion): readonly PacketCheck[] | null {
  if (view.mode === "EDGE") return null;
  if (!isManaged(view.mode))
    return [pass("no-rules", `the mode ${view.mode} has no rules of groups: nothing keeps its instances apart`)];
  const [from, to] = [instanceOf(view, question.source), instanceOf(view, question.destination)];
  const own = question.side === "sender" ? from : to;
  const cluster = own === null ? undefined : clusterOf(view, own);
  if (from !== null && to !== null && to.privateIp === parseIpv4(question.destination) && sharesGroup(from, to))
    return [pass("group", "both are members of one group, which reach one another without a network host")];
  // It comes by the tunnel of its group, from where its sender's network host has let it pass.
  const isAcross = from !== null && isPrivate(view, question.destination) && clusterOf(view, from) !== cluster;
  if (cluster === undefined || (question.side === "receiver" && isAcross)) return [];
  const address = formatIpv4(cluster.enabledCcIp);
  if (cluster.enabledCcIp === 0 || cluster.nodes.some(({ name }) => name === address))
    return [
      stop(
        "network-host",
        `no host carries the cluster ${cluster.name} now, and all that leaves a group goes by one: a host of that cluster has to be one of "peer": "network", and be heard`,
      ),
    ];
  return [
    { ...pass("network-host", `it goes by the network host of the cluster ${cluster.name}`, address), ask: address },
  ];
}

type Judge = (knowledge: InstanceKnowledge, packet: Packet, own: Instance) => readonly PacketCheck[];

/** Of a network host. */
export function examineBetween(knowledge: InstanceKnowledge, question: Between, judged: Judge): readonly PacketCheck[] {
  const { view, self, plan } = knowledge;
  const cluster = view.clusters.find(({ enabledCcIp }) => formatIpv4(enabledCcIp) === self.address);
  if (!isManaged(view.mode) || self.peer !== "network" || cluster === undefined) return unknownBetween;
  const [from, to] = [instanceOf(view, question.source), instanceOf(view, question.destination)];
  const own = endOf(question) === "source" ? from : to;
  const asked = addressAsked(question, from, to);
  if (own === null) return unknownBetween;
  if (asked === null)
    return [
      stop(
        "address",
        `the instance ${own.id} has no elastic address, by which alone it is reached from outside: its Subnet needs x.addressRange "external"`,
      ),
    ];
  const isHere = (instance: Instance | null): instance is Instance =>
    instance !== null && clusterOf(view, instance)?.name === cluster.name;
  const [outside] = plan.managed;
  const deviceOf = (instance: Instance | null): string | null =>
    isHere(instance) ? (gatewayOf(knowledge, instance)?.device ?? null) : null;
  const packet: Packet = {
    source: from?.privateIp ?? parseIpv4(question.source) ?? 0,
    destination: asked,
    asked,
    protocol: question.protocol,
    port: question.protocol === "icmp" ? 0 : (question.port ?? 0),
    mark: 0,
    from: deviceOf(from) ?? outside?.device ?? null,
    to: deviceOf(to),
    mac: null,
  };
  const lacking = [
    // Whose another cell's address is, and whether it or its gateway is in place, is not for who asks.
    ...(isHere(from) && from.owner === own.owner ? lacks(knowledge, gatewayOf(knowledge, from), "the gateway") : []),
    ...(isHere(to) && to.owner === own.owner && asked === to.publicIp && asked !== to.privateIp
      ? lacks(
          knowledge,
          plan.addresses.find(({ address }) => address === asked),
          "the elastic address",
        )
      : []),
  ];
  return [...lacking, ...judged(knowledge, packet, own)];
}

/** Who is outside knows an instance by its elastic address; null: it has none. */
function addressAsked({ destination }: PacketQuestion, from: Instance | null, to: Instance | null): number | null {
  const number = parseIpv4(destination);
  if (from !== null || to === null || to.privateIp !== number) return number;
  return to.publicIp === undefined || to.publicIp === to.privateIp ? null : to.publicIp;
}

/** Of an instance's segment. */
function gatewayOf({ view, plan }: InstanceKnowledge, { privateIp }: Instance): DeviceAddress | undefined {
  const segment =
    view.managedSubnet === undefined || privateIp === undefined ? null : segmentAt(view.managedSubnet, privateIp);
  return segment === null
    ? undefined
    : plan.addresses.find(({ address }) => segment.first < address && address < segment.last);
}

function lacks(
  { found: { devices } }: InstanceKnowledge,
  wanted: DeviceAddress | undefined,
  what: string,
): readonly PacketCheck[] {
  if (wanted === undefined) return [stop("address", `${what} is not in the view that has come to this host`)];
  const link = devices.links.get(wanted.device);
  const text = `${formatIpv4(wanted.address)}/${wanted.prefixLength}`;
  const why =
    link === undefined
      ? `there is no device ${wanted.device}`
      : !link.isUp
        ? `the device ${wanted.device} is down`
        : link.addresses.has(text)
          ? null
          : `the device ${wanted.device} does not have it`;
  const address = formatIpv4(wanted.address);
  return [
    why === null
      ? pass("address", `${what} ${address} is at ${wanted.device}`)
      : stop("address", `${what} ${address} is not in place: ${why}; it is put in place anew within 5 seconds`),
  ];
}
