import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import { readAllocation } from "../../../../../model/eucalyptus/allocation/allocation.ts";
import { arp, dhcp, ethernet, everyone, ip } from "../../diverter/testing/frames.testing.ts";
import type { Agent, Machine } from "../../diverter/testing/namespaces.testing.ts";
import { allocationFile, machineFile, startAgent, viewFile } from "../agent/agent.ts";
import { steadyMs } from "../agent/steady.ts";
import { planOf, soon, World } from "./world.testing.ts";

/*
 * STATIC and SYSTEM with real packets: a node whose bridge is a port of the site's own network, two instances of two groups on it, the cluster's
 * network host, and a machine of the site's.
 */

const recorded = readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8");
const mode = (name: string): string => recorded.replace("<value>EDGE</value>", `<value>${name}</value>`);
const instances = [
  { tap: "vn_i-a7f05959", mac: "d0:0d:a7:f0:59:59", address: "1.119.128.35" },
  { tap: "vn_i-c1c2c3c4", mac: "d0:0d:c1:c2:c3:c4", address: "1.119.128.37" },
] as const;
const [first, second] = instances;
const stranger = "02:00:00:00:00:77";

const world = new World();
const machines = new Map<string, Machine>();
const of = (name: string): Machine => machines.get(name) ?? assert.fail(name);
let services: Readonly<Record<"network" | "node", ReturnType<World["service"]>>>;
const offered = async (peer: "network" | "node", address: string, name = "STATIC"): Promise<void> => {
  const bridgeMac = (JSON.parse(of("node").run("ip", "-j", "link", "show", "dev", "br0")) as { address: string }[])[0];
  const local = { privateInterface: "em1", bridgeMac: bridgeMac?.address ?? "" };
  await services[peer].offer({ mode: name, global: planOf(mode(name), address, local, peer) });
  assert.deepEqual(services[peer].state.failed, {});
};
const reaches = (from: Machine, to: string): boolean => from.succeeds("ping", "-c", "1", "-W", "1", to);

before(async () => {
  for (const name of ["node", "network", "site", ...instances.map(({ tap }) => tap)])
    machines.set(name, await world.machine());
  const [node, network, site] = [of("node"), of("network"), of("site")];
  site.run("ip", "link", "add", "lan", "type", "bridge");
  site.run("ip", "link", "set", "lan", "addrgenmode", "none", "up");
  site.cable("host", network, "em1");
  site.cable("node", node, "em1");
  for (const port of ["host", "node"]) site.run("ip", "link", "set", port, "master", "lan");
  site.run("ip", "address", "add", "1.119.128.1/24", "dev", "lan");
  network.run("ip", "address", "add", "1.119.128.2/24", "dev", "em1");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  node.run("ip", "link", "set", "em1", "master", "br0");
  for (const { tap, mac } of instances) node.cable(tap, of(tap), "eth0", mac);
  services = { network: world.service(network, "network"), node: world.service(node, "node") };
});
after(() => world.end());

test("STATIC: each instance has the address of its MAC from the network host, and the site's router", async () => {
  await offered("network", "10.111.5.36");
  await offered("node", "10.111.5.43");
  for (const { tap, address } of instances) {
    assert.ok(world.lease(of(tap)), address);
    assert.match(of(tap).run("ip", "-4", "address"), new RegExp(`inet ${address}/24`));
    assert.match(of(tap).run("ip", "route"), /default via 1\.119\.128\.1 /);
    assert.ok(reaches(of(tap), "1.119.128.1"));
    assert.ok(reaches(of("site"), address));
  }
  assert.ok(reaches(of(first.tap), second.address), "nothing keeps two groups apart");
  const lease = of(first.tap).run("sh", "-c", "cat /run/lease-*");
  assert.match(lease, /1\.119\.128\.35 24 1\.119\.128\.1 10\.111\.5\.27 eucalyptus\.internal/);
  assert.equal(of("node").run("ebtables-nft-save").includes("EUCA"), false);
});

test("STATIC: the site's other machines are told neither an address nor that theirs is wrong", async () => {
  const site: Agent = world.agent(of("site"));
  const heard = await world.watch(of("site"), "host", "udp", "port", "68");
  // Whoever has an address of another server asks for it anew after a start.
  const asks = (mac: string, address: readonly number[]): string =>
    ethernet(everyone, mac, 0x0800, ip("0.0.0.0", "255.255.255.255", 17, dhcp(3, mac, [50, 4, ...address])));
  const known = asks(first.mac, [1, 119, 128, 35]);
  await site.call("inject", "host", [asks(stranger, [1, 119, 128, 200]), asks(stranger, [1, 119, 128, 35])]);
  assert.ok(
    await soon(async () => {
      await site.call("inject", "host", [known]);
      return heard.text.includes("BOOTP/DHCP, Reply");
    }),
    "an instance is answered",
  );
  assert.ok(!heard.text.includes("255.255.255.255.68: BOOTP/DHCP, Reply"), heard.text);
});

