import type { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import type { Json } from "../../model/json/json.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { quiet } from "../dataplane/dataplane.ts";
import { median, rangeOf } from "../measure.ts";
import { type Cloud, inCloud, until } from "./cloud.ts";
import { nowMs, Pinging } from "./pinging.ts";

const elastic = "198.18.0.1";
const configuration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.111.0.9"],
  PublicIps: [elastic],
  Subnets: [{ Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.9.0.10-10.9.0.99"] }],
};
const echoes = { protocol: 1, fromPort: 0, toPort: 0, icmpType: -1, icmpCode: -1, cidr: "0.0.0.0/0" };
export const group: Json = { uid: "net", cell: "shop", ingress: [echoes], egress: [] };
export const instance = (host: string, more: { readonly [field: string]: Json } = {}): Json => {
  return { uid: "web", cell: "shop", path: "shop/web", host, groups: ["net"], ...more };
};
/** Between two questions from outside. */
const everyMs = 5;

async function measure(world: World, cloud: Cloud, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const [node, outside, guest] = [await world.machine(), await world.machine(), await world.machine()];
  for (const machine of [node, outside, guest]) machine.run("sh", "-c", quiet);
  node.cable("em1", outside, "net");
  node.run("ip", "address", "add", "10.111.1.1/16", "dev", "em1");
  node.run("ip", "route", "add", "default", "via", "10.111.0.1");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  outside.run("ip", "address", "add", "10.111.0.1/16", "dev", "net");
  outside.run("ip", "route", "add", "198.18.0.0/24", "dev", "net");
  const machine = "VNET_PUBINTERFACE=em1\nVNET_BRIDGE=br0\n";
  await cloud.start(configuration, [[{ name: "h1", address: "10.111.1.1", peer: "node", machine }, node]]);
  await cloud.want("security-group/net", group);
  await cloud.want("instance/web", instance("h1"));
  await until("the instance has its address", () => cloud.instance("web")?.phase === "ready");
  await cloud.guestAt("h1", guest, 24, () => "10.9.0.1");
  say("an instance runs, and asks for an elastic address again and again");
  const [times, told]: [number[], number[]] = [[], []];
  for (let round = 0; round < (quick ? 3 : 30); round += 1) {
    const has = (address: string | null): boolean => {
      const given = cloud.instance("web")?.elastic;
      return address === null ? given === undefined : given?.address === address && given.reason === null;
    };
    const pinging = new Pinging(outside, elastic, everyMs);
    try {
      await new Promise((resolve) => setTimeout(resolve, 100 + 37 * (round % 7)));
      if (pinging.answersMs.length > 0) throw new Error("it answers before it is anybody's");
      const beganMs = nowMs();
      await cloud.want("instance/web", instance("h1", { elastic: true }));
      await until("it answers", () => pinging.firstAfter(beganMs) !== undefined);
      times.push((pinging.firstAfter(beganMs) ?? 0) - beganMs);
      await until("it is said to be in place", () => has(elastic));
      told.push(nowMs() - beganMs);
    } finally {
      await pinging.stop();
    }
    await cloud.want("instance/web", instance("h1"));
    await until("it is nobody's again", () => has(null) && !node.run("ip", "-4", "-o", "address").includes(elastic));
    outside.run("ip", "neigh", "flush", "to", elastic);
  }
  const of = (what: string, values: readonly number[], atMost: number | null): Figure => {
    return { what, unit: "ms", value: median(values), range: rangeOf(values), atMost };
  };
  return [
    of("from the request to the first answer from outside", times, 500),
    of("until it answers and its cell knows that it is in place", told, null),
  ];
}

export const elasticAddress: Bench = {
  title: "An elastic address, from the request to the first answer from outside (EDGE)",
  method:
    "The Network View Manager, a cell's controller and a Host Manager with its agent, each with its store and mutual TLS; the node's network is " +
    "a namespace with Debian's tools, the guest and whoever is outside are namespaces, too. From when the controller is asked to say that its " +
    `VM is to have one until an answer comes to a machine outside, which asks every ${everyMs} ms and does not know before where the address is. ` +
    "The address is given back after each round.",
  run: inCloud(measure),
};
