import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ethernet, everyone, ip, u16, udp } from "../../diverter/testing/frames.testing.ts";
import type { Agent, Machine } from "../../diverter/testing/namespaces.testing.ts";
import { planOf, soon, type Watched, World } from "./world.testing.ts";

/*
 * MANAGED with real packets: two clusters, each with a network host, and nodes behind a switch that lets tagged frames pass. Three instances
 * of two groups are in the first cluster, on two nodes; one of the first group is in the second cluster. Where the kernel has no 802.1Q devices
 * the programs for tags are tried, otherwise its own devices.
 */

const recorded = readFileSync(join(import.meta.dirname, "..", "cases", "managed-02-two-groups", "gni.xml"), "utf8");
const property = (name: string, value: string): string => `<property name="${name}"><value>${value}</value></property>`;
const cluster2 = `<cluster name="PARTI01">${property("enabledCCIp", "10.111.1.55")}${property("macPrefix", "d0:0d")}
  <property name="privateIps"/><property name="nodes"><node name="10.111.1.175"><instanceIds>
  <value>i-d1d2d3d4</value></instanceIds></node></property></cluster>`;
const instance4 = `<instance name="i-d1d2d3d4"><ownerId>061149015336</ownerId><macAddress>d0:0d:d1:d2:d3:d4</macAddress>
  <publicIp>0.0.0.0</publicIp><privateIp>1.111.32.11</privateIp><networkInterfaces/><securityGroups>
  <value>sg-e33c6cf3</value></securityGroups></instance>`;
const swapped = recorded
  .replace("i-c1c2c3c4</value>", "i-x</value>")
  .replace("i-b1b2b3b4</value>", "i-c1c2c3c4</value>");
const text = swapped
  .replace("i-x</value>", "i-b1b2b3b4</value>")
  .replace("</cluster>", `</cluster>${cluster2}`)
  .replace("</instances>", `${instance4}</instances>`);

const group = { name: "sg-e33c6cf3", tag: 514 } as const;
const otherGroup = { name: "sg-11aa22bb", tag: 515 } as const;
const instances = [
  { tap: "vn_i-a7f05959", mac: "d0:0d:a7:f0:59:59", address: "1.111.32.9", gateway: "1.111.32.1", node: "node1" },
  { tap: "vn_i-c1c2c3c4", mac: "d0:0d:c1:c2:c3:c4", address: "1.111.32.10", gateway: "1.111.32.1", node: "node2" },
  { tap: "vn_i-b1b2b3b4", mac: "d0:0d:b1:b2:b3:b4", address: "1.111.32.25", gateway: "1.111.32.17", node: "node1" },
  { tap: "vn_i-d1d2d3d4", mac: "d0:0d:d1:d2:d3:d4", address: "1.111.32.11", gateway: "1.111.32.2", node: "node3" },
] as const;
type Instance = (typeof instances)[number];
const [first, second, other, remote] = instances;
const [elastic, controller] = ["10.111.101.60", "10.111.1.50"] as const;
const services = {
  host1: "10.111.1.54",
  host2: "10.111.1.55",
  node1: "10.111.1.173",
  node2: "10.111.1.174",
  node3: "10.111.1.175",
};
type Name = keyof typeof services;

const world = new World();
const machines = new Map<string, Machine>();
const of = (name: string): Machine => machines.get(name) ?? assert.fail(name);
const guest = ({ tap }: Instance): Machine => of(tap);
const opens = (from: Machine, to: string, port: number): boolean =>
  from.succeeds("socat", "-u", "/dev/null", `TCP:${to}:${port},connect-timeout=1`);
const running = new Map<Name, ReturnType<World["service"]>>();
const serviceOf = (name: Name): ReturnType<World["service"]> => running.get(name) ?? assert.fail(name);
const offered = async (name: Name, view = text, address: string = services[name]): Promise<void> => {
  const peer = name.startsWith("host") ? "network" : "node";
  const global = planOf(view, address, { privateInterface: "em2", bridge: "", bridgeMac: "" }, peer);
  await serviceOf(name).offer({ mode: "MANAGED", global });
  assert.deepEqual(serviceOf(name).state.failed, {}, name);
};
/** Machines behind a switch of their own. */
const joined = (name: string, ...ports: readonly (readonly [machine: string, device: string])[]): void => {
  const hub = of(name);
  hub.run("ip", "link", "add", "sw", "type", "bridge");
  hub.run("ip", "link", "set", "sw", "addrgenmode", "none", "up");
  for (const [machine, device] of ports) {
    hub.cable(machine, of(machine), device);
    hub.run("ip", "link", "set", machine, "master", "sw");
  }
};

