import type { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import type { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { quiet } from "../dataplane/dataplane.ts";
import { median, rangeOf } from "../measure.ts";
import { type Cloud, inCloud, until } from "./cloud.ts";
import { group, instance } from "./elastic.ts";
import { nowMs, Pinging } from "./pinging.ts";

/*
 * One of a cluster's two network hosts is gone: its process ends as it stands, and nothing comes through its cables any more. The other one may
 * carry the cluster once the lease is over.
 */

const elastic = "198.18.0.1";
const configuration = {
  Mode: "MANAGED-NOVLAN",
  InstanceDnsServers: ["10.111.0.9"],
  PublicIps: [elastic],
  ManagedSubnet: { Subnet: "10.9.0.0", Netmask: "255.255.240.0", MinVlan: 2, MaxVlan: 60, SegmentSize: 32 },
  Clusters: [{ Name: "one" }],
};
const addresses = { a: "10.111.1.1", b: "10.111.1.2", n: "10.111.1.3" } as const;
type Carrier = "a" | "b";
const cables = ["em1", "em2"] as const;
const everyMs = 10;
const settleMs = 8000;

interface Place {
  readonly outside: Machine;
  readonly hosts: Readonly<Record<Carrier, Machine>>;
  readonly node: Machine;
  readonly guest: Machine;
}
async function build(world: World): Promise<Place> {
  const make = async (): Promise<Machine> => {
    const machine = await world.machine();
    machine.run("sh", "-c", quiet);
    return machine;
  };
  const [outside, wire, a, b, node, guest] = [
    await make(),
    await make(),
    await make(),
    await make(),
    await make(),
    await make(),
  ];
  for (const [hub, name] of [
    [outside, "net"],
    [wire, "sw"],
  ] as const) {
    hub.run("ip", "link", "add", name, "type", "bridge", "mcast_snooping", "0");
    hub.run("ip", "link", "set", name, "addrgenmode", "none", "up");
  }
  const plug = (hub: Machine, name: string, machine: Machine, device: string, port: string): void => {
    hub.cable(port, machine, device);
    hub.run("ip", "link", "set", port, "master", name);
  };
  outside.run("ip", "address", "add", "10.111.0.1/16", "dev", "net");
  outside.run("ip", "route", "add", "198.18.0.0/24", "dev", "net");
  for (const [name, machine] of [
    ["a", a],
    ["b", b],
  ] as const) {
    plug(outside, "net", machine, "em1", `to-${name}`);
    plug(wire, "sw", machine, "em2", `to-${name}`);
    machine.run("ip", "address", "add", `${addresses[name]}/16`, "dev", "em1");
    machine.run("ip", "route", "add", "default", "via", "10.111.0.1");
  }
  plug(wire, "sw", node, "em2", "to-n");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  node.run("ip", "link", "set", "em2", "master", "br0");
  return { outside, hosts: { a, b }, node, guest };
}

async function start(cloud: Cloud, { hosts, node, guest }: Place): Promise<void> {
  const network = (name: Carrier) =>
    [
      { name, address: addresses[name], peer: "network", machine: "VNET_PUBINTERFACE=em1\nVNET_PRIVINTERFACE=em2\n" },
      hosts[name],
    ] as const;
  const machine = "VNET_PRIVINTERFACE=em2\nVNET_BRIDGE=br0\n";
  await cloud.start(configuration, [
    network("a"),
    network("b"),
    [{ name: "n", address: addresses.n, peer: "node", machine }, node],
  ]);
  await cloud.want("security-group/net", group);
  await cloud.want("instance/web", instance("n", { elastic: true }));
  await until("the instance has its addresses", () => {
    const known = cloud.instance("web");
    return known?.phase === "ready" && known.elastic?.address === elastic && known.elastic.reason === null;
  });
  await cloud.guestAt("n", guest, 27, (address) => address.replace(/\d+$/, (last) => String((Number(last) & ~31) + 1)));
}
const carries = (machine: Machine): boolean => machine.run("ip", "-4", "-o", "address").includes(elastic);

async function measure(world: World, cloud: Cloud, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const place = await build(world);
  await start(cloud, place);
  const { hosts, outside } = place;
  const [answered, named, placed]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < (quick ? 1 : 4); round += 1) {
    const active: Carrier = carries(hosts.a) ? "a" : "b";
    const other: Carrier = active === "a" ? "b" : "a";
    // Both have to be known to ask for their lease before one can take over.
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const pinging = new Pinging(outside, elastic, everyMs);
    try {
      await until("it answers", () => pinging.answersMs.length > 20);
      say(`${active} is gone`);
      await cloud.kill(active);
      for (const cable of cables) hosts[active].run("ip", "link", "set", "dev", cable, "down");
      const goneMs = nowMs();
      await until("the other one has the address", () => carries(hosts[other]), 60_000);
      placed.push(nowMs() - goneMs);
      await until("it answers again", () => pinging.firstAfter(goneMs + everyMs) !== undefined, 60_000);
      answered.push((pinging.firstAfter(goneMs + everyMs) ?? 0) - goneMs);
      const word = cloud.events.find(({ event, atMs }) => event === "network/host-named" && atMs >= goneMs);
      named.push((word?.atMs ?? Number.NaN) - goneMs);
      say(`${other} is named after ${named.at(-1)?.toFixed()} ms, and answers after ${answered.at(-1)?.toFixed()} ms`);
    } finally {
      await pinging.stop();
    }
    for (const cable of cables) hosts[active].run("ip", "link", "set", "dev", cable, "up");
    hosts[active].run("ip", "route", "replace", "default", "via", "10.111.0.1");
    await cloud.revive(active);
    await until("who is back carries nothing", () => !carries(hosts[active]));
  }
  const of = (what: string, values: readonly number[], atMost: number | null): Figure => {
    const seconds = values.map((ms) => ms / 1000);
    return { what, unit: "s", value: median(seconds), range: rangeOf(seconds), atMost };
  };
  return [
    of("from the end of a network host to the first answer by the other one", answered, 10),
    of("of this, until the lease is over and the other one is named", named, null),
    of("until the other one has the address", placed, null),
  ];
}

export const takeover: Bench = {
  title: "A network host is gone, and the other one takes over (MANAGED-NOVLAN)",
  method:
    "The Network View Manager, a cell's controller and three Host Managers with their agents (two network hosts of a cluster and a node), each " +
    "with its store and mutual TLS; their networks are namespaces with Debian's tools. The active network host's process is killed and its " +
    `cables are cut. From then until an answer of the guest comes to a machine outside, which asks its elastic address every ${everyMs} ms. Who ` +
    "was killed is the other one in the next round.",
  run: inCloud(measure),
};
