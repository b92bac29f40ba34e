import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { IngressRule } from "../../../../../model/eucalyptus/view/network-view.ts";
import { checksum } from "../../diverter/taps/probe.ts";
import { ethernet, ip, tcp, tcpFlags, udp } from "../../diverter/testing/frames.testing.ts";
import type { Agent, Machine } from "../../diverter/testing/namespaces.testing.ts";
import type { NetworkService } from "../../service/network-service.ts";
import type { LocalNetwork } from "../driver.ts";
import type { LocalPlan } from "../plan/plan.ts";
import { addressOf, edgePlan, elasticOf, gateway, idOf, macOf, ruleOf, tapOf } from "./site.testing.ts";
import { soon, type Watched, World } from "./world.testing.ts";

/* Each kind of rule that a group may have, with packets that it is about and packets that it is just not about. */

const world = new World();
let node: Machine;
let guests: readonly [Machine, Machine];
let sender: Agent;
let receiver: Watched;
let service: NetworkService<LocalPlan, LocalNetwork, unknown>;
const [asking, asked] = [1, 2] as const;
/** An honest packet behind those that are tried: once it has come, the others have, or never do. */
const honest = ruleOf({ protocol: 17, fromPort: 9000, toPort: 9999, cidr: "10.50.0.0/24" });
const offered = async (rules: readonly IngressRule[], groups: readonly number[] = [asking]): Promise<void> => {
  const instances = [
    { groups, here: true, elastic: 60 },
    { groups: [asked], here: true, elastic: 61 },
    { groups: [asking] },
  ] as const;
  await service.offer({ mode: "EDGE", global: edgePlan(instances, new Map([[asked, [...rules, honest]]])) });
  assert.deepEqual(service.state.failed, {});
};
const opens = (to: string, port: number): boolean =>
  guests[0].succeeds("socat", "-u", "/dev/null", `TCP:${to}:${port},connect-timeout=1`);

const framed = (protocol: number, payload: Buffer): string =>
  ethernet(macOf(1), macOf(0), 0x0800, ip(addressOf(0), addressOf(1), protocol, payload));
let ports = 20_000;
const udpTo = (port: number): string => framed(17, udp(++ports, port, Buffer.from("x")));
const tcpTo = (port: number): string => framed(6, tcp(++ports, port, tcpFlags.syn));
function icmpOf(type: number, code: number): string {
  const message = Buffer.alloc(type === 3 ? 36 : 20);
  message.set([type, code]);
  message.writeUInt16BE(++ports, 4);
  // What could not go further, of an error: a packet of nobody's.
  if (type === 3) message.set(Buffer.from(ip("10.50.0.11", "10.50.0.99", 17, udp(1, 2, Buffer.alloc(0))), "hex"), 8);
  message.writeUInt16BE(checksum(message), 2);
  return framed(1, message);
}
let marks = 9000;
/** What comes of frames. */
const seen = async (...frames: readonly string[]): Promise<string> => {
  const [from, mark] = [receiver.text.length, ++marks];
  await sender.call("inject", "eth0", [...frames, udpTo(mark)]);
  assert.ok(await soon(() => receiver.text.includes(`.${mark}: `)), "the honest packet arrives");
  return receiver.text.slice(from);
};

