import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { arp, ethernet, everyone, ip, udp } from "../../diverter/testing/frames.testing.ts";
import type { Agent, Machine } from "../../diverter/testing/namespaces.testing.ts";
import { planOf, soon, World } from "./world.testing.ts";

/*
 * MANAGED-NOVLAN with real packets: a node with three instances of two groups on one bridge, and the cluster's network host, which is the
 * gateway of both groups, gives addresses by DHCP and has the elastic ones.
 */

const recorded = readFileSync(join(import.meta.dirname, "..", "cases", "managed-02-two-groups", "gni.xml"), "utf8");
const own = /(<value>i-c1c2c3c4<\/value>)/;
const text = recorded
  .replace("<value>MANAGED</value>", "<value>MANAGED-NOVLAN</value>")
  .replace("<value>i-b1b2b3b4</value>", "")
  .replace(own, "$1<value>i-b1b2b3b4</value>");
const instances = [
  { tap: "vn_i-a7f05959", mac: "d0:0d:a7:f0:59:59", address: "1.111.32.9", gateway: "1.111.32.1" },
  { tap: "vn_i-c1c2c3c4", mac: "d0:0d:c1:c2:c3:c4", address: "1.111.32.10", gateway: "1.111.32.1" },
  { tap: "vn_i-b1b2b3b4", mac: "d0:0d:b1:b2:b3:b4", address: "1.111.32.25", gateway: "1.111.32.17" },
] as const;
const [first, second, other] = instances;
const [elastic, controller] = ["10.111.101.60", "10.111.1.50"] as const;

const world = new World();
const machines = new Map<string, Machine>();
const of = (name: string): Machine => machines.get(name) ?? assert.fail(name);
const guest = ({ tap }: { readonly tap: string }): Machine => of(tap);
const opens = (from: Machine, to: string, port: number): boolean =>
  from.succeeds("socat", "-u", "/dev/null", `TCP:${to}:${port},connect-timeout=1`);

let services: Readonly<Record<"network" | "node", ReturnType<World["service"]>>>;
const offered = async (peer: "network" | "node", address: string): Promise<void> => {
  const local = { privateInterface: "em2", bridgeMac: "02:00:00:00:00:FD" };
  await services[peer].offer({ mode: "MANAGED-NOVLAN", global: planOf(text, address, local, peer) });
  assert.deepEqual(services[peer].state.failed, {});
};

