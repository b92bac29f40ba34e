import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Link, renamedDevices } from "../handlers/devices.ts";
import { planOf, soon, World } from "./world.testing.ts";

/* What the original's daemon has left on a node: taps by numbers, sets and chains by hashes. */

const world = new World();
after(() => world.end());
const recorded = join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1");
const text = (name: string): string => readFileSync(join(recorded, name), "utf8");
const [elastic, mac] = ["10.111.101.60", "d0:0d:a7:f0:59:59"] as const;

test("a node of the original is taken over while a connection is open", async () => {
  const [node, guest, outside] = [await world.machine(), await world.machine(), await world.machine()];
  const run = world.run(node);
  node.cable("em1", outside, "net");
  node.run("ip", "address", "add", "10.111.5.43/16", "dev", "em1");
  outside.run("ip", "address", "add", "10.111.9.9/16", "dev", "net");
  node.run("ip", "link", "add", "br0", "address", "02:00:00:00:00:fe", "type", "bridge");
  node.run("ip", "link", "set", "br0", "up");
  node.run("ip", "address", "add", "1.119.128.1/24", "dev", "br0");
  node.run("ip", "address", "add", `${elastic}/32`, "dev", "em1");
  node.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1");
  node.cable("vnet7", guest, "eth0", mac);
  // As libvirt has it: the instance's MAC with another first byte.
  node.run("ip", "link", "set", "vnet7", "address", "fe:0d:a7:f0:59:59", "master", "br0");
  guest.run("ip", "address", "add", "1.119.128.35/24", "dev", "eth0");
  guest.run("ip", "route", "add", "default", "via", "1.119.128.1");
  await run("ipset", ["restore"], text("ipset-restore.1.txt"));
  await run("iptables-restore", [], text("iptables-restore.txt").replaceAll("-m set --set ", "-m set --match-set "));
  assert.match(node.run("iptables-save"), /-A EU_/);
  const [server, client] = [world.agent(guest), world.agent(outside)];
  await server.call("listen", 22);
  assert.ok(await soon(async () => (await client.call("open", elastic, 22)) === "open"));
  assert.ok(await client.call("echo", 10, 2000));

  const service = world.service(node, "node");
  const plan = planOf(text("gni.xml"), "10.111.5.43", { bridgeMac: "02:00:00:00:00:FE" });
  await service.offer({ mode: "EDGE", global: plan });
  assert.deepEqual(service.state.failed, {});
  assert.match(node.run("ip", "link", "show", "dev", "vn_i-a7f05959"), /master br0/);
  assert.ok(!node.succeeds("ip", "link", "show", "dev", "vnet7"));
  const left = [node.run("iptables-save"), node.run("ipset", "save")].join("\n");
  assert.ok(!left.includes("EU_") && left.includes("-A sg-e33c6cf3"), left);
  assert.ok(await client.call("echo", 10, 2000), "the connection is still open");
  assert.equal(await client.call("open", elastic, 22), "open");
});

test("devices are renamed by MAC and by tag, and those of nobody here are left alone", () => {
  const link = (name: string, address = "", vlan: Partial<Link> = {}): readonly [string, Link] => {
    const more = { master: null, isUp: true, isHairpin: false, kind: null, addresses: new Set<string>() };
    const none = { index: 1, mtu: 1500, lower: null, number: null, local: null, remotes: new Set<string>() };
    return [name, { name, mac: address, ...more, ...none, ...vlan }];
  };
  const links = new Map([
    link("vnet0", "fe:0d:A7:f0:59:59"),
    link("vnet1", "fe:0d:00:00:00:01"),
    link("vnet2", "fe:0d:00:00:00:02"),
    link("vn_i-00000002"),
    link("eucabr514"),
    link("eucabr515"),
    link("em2.514", "", { kind: "vlan", lower: "em2", number: 514, master: "eucabr514" }),
    // One of the site's own, and one of another device.
    link("em2.700", "", { kind: "vlan", lower: "em2", number: 700 }),
    link("em1.514", "", { kind: "vlan", lower: "em1", number: 514 }),
  ]);
  const taps = ["vn_i-a7f05959", "vn_i-00000002"].map((name) => ({ name, bridge: "br0" }));
  const bridges = [{ name: "sg-e33c6cf3", tag: 514, gateway: null, prefixLength: 28 }];
  assert.deepEqual(
    renamedDevices({ taps, bridges, wire: "em2" }, { links }).map(({ device, name }) => `${device} ${name}`),
    ["vnet0 vn_i-a7f05959", "eucabr514 sg-e33c6cf3", "em2.514 vl_514"],
  );
  // By the tag alone it could be the site's own, by which the machine is reached.
  for (const [master, name] of [
    [null, undefined],
    ["management", undefined],
    ["sg-e33c6cf3", "vl_514"],
  ] as const) {
    const vlan = link("em2.514", "", { kind: "vlan", lower: "em2", number: 514, master });
    assert.equal(renamedDevices({ taps, bridges, wire: "em2" }, { links: new Map([vlan]) })[0]?.name, name);
  }
});
