import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { InterfaceCounters } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import { octets } from "../program/layout.ts";
import { arp, dhcp, ethernet, everyone, hex, ip, macHex, tcp, tcpFlags, udp } from "../testing/frames.testing.ts";
import {
  controllerAddress,
  type GuestPlan,
  hosts,
  Installation,
  macOf,
  policy,
  rule,
  uidOf,
} from "../testing/installation.testing.ts";
import { type Agent, canRun } from "../testing/namespaces.testing.ts";
import { tapName } from "./devices.ts";
import { checksum } from "./probe.ts";

/** `vm` is a real tap with frames made by hand, `peer` an ordinary stack on the same host, `lease` one without an address. */
const vm: GuestPlan = { name: "vm", host: "a", address: "10.64.0.21", number: 1, cell: 1, identities: [1, 101, 10] };
const peer: GuestPlan = {
  name: "peer",
  host: "a",
  address: "10.64.0.22",
  number: 2,
  cell: 1,
  identities: [2, 102, 10],
};
const lease: GuestPlan = {
  name: "lease",
  host: "b",
  address: "10.64.0.23",
  number: 3,
  cell: 1,
  identities: [3, 103, 10],
};
const plans = [vm, peer, lease];
const shop = policy(1, 1, [rule(1, 10, 10, "any")]);

