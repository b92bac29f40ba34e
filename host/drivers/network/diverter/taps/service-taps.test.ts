import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import type { InterfaceCounters, LivenessProbe, PacketCheck } from "../../driver.ts";
import { arp, ethernet, everyone, icmp, ip, macHex, readFrame, udp } from "../testing/frames.testing.ts";
import { Hand } from "../testing/hands.testing.ts";
import {
  type Applied,
  controllerAddress,
  controllerIdentity,
  type GuestPlan,
  type HostKey,
  hosts,
  Installation,
  macOf,
  policy,
  rule,
  uidOf,
} from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";
import { tapName } from "./devices.ts";

const service = (name: string, host: HostKey, number: number): GuestPlan => ({
  name,
  host,
  address: `10.0.0.${30 + number}`,
  number,
  cell: 1,
  identities: [number, 100 + number, 11],
  management: true,
});
/** Ordinary stacks on both hosts, taps whose frames are made by hand, and a tenant beside its own controller's VM. */
const [first, second, far] = [service("first", "a", 1), service("second", "a", 2), service("far", "b", 3)];
const [hand, ear] = [service("hand", "a", 4), service("ear", "b", 5)];
const controller = service("controller", "a", 6);
const tenant = (name: string, host: HostKey, number: number): GuestPlan => ({
  name,
  host,
  address: `10.64.0.${number}`,
  number,
  cell: 2,
  identities: [number, 100 + number, 12],
});
const [near, away] = [tenant("near", "a", 21), tenant("away", "b", 22)];
const plans = [first, second, far, hand, ear, controller, near, away];
const policies = [
  policy(1, 1, []),
  {
    ...policy(2, 1, [rule(1, 12, controllerIdentity, "any"), rule(2, controllerIdentity, 12, "any")]),
    controller: { address: ipv4(controller.address), mac: mac(macOf(controller)), identity: controllerIdentity },
  },
];