before(async () => {
  for (const name of ["node", "network", "outside", ...instances.map(({ tap }) => tap)])
    machines.set(name, await world.machine());
  const [node, network, outside] = [of("node"), of("network"), of("outside")];
  network.cable("em1", outside, "net");
  network.cable("em2", node, "em2");
  network.run("ip", "address", "add", "10.111.1.54/16", "dev", "em1");
  network.run("ip", "route", "add", "default", "via", controller);
  outside.run("ip", "address", "add", `${controller}/16`, "dev", "net");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  node.run("ip", "link", "set", "em2", "master", "br0");
  for (const { tap, mac } of instances) node.cable(tap, of(tap), "eth0", mac);
  for (const port of [22, 80]) world.spawn(guest(first), "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  world.spawn(outside, "socat", "TCP-LISTEN:8773,fork,reuseaddr", "PIPE");
  services = { network: world.service(network, "network"), node: world.service(node, "node") };
  await offered("network", "10.111.1.54");
  await offered("node", "10.111.1.173");
  for (const instance of instances) assert.ok(world.lease(guest(instance)), instance.address);
});
after(() => world.end());

test("MANAGED-NOVLAN: each instance has its address and gateway from the network host, of its group's segment", () => {
  for (const instance of instances) {
    assert.match(guest(instance).run("ip", "-4", "address"), new RegExp(`${instance.address}/28`));
    assert.match(guest(instance).run("ip", "route"), new RegExp(`default via ${instance.gateway}`));
    assert.ok(guest(instance).succeeds("ping", "-c", "1", "-W", "1", instance.gateway));
  }
});

test("MANAGED-NOVLAN: rules of groups, the elastic address, metadata and the way out", async () => {
  assert.ok(await soon(() => opens(guest(second), first.address, 22)));
  for (const [to, port, is] of [
    [first.address, 22, true],
    [first.address, 80, false],
    [elastic, 22, true],
    [elastic, 80, false],
    ["169.254.169.254", 80, true],
    [controller, 8773, true],
    ["10.111.1.54", 22, false],
  ] as const)
    assert.equal(opens(guest(other), to, port), is, `${to}:${port} from another group`);
  assert.ok(opens(guest(second), first.address, 80), "members of a group reach one another");
  assert.ok(opens(guest(first), elastic, 22), "the elastic address from its owner");
  assert.ok(opens(of("outside"), elastic, 22) && !opens(of("outside"), elastic, 80), "and from outside");
  assert.ok(opens(guest(second), controller, 8773), "out without one");
});

test("MANAGED-NOVLAN: two groups on one bridge do not reach each other past the gateway", async () => {
  const agents = new Map<string, Agent>([second, other].map((from) => [from.tap, world.agent(guest(from))]));
  const victim = await world.watch(guest(first), "eth0", "inbound");
  const frame = (
    from: (typeof instances)[number],
    port: number,
    source: string = from.address,
    to: string = first.mac,
  ) => ethernet(to, from.mac, 0x0800, ip(source, first.address, 17, udp(5000, port, Buffer.from("x"))));
  const sends = (from: (typeof instances)[number], ...frames: readonly string[]) =>
    agents.get(from.tap)?.call("inject", "eth0", frames);
  const honest = async (port: number): Promise<void> =>
    assert.ok(
      await soon(async () => {
        await sends(second, frame(second, port));
        return victim.text.includes(`.${port}: `);
      }),
      "a member's packet arrives",
    );
  await honest(6000);
  await sends(
    other,
    frame(other, 5001),
    frame(other, 5002, second.address),
    frame(other, 5003, "1.111.32.1"),
    frame(other, 5004, other.address, everyone),
  );
  await sends(second, frame(second, 5005, other.address));
  await honest(6001);
  for (const port of [5001, 5002, 5003, 5004, 5005]) assert.ok(!victim.text.includes(`.${port}: `), `${port}`);
});

test("MANAGED-NOVLAN: a node speaks to no instance of another node", async () => {
  const [node, wire] = [of("node"), of("network")];
  const address = "10.9.9.9";
  node.run("ip", "address", "add", `${address}/24`, "dev", "br0");
  const heard = await world.watch(wire, "em2", "arp");
  const agent = world.agent(wire);
  const asks = (mac: string, source: string): string => ethernet(everyone, mac, 0x0806, arp(1, mac, source, address));
  const answered = (source: string): boolean => heard.text.includes(`> ${source}, ethertype ARP`);
  const [stranger, instance] = ["02:00:00:00:00:77", "d0:0d:00:00:00:77"];
  await agent.call("inject", "em2", [asks(instance, "10.9.9.8")]);
  assert.ok(
    await soon(async () => {
      await agent.call("inject", "em2", [asks(stranger, "10.9.9.7")]);
      return answered(stranger);
    }),
    "the site's own machine is answered",
  );
  assert.ok(!answered(instance), heard.text);
});

test("MANAGED-NOVLAN: who is the network host no more has nothing of it, and a node of no cluster lets nobody through", async () => {
  const network = of("network");
  const place = (): string => [network.run("iptables-save"), network.run("ip", "-4", "-o", "address")].join("\n");
  assert.ok(place().includes(elastic) && place().includes("1.111.32.1/28"));
  await offered("network", "10.111.1.55");
  for (const gone of [elastic, "1.111.32.", "169.254.169.254", "sg-", "MASQUERADE"])
    assert.ok(!place().includes(gone), `${gone} in ${place()}`);
  assert.match(place(), /:FORWARD DROP/);
  await offered("network", "10.111.1.54");
  assert.ok(await soon(() => opens(of("outside"), elastic, 22)));
  await offered("node", "10.111.1.174");
  assert.ok(!opens(of("outside"), elastic, 22));
  assert.match(of("node").run("ebtables-nft-save"), /-A EUCA_EBT_NAT_PRE -i vn_i\+ -j DROP/);
  await offered("node", "10.111.1.173");
  assert.ok(await soon(() => opens(of("outside"), elastic, 22)));
});