describe("Diverter at a real tap", { skip: !canRun() }, () => {
  const installation = new Installation();
  let tap: Agent;
  before(async () => {
    await installation.start();
    await installation.addGuest(peer);
    const leasing = await installation.addGuest(lease);
    leasing.machine.run("ip", "addr", "flush", "dev", "eth0");
    const { a } = await installation.apply(plans, [shop]);
    assert.ok(a.allocation.interfaces.every(({ ready }) => ready));
    tap = installation.agent(installation.hostMachines.a, "guest-process.testing.ts");
    await tap.call("openTap", tapName(uidOf(vm)));
  });
  after(() => installation.stop());
  beforeEach(async () => {
    await settle();
    await tap.call("frames");
  });

  const settle = () => new Promise((resolve) => setTimeout(resolve, 60));
  const send = async (...frames: readonly string[]): Promise<readonly string[]> => {
    for (const frame of frames) await tap.call("sendFrame", frame);
    await settle();
    return tap.call<string[]>("frames");
  };
  /** The first frame that comes back, which a loaded machine may take its time for; "" when none does. */
  const answerTo = async (frame: string): Promise<string> => {
    await tap.call("frames");
    await tap.call("sendFrame", frame);
    for (const end = performance.now() + 5000; performance.now() < end; await settle()) {
      const [answer] = await tap.call<string[]>("frames");
      if (answer !== undefined) return answer;
    }
    return "";
  };
  const counters = async (): Promise<InterfaceCounters> => {
    const all = await installation.drivers.a.call<{ interfaces: readonly InterfaceCounters[] }>("counters");
    return all.interfaces.find((counter) => counter.interface === uidOf(vm))!;
  };
  const dropped = async (reason: string, frame: string): Promise<void> => {
    const before = await counters();
    assert.deepEqual(await send(frame), [], reason);
    const after = await counters();
    assert.equal((after.drops[reason] ?? 0) - (before.drops[reason] ?? 0), 1, reason);
    assert.equal(after.sent.packets, before.sent.packets, reason);
  };
  const mine = macOf(vm);
  const echo = Buffer.from("0800f7ff00000000", "hex");

  test("an echo comes back from its peer, from the gateway's MAC, with its time to live", async () => {
    const answer = await answerTo(ethernet(gatewayMac, mine, 0x0800, ip(vm.address, peer.address, 1, echo)));
    assert.equal(answer.slice(0, 28), `${macHex(mine)}${macHex(gatewayMac)}0800`);
    assert.equal(Buffer.from(answer, "hex")[22], 64);
    assert.equal(Buffer.from(answer, "hex")[34], 0);
  });

  test("what a VM must not send is dropped and counted by its reason", async () => {
    const to = peer.address;
    await dropped("spoofed-mac", ethernet(gatewayMac, "02:00:00:00:aa:99", 0x0800, ip(vm.address, to, 1, echo)));
    await dropped("spoofed-address", ethernet(gatewayMac, mine, 0x0800, ip("10.64.0.99", to, 1, echo)));
    await dropped("ipv6", ethernet("33:33:00:00:00:02", mine, 0x86dd, "60".padEnd(120, "0")));
    await dropped("other-ethertype", ethernet(gatewayMac, mine, 0x88cc, "00".repeat(46)));
    await dropped("rogue-dhcp", ethernet(everyone, mine, 0x0800, ip(vm.address, to, 17, udp(67, 68, Buffer.alloc(8)))));
    await dropped("rogue-arp", ethernet(everyone, mine, 0x0806, arp(2, mine, peer.address, vm.address)));
    await dropped("rogue-arp", ethernet(everyone, mine, 0x0806, arp(1, "02:00:00:00:aa:02", vm.address, to)));
    const syn = tcp(9, 9, tcpFlags.syn);
    await dropped("broadcast", ethernet(everyone, mine, 0x0800, ip(vm.address, "10.64.0.255", 6, syn)));
    await dropped(
      "broadcast",
      ethernet("01:00:5e:00:00:fb", mine, 0x0800, ip(vm.address, "224.0.0.251", 17, udp(9, 9, echo))),
    );
    await dropped("malformed", ethernet(gatewayMac, mine, 0x0800, `46${ip(vm.address, to, 6, echo).slice(2)}`));
    await dropped("malformed", ethernet(gatewayMac, mine, 0x0800, ip(vm.address, to, 6, Buffer.alloc(4))));
    await dropped("fragment", ethernet(gatewayMac, mine, 0x0800, ip(vm.address, to, 17, echo, 185)));
    await dropped("no-rule", ethernet(gatewayMac, mine, 0x0800, ip(vm.address, "10.0.1.1", 1, echo)));
    await dropped("no-rule", ethernet(macHex(hosts.a[1]), mine, 0x0800, ip(vm.address, "192.0.2.1", 1, echo)));
  });

  test("ARP: everything in the subnet is at the gateway's MAC, one's own address is free", async () => {
    for (const target of ["10.64.0.1", peer.address, "10.64.0.200"]) {
      const answer = await answerTo(ethernet(everyone, mine, 0x0806, arp(1, mine, vm.address, target)));
      assert.equal(answer.slice(0, 28), `${macHex(mine)}${macHex(gatewayMac)}0806`);
      assert.equal(answer.slice(40, 64), `0002${macHex(gatewayMac)}${hex(octets(target))}`);
    }
    assert.deepEqual(await send(ethernet(everyone, mine, 0x0806, arp(1, mine, "0.0.0.0", vm.address))), []);
    assert.deepEqual(await send(ethernet(everyone, mine, 0x0806, arp(1, mine, vm.address, "192.0.2.1"))), []);
  });

  test("DHCP: an offer and an acknowledgement with a valid header, wherever option 53 is", async () => {
    for (const [asked, answered, more] of [
      [1, 2, []],
      [3, 5, [12, 2, 97, 98, 0, 61, 1, 1]],
    ] as const) {
      const answer = await answerTo(
        ethernet(everyone, mine, 0x0800, ip("0.0.0.0", "255.255.255.255", 17, dhcp(asked, mine, more))),
      );
      const bytes = Buffer.from(answer, "hex");
      assert.equal(bytes.length, 14 + 576);
      assert.equal(checksum(bytes.subarray(14, 34)), 0);
      assert.deepEqual([...bytes.subarray(26, 34)], [...octets("10.64.0.1"), ...octets(vm.address)]);
      assert.equal(bytes[42], 2);
      assert.equal(hex(bytes.subarray(46, 50)), "deadbeef");
      assert.deepEqual([...bytes.subarray(58, 62)], [...octets(vm.address)]);
      assert.deepEqual([...bytes.subarray(278, 285)], [99, 130, 83, 99, 53, 1, answered]);
    }
    const foreign = ethernet(everyone, mine, 0x0800, ip("0.0.0.0", "255.255.255.255", 17, dhcp(1, macOf(peer))));
    await dropped("spoofed-mac", foreign);
  });

  test("udhcpc gets its lease", () => {
    const { machine } = installation.guests.lease!;
    const report = "echo $1 $ip $mask $router $dns $hostname $domain $serverid $lease";
    machine.run(
      "sh",
      "-c",
      `printf '#!/bin/sh\\n${report}\\n' > ${installation.directory}/report; chmod +x ${installation.directory}/report`,
    );
    const output = machine.run(
      "busybox",
      "udhcpc",
      "-i",
      "eth0",
      "-n",
      "-q",
      "-t",
      "3",
      "-T",
      "1",
      "-O",
      "hostname",
      "-s",
      `${installation.directory}/report`,
    );
    assert.match(
      output,
      new RegExp(`bound ${lease.address} 24 10.64.0.1 ${controllerAddress} lease shop.cells.internal 10.64.0.1 86400`),
    );
  });

  test("from the wire: only the host that has an address speaks for it", async () => {
    const { machine } = installation.controller;
    const forger = installation.agent(machine, "guest-process.testing.ts");
    machine.run("ip", "addr", "add", `${lease.address}/32`, "dev", "eth0");
    machine.run("ip", "route", "replace", `${vm.address}/32`, "dev", "eth0", "src", lease.address);
    machine.run("ip", "neigh", "replace", vm.address, "lladdr", hosts.a[1], "dev", "eth0");
    await forger.call("bindUdp", 0, false);
    const before = (await counters()).drops["wrong-host"] ?? 0;
    await forger.call("sendUdp", vm.address, 9, 10);
    await settle();
    assert.equal((await counters()).drops["wrong-host"], before + 1);
    assert.deepEqual(await tap.call("frames"), []);
  });

  test("a tap that no interface needs goes away, and one that is there stays", async () => {
    const { a } = await installation.apply([vm, lease], [shop]);
    assert.equal(a.changes.network, true);
    assert.deepEqual(await installation.drivers.a.call("inspect"), { taps: [tapName(uidOf(vm))] });
    const [echoed] = await send(ethernet(everyone, mine, 0x0806, arp(1, mine, vm.address, "10.64.0.1")));
    assert.notEqual(echoed, undefined);
  });
});
