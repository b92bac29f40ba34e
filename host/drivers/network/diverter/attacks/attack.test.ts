import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { gatewayMac } from "../diverter.ts";
import { octets } from "../program/layout.ts";
import { checksum } from "../taps/probe.ts";
import {
  arp,
  dhcp,
  ethernet,
  everyone,
  hex,
  icmp,
  icmpTypes,
  ip,
  macHex,
  readFrame,
  tcp,
  tcpFlags,
  udp,
} from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import { type GuestPlan, hosts, Installation, macOf, policy, rule } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";

/**
 * What a guest sends that no honest stack would, by hand at a real tap, to a guest of the same host and to one across the
 * wire. Between subnets 10 and 11 all is allowed, so that what is dropped is dropped for what it is and not for lack of a
 * rule; `stranger` may be sent nothing but marks.
 */
const plan = (name: string, host: "a" | "b", number: number, subnet: number): GuestPlan => ({
  name,
  host,
  address: `10.64.0.${40 + number}`,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const attackerPlan = plan("attacker", "a", 1, 10);
const nearPlan = plan("near", "a", 2, 11);
const farPlan = plan("far", "b", 3, 11);
const strangerPlan = plan("stranger", "b", 4, 12);
const plans = [attackerPlan, nearPlan, farPlan, strangerPlan];
const rules = [rule(1, 10, 11, "any"), rule(2, 11, 10, "udp", markPort), rule(3, 10, 12, "udp", markPort)];
/** A rule for a network that holds the machines: it must open nothing that no interface or controller stands for. */
const machines = 70;
const toMachines = rule(4, 10, machines, "any");

describe("a guest that attacks", { skip: !canRun() }, () => {
  const installation = new Installation();
  let attacker: Hand;
  let near: Hand;
  let far: Hand;
  let stranger: Hand;
  before(async () => {
    await installation.start();
    const open = policy(1, 1, [...rules, toMachines], [["10.0.0.0/16", machines]]);
    const applied = await installation.apply(plans, [open]);
    for (const host of ["a", "b"] as const) assert.ok(applied[host].allocation.interfaces.every(({ ready }) => ready));
    [attacker, near, far, stranger] = (await Promise.all(plans.map((one) => Hand.open(installation, one)))) as [
      Hand,
      Hand,
      Hand,
      Hand,
    ];
  });
  after(() => installation.stop());
  beforeEach(async () => {
    for (const victim of [near, far, stranger]) await attacker.arrivedAt(victim);
    while ((await attacker.next(1)) !== null);
  });

  const victims = () => [near, far];
  const refusedEverywhere = async (reason: string, frameTo: (victim: Hand) => string, what = reason): Promise<void> => {
    for (const victim of victims()) await attacker.refused(victim, reason, frameTo(victim), what);
  };
  const passesEverywhere = async (frameTo: (victim: Hand) => string, what: string): Promise<void> => {
    for (const victim of victims()) await attacker.passes(victim, frameTo(victim), what);
  };
  const ping = icmp(icmpTypes.request, 7, 1, Buffer.from("how are you"));

  test("a MAC or an address that is another's", async () => {
    await passesEverywhere((victim) => attacker.packet(victim, 1, ping), "its own");
    for (const mac of [macOf(nearPlan), gatewayMac, hosts.a[1], everyone])
      await refusedEverywhere(
        "spoofed-mac",
        ({ address }) => ethernet(gatewayMac, mac, 0x0800, ip(attacker.address, address, 1, ping)),
        mac,
      );
    for (const source of [near.address, far.address, "10.64.0.1", "10.64.0.99", "0.0.0.0", "127.0.0.1", hosts.a[0]])
      await refusedEverywhere(
        "spoofed-address",
        ({ address }) => attacker.frame(0x0800, ip(source, address, 1, ping)),
        source,
      );
    const about = Buffer.from(ip(near.address, far.address, 17, udp(9, 9, Buffer.alloc(0))), "hex");
    await refusedEverywhere(
      "no-rule",
      (victim) => attacker.packet(victim, 1, icmp(icmpTypes.unreachable, 0, 0, about)),
      "an ICMP error about others' packets",
    );
  });

  test("a destination MAC changes nothing about where a packet goes", async () => {
    for (const mac of [everyone, macOf(nearPlan), hosts.b[1]]) {
      await attacker.send(ethernet(mac, attacker.mac, 0x0800, ip(attacker.address, far.address, 1, ping)));
      assert.equal((await attacker.arrivedAt(far)).length, 1);
      assert.deepEqual(await attacker.arrivedAt(near), []);
    }
  });

  test("ARP that speaks for others, or to others", async () => {
    const me = attacker.mac;
    const forged: readonly (readonly [string, string])[] = [
      ["a gratuitous request with the victim's address", arp(1, me, near.address, near.address)],
      ["a gratuitous answer with the victim's address", arp(2, me, near.address, near.address)],
      ["an answer that the gateway is here", arp(2, me, "10.64.0.1", near.address)],
      ["a request in the victim's name", arp(1, me, near.address, far.address)],
      ["a request with the gateway's hardware address", arp(1, gatewayMac, attacker.address, near.address)],
    ];
    for (const [what, body] of forged)
      for (const to of [everyone, macOf(nearPlan), gatewayMac])
        await attacker.refused(near, "rogue-arp", attacker.frame(0x0806, body, to), what);
    /* Its own are not forged, and yet nobody else's business. */
    for (const body of [arp(1, me, attacker.address, attacker.address), arp(2, me, attacker.address, near.address)]) {
      await attacker.send(attacker.frame(0x0806, body, everyone));
      assert.deepEqual(await attacker.arrivedAt(near), []);
      assert.deepEqual(await attacker.arrivedAt(far), []);
    }
    await attacker.send(attacker.frame(0x0806, arp(1, me, attacker.address, near.address), everyone));
    const answer = await attacker.next(10_000);
    assert.equal(answer?.slice(0, 28), `${macHex(me)}${macHex(gatewayMac)}0806`, "an honest request is answered");
    await attacker.refused(near, "malformed", attacker.frame(0x0806, "0001080006", everyone), "a short one");
  });

  test("DHCP answers, from whatever port, in one piece or in two", async () => {
    const offer = Buffer.from(dhcp(2, macOf(nearPlan)));
    const from = (port: number, to: number): Buffer => {
      const message = Buffer.from(offer);
      message.writeUInt16BE(port, 0);
      message.writeUInt16BE(to, 2);
      return message;
    };
    await passesEverywhere((victim) => attacker.packet(victim, 17, from(1067, 1068)), "the same bytes, other ports");
    for (const [port, to] of [
      [67, 68],
      [1067, 68],
      [67, 1068],
      [68, 68],
    ] as const)
      await refusedEverywhere("rogue-dhcp", (victim) => attacker.packet(victim, 17, from(port, to)), `${port} → ${to}`);
    for (const [index, victim] of victims().entries()) {
      const id = 0x4000 + index;
      await attacker.refused(victim, "rogue-dhcp", attacker.packet(victim, 17, from(67, 68), 0x2000, id));
      await attacker.refused(victim, "fragment", attacker.packet(victim, 17, Buffer.alloc(64), 40, id));
    }
    for (const to of [everyone, macOf(nearPlan)])
      await attacker.refused(
        near,
        "rogue-dhcp",
        attacker.frame(0x0800, ip(attacker.address, "255.255.255.255", 17, from(67, 68)), to),
      );
  });

  test("IPv6 of every kind, and everything that is neither IPv4 nor ARP", async () => {
    const v6 = (next: number, to: string, payload: string): string =>
      `60000000${(payload.length / 2).toString(16).padStart(4, "0")}${next.toString(16).padStart(2, "0")}ff` +
      `fe800000000000000000000000000001${to}${payload}`;
    const allNodes = "ff020000000000000000000000000001";
    const kinds = {
      "a router advertisement": v6(58, allNodes, "860000004000070800000000000000000101020000000001"),
      "a router solicitation": v6(58, allNodes, "8500000000000000"),
      "a neighbour advertisement": v6(58, allNodes, `8800000060000000${"fe80".padEnd(32, "0")}0201020000000001`),
      "a neighbour solicitation": v6(58, allNodes, `8700000000000000${"fe80".padEnd(32, "0")}`),
      "a redirect": v6(58, allNodes, `8900000000000000${"00".repeat(32)}`),
      "DHCPv6 as a server": v6(17, allNodes, "0223022200100000020000000000000000"),
      "a datagram": v6(17, "fe800000000000000000000000000002", "0009000900080000"),
    };
    for (const [what, body] of Object.entries(kinds))
      for (const to of ["33:33:00:00:00:01", macOf(nearPlan), gatewayMac])
        await attacker.refused(near, "ipv6", attacker.frame(0x86dd, body, to), what);
    for (const victim of victims())
      await attacker.refused(victim, "ipv6", attacker.frame(0x86dd, kinds["a router advertisement"], everyone));
    const body = ip(attacker.address, near.address, 1, ping);
    for (const [what, type] of [
      ["LLDP", 0x88cc],
      ["PPPoE", 0x8864],
      ["MPLS", 0x8847],
      ["RARP", 0x8035],
      ["an 802.3 length", 0x0040],
      ["loopback", 0x9000],
    ] as const)
      await attacker.refused(near, "other-ethertype", attacker.frame(type, body, everyone), what);
  });

  test("VLAN tags, one and two, around what would pass without", async () => {
    for (const victim of victims()) {
      const body = ip(attacker.address, victim.address, 1, ping);
      await attacker.passes(victim, attacker.frame(0x0800, body), "untagged");
      await attacker.refused(victim, "other-ethertype", attacker.frame(0x8100, `00050800${body}`), "802.1Q");
      await attacker.refused(victim, "other-ethertype", attacker.frame(0x8100, `00000800${body}`), "priority tag");
      await attacker.refused(victim, "other-ethertype", attacker.frame(0x88a8, `000581000006${"0800"}${body}`), "QinQ");
    }
  });

  test("headers that lie about themselves", async () => {
    const flags = tcpFlags;
    const changed = (frame: string, at: number, value: string): string =>
      frame.slice(0, 2 * at) + value + frame.slice(2 * at + value.length);
    await passesEverywhere((victim) => attacker.packet(victim, 6, tcp(99, 80, flags.syn)), "an honest TCP header");
    await passesEverywhere((victim) => attacker.packet(victim, 17, udp(99, 80, ping)), "an honest UDP header");
    const lies: { readonly [what: string]: (victim: Hand) => string } = {
      "no room for an IP header": (victim) => attacker.packet(victim, 17, Buffer.alloc(0)).slice(0, 60),
      "version 5": (victim) => changed(attacker.packet(victim, 17, udp(1, 80, ping)), 14, "55"),
      "a header of 16 bytes": (victim) => changed(attacker.packet(victim, 17, udp(1, 80, ping)), 14, "44"),
      "a header longer than the packet": (victim) => changed(attacker.packet(victim, 17, udp(1, 80, ping)), 14, "4f"),
      "a total length below its header": (victim) => changed(attacker.packet(victim, 17, udp(1, 80, ping)), 16, "0013"),
      "a total length of zero": (victim) => changed(attacker.packet(victim, 17, udp(1, 80, ping)), 16, "0000"),
      "a total length beyond the frame": (victim) => changed(attacker.packet(victim, 17, udp(1, 80, ping)), 16, "0200"),
      "half a TCP header": (victim) => attacker.packet(victim, 6, tcp(99, 80, flags.syn).subarray(0, 12)),
      "TCP options beyond the packet": (victim) =>
        changed(attacker.packet(victim, 6, tcp(99, 80, flags.syn)), 14 + 20 + 12, "f0"),
      "a TCP header of 16 bytes": (victim) =>
        changed(attacker.packet(victim, 6, tcp(99, 80, flags.syn)), 14 + 20 + 12, "40"),
      "SYN and FIN": (victim) => attacker.packet(victim, 6, tcp(99, 80, flags.syn | flags.fin)),
      "SYN and RST": (victim) => attacker.packet(victim, 6, tcp(99, 80, flags.syn | flags.rst)),
      "half a UDP header": (victim) => attacker.packet(victim, 17, Buffer.alloc(6)),
      "a UDP length beyond the packet": (victim) => attacker.packet(victim, 17, udp(1, 80, ping, 900)),
      "a UDP length below its header": (victim) => attacker.packet(victim, 17, udp(1, 80, ping, 7)),
      "half an ICMP header": (victim) => attacker.packet(victim, 1, Buffer.from([8, 0, 0, 0])),
      "an ICMP error about nothing": (victim) => attacker.packet(victim, 1, icmp(icmpTypes.unreachable, 0, 0)),
      "a frame larger than the underlay's": (victim) => attacker.packet(victim, 17, udp(1, 80, Buffer.alloc(1600))),
    };
    for (const [what, frameTo] of Object.entries(lies)) await refusedEverywhere("malformed", frameTo, what);
  });

  test("source routes; other options pass", async () => {
    const withOptions = (victim: Hand, options: string): string => {
      const plain = Buffer.from(ip(attacker.address, victim.address, 17, udp(1, 80, ping)), "hex");
      const head = Buffer.concat([plain.subarray(0, 20), Buffer.from(options, "hex")]);
      head[0] = 0x40 + head.length / 4;
      head.writeUInt16BE(head.length + plain.length - 20, 2);
      head.writeUInt16BE(0, 10);
      head.writeUInt16BE(checksum(head), 10);
      return attacker.frame(0x0800, hex(Buffer.concat([head, plain.subarray(20)])));
    };
    const via = hex(octets("10.64.0.1"));
    await passesEverywhere((victim) => withOptions(victim, "94040000"), "router alert");
    await passesEverywhere((victim) => withOptions(victim, "01010100"), "padding");
    await refusedEverywhere("malformed", (victim) => withOptions(victim, `830704${via}00`), "loose source route");
    await refusedEverywhere("malformed", (victim) => withOptions(victim, `01890704${via}`), "strict, behind padding");
    await refusedEverywhere("malformed", (victim) => withOptions(victim, "44000000"), "an option without a length");
  });

  test("a checksum left to others must not be written over what was judged", async () => {
    /** VIRTIO_NET_HDR_F_NEEDS_CSUM, with the place where the sum begins and, from there, where it is written. */
    const needsSum = (start: number, offset: number): string => {
      const header = Buffer.alloc(10);
      header[0] = 1;
      header.writeUInt16LE(start, 6);
      header.writeUInt16LE(offset, 8);
      return hex(header);
    };
    const open = (victim: Hand): string => attacker.packet(victim, 17, udp(1000, 80, Buffer.from("abcdefgh")));
    const segment = (victim: Hand): string => attacker.packet(victim, 6, tcp(1000, 80, tcpFlags.ack));
    for (const victim of victims()) {
      for (const [frame, at] of [
        [open(victim), 6],
        [segment(victim), 16],
      ] as const) {
        await attacker.sendWith(needsSum(34, at), frame);
        const [arrived = ""] = await attacker.arrivedAt(victim);
        const { source, payload } = readFrame(arrived);
        assert.deepEqual([source, payload.readUInt16BE(0), payload.readUInt16BE(2)], [attacker.address, 1000, 80]);
        assert.notEqual(payload.readUInt16BE(at), 0, "the checksum was written where it belongs");
      }
      const before = await attacker.counters();
      const places = [
        [34, 0, "the source port"],
        [34, 2, "the destination port"],
        [20, 6, "the source address"],
        [24, 4, "the source address's second half"],
        [20, 10, "the destination address"],
      ] as const;
      for (const [start, offset] of places) await attacker.sendWith(needsSum(start, offset), open(victim));
      await attacker.sendWith(needsSum(34, 12), segment(victim));
      await attacker.sendWith(needsSum(34, 0), attacker.packet(victim, 1, ping));
      await attacker.sendWith(needsSum(34, 4), attacker.packet(victim, 1, ping));
      assert.deepEqual(await attacker.arrivedAt(victim), []);
      const after = await attacker.counters();
      assert.equal(after.drops.malformed! - before.drops.malformed!, places.length + 3);
    }
  });

  test("a frame that is cut into many must be cut into few, and none of them too large", async () => {
    /** VIRTIO_NET_HDR_GSO_TCPV4 with its checksum left to others: pieces of `size` bytes behind `headers`. */
    const cut = (size: number, headers = 54): string => {
      const header = Buffer.alloc(10);
      header[0] = 1;
      header[1] = 1;
      header.writeUInt16LE(headers, 2);
      header.writeUInt16LE(size, 4);
      header.writeUInt16LE(34, 6);
      header.writeUInt16LE(16, 8);
      return hex(header);
    };
    const segment = (victim: Hand, length: number): string =>
      attacker.packet(victim, 6, tcp(1000, 80, tcpFlags.ack, Buffer.alloc(length, "x")));
    for (const victim of victims()) {
      const before = await attacker.counters();
      for (const size of [1, 8, 15]) await attacker.sendWith(cut(size), segment(victim, 3000));
      // With the header of TCP, which every piece gets, they have 1,501 and 1,480 + 20 + 20 bytes.
      for (const size of [1461, 1480]) await attacker.sendWith(cut(size), segment(victim, 3000));
      assert.deepEqual(await attacker.arrivedAt(victim), []);
      assert.equal((await attacker.counters()).drops.malformed! - before.drops.malformed!, 5);
      await attacker.sendWith(cut(1460), segment(victim, 2920));
      assert.ok((await attacker.arrivedAt(victim)).length > 0, "as an honest guest sends it");
    }
  });

  test("fragments follow their first, and nothing else", async () => {
    const more = 0x2000;
    const first = udp(5000, 80, Buffer.alloc(56, "1"), 72);
    const rest = Buffer.alloc(8, "2");
    for (const [index, victim] of victims().entries()) {
      const id = 0x5000 + 16 * index;
      await attacker.refused(victim, "fragment", attacker.packet(victim, 17, rest, 8, id), "without a first");
      await attacker.passes(victim, attacker.packet(victim, 17, first, more, id), "first");
      await attacker.passes(victim, attacker.packet(victim, 17, rest, 8, id), "its second");
      await attacker.refused(victim, "fragment", attacker.packet(victim, 6, rest, 8, id), "another protocol's");
      await attacker.refused(victim, "fragment", attacker.packet(victim, 17, rest, 8, id + 1), "another id");
      const other = victim === near ? far : near;
      await attacker.refused(other, "fragment", attacker.packet(other, 17, rest, 8, id), "another destination");
      /* RFC 1858: too small to be judged, or laid over what was judged. */
      await attacker.refused(
        victim,
        "malformed",
        attacker.packet(victim, 6, tcp(9, 80, 2).subarray(0, 8), more, id + 2),
      );
      await attacker.refused(victim, "fragment", attacker.packet(victim, 6, tcp(9, 80, 2).subarray(8), 2, id + 2));
      await attacker.passes(victim, attacker.packet(victim, 6, tcp(9, 80, 16, rest), more, id + 3), "a whole header");
      await attacker.refused(
        victim,
        "malformed",
        attacker.packet(victim, 6, Buffer.alloc(24), 1, id + 3),
        "over flags",
      );
    }
    /* A denied first takes the id of an admitted one: what follows follows the denied one. */
    const id = 0x6000;
    const admitted = udp(5000, markPort, Buffer.alloc(56, "3"), 72);
    await attacker.passes(stranger, attacker.packet(stranger, 17, admitted, more, id), "admitted");
    await attacker.passes(stranger, attacker.packet(stranger, 17, rest, 8, id), "its second");
    await attacker.refused(
      stranger,
      "no-rule",
      attacker.packet(stranger, 17, first, more, id),
      "a first without a rule",
    );
    await attacker.refused(stranger, "fragment", attacker.packet(stranger, 17, rest, 8, id), "the denied one's second");
  });

  test("a machine behind a host's address is never reached, whatever a tenant's rule says", async () => {
    /** What the host's own stack has received: packets, by protocol. */
    const received = (host: "a" | "b"): string =>
      installation.hostMachines[host].run("sh", "-c", "grep -E '^(Ip|Icmp|Udp|Tcp):' /proc/net/snmp");
    const listener = installation.agent(installation.hostMachines.a, "guest-process.testing.ts");
    await listener.call("bindUdp", 4711, false);
    await attacker.arrivedAt(near);
    const before = { a: received("a"), b: received("b") };
    const reasons: { readonly [destination: string]: string } = {
      [hosts.a[0]]: "no-location",
      [hosts.b[0]]: "no-location",
      "10.0.255.255": "no-location",
      "127.0.0.1": "no-rule",
      "0.0.0.0": "no-rule",
      "10.64.0.1": "no-rule",
      [attacker.address]: "no-rule",
      "224.0.0.1": "broadcast",
      "239.255.255.250": "broadcast",
    };
    for (const [destination, reason] of Object.entries(reasons))
      for (const mac of [gatewayMac, hosts.a[1], everyone])
        for (const [protocol, payload] of [
          [17, udp(1, 4711, ping)],
          [6, tcp(1, 22, tcpFlags.syn)],
          [1, ping],
        ] as const) {
          const body = ip(attacker.address, destination, protocol, payload);
          await attacker.refused(near, reason, attacker.frame(0x0800, body, mac), `${destination} at ${mac}`);
        }
    // Machines of the subnet get it, as one packet to each would, and no host does.
    for (const destination of ["255.255.255.255", "10.64.0.255"])
      for (const mac of [gatewayMac, hosts.a[1], everyone])
        await attacker.send(
          attacker.frame(0x0800, ip(attacker.address, destination, 17, udp(1, 4711, ping)), mac),
          attacker.frame(0x0800, ip(attacker.address, destination, 1, ping), mac),
        );
    await attacker.arrivedAt(near);
    assert.equal(received("a"), before.a, "the attacker's own host got nothing");
    assert.equal(received("b"), before.b, "the other host got nothing");
    assert.deepEqual(await listener.call("datagrams"), []);
    /* And ARP does not tell where a host is. */
    await attacker.send(attacker.frame(0x0806, arp(1, attacker.mac, attacker.address, hosts.a[0]), everyone));
    await attacker.arrivedAt(near);
    assert.equal(await attacker.next(50), null);
    await installation.controller.agent.call("bindUdp", 0, false);
    await installation.controller.agent.call("sendUdp", hosts.a[0], 4711, 5);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal((await listener.call<string[]>("datagrams")).length, 1, "the listener is there");
  });
});
