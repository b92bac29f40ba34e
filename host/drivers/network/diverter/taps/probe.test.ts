import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { InterfaceCounters, LivenessProbe } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import { ethernet, icmp, icmpTypes, ip, readFrame, udp } from "../testing/frames.testing.ts";
import { type GuestPlan, Installation, macOf, policy, uidOf } from "../testing/installation.testing.ts";
import { type Agent, canRun } from "../testing/namespaces.testing.ts";
import { tapName } from "./devices.ts";
import { checksum } from "./probe.ts";

/** `guest` and `other` are ordinary stacks, `hand` and `forger` taps whose frames are made by hand; no rule at all. */
const plan = (name: string, number: number): GuestPlan => ({
  name,
  host: "a",
  address: `10.64.0.${30 + number}`,
  number,
  cell: 1,
  identities: [number, 100 + number, 10],
});
const guest = plan("guest", 1);
const other = plan("other", 2);
const hand = plan("hand", 3);
const forger = plan("forger", 4);
const plans = [guest, other, hand, forger];
const gateway = "10.64.0.1";
const ping: LivenessProbe = { protocol: "icmp", port: null };
const ask = (port: number): LivenessProbe => ({ protocol: "udp", port });

describe("liveness probes", { skip: !canRun() }, () => {
  const installation = new Installation();
  const taps = {} as { hand: Agent; forger: Agent };
  const probe = (who: GuestPlan, what: LivenessProbe, timeoutMs: number): Promise<boolean> =>
    installation.drivers.a.call("probe", uidOf(who), what, timeoutMs);
  const counters = async (who: GuestPlan): Promise<InterfaceCounters> => {
    const all = await installation.drivers.a.call<{ interfaces: readonly InterfaceCounters[] }>("counters");
    return all.interfaces.find((counter) => counter.interface === uidOf(who))!;
  };
  /** Probes that wait for an answer, as the kernel has them. */
  const waiting = (): number => {
    const pin = `${installation.directory}/a/run/bpf/diverter/maps/probes`;
    const entries = installation.hostMachines.a.run("bpftool", "-j", "map", "dump", "pinned", pin);
    return (JSON.parse(entries) as readonly unknown[]).length;
  };
  /** The probe that arrives at the tap, and the two numbers that its answer must bring back. */
  const arriving = async () => {
    const text = await taps.hand.call<string | null>("nextFrame", 10_000);
    assert.notEqual(text, null, "the probe arrives");
    const frame = readFrame(text!);
    return { frame, first: frame.payload.readUInt16BE(0), id: frame.payload.readUInt16BE(4) };
  };
  const reply = (from: GuestPlan, id: number, sequence: number, source = from.address): string =>
    ethernet(gatewayMac, macOf(from), 0x0800, ip(source, gateway, 1, icmp(icmpTypes.reply, id, sequence)));
  const datagram = (from: GuestPlan, port: number, to: number): string =>
    ethernet(gatewayMac, macOf(from), 0x0800, ip(from.address, gateway, 17, udp(port, to, Buffer.from("up"))));

  before(async () => {
    await installation.start();
    await installation.addGuest(guest);
    await installation.addGuest(other);
    const { a } = await installation.apply(plans, [policy(1, 1, [])]);
    assert.ok(a.allocation.interfaces.every(({ ready }) => ready));
    for (const name of ["hand", "forger"] as const) {
      taps[name] = installation.agent(installation.hostMachines.a, "guest-process.testing.ts");
      await taps[name].call("openTap", tapName(uidOf(name === "hand" ? hand : forger)));
    }
  });
  after(() => installation.stop());
  beforeEach(() => taps.hand.call("frames"));

  test("a guest answers an echo though no rule lets anything pass, and a silent one does not", async () => {
    assert.equal(await probe(guest, ping, 5000), true);
    const { machine } = installation.guests.guest!;
    machine.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    assert.equal(await probe(guest, ping, 200), false);
    machine.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    assert.equal(await probe(guest, ping, 5000), true);
    assert.equal(waiting(), 0);
  });

  test("a UDP port answers with any datagram; a closed one says no, and so does one that only listens", async () => {
    const { agent } = installation.guests.guest!;
    await agent.call("bindUdp", 7777, true);
    assert.equal(await probe(guest, ask(7777), 5000), true);
    assert.match((await agent.call<string[]>("datagrams")).join(), /^10\.64\.0\.1:\d+ 21$/);
    assert.equal(await probe(guest, ask(7778), 200), false);
    await agent.call("bindUdp", 7777, false);
    assert.equal(await probe(guest, ask(7777), 200), false);
    assert.equal((await agent.call<string[]>("datagrams")).length, 1, "it was asked");
  });

  test("a probe shows the gateway and nothing of the host", async () => {
    for (const what of [ping, ask(9)]) {
      const outcome = probe(hand, what, 100);
      const { frame } = await arriving();
      assert.deepEqual([frame.to, frame.from, frame.type], [macOf(hand), gatewayMac, 0x0800]);
      assert.deepEqual([frame.source, frame.destination], [gateway, hand.address]);
      assert.equal(checksum(frame.head), 0);
      const [source, destination] = [frame.head.subarray(12, 16), frame.head.subarray(16, 20)];
      const pseudo = Buffer.from([...source, ...destination, 0, 17, 0, frame.payload.length]);
      assert.equal(checksum(what === ping ? frame.payload : Buffer.concat([pseudo, frame.payload])), 0);
      assert.equal(await outcome, false);
    }
  });

  test("only the answer that was asked for counts, from the interface that was asked", async () => {
    const outcome = probe(hand, ping, 20_000);
    let decided = false;
    void outcome.then(() => {
      decided = true;
    });
    const { frame, id } = await arriving();
    const sequence = frame.payload.readUInt16BE(6);
    await taps.hand.call("sendFrames", [
      reply(hand, id ^ 1, sequence),
      reply(hand, id, sequence ^ 1),
      ethernet(gatewayMac, macOf(hand), 0x0800, ip(hand.address, gateway, 1, icmp(icmpTypes.request, id, sequence))),
      ethernet(gatewayMac, macOf(hand), 0x0800, ip(hand.address, gateway, 1, icmp(0, id, sequence), 0x2000)),
      datagram(hand, sequence, id),
      reply(hand, id, sequence, other.address),
    ]);
    await taps.forger.call("sendFrames", [reply(forger, id, sequence), reply(forger, id, sequence, hand.address)]);
    assert.ok(((await counters(forger)).drops["spoofed-address"] ?? 0) >= 1);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(decided, false);
    await taps.hand.call("sendFrame", reply(hand, id, sequence));
    assert.equal(await outcome, true);
  });

  test("of UDP, the datagram from the probed port to the probing one", async () => {
    const outcome = probe(hand, ask(4711), 20_000);
    let decided = false;
    void outcome.then(() => {
      decided = true;
    });
    const { first: from } = await arriving();
    await taps.hand.call("sendFrames", [datagram(hand, 4712, from), datagram(hand, 4711, from ^ 1)]);
    await taps.forger.call("sendFrame", datagram(forger, 4711, from));
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(decided, false);
    await taps.hand.call("sendFrame", datagram(hand, 4711, from));
    assert.equal(await outcome, true);
  });

  test("a guest that floods its gateway with answers reaches nothing and disturbs nobody's probe", async () => {
    const host = installation.hostMachines.a;
    const received = (): string => host.run("sh", "-c", "grep -E '^(Ip|Icmp|Udp):' /proc/net/snmp");
    const before = await counters(forger);
    const machineBefore = received();
    const flood = Array.from({ length: 3000 }, (_, at) => reply(forger, at, at * 7));
    const [answered] = await Promise.all([
      probe(guest, ping, 5000),
      taps.forger.call("sendFrames", flood),
      taps.forger.call("sendFrames", [datagram(forger, 9, 7101), datagram(forger, 9, 53)]),
    ]);
    assert.equal(answered, true);
    const after = await counters(forger);
    assert.equal((after.drops["no-rule"] ?? 0) - (before.drops["no-rule"] ?? 0), 3002);
    assert.equal(after.sent.packets, before.sent.packets);
    assert.equal(received(), machineBefore, "nothing came to the host's own stack");
    assert.equal(waiting(), 0);
  });

  test("five hundred at once, and one for an interface that is not here", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, (_, at) => probe(at % 2 === 0 ? guest : other, ping, 10_000)),
    );
    assert.deepEqual(new Set(outcomes), new Set([true]));
    assert.equal(waiting(), 0);
    assert.equal(await probe(plan("nobody", 9), ping, 5000), false);
    await assert.rejects(probe(guest, { protocol: "udp", port: null }, 100), /needs the port/);
  });
});