test("STATIC: a machine that the view does not have keeps no tap at the bridge", async () => {
  await offered("node", "10.111.5.99");
  assert.ok(!of("node").run("ip", "-br", "link", "show", "master", "br0").includes("vn_i-"));
  assert.ok(!reaches(of("site"), first.address));
  await offered("node", "10.111.5.43");
  assert.ok(await soon(() => reaches(of("site"), first.address)));
});

test("SYSTEM: the address that the site's DHCP server gives is learnt at the tap, and no other's word counts", async () => {
  await offered("node", "10.111.5.99");
  await services.network.leave();
  // Addresses of before: a guest says them whenever it looks for somebody.
  for (const { tap } of instances) of(tap).run("ip", "address", "flush", "dev", "eth0");
  const [node, site] = [of("node"), of("site")];
  const range = ["--dhcp-range=1.119.128.100,1.119.128.150,255.255.255.0,1h", "--interface=lan", "--bind-interfaces"];
  const files = [`--dhcp-leasefile=${join(world.directory, "site-leases")}`, "--pid-file", "--conf-file=/dev/null"];
  world.spawn(site, "dnsmasq", "--keep-in-foreground", "--port=0", "--no-ping", ...range, ...files);
  const directory = join(world.directory, "system");
  mkdirSync(directory);
  const nobody = mode("SYSTEM").replaceAll(/<privateIp>[^<]*</g, "<privateIp>0.0.0.0<");
  writeFileSync(join(directory, viewFile), nobody.replaceAll(/<publicIp>[^<]*</g, "<publicIp>0.0.0.0<"));
  writeFileSync(join(directory, machineFile), "VNET_BRIDGE=br0\nVNET_PRIVINTERFACE=em1\n");
  let nowMs = 0;
  const agent = await startAgent({
    directory,
    self: { address: "10.111.5.43", peer: "node" },
    run: world.run(node),
    now: () => nowMs,
    signals: new EventEmitter(),
    log: () => {},
    programs: world.programs(node, "system"),
  });
  try {
    const learnt = async (): Promise<readonly string[]> => {
      await agent.look();
      assert.deepEqual(agent.state.failed, {});
      const read = readAllocation(readFileSync(join(directory, allocationFile), "utf8"));
      assert.ok(read.ok);
      return read.value.instances.map(({ id, privateIp }) =>
        privateIp === undefined ? id : `${id} ${formatIpv4(privateIp.address)} ${privateIp.state}`,
      );
    };
    const ids = instances.map(({ tap }) => tap.slice(3));
    assert.deepEqual(await learnt(), ids);
    const given = new Map<string, string>();
    for (const { tap } of instances) {
      assert.ok(await soon(() => world.lease(of(tap))));
      const address = /inet (1\.119\.128\.1\d\d)\//.exec(of(tap).run("ip", "-4", "address"))?.[1] ?? assert.fail(tap);
      given.set(tap, address);
      assert.ok(reaches(of(tap), "1.119.128.1"));
    }
    const whole = instances.map(({ tap }) => `${tap.slice(3)} ${given.get(tap)} assigned`);
    assert.deepEqual(await learnt(), whole);
    // Who asks whether an address is free has none yet. Another's MAC, and an address of a link alone or of many, are no word of its own.
    const says = (mac: string, sender: string): string =>
      ethernet(everyone, first.mac, 0x0806, arp(1, mac, sender, "1.119.128.1"));
    const guest = world.agent(of(first.tap));
    for (const frame of [says(first.mac, "0.0.0.0"), says(second.mac, "1.119.128.9"), says(stranger, "1.119.128.9")]) {
      await guest.call("inject", "eth0", [frame]);
      assert.deepEqual(await learnt(), whole);
    }
    const own = given.get(first.tap) ?? "";
    for (const sender of ["169.254.1.1", "224.0.0.1"]) {
      await guest.call("inject", "eth0", [says(first.mac, own)]);
      assert.deepEqual(await learnt(), whole);
      await guest.call("inject", "eth0", [says(first.mac, sender)]);
      assert.deepEqual(await learnt(), whole, "it may say its own again");
      nowMs += steadyMs;
      assert.deepEqual(await learnt(), [first.tap.slice(3), whole[1]]);
    }
    await world.agent(site).call("inject", "lan", [says(first.mac, "1.119.128.8")]);
    await guest.call("inject", "eth0", [says(first.mac, "1.119.128.7")]);
    assert.deepEqual((await learnt())[0], `${first.tap.slice(3)} 1.119.128.7 assigned`);
  } finally {
    await agent.leave();
  }
  assert.ok(!node.run("ip", "-br", "link", "show", "master", "br0").includes("vn_i-"));
  assert.ok(!node.run("cat", "/proc/self/mountinfo").includes("cells-system"));
});