before(async () => {
  const switches = ["outside", "switch1", "switch2"];
  for (const name of [...switches, ...Object.keys(services), ...instances.map(({ tap }) => tap)])
    machines.set(name, await world.machine());
  joined("outside", ["host1", "em1"], ["host2", "em1"]);
  joined("switch1", ["host1", "em2"], ["node1", "em2"], ["node2", "em2"]);
  joined("switch2", ["host2", "em2"], ["node3", "em2"]);
  of("outside").run("ip", "address", "add", `${controller}/16`, "dev", "sw");
  for (const name of ["host1", "host2"] as const) {
    of(name).run("ip", "address", "add", `${services[name]}/16`, "dev", "em1");
    of(name).run("ip", "route", "add", "default", "via", controller);
  }
  for (const { tap, mac, node } of instances) of(node).cable(tap, of(tap), "eth0", mac);
  for (const machine of [guest(first), guest(remote)])
    for (const port of [22, 80]) world.spawn(machine, "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  world.spawn(of("outside"), "socat", "TCP-LISTEN:8773,fork,reuseaddr", "PIPE");
  for (const name of Object.keys(services) as Name[]) {
    running.set(name, world.service(of(name), name));
    await offered(name);
  }
  for (const instance of instances) assert.ok(world.lease(guest(instance)), instance.address);
});
after(() => world.end());

const agents = new Map<string, Agent>();
const sends = async ({ tap }: Instance, ...frames: readonly string[]): Promise<void> => {
  const agent = agents.get(tap) ?? world.agent(of(tap));
  agents.set(tap, agent);
  await agent.call("inject", "eth0", frames);
};
const datagram = (from: Instance, to: Instance, port: number, mac: string = to.mac): string =>
  ethernet(mac, from.mac, 0x0800, ip(from.address, to.address, 17, udp(5000, port, Buffer.from("x"))));
/** With a tag behind the MACs, or several. */
const tagged = (frame: string, ...tags: readonly number[]): string =>
  frame.slice(0, 24) + tags.map((tag) => `8100${u16(tag)}`).join("") + frame.slice(24);
/** What comes to an instance. By its MAC: `inbound` is unknown to the filter that sees a watch's first frames. */
const heardBy = (instance: Instance): Promise<Watched> =>
  world.watch(guest(instance), "eth0", "udp", "and", "not", "ether", "src", instance.mac);
const saw = ({ text: seen }: Watched, port: number): boolean => seen.includes(`.${port}: `);
/** A member's own packet arrives; so does whatever was sent before it. */
const honest = async (watched: Watched, to: Instance, port: number, from: Instance = second): Promise<void> =>
  assert.ok(
    await soon(async () => {
      await sends(from, datagram(from, to, port));
      return saw(watched, port);
    }),
    "a member's packet arrives",
  );

test("MANAGED: each instance has its address and gateway from its cluster's network host, by its group's VLAN", () => {
  for (const instance of instances) {
    assert.match(guest(instance).run("ip", "-4", "address"), new RegExp(`${instance.address}/28`));
    assert.match(guest(instance).run("ip", "route"), new RegExp(`default via ${instance.gateway}`));
    assert.ok(guest(instance).succeeds("ping", "-c", "1", "-W", "1", instance.gateway));
  }
  const bridges = (name: Name): string => of(name).run("ip", "-br", "link", "show", "type", "bridge");
  assert.ok(bridges("node1").includes(group.name) && bridges("node1").includes(otherGroup.name));
  assert.ok(bridges("node2").includes(group.name) && !bridges("node2").includes(otherGroup.name));
  // Which one a kernel has is said where it is known.
  const form = process.env.CELLS_TAG_FORM;
  const vlan = of("node1").run("ip", "-d", "link", "show", "dev", `vl_${group.tag}`);
  assert.match(vlan, form === "vlan" ? /vlan protocol 802\.1Q id 514/ : /ifb|vlan protocol 802\.1Q/);
  assert.ok(bridges("host2").includes(group.name) && !bridges("host2").includes(otherGroup.name));
});

test("MANAGED: rules of groups, the elastic address, metadata and the way out", async () => {
  assert.ok(await soon(() => opens(guest(second), first.address, 22)));
  for (const [to, port, is] of [
    [first.address, 22, true],
    [first.address, 80, false],
    [elastic, 22, true],
    [elastic, 80, false],
    ["169.254.169.254", 80, true],
    [controller, 8773, true],
    [services.host1, 22, false],
  ] as const)
    assert.equal(opens(guest(other), to, port), is, `${to}:${port} from another group`);
  assert.ok(opens(guest(second), first.address, 80), "members of a group reach one another");
  assert.ok(opens(guest(first), elastic, 22), "the elastic address from its owner");
  const outside = of("outside");
  assert.ok(opens(outside, elastic, 22) && !opens(outside, elastic, 80), "and from outside");
  outside.run("ip", "route", "add", "1.111.0.0/18", "via", services.host1);
  assert.ok(opens(outside, first.address, 22) && !opens(outside, first.address, 80), "no more than rules say");
  assert.match(of("host1").run("iptables-save"), /:FORWARD DROP/);
  const seen = await world.watch(outside, "sw", "tcp", "port", "8773");
  for (const [from, source] of [
    [second, services.host1],
    [first, elastic],
    [remote, services.host2],
  ] as const) {
    assert.ok(opens(guest(from), controller, 8773));
    assert.ok(await soon(() => seen.text.includes(`${source}.`)), `${from.address} comes from ${source}`);
  }
  assert.ok(!seen.text.includes("1.111.32."), "no private address outside");
});

test("MANAGED: a node answers its group's instances for no address of its own", () => {
  const address = "10.9.9.9";
  of("node1").run("ip", "address", "add", `${address}/32`, "dev", "lo");
  for (const from of [first, second])
    for (const [asked, is] of [
      [from.gateway, true],
      [address, false],
    ] as const)
      assert.equal(
        guest(from).succeeds("arping", "-c", "1", "-w", "1", "-I", "eth0", asked),
        is,
        `${asked} from ${from.node}`,
      );
});

test("MANAGED: what groups say has their tags on the underlay, and a frame of another group's tag dies", async () => {
  const wire = await world.watch(of("switch1"), "node1", "udp");
  const victim = await heardBy(first);
  await honest(victim, first, 6000);
  await sends(other, datagram(other, first, 6001, everyone), datagram(other, other, 6002, everyone));
  const line = (port: number): string => wire.text.split("\n").find((each) => each.includes(`.${port}: `)) ?? "";
  assert.ok(await soon(() => saw(wire, 6000) && saw(wire, 6002)));
  assert.match(line(6000), new RegExp(`vlan ${group.tag},`));
  assert.match(line(6002), new RegExp(`vlan ${otherGroup.tag},`));
  // From a guest: another group's tag, before its own and behind it, its own once more.
  const hops = [[group.tag], [otherGroup.tag, group.tag], [group.tag, group.tag], [otherGroup.tag], [0, group.tag]];
  for (const [at, tags] of hops.entries())
    for (const mac of [everyone, first.mac])
      await sends(other, tagged(datagram(other, first, 6010 + at, mac), ...tags));
  await honest(victim, first, 6003);
  for (const [at, tags] of hops.entries())
    assert.ok(!saw(victim, 6010 + at) && !saw(wire, 6010 + at), `tags ${tags.join()}: ${wire.text}`);
  assert.ok(!saw(victim, 6001) && !saw(victim, 6002), "nor without a tag");
  // The same from where tags are given arrives, and two of them do not.
  const underlay = world.agent(of("switch1"));
  const from = tagged(datagram(second, first, 6020), group.tag);
  const two = tagged(datagram(second, first, 6021), group.tag, group.tag);
  await underlay.call("inject", "node1", [two, from]);
  assert.ok(await soon(() => saw(victim, 6020)));
  assert.match(victim.text, /ethertype IPv4 \(0x0800\), length \d+: 1\.111\.32\.10\.5000 > 1\.111\.32\.9\.6020/);
  assert.ok(!saw(victim, 6021));
});

test("MANAGED: a group with members in two clusters is one, and nothing else crosses", async () => {
  const between = await world.watch(of("outside"), "host2", "udp", "port", "4789");
  const [far, near] = [await heardBy(remote), await heardBy(first)];
  assert.ok(await soon(() => opens(guest(second), remote.address, 80)), "a member in the other cluster");
  assert.ok(opens(guest(remote), first.address, 80), "and back");
  // The tunnel has less room than the wire: it says so, and the next one comes in parts.
  const large = ["ping", "-c", "1", "-W", "1", "-s", "1472", remote.address];
  assert.ok(await soon(() => guest(second).succeeds(...large)), "as large as ever");
  // Once each, at everybody: nothing goes in a circle.
  await sends(second, datagram(second, remote, 6100, everyone), datagram(second, remote, 6101, everyone));
  await honest(far, remote, 6102);
  await honest(near, first, 6103);
  for (const port of [6100, 6101])
    for (const [name, { text: seen }] of [
      ["far", far],
      ["near", near],
    ] as const)
      assert.equal(seen.split(`.${port}: `).length - 1, 1, `${port} at ${name}`);
  assert.ok(saw(between, 6100), "by the tunnel");
  // Of the other group, which has nobody there, and what is about addresses.
  await sends(other, datagram(other, other, 6104, everyone));
  assert.ok(world.lease(guest(second)) && world.lease(guest(remote)), "DHCP of each cluster");
  await honest(far, remote, 6105);
  assert.ok(!saw(between, 6104) && !saw(far, 6104));
  assert.ok(!between.text.includes("BOOTP"), between.text);
  // Whoever is no network host speaks to no tunnel.
  const outside = world.agent(of("outside"));
  const vxlan = (port: number): Buffer =>
    Buffer.from(`08000000${(group.tag << 8).toString(16).padStart(8, "0")}${datagram(second, remote, port)}`, "hex");
  const mac = (name: string, device: string): string =>
    (JSON.parse(of(name).run("ip", "-j", "link", "show", "dev", device)) as { address: string }[])[0]?.address ?? "";
  const inTunnel = (source: string, port: number): string =>
    ethernet(
      mac("host2", "em1"),
      mac("host1", "em1"),
      0x0800,
      ip(source, services.host2, 17, udp(5555, 4789, vxlan(port))),
    );
  // Nor an instance, which goes out with its network host's address.
  const [gatewayMac, within] = ["02:ce:01:6f:20:01", udp(5555, 4789, vxlan(6112))];
  await sends(second, ethernet(gatewayMac, second.mac, 0x0800, ip(second.address, services.host2, 17, within)));
  await outside.call("inject", "host2", [inTunnel("10.111.1.77", 6110), inTunnel(services.host1, 6111)]);
  assert.ok(await soon(() => saw(far, 6111)), "the same from the network host's address");
  assert.ok(!saw(far, 6110) && !saw(far, 6112));
});

test("MANAGED: what somebody takes away is back, and what nobody needs goes", async () => {
  const node = of("node1");
  const reaches = () => soon(() => opens(guest(second), first.address, 22));
  for (const command of [
    ["ip", "link", "delete", "dev", `vl_${group.tag}`],
    ["ip", "link", "set", "dev", group.name, "down"],
    ["ip", "link", "set", "dev", first.tap, "nomaster"],
  ]) {
    node.run(...command);
    await serviceOf("node1").look();
    assert.deepEqual(serviceOf("node1").state.failed, {});
    assert.ok(await reaches(), command.join(" "));
  }
  const host = of("host1");
  host.run("ip", "link", "delete", "dev", `vx_${group.tag}`);
  host.run("ip", "address", "flush", "dev", group.name);
  await serviceOf("host1").look();
  assert.ok(await soon(() => opens(guest(second), remote.address, 80)));
  assert.ok(await soon(() => opens(of("outside"), elastic, 22)));
  // The only member of the other group ends.
  const fewer = text.replace("<value>i-b1b2b3b4</value>", "");
  for (const name of ["host1", "node1"] as const) {
    await offered(name, fewer);
    const left = of(name).run("ip", "-br", "link");
    assert.ok(!left.includes(otherGroup.name) && !left.includes(`vl_${otherGroup.tag}`), left);
    assert.ok(left.includes(`vl_${group.tag}`));
  }
  assert.ok(await reaches());
  // Nobody has an elastic address any more.
  await offered("host1", text.replaceAll(/<publicIp>[^<]*</g, "<publicIp>0.0.0.0<"));
  assert.doesNotMatch(host.run("iptables-save", "-t", "nat"), /DNAT --to-destination 1\.111\.|MARK/);
  await offered("host1");
  // Another machine is the network host.
  await offered("host1", text, "10.111.1.56");
  const place = [host.run("iptables-save"), host.run("ip", "-o", "address"), host.run("ip", "-br", "link")].join("\n");
  for (const gone of [elastic, "1.111.32.", "169.254.169.254", "sg-", "MASQUERADE", "vl_", "vx_"])
    assert.ok(!place.includes(gone), `${gone} in ${place}`);
  assert.match(place, /:FORWARD DROP/);
  assert.ok(!opens(of("outside"), elastic, 22));
  await offered("host1");
  assert.ok(await soon(() => opens(of("outside"), elastic, 22)));
});

test("MANAGED: an instance that moves to another node keeps its addresses and its connections, and the node before keeps nothing", async () => {
  const [server, client, outside] = [world.agent(guest(first)), world.agent(guest(second)), world.agent(of("outside"))];
  await server.call("listen", 7001);
  assert.equal(await client.call("open", first.address, 7001), "open");
  assert.equal(await outside.call("open", elastic, 22), "open");
  const at = `<value>${first.tap.slice(3)}</value>`;
  const there = `<value>${second.tap.slice(3)}</value>`;
  const moved = text.replace(at, "").replace(there, `${there}${at}`);
  // As a machine does that goes on elsewhere, for which its hypervisor says by RARP where it is.
  const mac = first.mac.replaceAll(":", "");
  const announcement = ethernet(everyone, first.mac, 0x8035, `0001080006040003${mac}00000000${mac}00000000`);
  const goes = async (from: Name, to: Name, view: string): Promise<void> => {
    of(from).run("ip", "link", "set", "dev", first.tap, "netns", String(of(to).pid));
    // Its new node first, and the one before last.
    for (const name of [to, "host1", from] as const) await offered(name, view);
    await server.call("inject", "eth0", [announcement]);
  };
  const answers = async (): Promise<void> => {
    assert.ok(await soon(() => opens(of("outside"), elastic, 22)), "the elastic address answers");
    assert.ok(await client.call("echo", 10, 4000), "a member's connection goes on");
    assert.ok(await outside.call("echo", 10, 4000), "and one from outside to the elastic address");
    assert.ok(guest(first).succeeds("ping", "-c", "1", "-W", "1", first.gateway), "the gateway answers");
    assert.ok(world.lease(guest(first)), "it gets an address");
    assert.match(guest(first).run("ip", "-4", "address"), new RegExp(`inet ${first.address}/28`));
    assert.ok(opens(guest(first), elastic, 22), "its own elastic address");
  };
  const place = (name: Name): string =>
    [of(name).run("ip", "-br", "link"), of(name).run("ebtables-nft-save"), of(name).run("iptables-save")].join("\n");
  await goes("node1", "node2", moved);
  await answers();
  for (const gone of [first.tap, first.address, group.name, `vl_${group.tag}`])
    assert.ok(!place("node1").includes(gone), `${gone} in ${place("node1")}`);
  assert.ok(place("node1").includes(otherGroup.name) && place("node2").includes(first.tap));
  // And back, where the group was nobody's meanwhile.
  await goes("node2", "node1", text);
  await answers();
  assert.ok(!place("node2").includes(first.tap) && place("node2").includes(group.name));
});

test("MANAGED: a service that starts anew takes nothing away, and a machine that leaves keeps nothing", async () => {
  const [server, client] = [first, second].map(({ tap }) => world.agent(of(tap)));
  assert.ok(server !== undefined && client !== undefined);
  await server.call("listen", 7000);
  assert.equal(await client.call("open", first.address, 7000), "open");
  const place = (name: Name): string => of(name).run("ip", "-br", "link");
  // One that was made anew has another index. Whether a bridge counts as up follows its ports' carriers a moment later.
  const devices = (name: Name) =>
    of(name)
      .run("ip", "-o", "link")
      .match(/^\d+: [^:]+/gm);
  for (const name of ["node1", "node2", "host1"] as const) {
    await offered(name);
    const before = devices(name);
    assert.ok(before !== null && before.length > 4, `${before}`);
    running.set(name, world.service(of(name), name));
    await offered(name);
    assert.deepEqual(devices(name), before);
  }
  assert.ok(await client.call("echo", 10, 2000), "the connection is still open");
  await serviceOf("host2").leave();
  for (const gone of ["sg-", "vl_", "vx_"]) assert.ok(!place("host2").includes(gone), place("host2"));
  assert.ok(!of("host2").run("cat", "/proc/self/mountinfo").includes("cells-host2"));
  assert.ok(opens(guest(second), first.address, 80) && !opens(guest(second), remote.address, 80));
});