before(async () => {
  node = await world.machine();
  guests = [await world.machine(), await world.machine()];
  node.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  for (const [number, guest] of guests.entries()) {
    node.cable(tapOf(number), guest, "eth0", macOf(number));
    guest.run("ip", "address", "add", `${addressOf(number)}/24`, "dev", "eth0");
    guest.run("ip", "route", "add", "default", "via", gateway);
  }
  for (const port of [7000, 7001]) world.spawn(guests[1], "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  sender = world.agent(guests[0]);
  receiver = await world.watch(guests[1], "eth0", "inbound and ip");
  service = world.service(node, "node");
  await offered([]);
  // The watcher may still be starting.
  assert.ok(
    await soon(async () => {
      await sender.call("inject", "eth0", [udpTo(9000)]);
      return receiver.text.includes(".9000: ");
    }),
  );
});
after(() => world.end());

interface Tried {
  readonly title: string;
  readonly rule: Partial<IngressRule>;
  /** Frames with how they are told. */
  readonly passes: readonly (readonly [frame: () => string, shown: RegExp])[];
  readonly drops: Tried["passes"];
}
const udpAt = (port: number) => [() => udpTo(port), new RegExp(`\\.${port}: (?!Flags)`)] as const;
const tcpAt = (port: number) => [() => tcpTo(port), new RegExp(`\\.${port}: Flags \\[S\\]`)] as const;
const [echo, stamp] = [
  [() => icmpOf(8, 0), /ICMP echo request/] as const,
  [() => icmpOf(13, 0), /ICMP time stamp/] as const,
];
const [noPort, noHost] = [
  [() => icmpOf(3, 3), /udp port 2 unreachable/] as const,
  [() => icmpOf(3, 1), /host 10\.50\.0\.99 unreachable/] as const,
];
const gre = [() => framed(47, Buffer.from([0, 0, 8, 0, 1, 2, 3, 4])), /GREv0/] as const;
const ospf = [() => framed(89, Buffer.alloc(24, 2)), /OSPFv2/] as const;
const own = `${addressOf(0)}/32`;
const kinds: readonly Tried[] = [
  {
    title: "another port than all that are tried",
    rule: { fromPort: 1, toPort: 1, cidr: own },
    passes: [],
    drops: [udpAt(53), tcpAt(80), echo, gre],
  },
  {
    title: "a TCP port",
    rule: { fromPort: 80, toPort: 80, cidr: own },
    passes: [tcpAt(80)],
    drops: [tcpAt(81), udpAt(80), echo],
  },
  {
    title: "UDP ports, the first and the last of them, too",
    rule: { protocol: 17, fromPort: 7000, toPort: 7010, cidr: own },
    passes: [udpAt(7000), udpAt(7005), udpAt(7010)],
    drops: [udpAt(6999), udpAt(7011), tcpAt(7000)],
  },
  {
    title: "all TCP ports",
    rule: { fromPort: 1, toPort: 65_535, cidr: own },
    passes: [tcpAt(1), tcpAt(65_535)],
    drops: [udpAt(80), echo],
  },
  {
    title: "a network that holds the sender",
    rule: { fromPort: 80, toPort: 80, cidr: "10.50.0.8/30" },
    passes: [tcpAt(80)],
    drops: [tcpAt(81)],
  },
  {
    title: "a network beside it",
    rule: { fromPort: 80, toPort: 80, cidr: "10.50.0.12/30" },
    passes: [],
    drops: [tcpAt(80)],
  },
  {
    title: "the sender's group",
    rule: { fromPort: 80, toPort: 80, group: idOf("sg", asking) },
    passes: [tcpAt(80)],
    drops: [tcpAt(81)],
  },
  {
    title: "a group whose member it is not",
    rule: { fromPort: 80, toPort: 80, group: idOf("sg", asked) },
    passes: [],
    drops: [tcpAt(80)],
  },
  {
    title: "an ICMP type",
    rule: { protocol: 1, icmpType: 8, icmpCode: -1, cidr: own },
    passes: [echo],
    drops: [stamp, noPort, udpAt(53)],
  },
  {
    title: "an ICMP type and code",
    rule: { protocol: 1, icmpType: 3, icmpCode: 3, cidr: own },
    passes: [noPort],
    drops: [noHost, echo],
  },
  {
    title: "all of ICMP",
    rule: { protocol: 1, icmpType: -1, icmpCode: -1, cidr: own },
    passes: [echo, stamp, noHost],
    drops: [tcpAt(80), gre],
  },
  { title: "a protocol by its number", rule: { protocol: 47, cidr: own }, passes: [gre], drops: [ospf, tcpAt(80)] },
  {
    title: "all protocols",
    rule: { protocol: -1, cidr: own },
    passes: [gre, ospf, udpAt(53), tcpAt(80), echo],
    drops: [],
  },
];
for (const { title, rule, passes, drops } of kinds)
  test(`a rule about ${title} lets in what it is about, and nothing else`, async () => {
    await offered([ruleOf(rule)]);
    const text = await seen(...[...passes, ...drops].map(([frame]) => frame()));
    for (const [, shown] of passes) assert.match(text, shown);
    for (const [, shown] of drops) assert.doesNotMatch(text, shown);
  });

test("an instance that goes to another group as it runs has that one's rules, and its address", async () => {
  const all = [echo, gre, tcpAt(80)] as const;
  for (const [groups, isIn] of [
    [[asking], false],
    [[asked], true],
    [[asking, asked], true],
    [[asking], false],
  ] as const) {
    await offered([], groups);
    const text = await seen(...all.map(([frame]) => frame()));
    for (const [, shown] of all) assert.equal(shown.test(text), isIn, `${groups}: ${shown}`);
  }
});

test("a network that holds a public address alone lets its instance in where the public address was asked for, and not at the private one", async () => {
  await offered([ruleOf({ fromPort: 7000, toPort: 7000, cidr: `${elasticOf(60)}/32` })]);
  assert.ok(opens(elasticOf(61), 7000), "by the public address of either");
  assert.ok(!opens(addressOf(1), 7000), "from the private address, which packets to private ones keep");
  assert.ok(!opens(elasticOf(61), 7001), "another port");
  await offered([ruleOf({ fromPort: 7000, toPort: 7000, cidr: `${elasticOf(62)}/32` })]);
  assert.ok(!opens(elasticOf(61), 7000), "another's public address");
  await offered([ruleOf({ fromPort: 7000, toPort: 7000, cidr: own })]);
  assert.ok(opens(addressOf(1), 7000), "where the network holds the private one");
});