describe("the management network at the hosts' bridges", { skip: !canRun() }, () => {
  const installation = new Installation();
  const hands = {} as { hand: Hand; ear: Hand };
  const reaches = (who: GuestPlan, address: string, seconds = 5): boolean =>
    installation.guests[who.name]!.machine.succeeds("busybox", "ping", "-c", "1", "-W", String(seconds), address);
  const countersOf = async ({ host, name }: GuestPlan): Promise<InterfaceCounters> => {
    const all = await installation.drivers[host].call<{ interfaces: readonly InterfaceCounters[] }>("counters");
    return all.interfaces.find((counter) => counter.interface === `test-${name}`)!;
  };

  before(async () => {
    await installation.start({ bridge: "cells0" });
    for (const plan of [first, second, far, controller, near, away]) {
      const { machine } = await installation.addGuest(plan);
      if (plan === controller) machine.run("ip", "route", "add", "10.64.0.0/10", "dev", "eth0");
    }
    const { a, b } = await installation.apply(plans, policies);
    for (const { after, allocation } of [a, b]) {
      assert.deepEqual(
        allocation.interfaces.filter(({ ready }) => !ready),
        [],
      );
      assert.deepEqual(after, { network: false, securityGroup: false, addressing: false });
    }
    hands.hand = await Hand.open(installation, hand);
    hands.ear = await Hand.open(installation, ear);
  });
  after(() => installation.stop());

  test("honest traffic passes between services, the hosts' own stacks and the wire", async () => {
    for (const address of [second.address, far.address, hosts.a[0], hosts.b[0], controllerAddress])
      assert.ok(reaches(first, address), address);
    for (const machine of [installation.hostMachines.b, installation.controller.machine])
      assert.ok(machine.succeeds("busybox", "ping", "-c", "1", "-W", "5", first.address));
    for (const [from, to] of [
      [first, second],
      [first, far],
    ] as const) {
      await installation.guests[to.name]!.agent.call("listen", 7000);
      const { agent } = installation.guests[from.name]!;
      assert.equal(await agent.call("open", to.address, 7000), "open");
      assert.equal(await agent.call("echo", 300_000, 10_000), true, "segments of any size");
    }
    const { sent, received } = await countersOf(first);
    assert.ok(sent.bytes > 600_000 && received.bytes > 600_000, "counted both ways");
  });

  test("what a service must not send reaches nobody and is counted by its reason", async () => {
    const mine = macOf(hand);
    const heard = async (): Promise<readonly string[]> => {
      // The mark comes after all that was sent before it.
      const mark = arp(1, mine, hand.address, `10.0.9.${Math.floor(Math.random() * 250)}`);
      await hands.hand.send(ethernet(everyone, mine, 0x0806, mark));
      const seen: string[] = [];
      for (;;) {
        const frame = await hands.ear.next(10_000);
        assert.notEqual(frame, null, "an honest question is heard on the other host");
        if (frame!.slice(28).startsWith(mark)) return seen;
        if ([macHex(mine), "020000000099"].includes(frame!.slice(12, 24))) seen.push(frame!);
      }
    };
    assert.deepEqual(await heard(), []);
    const honest = ethernet(everyone, mine, 0x0800, ip(hand.address, "10.0.255.255", 17, udp(9, 9, Buffer.alloc(8))));
    await hands.hand.send(honest);
    assert.equal((await heard()).length, 1, "control: an ordinary datagram to all is heard");
    const cases: readonly (readonly [string, string])[] = [
      ["spoofed-mac", ethernet(everyone, "02:00:00:00:00:99", 0x0806, arp(1, mine, hand.address, first.address))],
      [
        "spoofed-address",
        ethernet(everyone, mine, 0x0800, ip(first.address, "10.0.255.255", 17, udp(9, 9, Buffer.alloc(8)))),
      ],
      [
        "spoofed-address",
        ethernet(everyone, mine, 0x0800, ip("0.0.0.0", "255.255.255.255", 17, udp(68, 67, Buffer.alloc(8)))),
      ],
      ["rogue-arp", ethernet(everyone, mine, 0x0806, arp(2, mine, first.address, first.address))],
      ["rogue-arp", ethernet(everyone, mine, 0x0806, arp(1, macOf(first), hand.address, first.address))],
      [
        "rogue-dhcp",
        ethernet(everyone, mine, 0x0800, ip(hand.address, "255.255.255.255", 17, udp(67, 68, Buffer.alloc(8)))),
      ],
      ["ipv6", ethernet("33:33:00:00:00:01", mine, 0x86dd, "60".padEnd(120, "0"))],
      ["other-ethertype", ethernet("01:80:c2:00:00:00", mine, 0x88cc, "00".repeat(46))],
      ["malformed", ethernet(everyone, mine, 0x0806, "00".repeat(28))],
    ];
    for (const [reason, frame] of cases) {
      const before = await countersOf(hand);
      await hands.hand.send(frame);
      assert.deepEqual(await heard(), [], reason);
      const after = await countersOf(hand);
      assert.equal((after.drops[reason] ?? 0) - (before.drops[reason] ?? 0), 1, reason);
      assert.equal(after.sent.packets - before.sent.packets, 1, "the mark alone");
    }
  });

  test("a checksum that a guest leaves to others does not change what the bridge sees", async () => {
    const datagram = udp(9, 9, Buffer.from("whole"));
    const to = macOf(ear);
    // Learnt, so that the bridges know where the other one is.
    await hands.ear.send(ethernet(everyone, macOf(ear), 0x0806, arp(1, macOf(ear), ear.address, hand.address)));
    await hands.hand.send(ethernet(to, macOf(hand), 0x0800, ip(hand.address, ear.address, 17, datagram)));
    for (;;) {
      const frame = await hands.ear.next(10_000);
      assert.notEqual(frame, null, "it arrives under the MAC that it was sent to");
      const read = readFrame(frame!);
      if (read.type !== 0x0800 || read.protocol !== 17) continue;
      assert.deepEqual([read.to, read.from, read.source], [to, macOf(hand), hand.address]);
      break;
    }
  });

  test("a VM reaches the controller of its cell, and is reached by it, on the same host as across hosts", async () => {
    for (const vm of [near, away]) {
      assert.ok(reaches(vm, controller.address), `${vm.name} asks`);
      assert.ok(reaches(controller, vm.address), `${vm.name} answers`);
    }
    await installation.guests.controller!.agent.call("listen", 7000);
    const { agent } = installation.guests.near!;
    assert.equal(await agent.call("open", controller.address, 7000), "open");
    assert.equal(await agent.call("echo", 100_000, 10_000), true);
    for (const vm of [near, away]) {
      assert.equal(reaches(first, vm.address, 1), false, "no other service is let in");
      assert.equal(reaches(vm, first.address, 1), false, "and none is reached");
    }
  });

  test("a liveness probe is answered as the host, over the tap that was asked alone", async () => {
    const ping: LivenessProbe = { protocol: "icmp", port: null };
    const probe = (who: GuestPlan, what: LivenessProbe, timeoutMs: number): Promise<boolean> =>
      installation.drivers[who.host].call("probe", uidOf(who), what, timeoutMs);
    assert.equal(await probe(first, ping, 10_000), true);
    await installation.guests.first!.agent.call("bindUdp", 7777, true);
    assert.equal(await probe(first, { protocol: "udp", port: 7777 }, 10_000), true);
    installation.guests.first!.machine.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    assert.equal(await probe(first, ping, 200), false);
    installation.guests.first!.machine.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    const outcome = probe(ear, ping, 10_000);
    for (;;) {
      const text = await hands.ear.next(10_000);
      assert.notEqual(text, null);
      const frame = readFrame(text!);
      if (frame.type !== 0x0800 || frame.protocol !== 1) continue;
      assert.deepEqual([frame.from, frame.source, frame.to], [hosts.b[1], hosts.b[0], macOf(ear)]);
      const answer = icmp(0, frame.payload.readUInt16BE(4), frame.payload.readUInt16BE(6));
      await hands.ear.send(ethernet(hosts.b[1], macOf(ear), 0x0800, ip(ear.address, hosts.b[0], 1, answer)));
      break;
    }
    assert.equal(await outcome, true);
  });

  test("why: no rule is asked there", async () => {
    const question = { source: first.address, destination: far.address, protocol: "tcp", port: 7000 };
    for (const [host, side] of [
      ["a", "sender"],
      ["b", "receiver"],
    ] as const) {
      const checks = await installation.drivers[host].call<readonly PacketCheck[]>("examine", { side, ...question });
      assert.equal(checks.length, 1);
      assert.ok(checks[0]?.passes);
      assert.match(checks[0].detail, /on the management network, where no rule is asked/);
    }
  });

  test("a driver that comes back finds everything in force, and no packet is lost", async () => {
    const { agent } = installation.guests.far!;
    await agent.call("bindUdp", 7001, false);
    const sender = installation.guests.first!.agent;
    await sender.call("bindUdp", 7002, false);
    await sender.call("stream", [far.address], 7001, 5, false);
    for (const key of ["a", "b"] as const) {
      const old = installation.drivers[key];
      await old.stop();
      installation.agents.delete(old);
      await installation.startDriver(key);
    }
    const { a, b } = await installation.apply(plans, policies);
    const sent = await sender.call<number>("endStream");
    assert.deepEqual([a.changes.network, b.changes.network], [false, false]);
    assert.ok(sent > 0);
    assert.equal((await agent.call<readonly string[]>("datagrams")).length, sent);
  });

  test("an address that moved to another host is found there at once", async () => {
    assert.ok(reaches(second, first.address));
    const moved: GuestPlan = { ...first, host: "b" };
    const rest = plans.filter((plan) => plan !== first);
    await installation.apply(rest, policies);
    assert.equal(
      installation.hostMachines.a.succeeds("ip", "link", "show", tapName(uidOf(first))),
      false,
      "its tap is gone",
    );
    const { machine } = await installation.addGuest(moved);
    const { b } = await installation.apply([...rest, moved], policies);
    assert.ok(b.allocation.interfaces.every(({ ready }) => ready));
    // What a service's first process has said when its card is up; here it is up already, and says it anew.
    machine.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/arp_notify");
    machine.run("ip", "link", "set", "dev", "eth0", "address", macOf(first));
    for (const asker of [second, far]) assert.ok(reaches(asker, first.address), asker.name);
  });

  test("what no interface needs goes away", async () => {
    const { a, b } = await installation.apply([far, away], policies);
    assert.deepEqual([a.after.network, b.after.network], [false, false]);
    assert.deepEqual(await installation.drivers.a.call("inspect"), { taps: [] });
    const pin = `${installation.directory}/a/run/bpf/diverter/maps/services`;
    const entries = installation.hostMachines.a.run("bpftool", "-j", "map", "dump", "pinned", pin);
    assert.deepEqual(JSON.parse(entries), []);
    assert.ok(reaches(far, hosts.a[0]), "the rest goes on");
  });

  test("a host without a bridge refuses such an interface, and says what to configure", async () => {
    const { machine } = installation.controller;
    const run = `${installation.directory}/c`;
    const driver = installation.agent(machine, "driver-process.testing.ts", `${run}/data`, `${run}/run`);
    const uplink = { device: "eth0", address: controllerAddress, mac: "02:00:00:00:03:01" };
    await assert.rejects(driver.call("init", { ...uplink, bridge: "cells0" }), /there is no bridge "cells0"/);
    machine.run("ip", "link", "add", "cells0", "type", "bridge");
    await assert.rejects(driver.call("init", { ...uplink, bridge: "cells0" }), /eth0 is no port of the bridge cells0/);
    await driver.call("init", uplink);
    const { allocation, after } = await driver.call<Applied>("apply", installation.global("a", [second], policies));
    assert.deepEqual(
      allocation.interfaces.map(({ ready, refused }) => [ready, refused]),
      [[false, true]],
    );
    assert.match(allocation.interfaces[0]?.reason ?? "", /name it in the host's configuration/);
    assert.equal(after.network, false);
    assert.deepEqual(await driver.call("inspect"), { taps: [] });
  });
});
