import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Cidr, cidr, ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { PacketCheck, PacketQuestion } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import { ethernet, icmp, icmpTypes, ip, tcp, tcpFlags, udp } from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import { type GuestPlan, type HostKey, hosts, Installation, policy, rule } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";

/**
 * A machine of a cell leads its neighbours outside: `near` is on its host and `far` on another one; `other` is of a subnet
 * without a router. What a real VM would translate is not looked at here, only what its interface is given and may send.
 */
const plan = (name: string, host: HostKey, address: string, number: number, subnet: number): GuestPlan => ({
  name,
  host,
  address,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const gatePlan = plan("gate", "a", "10.64.0.10", 1, 10);
const nearPlan = plan("near", "a", "10.64.0.20", 2, 10);
const farPlan = plan("far", "b", "10.64.0.30", 3, 10);
const otherPlan = plan("other", "a", "10.64.1.40", 4, 11);
const strangerPlan: GuestPlan = { ...plan("stranger", "a", "10.64.2.50", 5, 10), cell: 2 };
const plans = [gatePlan, nearPlan, farPlan, otherPlan, strangerPlan];
const internet = 80;
const rules = [
  rule(1, 10, internet, "tcp", 443),
  rule(2, 10, internet, "icmp"),
  rule(3, 10, 10, "udp", markPort),
  rule(4, 11, internet, "any"),
  rule(5, 11, 10, "udp", markPort),
  rule(6, 10, 11, "udp", markPort),
];
const [outside, elsewhere] = ["203.0.113.9", "198.51.100.7"];
const withRouter = (version: number, forwards: readonly (Cidr | "internet")[] = ["internet"]) => ({
  ...policy(1, version, rules, [["0.0.0.0/0", internet]]),
  routers: [{ subnet: 10, identity: 1, address: ipv4(gatePlan.address), forwards }],
  traits: [{ identity: 1, forwards, groups: [] }],
});
const stranger = policy(2, 1, [rule(1, 10, 10, "any")]);

describe("a machine that leads its neighbours outside", { skip: !canRun() }, () => {
  const installation = new Installation();
  const hands = {} as Record<"gate" | "near" | "far" | "other", Hand>;
  before(async () => {
    await installation.start();
    await installation.apply(plans, [withRouter(1), stranger]);
    hands.gate = await Hand.open(installation, gatePlan);
    hands.near = await Hand.open(installation, nearPlan);
    hands.far = await Hand.open(installation, farPlan);
    hands.other = await Hand.open(installation, otherPlan);
  });
  after(() => installation.stop());
  beforeEach(async () => {
    for (const hand of Object.values(hands)) await hand.forget();
  });

  const syn = (from: Hand, port: number, to: string = outside): string =>
    from.packet(to, 6, tcp(6000, port, tcpFlags.syn));
  /** A packet in the name of somebody outside. */
  const inNameOf = (source: string, to: Hand, protocol: number, payload: Buffer): string =>
    hands.gate.frame(0x0800, ip(source, to.address, protocol, payload));
  const answer = (to: Hand, source: string = outside): string =>
    inNameOf(source, to, 6, tcp(443, 6000, tcpFlags.syn | tcpFlags.ack));
  const ask = async (
    host: HostKey,
    question: Omit<PacketQuestion, "source" | "destination">,
    ends: [string, string],
  ) => {
    const [source, destination] = ends.map(ipv4);
    const checks = await installation.drivers[host].call<readonly PacketCheck[]>("examine", {
      ...question,
      source,
      destination,
    });
    return checks.find(({ passes }) => !passes) ?? checks.find(({ check }) => check === "router")!;
  };

  for (const name of ["near", "far"] as const) {
    test(`what a rule lets out comes to the router, and its answer comes back: ${name}`, async () => {
      const { gate } = hands;
      const self = hands[name];
      await self.passes(gate, syn(self, 443), "a connection that a rule opens");
      await gate.passes(self, answer(self), "its answer");
      await self.passes(gate, self.packet(outside, 6, tcp(6000, 443, tcpFlags.ack)), "what follows");
      await self.refused(gate, "no-rule", syn(self, 80));
    });
    test(`who may send what in whose name: ${name}`, async () => {
      const { gate } = hands;
      const self = hands[name];
      await self.passes(gate, syn(self, 443), "a connection that a rule opens");
      await gate.send(answer(self, elsewhere));
      await gate.send(inNameOf(outside, self, 6, tcp(444, 6000, tcpFlags.ack)));
      assert.deepEqual(await gate.arrivedAt(self), [], "an answer of somebody who was not asked");
      for (const source of ["10.64.0.99", "10.0.1.77", otherPlan.address, strangerPlan.address, "127.0.0.1"])
        await gate.refused(self, "spoofed-address", answer(self, source), source);
      await self.refused(
        gate,
        "spoofed-address",
        self.frame(0x0800, ip(outside, gate.address, 17, udp(1, markPort, Buffer.alloc(4)))),
      );
    });
    test(`an error is of what the machine sent: ${name}`, async () => {
      const { gate } = hands;
      const self = hands[name];
      const about = (port: number, to = outside) =>
        Buffer.from(ip(self.address, to, 6, tcp(6001, port, tcpFlags.syn)).slice(0, 56), "hex");
      const tells = (source: string, quoted: Buffer<ArrayBuffer>): string =>
        inNameOf(source, self, 1, icmp(icmpTypes.unreachable, 0, 0, quoted));
      await self.passes(gate, self.packet(outside, 6, tcp(6001, 443, tcpFlags.syn)), "the connection");
      for (const source of [outside, elsewhere, gate.address])
        await gate.passes(self, tells(source, about(443)), `told by ${source}`);
      await gate.send(tells(gate.address, about(80)), tells(gate.address, about(443, "10.64.0.99")));
      assert.deepEqual(await gate.arrivedAt(self), [], "about what was never sent");
    });
  }
  test("a subnet without a router has no way out, and its machines are answered for by nobody", async () => {
    const { gate, near, other } = hands;
    await other.refused(near, "no-location", syn(other, 443));
    await gate.refused(other, "spoofed-address", answer(other));
  });
  test("on the wire it comes from where the machine is, and from where the router is", async () => {
    const { gate, near, far } = hands;
    const wire = installation.controller.agent;
    installation.machines[0]!.run("bridge", "link", "set", "dev", "wc", "learning", "off");
    const out = ip(far.address, outside, 6, tcp(6000, 443, tcpFlags.syn));
    const into = ip(outside, far.address, 6, tcp(443, 6000, tcpFlags.syn | tcpFlags.ack));
    const fromB = (text: string): string => ethernet(hosts.a[1], hosts.b[1], 0x0800, text);
    const fromC = (to: HostKey, text: string): string => ethernet(hosts[to][1], "02:00:00:00:03:01", 0x0800, text);
    await wire.call("inject", "eth0", [fromC("a", out)]);
    assert.deepEqual(await near.arrivedAt(gate), [], "of a machine that is elsewhere");
    await wire.call("inject", "eth0", [fromB(out)]);
    assert.deepEqual(await near.arrivedAt(gate), [ethernet(gate.mac, gatewayMac, 0x0800, out)], "the same from there");
    await far.send(far.packet(outside, 6, tcp(6000, 443, tcpFlags.syn)));
    await far.arrivedAt(gate);
    await wire.call("inject", "eth0", [fromC("b", into)]);
    assert.deepEqual(await gate.arrivedAt(far), [], "of a router that is elsewhere");
    await wire.call("inject", "eth0", [ethernet(hosts.b[1], hosts.a[1], 0x0800, into)]);
    assert.deepEqual(await gate.arrivedAt(far), [ethernet(far.mac, gatewayMac, 0x0800, into)], "the same from there");
  });
  test("examine names the router, and what keeps it from speaking", async () => {
    const tcp443 = { side: "sender", protocol: "tcp", port: 443 } as const;
    const out = await ask("b", tcp443, [farPlan.address, outside]);
    assert.match(out.detail, new RegExp(`by the router of the subnet, ${gatePlan.address}, behind ${hosts.a[1]}`));
    const here = await ask("a", tcp443, [nearPlan.address, outside]);
    assert.match(here.detail, /by the router of the subnet, 10.64.0.10, on device \d+ of this host$/);
    const into = await ask("b", { ...tcp443, side: "receiver" }, [outside, farPlan.address]);
    assert.equal(into.check, "rule");
  });
  test("networks that a router may speak for change with the rules, and end their flows", async () => {
    const { gate, far, near } = hands;
    await far.passes(gate, syn(far, 443), "before");
    await installation.apply(plans, [withRouter(2, [cidr("198.51.100.0/24")]), stranger]);
    await far.refused(gate, "no-location", far.packet(outside, 6, tcp(6000, 443, tcpFlags.ack)));
    await gate.refused(near, "spoofed-address", answer(near));
    await far.passes(gate, syn(far, 443, elsewhere), "a network that is left");
    const { check, detail } = await ask("b", { side: "sender", protocol: "tcp", port: 443 }, [far.address, outside]);
    assert.deepEqual([check, /may not speak for 203.0.113.9: see its `x.forwards`/.test(detail)], ["router", true]);
    await installation.apply(plans, [policy(1, 3, rules, [["0.0.0.0/0", internet]]), stranger]);
    await far.refused(gate, "no-location", syn(far, 443, elsewhere));
    await installation.apply(plans, [withRouter(4), stranger]);
    await far.passes(gate, syn(far, 443), "again");
  });
  test("a router that runs nowhere is told as such", async () => {
    const { near, other } = hands;
    await installation.apply(
      plans.filter((each) => each !== gatePlan),
      [withRouter(4), stranger],
    );
    await near.refused(other, "no-router", syn(near, 443));
    const { detail } = await ask("a", { side: "sender", protocol: "tcp", port: 443 }, [near.address, outside]);
    assert.match(detail, /runs nowhere, as far as this host was told/);
  });
});
