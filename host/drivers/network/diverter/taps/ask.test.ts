import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { InterfaceCounters, LivenessProbe } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import { questionType } from "../program/layout.ts";
import { ethernet, icmp, icmpTypes, ip, readFrame } from "../testing/frames.testing.ts";
import { type GuestPlan, hosts, Installation, macOf, policy, uidOf } from "../testing/installation.testing.ts";
import { type Agent, canRun } from "../testing/namespaces.testing.ts";
import { tapName } from "./devices.ts";

/**
 * `a` asks machines of `b`: `guest` has an ordinary stack there, `hand` is a tap whose frames are made by hand; `forger` is one at `a`. There is no
 * rule at all.
 */
const plan = (name: string, host: "a" | "b", number: number, subnet = 10): GuestPlan => ({
  name,
  host,
  address: `10.64.0.${60 + number}`,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const guest = plan("guest", "b", 1);
const hand = plan("hand", "b", 2);
const forger = plan("forger", "a", 3);
const plans = [guest, hand, forger];
const gateway = "10.64.0.1";
const [, macA] = hosts.a;
const [, macB] = hosts.b;

describe("machines that another host asks", { skip: !canRun() }, () => {
  const installation = new Installation();
  const taps = {} as { hand: Agent; forger: Agent };
  const ask = (who: GuestPlan, timeoutMs: number, at: string = macB): Promise<boolean> =>
    installation.drivers.a.call("ask", { address: who.address, mac: at }, timeoutMs);
  const counters = async (who: GuestPlan): Promise<InterfaceCounters> => {
    const all = await installation.drivers[who.host].call<{ interfaces: readonly InterfaceCounters[] }>("counters");
    return all.interfaces.find((counter) => counter.interface === uidOf(who))!;
  };
  const entries = (host: "a" | "b", map: string): number => {
    const pin = `${installation.directory}/${host}/run/bpf/diverter/maps/${map}`;
    const text = installation.hostMachines[host].run("bpftool", "-j", "map", "dump", "pinned", pin);
    return (JSON.parse(text) as readonly unknown[]).length;
  };
  const arriving = async () => {
    const text = await taps.hand.call<string | null>("nextFrame", 10_000);
    assert.notEqual(text, null, "the question arrives");
    const frame = readFrame(text!);
    return { frame, id: frame.payload.readUInt16BE(4), sequence: frame.payload.readUInt16BE(6) };
  };
  const reply = (from: GuestPlan, id: number, sequence: number, source = from.address): string =>
    ethernet(gatewayMac, macOf(from), 0x0800, ip(source, gateway, 1, icmp(icmpTypes.reply, id, sequence)));
  const settled = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  before(async () => {
    await installation.start();
    await installation.addGuest(guest);
    const applied = await installation.apply(plans, [policy(1, 1, [])]);
    for (const host of ["a", "b"] as const) assert.ok(applied[host].allocation.interfaces.every(({ ready }) => ready));
    for (const name of ["hand", "forger"] as const) {
      const of = name === "hand" ? hand : forger;
      taps[name] = installation.agent(installation.hostMachines[of.host], "guest-process.testing.ts");
      await taps[name].call("openTap", tapName(uidOf(of)));
    }
  });
  after(() => installation.stop());
  beforeEach(() => taps.hand.call("frames"));

  test("a machine of another host answers though no rule lets anything pass, and a silent one does not", async () => {
    assert.equal(await ask(guest, 5000), true);
    const { machine } = installation.guests.guest!;
    machine.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    assert.equal(await ask(guest, 300), false);
    machine.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    assert.equal(await ask(guest, 5000), true);
    assert.equal(await ask(plan("nobody", "b", 9), 200), false, "no such machine is there");
    assert.equal(await ask(guest, 200, macA), false, "nor is it at another host");
    assert.equal(entries("a", "asked"), 0);
  });

  test("it needs no Host Manager at the host that is asked", async () => {
    const old = installation.drivers.b;
    await old.stop();
    installation.agents.delete(old);
    assert.equal(await ask(guest, 5000), true);
    await installation.startDriver("b");
    await installation.apply(plans, [policy(1, 1, [])]);
    assert.equal(await ask(guest, 5000), true);
  });

  test("the machine sees its gateway and nothing of who asks; no answer but that one counts, and it goes back once", async () => {
    const unanswered = entries("b", "askers");
    let decided = false;
    const outcome = ask(hand, 20_000);
    void outcome.then(() => {
      decided = true;
    });
    const { frame, id, sequence } = await arriving();
    assert.deepEqual([frame.to, frame.from, frame.type], [macOf(hand), gatewayMac, 0x0800]);
    assert.deepEqual([frame.source, frame.destination, frame.protocol], [gateway, hand.address, 1]);
    const before = await counters(hand);
    const other = ethernet(gatewayMac, macOf(hand), 0x0800, ip(hand.address, gateway, 1, icmp(8, id, sequence)));
    const wrong = [
      reply(hand, id ^ 1, sequence),
      reply(hand, id, sequence ^ 1),
      other,
      reply(hand, id, sequence, guest.address),
      ethernet(gatewayMac, macOf(hand), questionType, ip(hand.address, gateway, 1, icmp(0, id, sequence))),
      ethernet(gatewayMac, macOf(hand), 0x0800, ip(hand.address, hosts.a[0], 1, icmp(0, id, sequence))),
    ];
    await taps.hand.call("sendFrames", wrong);
    // At the host that asks, in the VM's name and in that of the other host.
    await taps.forger.call("sendFrames", [
      reply(forger, id, sequence, hand.address),
      ethernet(macA, macOf(forger), questionType, ip(hand.address, gateway, 1, icmp(0, id, sequence))),
      ethernet(macA, macB, questionType, ip(hand.address, gateway, 1, icmp(0, id, sequence))),
    ]);
    await settled(500);
    assert.equal(decided, false);
    await taps.hand.call("sendFrames", [reply(hand, id, sequence), reply(hand, id, sequence)]);
    assert.equal(await outcome, true);
    const { drops } = await counters(hand);
    const more = (reason: string): number => (drops[reason] ?? 0) - (before.drops[reason] ?? 0);
    assert.deepEqual([more("other-ethertype"), more("spoofed-address")], [1, 1]);
    assert.ok(more("no-rule") >= 5, "and the second one of the right ones");
    assert.equal(entries("b", "askers"), unanswered);
  });

  test("an answer from another host than the one that was asked is none", async () => {
    const outcome = ask(hand, 1500);
    const { id, sequence } = await arriving();
    const { agent } = installation.controller;
    const forged = ip(hand.address, gateway, 1, icmp(0, id, sequence));
    await agent.call("inject", "eth0", [ethernet(macA, "02:00:00:00:03:01", questionType, forged)]);
    assert.equal(await outcome, false);
  });

  test("nothing else gets through: what is no short whole echo, or is for nobody here, is dropped by the host that is asked", async () => {
    const { agent } = installation.controller;
    const from = "02:00:00:00:03:01";
    const to = hand.address;
    const host = installation.hostMachines.b;
    const received = (): string => host.run("sh", "-c", "grep -E '^(Ip|Icmp|Udp):' /proc/net/snmp");
    const before = received();
    const put = (payload: Parameters<typeof ethernet>[3], type: number = questionType) =>
      agent.call("inject", "eth0", [ethernet(macB, from, type, payload)]);
    const echo = icmp(8, 7, 7);
    await put(ip(hosts.a[0], to, 17, echo));
    await put(ip(hosts.a[0], to, 6, Buffer.concat([echo, Buffer.alloc(20)])));
    await put(ip(hosts.a[0], to, 1, icmp(13, 7, 7)));
    await put(ip(hosts.a[0], to, 1, echo, 0x2000));
    await put(ip(hosts.a[0], to, 1, Buffer.concat([echo, Buffer.alloc(200)])));
    await put(ip(hosts.a[0], hosts.b[0], 1, echo));
    await put(ip(hosts.a[0], to, 1, icmp(0, 7, 7)));
    await put(ip(gateway, to, 1, echo), 0x0800);
    await settled(300);
    assert.deepEqual(await taps.hand.call("frames"), [], "the machine has got none of them");
    assert.equal(received(), before, "nor has the host's own stack");
    await put(ip(hosts.a[0], to, 1, echo));
    await arriving();
  });

  test("a guest cannot ask: a frame of that type, or one in its gateway's name, goes nowhere", async () => {
    const before = await counters(forger);
    const echo = icmp(8, 9, 9);
    await taps.forger.call("sendFrames", [
      ethernet(macB, macOf(forger), questionType, ip(forger.address, hand.address, 1, echo)),
      ethernet(gatewayMac, macOf(forger), questionType, ip(forger.address, hand.address, 1, echo)),
      ethernet(gatewayMac, macOf(forger), 0x0800, ip(gateway, hand.address, 1, echo)),
      ethernet(gatewayMac, macOf(forger), 0x0800, ip(forger.address, hand.address, 1, echo)),
    ]);
    await settled(300);
    assert.deepEqual(await taps.hand.call("frames"), []);
    const { drops, sent } = await counters(forger);
    assert.equal((drops["other-ethertype"] ?? 0) - (before.drops["other-ethertype"] ?? 0), 2);
    assert.equal(sent.packets, before.sent.packets);
  });

  test("a local probe and a question with its numbers have each their own answer", async () => {
    const ping: LivenessProbe = { protocol: "icmp", port: null };
    const outcomes = await Promise.all([
      ...Array.from({ length: 100 }, () => ask(guest, 10_000)),
      ...Array.from({ length: 20 }, () => installation.drivers.b.call("probe", uidOf(guest), ping, 10_000)),
    ]);
    assert.deepEqual(new Set(outcomes), new Set([true]));
    assert.deepEqual([entries("a", "asked"), entries("b", "probes")], [0, 0]);
  });
});
