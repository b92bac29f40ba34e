import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { ActualLocation, CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { cidr, hostName, type Ipv4, ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork, PacketCheck } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import { fanoutKey } from "../program/layout.ts";
import { ethernet, icmp, icmpTypes, ip, tcp, tcpFlags, udp } from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import { type GuestPlan, type HostKey, hosts, Installation, policy, rule } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";
import { Turns } from "./fan-out.ts";
import { mostLists, wantedLists } from "./lists.ts";

/**
 * What is sent to many, over real devices: `near` and `deaf` are on the sender's host, `far` and `far2` on another one, `other`
 * of another subnet of the cell, `stranger` of another cell. Each has rules of its own, so each copy that does not come stands
 * beside one that does.
 */
const plan = (name: string, host: HostKey, address: string, number: number, subnet: number): GuestPlan => ({
  name,
  host,
  address,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const sender = plan("sender", "a", "10.64.0.10", 1, 10);
const near = plan("near", "a", "10.64.0.20", 2, 10);
const far = plan("far", "b", "10.64.0.30", 3, 10);
const far2 = plan("far2", "b", "10.64.0.31", 4, 10);
const deaf = plan("deaf", "a", "10.64.0.40", 5, 10);
const other = plan("other", "b", "10.64.1.50", 6, 11);
const stranger: GuestPlan = { ...plan("stranger", "b", "10.64.2.60", 7, 20), cell: 2 };
const plans = [sender, near, far, far2, deaf, other, stranger];
const strangers = 80;
const names = ["near", "far", "far2", "deaf", "other", "stranger"] as const;
type Name = (typeof names)[number];

const toAll = (id: number, to: number, more: Parameters<typeof rule>[5] = {}) => [
  rule(id, 1, to, "udp", 5353, more),
  rule(id + 1, 1, to, "udp", markPort),
  rule(id + 2, 1, to, "icmp"),
];
const rules = [
  ...[2, 3, 4].flatMap((identity) => toAll(identity * 10, identity)),
  rule(60, 1, 5, "udp", markPort),
  rule(70, 1, 11, "udp", 5354),
  rule(71, 1, 6, "udp", 5353),
  rule(72, 1, 11, "udp", markPort),
  rule(73, 1, 11, "icmp"),
  rule(80, 1, strangers, "udp", 5354),
  rule(81, 1, strangers, "udp", markPort),
];
const subnets = [
  { identity: 10, cidr: cidr("10.64.0.0/24") },
  { identity: 11, cidr: cidr("10.64.1.0/24") },
];
const group = "239.192.7.7";
const local = "224.0.0.251";
const traits = [2, 3, 6].map((identity) => ({ identity, forwards: [], groups: [ipv4(group), ipv4(local)] }));
const first = (version: number, more: Partial<CellPolicy> = {}): CellPolicy => {
  const compiled = policy(1, version, rules, [["10.64.2.0/24", strangers]]);
  const networks = compiled.networks.map((each) => ({ ...each, subnet: true as const }));
  return { ...compiled, networks, subnets, traits, ...more };
};
const second = (version: number, more: Partial<CellPolicy> = {}): CellPolicy => ({
  ...policy(
    2,
    version,
    [rule(1, strangers, 20, "udp", 5354), rule(2, strangers, 20, "udp", markPort)],
    [["10.64.0.0/24", strangers]],
  ),
  subnets: [{ identity: 20, cidr: cidr("10.64.2.0/24") }],
  ...more,
});

test("a cell has a share of the lists, and a host says of a guest no more than that could join", () => {
  const own = (number: number, groups: readonly Ipv4[]): CellPolicy => ({
    ...policy(number, 1, []),
    subnets: [{ identity: number, cidr: cidr(`10.64.${number}.0/24`) }],
    traits: [{ identity: number, forwards: [], groups }],
  });
  const located = (number: number, groups: readonly Ipv4[]): ActualLocation => ({
    address: ipv4(`10.64.${number}.5`),
    cellNumber: number,
    identity: number,
    vmIdentity: 1,
    subnetIdentity: number,
    host: hostName("h2"),
    hostMac: mac("02:00:00:00:01:02"),
    groups,
  });
  const groupsFrom = (first: number, length: number): readonly Ipv4[] =>
    Array.from({ length }, (_, at) => ipv4(`239.${first + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`));
  const listsOf = (policies: readonly CellPolicy[], locations: readonly ActualLocation[]) => {
    const counts = new Map<number, number>();
    const global = { interfaces: [], policies, locations } as unknown as GlobalNetwork;
    for (const key of wantedLists(
      global,
      () => null,
      () => [],
    ).keys()) {
      const { cell } = fanoutKey.decode(Buffer.from(key, "hex"));
      counts.set(Number(cell), (counts.get(Number(cell)) ?? 0) + 1);
    }
    return counts;
  };
  const endless = groupsFrom(200, 70_000);
  const two = listsOf([own(1, endless), own(2, groupsFrom(192, 3))], [located(1, []), located(2, [])]);
  assert.deepEqual(
    [...two],
    [
      [1, mostLists.ofCell + 1],
      [2, 4],
    ],
    "each with its subnet's own",
  );
  const joined = listsOf([own(1, [])], [located(1, [ipv4("10.64.1.7"), ...endless.slice(0, 200)])]);
  assert.deepEqual([...joined], [[1, 16]], "sixteen, of which one is no group, and its subnet's own");
  const many = Array.from({ length: 60 }, (_, at) => at + 1);
  const all = listsOf(
    many.map((number) => own(number, endless.slice(0, 2_000))),
    many.map((number) => located(number, [])),
  );
  assert.equal(
    [...all.values()].reduce((sum, count) => sum + count, 0),
    mostLists.inAll + many.length,
  );
});

test("a list of each cell is written in turn, however many another one has", () => {
  const key = (cell: number, at: number): string =>
    fanoutKey.encode({ cell, subnet: 0, group: ipv4(`239.192.0.${at}`) }).toString("hex");
  const greedy = Array.from({ length: 100 }, (_, at) => key(1, at));
  const turns = new Turns();
  const keys = [...greedy, key(2, 1), key(3, 1)];
  assert.deepEqual(turns.take(keys, 4), [key(1, 0), key(2, 1), key(3, 1), key(1, 1)]);
  // What has had its turn and changes once more waits for the others, of its cell as well.
  const seen = new Set(Array.from({ length: 30 }, () => turns.take(greedy, 4)).flat());
  assert.equal(seen.size, 100);
  assert.deepEqual(turns.take([], 4), []);
  assert.deepEqual(turns.take([key(7, 1)], 4), [key(7, 1)]);
});

describe("what is sent to many", { skip: !canRun() }, () => {
  const installation = new Installation();
  const hands = {} as Record<Name | "sender", Hand>;
  before(async () => {
    await installation.start();
    await installation.apply(plans, [first(1), second(1)]);
    for (const each of plans) hands[each.name as Name] = await Hand.open(installation, each);
  });
  after(() => installation.stop());
  beforeEach(async () => {
    // What may be sent at once is earned again.
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const hand of Object.values(hands)) await hand.forget();
  });

  const datagram = (to: string, port: number, from = 6000): string =>
    hands.sender.packet(to, 17, udp(from, port, Buffer.from("to many")));
  /** Who got what was sent since the last call, by name. */
  const receivers = async (): Promise<string> => {
    const got: string[] = [];
    for (const name of names) {
      const came = await hands.sender.arrivedAt(hands[name]);
      got.push(...came.map(() => name));
    }
    return got.join(" ");
  };
  const reaches = async (text: string, expected: string, what: string): Promise<void> => {
    await hands.sender.send(text);
    assert.equal(await receivers(), expected, what);
  };
  const drops = async (reason: string, text: string): Promise<void> => {
    const before = await hands.sender.counters();
    await reaches(text, "", reason);
    const after = await hands.sender.counters();
    assert.equal(after.drops[reason]! - before.drops[reason]!, 1, `counted as ${reason}`);
  };

  for (const to of ["255.255.255.255", "10.64.0.255"])
    test(`a broadcast in the subnet reaches whom a rule admits as one packet: ${to}`, async () => {
      await reaches(datagram(to, 5353), "near far far2", "the port that rules open");
      await drops("no-rule", datagram(to, 5352));
      await reaches(hands.sender.packet(to, 1, icmp(icmpTypes.request, 7, 1)), "near far far2", "a ping");
      await drops("broadcast", hands.sender.packet(to, 6, tcp(6000, 5353, tcpFlags.syn)));
      await drops("broadcast", hands.sender.packet(to, 17, udp(6000, 5353, Buffer.alloc(16)), 0x2000));
    });
  test("a copy comes as it was sent, and there is one for each host", async () => {
    const text = datagram("10.64.0.255", 5353);
    const wire = installation.machines[0]!;
    const carried = (): number =>
      (
        JSON.parse(wire.run("ip", "-j", "-s", "link", "show", "dev", "wb")) as {
          stats64: { tx: { packets: number } };
        }[]
      )[0]!.stats64.tx.packets;
    const before = carried();
    const many = 12;
    await hands.sender.send(...Array.from({ length: many }, () => text));
    const came = await hands.sender.arrivedAt(hands.far);
    const packets = carried() - before;
    assert.ok(packets >= many + 1 && packets < 2 * many, `${packets} frames for ${many} broadcasts and a mark`);
    assert.deepEqual(new Set(came), new Set([ethernet(hands.far.mac, gatewayMac, 0x0800, text.slice(28))]));
    assert.equal(came.length, many);
    assert.equal((await hands.sender.arrivedAt(hands.far2)).length, many);
  });
  test("answers of members pass, and nothing else does", async () => {
    const answer = (from: Hand, port: number, to: number): string =>
      from.packet(hands.sender, 17, udp(port, to, Buffer.from("here")));
    const gets = async (): Promise<number> => {
      let count = 0;
      while ((await hands.sender.next(150)) !== null) count += 1;
      return count;
    };
    await hands.far.send(answer(hands.far, 5353, 6010));
    assert.equal(await gets(), 0, "before anybody asked");
    await reaches(datagram("10.64.0.255", 5353, 6010), "near far far2", "the question");
    for (const name of ["near", "far", "far2"] as const) {
      await hands[name].send(answer(hands[name], 5353, 6010), answer(hands[name], 5353, 6010));
      assert.equal(await gets(), 2, `answers of ${name}`);
      await hands[name].send(answer(hands[name], 5354, 6010), answer(hands[name], 5353, 6011));
      assert.equal(await gets(), 0, `other ports of ${name}`);
    }
    for (const name of ["deaf", "other", "stranger"] as const) {
      await hands[name].send(answer(hands[name], 5353, 6010));
      assert.equal(await gets(), 0, `${name} was not asked`);
    }
    await reaches(hands.sender.packet("10.64.0.255", 1, icmp(icmpTypes.request, 9, 1)), "near far far2", "a ping");
    await hands.far.send(hands.far.packet(hands.sender, 1, icmp(icmpTypes.reply, 9, 1)));
    assert.equal(await gets(), 1, "an answer to a ping");
    await hands.far.send(hands.far.packet(hands.sender, 1, icmp(icmpTypes.reply, 8, 1)));
    assert.equal(await gets(), 0, "an answer to none");
  });
  test("a directed broadcast takes a rule whose end is that subnet, and is no ping", async () => {
    await reaches(datagram("10.64.1.255", 5354), "other", "another subnet of the cell");
    await drops("no-rule", datagram("10.64.1.255", 5353));
    await reaches(datagram("10.64.2.255", 5354), "stranger", "one of another cell");
    await drops("broadcast", hands.sender.packet("10.64.1.255", 1, icmp(icmpTypes.request, 7, 1)));
    await installation.apply(plans, [first(1), second(2, { rules: [rule(2, strangers, 20, "udp", markPort)] })]);
    await reaches(datagram("10.64.2.255", 5354), "", "without the consent of the other cell");
    const one = [rule(1, strangers, 7, "udp", 5354), rule(2, strangers, 20, "udp", markPort)];
    await installation.apply(plans, [first(1), second(3, { rules: one })]);
    await reaches(datagram("10.64.2.255", 5354), "", "with consent for one of its machines alone");
    await reaches(datagram("10.64.2.60", 5354), "stranger", "which that one hears");
    await installation.apply(plans, [first(1), second(4)]);
    await reaches(datagram("10.64.2.255", 5354), "stranger", "with it again");
  });
  test("a group reaches its members, in its scope", async () => {
    await reaches(datagram(group, 5353), "near far other", "a group of the cell");
    await reaches(datagram(local, 5353), "near far", "a group of the subnet");
    await drops("broadcast", datagram("239.192.7.8", 5353));
    await reaches(datagram("239.192.7.8", 5353), "", "a group without members");
  });
  test("examine says who gets a copy, and who does not", async () => {
    const ask = async (destination: string, port: number, protocol: "udp" | "icmp" = "udp") => {
      const question = { side: "sender", source: sender.address, destination, protocol, port };
      const checks = await installation.drivers.a.call<readonly PacketCheck[]>("examine", question);
      return checks.find(({ passes }) => !passes) ?? checks.at(-1)!;
    };
    const copies = await ask("10.64.0.255", 5353);
    assert.equal(copies.check, "copies");
    assert.match(copies.detail, /10\.64\.0\.20 on device \d+, by rule 20 .*10\.64\.0\.30 behind 02:00:00:00:01:02/);
    assert.match(copies.detail, /no rule lets it reach 10\.64\.0\.40$/);
    assert.match((await ask(group, 5353)).detail, /10\.64\.1\.50 behind 02:00:00:00:01:02/);
    assert.match((await ask("10.64.0.255", 5352)).detail, /^nobody gets a copy/);
    assert.match((await ask("239.192.7.8", 5353)).detail, /is a member of the group/);
    assert.match((await ask("10.64.1.255", 0, "icmp")).detail, /never passes/);
  });
  test("on the wire it comes from where its sender is", async () => {
    const wire = installation.controller.agent;
    installation.machines[0]!.run("bridge", "link", "set", "dev", "wc", "learning", "off");
    const text = ip(sender.address, "10.64.0.255", 17, udp(6000, 5353, Buffer.from("to many")));
    await wire.call("inject", "eth0", [ethernet(hosts.b[1], "02:00:00:00:03:01", 0x0800, text)]);
    assert.equal(await receivers(), "", "from another machine");
    await wire.call("inject", "eth0", [ethernet(hosts.b[1], hosts.a[1], 0x0800, text)]);
    assert.equal(await receivers(), "far far2", "from its host");
    await wire.call("inject", "eth0", [ethernet("ff:ff:ff:ff:ff:ff", hosts.a[1], 0x0800, text)]);
    assert.equal(await receivers(), "", "to all hosts");
  });
  test("who sends more than his copies has them dropped, and nobody else's", async () => {
    const before = await hands.sender.counters();
    await hands.sender.send(...Array.from({ length: 400 }, () => datagram("10.64.0.255", 5353)));
    const copies = (await hands.sender.arrivedAt(hands.near)).length;
    const after = await hands.sender.counters();
    assert.ok(copies > 100 && copies < 390, `${copies} of 400 came`);
    assert.ok(after.drops["too-many-copies"]! - before.drops["too-many-copies"]! > 10);
  });
  test('`x.policy.broadcast` "off" closes all of it', async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await installation.apply(plans, [first(2, { broadcast: "off" }), second(4)]);
    await drops("broadcast", datagram("10.64.0.255", 5353));
    await drops("broadcast", datagram(group, 5353));
    await installation.apply(plans, [first(3), second(4)]);
    await reaches(datagram("10.64.0.255", 5353), "near far far2", "on again");
  });
  test("a cell with groups without end takes nobody's place: each cell has a share of the lists", async () => {
    const groups = Array.from({ length: 70_000 }, (_, at) =>
      ipv4(`239.${200 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`),
    );
    const greedy = second(5, { traits: [{ identity: 7, forwards: [], groups }] });
    await installation.apply(plans, [first(3), greedy]);
    await reaches(datagram("10.64.2.255", 5354), "stranger", "what that cell has beside its groups");
    const later = traits.map((each) => ({ ...each, groups: [ipv4("239.192.7.9")] }));
    await installation.apply(plans, [first(4, { traits: later }), greedy]);
    await reaches(datagram("239.192.7.9", 5353), "near far other", "a group that came later, of another cell");
    await installation.apply(plans, [first(3), second(6)]);
    await reaches(datagram(group, 5353), "near far other", "as before");
  });
  test("hundreds of subnets that become known, or are gone, together cost the wait for a few", async () => {
    const more = (count: number, of: number): readonly GuestPlan[] =>
      Array.from({ length: count }, (_, at) =>
        plan(
          `more${at}`,
          "b",
          `10.64.${100 + of + (at >> 6)}.${((at & 63) << 2) + 2}`,
          1_000 + at,
          5_000 + of * 1_000 + at,
        ),
      );
    const took = async (known: readonly GuestPlan[]): Promise<number> => {
      const global = installation.global("a", [...plans, ...known], [first(3), second(4)]);
      const began = performance.now();
      await installation.drivers.a.call("apply", global);
      return performance.now() - began;
    };
    const single: number[] = [];
    for (let round = 0; round < 5; round += 1) single.push(await took(more(1, round)));
    const few = single.sort((one, other) => one - other)[2] ?? 0;
    const [many, none] = [await took(more(400, 10)), await took([])];
    assert.ok(Math.max(many, none) < 40 * few, `400 took ${many} ms, none again ${none}, one ${few}`);
    await reaches(datagram("10.64.0.255", 5353), "near far far2", "as before");
  });
  test("another process finds it in force", async () => {
    installation.agents.delete(installation.drivers.a);
    await installation.drivers.a.stop();
    await reaches(datagram("10.64.0.255", 5353), "near far far2", "without one");
    await installation.startDriver("a");
    await installation.apply(plans, [first(3), second(4)]);
    await reaches(datagram(group, 5353), "near far other", "with the next one");
  });
});
