import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { cidr, ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { PacketCheck, PacketQuestion } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import {
  arp,
  ethernet,
  everyone,
  icmp,
  icmpTypes,
  ip,
  readFrame,
  tcp,
  tcpFlags,
  udp,
} from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import {
  type Applied,
  type GuestPlan,
  hosts,
  Installation,
  outsideNetwork,
  policy,
  rule,
  type WayOutside,
} from "../testing/installation.testing.ts";
import { type Agent, canRun } from "../testing/namespaces.testing.ts";

/**
 * Out of the installation and into it, over real devices: `web` and `server` have external addresses, `inner` an internal one
 * and rules that would let it reach everybody. What is refused stands beside what passes, and each drop has its reason.
 */
const plan = (name: string, host: "a" | "b", address: string, number: number, subnet: number): GuestPlan => ({
  name,
  host,
  address,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const webPlan = plan("web", "a", "198.18.0.10", 1, 10);
const innerPlan = plan("inner", "a", "10.64.0.50", 2, 11);
const serverPlan = plan("server", "b", "198.18.1.20", 3, 12);
const plans = [webPlan, innerPlan, serverPlan];
const internet = 80;
const rules = [
  rule(1, internet, 10, "udp", markPort),
  rule(2, internet, 10, "tcp", 443),
  rule(3, 10, internet, "udp", 53),
  rule(4, 10, internet, "udp", markPort),
  rule(5, internet, 12, "tcp", 443),
  rule(6, 12, internet, "tcp", 8443),
  rule(7, 11, internet, "any"),
  rule(8, internet, 11, "any"),
  rule(9, internet, 10, "udp", 68),
  rule(10, 10, 11, "any"),
  rule(11, 11, 10, "any"),
];
const { somebody, routerMac } = outsideNetwork;
const strangerMac = "02:00:00:00:fe:66";
const data = Buffer.from("hello");

for (const way of ["own", "uplink"] as const satisfies readonly WayOutside[])
  describe(`a way out by ${way === "own" ? "a device of its own" : "the uplink"}`, { skip: !canRun() }, () => {
    const installation = new Installation();
    let web: Hand;
    let inner: Hand;
    let router: Agent;
    let stranger: Agent;
    let marks = 0;
    before(async () => {
      await installation.start({ outside: way });
      await installation.addGuest(serverPlan);
      const applied = await installation.apply(plans, [policy(1, 1, rules, [["0.0.0.0/0", internet]])]);
      for (const host of ["a", "b"] as const) {
        assert.ok(applied[host].allocation.interfaces.every(({ ready }) => ready));
        await installation.drivers[host].call("untilRouter", routerMac, true);
      }
      web = await Hand.open(installation, webPlan);
      inner = await Hand.open(installation, innerPlan);
      router = installation.router.agent;
      stranger = installation.stranger.agent;
    });
    after(() => installation.stop());
    beforeEach(async () => {
      for (const hand of [web, inner]) while ((await hand.next(1)) !== null);
    });

    /** A frame to host a, from a machine outside. */
    const frame = (payload: string, from: string = routerMac): string =>
      ethernet(installation.outsideMac("a"), from, 0x0800, payload);
    const mark = (): string =>
      frame(ip(somebody, web.address, 17, udp(markPort, markPort, Buffer.from(`mark ${++marks}`))));
    /** What came to the tap of `web` or `inner` before a mark that the router sent behind it came to `web`. */
    const arrived = async (): Promise<readonly string[]> => {
      const last = mark();
      await router.call("inject", "eth0", [last]);
      const before: string[] = [];
      for (;;) {
        const next = await web.next(10_000);
        assert.notEqual(next, null, "an honest packet from outside arrives");
        if (next!.slice(28) === last.slice(28)) break;
        before.push(next!);
      }
      for (let next = await inner.next(1); next !== null; next = await inner.next(1)) before.push(next);
      return before;
    };
    const comesIn = async (text: string, what: string, by = router): Promise<void> => {
      await by.call("inject", "eth0", [text]);
      assert.deepEqual(await arrived(), [ethernet(web.mac, gatewayMac, 0x0800, text.slice(28))], what);
    };
    const staysOut = async (reason: string, text: string, by = router, at = web): Promise<void> => {
      const before = await at.counters();
      await by.call("inject", "eth0", [text]);
      assert.deepEqual(await arrived(), [], reason);
      const after = await at.counters();
      assert.equal((after.drops[reason] ?? 0) - (before.drops[reason] ?? 0), 1, `counted as ${reason}`);
    };
    const goesOut = async (from: Hand, to: string, port: number): Promise<string[]> => {
      await router.call("bindUdp", port, false);
      await from.send(from.packet(to, 17, udp(5000, port, data)));
      for (;;) {
        const came = await router.call<string[]>("datagrams");
        if (came.length > 0) return came;
      }
    };
    /** It leaves by no device, and the interface's counter says why. */
    const staysIn = async (reason: string, from: Hand, text: string): Promise<void> => {
      const before = await from.counters();
      await from.send(text);
      await from.arrivedAt(from === web ? inner : web);
      const after = await from.counters();
      assert.equal((after.drops[reason] ?? 0) - (before.drops[reason] ?? 0), 1, `counted as ${reason}`);
      assert.equal(after.sent.packets - before.sent.packets, 1, "the mark alone was sent");
    };

    test("a real server is reached at the port that a rule opens, and reaches what a rule opens", async () => {
      const { agent } = installation.guests.server!;
      await agent.call("listen", 443);
      assert.equal(await router.call("open", serverPlan.address, 443), "open");
      assert.equal(await router.call("echo", 100_000, 5000), true);
      assert.notEqual(await router.call("open", serverPlan.address, 444), "open");
      await agent.call("closeServer");
      await router.call("listen", 8443);
      assert.equal(await agent.call("open", somebody, 8443), "open");
      assert.equal(await agent.call("echo", 100_000, 5000), true);
      assert.notEqual(await agent.call("open", somebody, 8444), "open");
      await router.call("closeServer");
    });

    test("the host of an external address answers for it outside, and nobody for another", async () => {
      const { machine } = installation.router;
      const at = (address: string): string => machine.run("ip", "neigh", "show", address);
      for (const [{ address }, host] of [
        [webPlan, "a"],
        [serverPlan, "b"],
      ] as const) {
        machine.run("ip", "neigh", "flush", "dev", "eth0");
        await router.call("open", address, 443);
        assert.match(at(address), new RegExp(`lladdr ${installation.outsideMac(host)}`));
      }
      assert.equal(await router.call("open", innerPlan.address, 443), "timeout");
      assert.doesNotMatch(at(innerPlan.address), /lladdr/);
      assert.doesNotMatch(at("198.18.0.99"), /lladdr/);
    });

    test("what comes in has a rule, and comes from the router and from outside", async () => {
      const syn = (port: number, from = 7000): Buffer => tcp(from, port, tcpFlags.syn);
      await comesIn(frame(ip(somebody, web.address, 6, syn(443))), "an opened port");
      await staysOut("no-rule", frame(ip(somebody, web.address, 6, syn(444))));
      await staysOut("not-from-router", frame(ip(somebody, web.address, 6, syn(443, 7001)), strangerMac), stranger);
      await comesIn(frame(ip(somebody, web.address, 6, syn(443, 7001))), "the same from the router");
      await staysOut("not-from-router", frame(ip(somebody, web.address, 6, syn(443, 7001)), strangerMac), stranger);
      for (const source of [
        serverPlan.address,
        innerPlan.address,
        "10.64.0.99",
        "198.18.7.7",
        hosts.b[0],
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.5",
        "255.255.255.255",
      ])
        await staysOut("inside-from-outside", frame(ip(source, web.address, 6, syn(443, 7002))));
      await staysOut("rogue-dhcp", frame(ip(somebody, web.address, 17, udp(67, 68, data))));
    });

    test("an internal interface has no way in and none out, whatever its rules say", async () => {
      await staysOut("no-location", frame(ip(somebody, inner.address, 6, tcp(7000, 80, tcpFlags.syn))), router, inner);
      await staysIn("no-location", inner, inner.packet(somebody, 17, udp(5000, 53, data)));
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
    });

    test("what goes out has a rule and goes outside", async () => {
      await staysIn("no-rule", web, web.packet(somebody, 17, udp(5000, 54, data)));
      for (const to of ["10.64.0.99", "198.18.7.7", hosts.b[0], "10.0.0.77", "127.0.0.1", "0.0.0.0"])
        await staysIn("no-location", web, web.packet(to, 17, udp(5000, 53, data)));
      if (way === "own") await staysIn("no-location", web, web.packet("192.0.2.12", 17, udp(5000, 53, data)));
      assert.deepEqual(
        await goesOut(web, outsideNetwork.router[way], 53),
        [`${web.address}:5000 5`],
        "the router is outside",
      );
    });

    test("answers come to who asked, from the router alone", async () => {
      await web.send(web.packet(somebody, 17, udp(6000, 53, data)));
      const answer = (from: number, mac: string = routerMac): string =>
        frame(ip(somebody, web.address, 17, udp(from, 6000, data)), mac);
      await staysOut("not-from-router", answer(53, strangerMac), stranger);
      await staysOut("no-rule", answer(54));
      await comesIn(answer(53), "the answer");
      await staysOut("not-from-router", answer(53, strangerMac), stranger);
    });

    test("a router on the way says why a packet did not get there, of what was sent, and by that way", async () => {
      await web.send(web.packet(somebody, 17, udp(6001, 53, data)));
      const about = (port: number) => Buffer.from(ip(web.address, somebody, 17, udp(port, 53, data)), "hex");
      const tells = (port: number, mac: string = routerMac): string =>
        frame(ip("203.0.113.254", web.address, 1, icmp(icmpTypes.unreachable, 0, 0, about(port))), mac);
      await comesIn(tells(6001), "about what was sent");
      await staysOut("no-rule", tells(6009));
      await staysOut("no-rule", tells(6001, strangerMac), stranger);
    });

    test("the other segment is no way in", async () => {
      const text = ip(somebody, web.address, 6, tcp(7100, 443, tcpFlags.syn));
      const { agent } = installation.controller;
      /* Its machine will send in the router's name; the switch must not believe it. */
      installation.machines[0]!.run("bridge", "link", "set", "dev", "wc", "learning", "off");
      const before = await web.counters();
      await agent.call("inject", "eth0", [ethernet(hosts.a[1], routerMac, 0x0800, text)]);
      const expected = way === "own" ? [] : [ethernet(web.mac, gatewayMac, 0x0800, text)];
      assert.deepEqual(await arrived(), expected, "the router's MAC counts where the router is");
      const after = await web.counters();
      assert.equal(after.drops["no-location"]! - before.drops["no-location"]!, way === "own" ? 1 : 0);
      if (way === "uplink") return;
      await comesIn(frame(text), "by the router");
      await comesIn(frame(text), "once more, and the flow knows from where");
      await agent.call("inject", "eth0", [ethernet(hosts.a[1], routerMac, 0x0800, text)]);
      assert.deepEqual(await arrived(), [], "nor once the flow is known");
      await comesIn(frame(text), "which goes on");
    });

    test("examine says by which router a packet goes or comes, or what keeps it in or out", async () => {
      const ask = async (side: PacketQuestion["side"], source: string, destination: string, port: number) => {
        const question: PacketQuestion = {
          side,
          source: ipv4(source),
          destination: ipv4(destination),
          protocol: "udp",
          port,
        };
        const checks = await installation.drivers.a.call<readonly PacketCheck[]>("examine", question);
        return checks.find(({ passes }) => !passes) ?? checks.find(({ check }) => check === "outside")!;
      };
      const { [way]: name } = outsideNetwork.router;
      const out = await ask("sender", web.address, somebody, 53);
      assert.match(out.detail, new RegExp(`${somebody} is outside, by device \\d+ behind ${name} at ${routerMac}$`));
      const into = await ask("receiver", somebody, web.address, markPort);
      assert.match(into.detail, new RegExp(`accepted by device \\d+ from ${name} at ${routerMac} alone$`));
      assert.equal((await ask("sender", web.address, somebody, 54)).check, "rule");
      const internal = await ask("sender", inner.address, somebody, 53);
      assert.match(internal.detail, /10\.64\.0\.50 is no external address: an interface of a subnet with/);
      assert.equal((await ask("sender", web.address, "10.64.0.99", 53)).check, "location");
      assert.equal((await ask("receiver", "10.64.0.99", web.address, markPort)).check, "source");
    });

    test("an address is announced when it comes, and where it moves to", async () => {
      const { machine } = installation.router;
      const moving = { ...plan("moving", "a", "198.18.0.77", 7, 10) };
      const open = policy(1, 1, rules, [["0.0.0.0/0", internet]]);
      const untilAt = async (mac: string): Promise<void> => {
        while (!machine.run("ip", "neigh", "show", moving.address).includes(`lladdr ${mac}`))
          await new Promise((resolve) => setTimeout(resolve, 10));
      };
      machine.run("ip", "neigh", "flush", "dev", "eth0");
      await installation.apply([...plans, moving], [open]);
      await untilAt(installation.outsideMac("a"));
      await installation.apply([...plans, { ...moving, host: "b" }], [open]);
      await untilAt(installation.outsideMac("b"));
      await installation.apply(plans, [open]);
    });

    test("who answers for the router is not believed while the router answers", async () => {
      const lie = (to: string): string =>
        ethernet(to, strangerMac, 0x0806, arp(2, strangerMac, outsideNetwork.router[way], somebody));
      await stranger.call(
        "inject",
        "eth0",
        Array.from({ length: 20 }, () => lie(everyone)),
      );
      await staysOut(
        "not-from-router",
        frame(ip(somebody, web.address, 6, tcp(7200, 443, tcpFlags.syn)), strangerMac),
        stranger,
      );
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
    });

    test("pools of external addresses change while packets pass, and stay as they are over the end of the process", async () => {
      const open = policy(1, 1, rules, [["0.0.0.0/0", internet]]);
      const tell = async (...external: readonly string[]): Promise<Applied> => {
        const pools = external.length === 0 ? {} : { external: external.map((each) => cidr(each)) };
        return installation.drivers.a.call<Applied>("apply", { ...installation.global("a", plans, [open]), ...pools });
      };
      const out = () => web.packet(somebody, 17, udp(5000, 53, data));
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
      const { changes, after } = await tell("198.18.1.0/24");
      assert.deepEqual([changes.addressing, after.addressing], [true, false]);
      await staysIn("no-location", web, out());
      await tell("203.0.113.128/25", "198.18.0.8/29");
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
      await installation.drivers.a.stop();
      installation.agents.delete(installation.drivers.a);
      await installation.startDriver("a");
      await installation.drivers.a.call("untilRouter", routerMac, true);
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
      const seen = async (destination: string): Promise<string | undefined> => {
        const question: PacketQuestion = {
          side: "sender",
          source: ipv4(web.address),
          destination: ipv4(destination),
          protocol: "udp",
          port: 53,
        };
        const checks = await installation.drivers.a.call<readonly PacketCheck[]>("examine", question);
        return checks.find(({ passes }) => !passes)?.check;
      };
      assert.deepEqual(
        [await seen("203.0.113.129"), await seen("198.18.7.7")],
        ["location", undefined],
        "as they were",
      );
      await tell();
      assert.deepEqual(
        [await seen("203.0.113.129"), await seen("198.18.7.7")],
        [undefined, "location"],
        "its own again",
      );
    });

    test("a router that moves to another MAC is found there, and flows follow it", async () => {
      const moved = "02:00:00:00:fe:02";
      const { machine } = installation.router;
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
      const known = ["a", "b"].map((host) => installation.drivers[host as "a" | "b"].call("untilRouter", moved, true));
      machine.run("ip", "link", "set", "eth0", "down");
      machine.run("ip", "link", "set", "eth0", "address", moved, "up");
      for (const pool of ["198.18.0.0/15", "10.64.0.0/10"])
        machine.run("ip", "route", "replace", pool, "dev", "eth0", "src", somebody);
      await Promise.all(known);
      assert.deepEqual(await goesOut(web, somebody, 53), [`${web.address}:5000 5`]);
      const answer = (mac: string): string => frame(ip(somebody, web.address, 17, udp(53, 5000, data)), mac);
      await router.call("inject", "eth0", [answer(routerMac)]);
      await router.call("inject", "eth0", [answer(moved)]);
      const first = await web.next(10_000);
      assert.equal(readFrame(first!).source, somebody);
      assert.equal(await web.next(1), null, "by the new MAC alone");
    });
  });
