import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { InterfaceCounters, PacketCheck, PacketQuestion, RuleCounters } from "../../driver.ts";
import { tapName } from "../taps/devices.ts";
import {
  controllerAddress,
  type GuestPlan,
  type HostKey,
  Installation,
  policy,
  rule,
  uidOf,
} from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";
import { policyKey } from "./layout.ts";

/** Identities of cell 1: subnets 10 and 11; of cell 2: subnet 20. */
const web: GuestPlan = { name: "web", host: "a", address: "10.64.0.11", number: 1, cell: 1, identities: [1, 101, 10] };
const near: GuestPlan = {
  name: "near",
  host: "a",
  address: "10.64.0.12",
  number: 2,
  cell: 1,
  identities: [2, 102, 11],
};
const far: GuestPlan = { name: "far", host: "b", address: "10.64.0.13", number: 3, cell: 1, identities: [3, 103, 11] };
const other: GuestPlan = {
  name: "other",
  host: "b",
  address: "10.64.0.14",
  number: 4,
  cell: 2,
  identities: [1, 2, 20],
};
const plans = [web, near, far, other];
const foreign = 50;

const rules = [
  rule(1, 10, 11, "tcp", 8080),
  rule(2, 10, 11, "udp", 5353),
  rule(3, 10, 11, "icmp"),
  rule(4, 90, 10, "tcp", 7000),
  rule(5, 10, 90, "udp", 53),
];
const shop = (version: number, more = rules) => policy(1, version, more, [["10.64.0.14/32", foreign]]);
const closed = policy(2, 1, []);

interface Counters {
  readonly interfaces: readonly InterfaceCounters[];
  readonly rules: readonly RuleCounters[];
}

