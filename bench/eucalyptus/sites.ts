import { ethernet, ip, udp } from "../../host/drivers/network/diverter/testing/frames.testing.ts";
import type { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import type { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import { tapOf } from "../../host/drivers/network/eucalyptus/plan/guard.ts";
import { localDefaults, type Self } from "../../host/drivers/network/eucalyptus/plan/plan.ts";
import { planFor } from "../../host/drivers/network/eucalyptus/planners.ts";
import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { segmentOf } from "../../model/eucalyptus/addresses/segments.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { buildView } from "../../model/eucalyptus/view/build-view.ts";
import type { IngressRule, NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import { quiet } from "../dataplane/dataplane.ts";
import type { PacketPath } from "../dataplane/packet-program.ts";
import { id, macOf, tcpRule } from "./views.ts";

/*
 * Two nodes behind a switch under the rules of Eucalyptus, and guests there that send each other packets. All that a host of a cell has in
 * place is in place: what instances send needs a rule, too.
 */

/** A way from a guest of one node to one of the other. */
export interface SiteWay {
  readonly path: PacketPath;
  /** The receiver answers each flow of the path once: from then on they are connections. */
  answer(): Promise<void>;
}
interface Instance {
  readonly id: string;
  readonly cluster: "one";
  readonly node: string;
  readonly mac: string;
  readonly privateIp: number;
  readonly securityGroups: readonly string[];
}
const [port, firstSource, flows] = [7000, 20_000, 64] as const;
const names = { a: "10.111.1.1", b: "10.111.1.2", host: "10.111.1.3", elsewhere: "10.111.1.4" } as const;
type Name = keyof typeof names;
/** Of the switch. */
const portOf = (name: Name): string => `to-${name}`;
const instance = (number: number, node: Name, privateIp: number, group: number): Instance => ({
  id: id("i", number),
  cluster: "one",
  node: names[node],
  mac: macOf(number),
  privateIp,
  securityGroups: [id("sg", group)],
});
/** Any network inside. */
const inside = "10.0.0.0/8";
const udpRule: IngressRule = { ...tcpRule(port, inside), protocol: 17 };
const built = (
  configuration: NetworkConfiguration,
  instances: readonly Instance[],
  ingressOf: (group: number) => readonly IngressRule[],
): NetworkView => {
  const groups = [...new Set(instances.flatMap(({ securityGroups }) => securityGroups))];
  const view = buildView(configuration, {
    clusters: [{ name: "one", ccIp: 0x0a6f0103, nodes: [names.a, names.b, names.elsewhere] }],
    clcIp: 0x0a6f0109,
    dnsDefault: [0xa9fea9fd],
    instances,
    securityGroups: groups.map((group, at) => ({ id: group, owner: "o", egress: [udpRule], ingress: ingressOf(at) })),
  });
  if (view === null) throw new Error(`the mode ${configuration.mode} has no view`);
  return view;
};

const bridgeMacs = { a: "02:00:00:00:00:FA", b: "02:00:00:00:00:FB", host: "", elsewhere: "" } as const;
/** As a host of a cell has it in place (`closedFor` of the agent). */
const closed = { outgoingClosed: true, metadataHere: true } as const;

class Site {
  readonly #world: World;
  readonly #name: string;
  readonly machines = new Map<Name, Machine>();
  #wire: Machine | null = null;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
  }
  of(name: Name): Machine {
    const machine = this.machines.get(name);
    if (machine === undefined) throw new Error(`there is no machine ${name}`);
    return machine;
  }
  get wire(): Machine {
    if (this.#wire === null) throw new Error("there is no wire");
    return this.#wire;
  }
  /** Machines behind a switch, by that device of theirs. */
  async start(device: string, ...all: readonly Name[]): Promise<void> {
    this.#wire = await this.#world.machine();
    this.wire.run("sh", "-c", `${quiet}ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up`);
    for (const name of all) {
      const machine = await this.#world.machine();
      this.machines.set(name, machine);
      machine.run("sh", "-c", quiet);
      this.wire.cable(portOf(name), machine, device);
      this.wire.run("ip", "link", "set", portOf(name), "master", "br0");
    }
  }
  async offer(name: Name, view: NetworkView, more: Partial<typeof localDefaults>): Promise<void> {
    const self: Self = { address: names[name], peer: name === "host" ? "network" : "node" };
    const global = planFor(view, self, { ...localDefaults, ...closed, bridgeMac: bridgeMacs[name], ...more });
    const service = this.#world.service(this.of(name), `${this.#name}-${name}`);
    await service.offer({ mode: view.mode, global });
    const [why] = [...service.state.missing, ...Object.values(service.state.failed)];
    if (why !== undefined) throw new Error(`${this.#name}, ${name}: ${why}`);
  }
  /** A guest with a network stack, in place of its tap. */
  async guest(node: Name, own: Instance): Promise<Machine> {
    const machine = await this.#world.machine();
    this.of(node).cable(tapOf(own), machine, "eth0", own.mac.toLowerCase());
    machine.run("sh", "-c", quiet);
    machine.run("ip", "address", "add", `${formatIpv4(own.privateIp)}/32`, "dev", "eth0");
    return machine;
  }
  /** It knows where the other one is. */
  introduce(guest: Machine, other: Instance, nextMac: string): void {
    const address = formatIpv4(other.privateIp);
    guest.run("ip", "route", "add", address, "dev", "eth0");
    guest.run("ip", "neigh", "add", address, "lladdr", nextMac, "dev", "eth0", "nud", "permanent");
  }
  /** Nobody has spoken yet, and a bridge that does not know where to floods. */
  knows(machine: Machine, mac: string, device: string): void {
    machine.run("bridge", "fdb", "replace", mac.toLowerCase(), "dev", device, "master", "static");
  }
  /** Both ends send to these: each other, or their gateways. */
  way(
    [from, sender]: readonly [Instance, Machine],
    [to, receiver]: readonly [Instance, Machine],
    [there, back]: readonly [string, string],
  ): SiteWay {
    const [source, destination] = [formatIpv4(from.privateIp), formatIpv4(to.privateIp)];
    const agent = this.#world.agent(receiver);
    const frames = Array.from({ length: flows }, (_, flow) =>
      ethernet(
        back,
        to.mac,
        0x0800,
        ip(destination, source, 17, udp(port, firstSource + flow, Buffer.from("an answer"))),
      ),
    );
    return {
      path: {
        from: { pid: sender.pid, tap: "-", mac: from.mac, address: source },
        to: { pid: receiver.pid, tap: "-", address: destination },
        nextMac: there,
      },
      answer: async () => {
        await agent.call("inject", "eth0", frames);
      },
    };
  }
}

/** Of one machine's rules in a chain: packets that were let pass as parts of connections. */
const acceptedOf = (machine: Machine, chain: string): number =>
  machine
    .run("iptables", "-t", "filter", "-nvxL", chain)
    .split("\n")
    .filter((line) => line.includes("ESTABLISHED"))
    .reduce((sum, line) => sum + Number(line.trim().split(/\s+/)[0]), 0);

export interface EdgeSite {
  /** Of connections. */
  readonly answered: SiteWay;
  /** Of flows that nobody has answered: each packet meets the rules. */
  readonly unanswered: SiteWay;
  /** At both nodes together. */
  accepted(): number;
}
/** EDGE with so many groups of three rules; the receivers' stands in the middle. Each group has an instance somewhere. */
export async function edgeSite(world: World, groups: number): Promise<EdgeSite> {
  const site = new Site(world, `edge${groups}`);
  await site.start("em1", "a", "b");
  const base = 0x0a000000;
  const subnet = { name: "s", subnet: base, netmask: 0xffff0000, gateway: base + 1 };
  const configuration: NetworkConfiguration = {
    mode: "EDGE",
    publicIps: [{ first: 0xc6120000, last: 0xc61200ff }],
    subnets: [subnet],
    clusters: [{ name: "one", subnet: { name: "s" }, privateIps: [{ first: base + 2, last: base + 60_000 }] }],
  };
  const middle = Math.floor(groups / 2);
  const others = Array.from({ length: groups }, (_, group) => instance(group, "elsewhere", base + 100 + group, group));
  const pairs = [0, 1].map((pair) => {
    const number = groups + 2 * pair;
    return [
      instance(number, "a", base + 10 + 2 * pair, 0),
      instance(number + 1, "b", base + 11 + 2 * pair, middle),
    ] as const;
  });
  const view = built(configuration, [...others, ...pairs.flat()], (group) => [
    ...[22, 80].map((each) => tcpRule(each, `192.0.${group % 256}.0/24`)),
    group === middle ? udpRule : tcpRule(443, inside),
  ]);
  for (const name of ["a", "b"] as const) {
    const node = site.of(name);
    node.run("ip", "link", "add", "br0", "type", "bridge");
    node.run("ip", "link", "set", "em1", "master", "br0");
  }
  const ends: (readonly [Machine, Machine])[] = [];
  for (const [from, to] of pairs) ends.push([await site.guest("a", from), await site.guest("b", to)]);
  for (const name of ["a", "b"] as const) await site.offer(name, view, { publicInterface: "br0" });
  const ways = pairs.map(([from, to], at) => {
    const [sender, receiver] = ends[at] as readonly [Machine, Machine];
    site.introduce(sender, to, to.mac);
    site.introduce(receiver, from, from.mac);
    for (const [own, node, peer] of [
      [from, "a", "b"],
      [to, "b", "a"],
    ] as const) {
      site.knows(site.wire, own.mac, portOf(node));
      site.knows(site.of(node), own.mac, tapOf(own));
      site.knows(site.of(peer), own.mac, "em1");
    }
    return site.way([from, sender], [to, receiver], [to.mac, from.mac]);
  });
  const chain = "EUCA_FILTER_FWD";
  const [answered, unanswered] = ways as [SiteWay, SiteWay];
  return { answered, unanswered, accepted: () => acceptedOf(site.of("a"), chain) + acceptedOf(site.of("b"), chain) };
}

export interface ManagedSite {
  /** From a member of a group to another one, in the group's VLAN. */
  readonly within: SiteWay;
  /** To a member of another group, by the network host; of connections. */
  readonly between: SiteWay;
  /** At the network host. */
  accepted(): number;
  /** How VLANs are made here. */
  readonly form: string;
}
/** MANAGED with two groups. */
export async function managedSite(world: World): Promise<ManagedSite> {
  const site = new Site(world, "managed");
  await site.start("em2", "a", "b", "host");
  site.of("host").run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
  const managedSubnet = { subnet: 0x0a100000, netmask: 0xfffff000, minVlan: 2, maxVlan: 60, segmentSize: 32 };
  const configuration: NetworkConfiguration = {
    mode: "MANAGED",
    publicIps: [{ first: 0xc6120000, last: 0xc61200ff }],
    subnets: [],
    managedSubnet,
    clusters: [{ name: "one" }],
  };
  const [tag, otherTag] = [10, 11] as const;
  const at = (of: number, index: number): number => segmentOf(managedSubnet, of).first + 8 + index;
  const [from, to, sender, far] = [
    instance(1, "a", at(tag, 1), 0),
    instance(2, "b", at(tag, 2), 0),
    instance(3, "a", at(tag, 3), 0),
    instance(4, "b", at(otherTag, 1), 1),
  ];
  const view = built(configuration, [from, to, sender, far], () => [udpRule]);
  const guests = {
    from: await site.guest("a", from),
    to: await site.guest("b", to),
    sender: await site.guest("a", sender),
    far: await site.guest("b", far),
  };
  for (const name of ["host", "a", "b"] as const)
    await site.offer(name, view, { privateInterface: "em2", bridge: "", bridgeMac: "" });
  const host = site.of("host");
  const macOfDevice = (device: string): string =>
    (JSON.parse(host.run("ip", "-j", "link", "show", "dev", device)) as { readonly address: string }[])[0]?.address ??
    "";
  const [gateway, otherGateway] = [macOfDevice(id("sg", 0)), macOfDevice(id("sg", 1))] as const;
  for (const [own, node] of [
    [from, "a"],
    [to, "b"],
    [sender, "a"],
    [far, "b"],
  ] as const) {
    const [group = ""] = own.securityGroups;
    const vlan = `vl_${group === id("sg", 0) ? tag : otherTag}`;
    site.knows(site.wire, own.mac, portOf(node));
    site.knows(site.of(node), own.mac, tapOf(own));
    site.knows(host, own.mac, vlan);
    const address = [formatIpv4(own.privateIp), "lladdr", own.mac.toLowerCase(), "dev", group, "nud", "permanent"];
    host.run("ip", "neigh", "replace", ...address);
  }
  site.knows(site.of("a"), to.mac, `vl_${tag}`);
  site.knows(site.of("b"), from.mac, `vl_${tag}`);
  for (const [mac, node, vlan] of [
    [gateway, "a", `vl_${tag}`],
    [otherGateway, "b", `vl_${otherTag}`],
  ] as const) {
    site.knows(site.of(node), mac, vlan);
    site.knows(site.wire, mac, portOf("host"));
  }
  site.introduce(guests.from, to, to.mac);
  site.introduce(guests.to, from, from.mac);
  site.introduce(guests.sender, far, gateway);
  site.introduce(guests.far, sender, otherGateway);
  const kind = site.of("a").run("ip", "-d", "link", "show", "dev", `vl_${tag}`);
  return {
    within: site.way([from, guests.from], [to, guests.to], [to.mac, from.mac]),
    between: site.way([sender, guests.sender], [far, guests.far], [gateway, otherGateway]),
    accepted: () => acceptedOf(host, "FORWARD"),
    form: kind.includes("802.1Q")
      ? "the kernel's 802.1Q devices"
      : "eBPF programs, since the kernel has no 802.1Q devices",
  };
}