describe("Diverter between real stacks", { skip: !canRun() }, () => {
  const installation = new Installation();
  before(async () => {
    await installation.start();
    for (const plan of plans) await installation.addGuest(plan);
    const applied = await installation.apply(plans, [shop(1), closed]);
    for (const host of ["a", "b"] as const) {
      assert.deepEqual(applied[host].after, { network: false, securityGroup: false, addressing: false });
      assert.ok(applied[host].allocation.interfaces.every(({ ready }) => ready));
    }
    for (const name of ["near", "far", "other"]) await installation.guests[name]!.agent.call("listen", 8080);
  });
  after(() => installation.stop());

  const guest = (name: string) => installation.guests[name]!;
  const open = (name: string, to: string, port: number, localPort?: number): Promise<string> =>
    guest(name).agent.call<string>("open", to, port, localPort);
  const pings = (name: string, to: string): boolean =>
    guest(name).machine.succeeds("busybox", "ping", "-c", "1", "-W", "1", to);
  const drops = async (host: HostKey, plan: GuestPlan, reason: string): Promise<number> => {
    const counters = await installation.drivers[host].call<Counters>("counters");
    return counters.interfaces.find((counter) => counter.interface === uidOf(plan))?.drops[reason] ?? 0;
  };
  const udpArrives = async (from: string, to: string, address: string, port: number): Promise<boolean> => {
    await guest(to).agent.call("bindUdp", port, true);
    await guest(from).agent.call("bindUdp", 0, false);
    await guest(from).agent.call("sendUdp", address, port, 20);
    await new Promise((resolve) => setTimeout(resolve, 100));
    return (await guest(from).agent.call<string[]>("datagrams")).length === 1;
  };
  const examine = (host: HostKey, question: PacketQuestion) =>
    installation.drivers[host].call<readonly PacketCheck[]>("examine", question);
  const question = (side: PacketQuestion["side"], from: GuestPlan, to: GuestPlan, port: number): PacketQuestion => ({
    side,
    source: ipv4(from.address),
    destination: ipv4(to.address),
    protocol: "tcp",
    port,
  });

  test("what a rule admits passes, on one host and across two, with large segments", async () => {
    for (const to of [near, far]) {
      assert.equal(await open("web", to.address, 8080), "open");
      assert.equal(await guest("web").agent.call("echo", 300_000, 5000), true);
      assert.ok(pings("web", to.address));
      assert.ok(await udpArrives("web", to.name, to.address, 5353));
    }
  });

  test("what no rule admits does not", async () => {
    const before = await drops("a", web, "no-rule");
    assert.equal(await open("web", far.address, 8081), "timeout");
    assert.equal(await open("far", web.address, 8080), "timeout");
    assert.equal(await open("near", far.address, 8080), "timeout");
    assert.ok(!pings("far", web.address));
    assert.ok(!(await udpArrives("web", "far", far.address, 5354)));
    assert.ok((await drops("a", web, "no-rule")) > before);
  });

  test("a server answers and does not open from its service port", async () => {
    assert.equal(await open("web", far.address, 8080), "open");
    await guest("web").agent.call("listen", 9999);
    await guest("far").agent.call("closeServer");
    assert.equal(await open("far", web.address, 9999, 8080), "timeout");
    await guest("web").agent.call("closeServer");
    await guest("far").agent.call("listen", 8080);
    await guest("web").agent.call("bindUdp", 4000, false);
    await guest("far").agent.call("bindUdp", 5353, false);
    await guest("far").agent.call("sendUdp", web.address, 4000, 10);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(await guest("web").agent.call("datagrams"), []);
  });

  test("an ICMP error passes to the flow that it is about", async () => {
    await guest("web").agent.call("bindUdp", 0, false);
    const icmp = () =>
      guest("web")
        .machine.run("cat", "/proc/net/snmp")
        .split("\n")
        .filter((l) => l.startsWith("Icmp:"))[1]!;
    const unreachable = (): number => Number(icmp().split(" ")[4]);
    await guest("far").agent.call("bindUdp", 1111, false);
    const before = unreachable();
    await guest("web").agent.call("sendUdp", far.address, 5353, 10);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(unreachable(), before + 1);
  });

  test("a datagram in fragments passes with its first one", async () => {
    await guest("far").agent.call("bindUdp", 5353, true);
    await guest("web").agent.call("bindUdp", 0, false);
    await guest("web").agent.call("sendUdp", far.address, 5353, 4000);
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.match((await guest("web").agent.call<string[]>("datagrams")).join(), /4000/);
    await guest("web").agent.call("sendUdp", far.address, 5354, 4000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok((await drops("a", web, "fragment")) >= 2);
  });

  test("cells meet only where both agree", async () => {
    const out = rule(6, 10, foreign, "tcp", 8080);
    await installation.apply(plans, [shop(2, [...rules, out]), closed]);
    assert.equal(await open("web", other.address, 8080), "timeout");
    const agreed = policy(2, 2, [rule(1, 60, 20, "tcp", 8080)], [["10.64.0.11/32", 60]]);
    await installation.apply(plans, [shop(2, [...rules, out]), agreed]);
    assert.equal(await open("web", other.address, 8080), "open");
    await installation.apply(plans, [shop(3), agreed]);
    assert.equal(await open("web", other.address, 8080), "timeout");
  });

  test("the controller reaches its VMs and they reach it, by rules; another cell's do not", async () => {
    const { agent, machine } = installation.controller;
    await guest("web").agent.call("listen", 7000);
    assert.equal(await agent.call("open", web.address, 7000), "open");
    assert.equal(await agent.call("echo", 10_000, 3000), true);
    await guest("web").agent.call("closeServer");
    assert.equal(await agent.call("open", near.address, 8080), "timeout");
    assert.notEqual(await agent.call("open", other.address, 8080), "open");
    await agent.call("bindUdp", 53, true);
    await guest("web").agent.call("bindUdp", 0, false);
    await guest("web").agent.call("sendUdp", controllerAddress, 53, 30);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal((await guest("web").agent.call<string[]>("datagrams")).length, 1);
    assert.ok(
      machine.succeeds("busybox", "ping", "-c", "1", "-W", "1", "10.0.1.1"),
      "the host's own address is untouched",
    );
  });

  test("taking a rule away ends its flows, giving it back does not need a new connection", async () => {
    assert.equal(await open("web", far.address, 8080), "open");
    const without = rules.filter(({ id }) => id !== 1);
    await installation.apply(plans, [shop(4, without), closed]);
    assert.equal(await guest("web").agent.call("echo", 10, 400), false);
    await installation.apply(plans, [shop(5), closed]);
    assert.equal(await guest("web").agent.call("echo", 10, 5000), true);
  });

  test("a driver that comes back adopts what is in force, and traffic never stops", async () => {
    assert.equal(await open("web", near.address, 8080), "open");
    const old = installation.drivers.a;
    await old.stop();
    installation.agents.delete(old);
    assert.equal(await guest("web").agent.call("echo", 100, 3000), true);
    await installation.startDriver("a");
    assert.equal(await guest("web").agent.call("echo", 100, 3000), true);
    const { a } = await installation.apply(plans, [shop(5), closed]);
    assert.deepEqual(a.changes, { network: false, securityGroup: false, addressing: false });
    assert.equal(await guest("web").agent.call("echo", 100, 3000), true);
  });

  test("examine says which rule decides, and where it stops", async () => {
    const sender = await examine("a", question("sender", web, far, 8080));
    assert.ok(sender.every(({ passes }) => passes));
    assert.match(
      sender.map(({ detail }) => detail).join("\n"),
      /rule 1 \(shop\/rules\/r1\) lets identity 10 reach identity 11 on tcp 8080/,
    );
    assert.ok((await examine("b", question("receiver", web, far, 8080))).every(({ passes }) => passes));
    const refused = await examine("a", question("sender", web, far, 81));
    assert.equal(refused.find(({ passes }) => !passes)?.check, "rule");
  });

  test("examine notices an entry that was changed behind the driver's back, and scrub asks for its repair", async () => {
    const host = installation.hostMachines.a;
    const key = far.address.split(".");
    const pin = `${installation.directory}/a/run/bpf/diverter/maps/locations`;
    host.run("bpftool", "map", "delete", "pinned", pin, "key", ...key);
    const checks = await examine("a", question("sender", web, far, 8080));
    assert.ok(checks.some(({ check, passes }) => check === "location" && !passes));
    const { a } = await installation.apply(plans, [shop(5), closed]);
    assert.equal(a.changes.addressing, true);
    assert.ok((await examine("a", question("sender", web, far, 8080))).every(({ passes }) => passes));
  });

  test("a rule that vanished from the kernel is noticed and comes back", async () => {
    const host = installation.hostMachines.a;
    const pin = `${installation.directory}/a/run/bpf/diverter/maps/rules`;
    const outer = host.run("bpftool", "-j", "map", "lookup", "pinned", pin, "key", "1", "0", "0", "0");
    const { value } = JSON.parse(outer) as { value: readonly string[] };
    const id = Buffer.from(value.map(Number)).readUInt32LE();
    const rule = policyKey.encode({ prefix_length: 112, kind: 2, protocol: 6, from: 10, to: 11, port: 8080 });
    host.run("bpftool", "map", "delete", "id", String(id), "key", ...[...rule].map(String));
    const checks = await examine("a", question("sender", web, far, 8080));
    assert.deepEqual(
      checks.filter(({ passes }) => !passes).map(({ check }) => check),
      ["entry", "rule"],
    );
    const { a } = await installation.apply(plans, [shop(5), closed]);
    assert.equal(a.changes.securityGroup, true);
    assert.equal(await open("web", far.address, 8080), "open");
  });

  test("counters name what passed", async () => {
    const { interfaces, rules: counted } = await installation.drivers.a.call<Counters>("counters");
    const mine = interfaces.find((counter) => counter.interface === uidOf(web));
    assert.ok(mine !== undefined && mine.sent.packets > 0 && mine.received.bytes > 0);
    assert.ok(counted.some(({ cellNumber, rule: id, packets }) => cellNumber === 1 && id === 1 && packets > 0));
    await installation.apply(plans, [shop(6, rules.slice(1)), closed]);
    const { rules: left } = await installation.drivers.a.call<Counters>("counters");
    assert.ok(left.length > 0 && left.every(({ cellNumber, rule: id }) => cellNumber !== 1 || id !== 1));
  });

  test("flush takes the interfaces, cleanup takes everything", async () => {
    await installation.drivers.a.call("flush");
    assert.deepEqual(await installation.drivers.a.call("inspect"), { taps: [] });
    await installation.drivers.a.call("cleanup");
    const host = installation.hostMachines.a;
    assert.equal(host.run("tc", "filter", "show", "dev", "eth0", "ingress"), "");
    assert.ok(!host.run("cat", "/proc/self/mountinfo").includes(`${installation.directory}/a/run/bpf`));
    assert.ok(!host.run("ip", "link").includes(tapName(uidOf(web))));
  });
});
