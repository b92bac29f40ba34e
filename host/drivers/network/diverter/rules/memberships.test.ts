import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import { Random } from "../fuzz/random.testing.ts";
import { joined, octets } from "../program/layout.ts";
import { tapName } from "../taps/devices.ts";
import { checksum } from "../taps/probe.ts";
import { udp } from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import { type GuestPlan, type HostKey, Installation, policy, rule, uidOf } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";
import { membersAt, query } from "./memberships.ts";

const second = 1_000_000_000n;
const seed = Number(process.env.CELLS_SEED ?? Date.now() % 1_000_000_000);

/** Groups of a host's guest by what it says, read from RFC 1112, 2236 and 3376, and not from the program. */
class Reference {
  readonly groups = new Set<string>();

  hear(message: Buffer): void {
    if (message.length < 8) return;
    const [type = 0] = message;
    if (type === 0x12 || type === 0x16) this.#say(message, 4, true);
    if (type === 0x17) this.#say(message, 4, false);
    if (type !== 0x22) return;
    const count = Math.min(message.readUInt16BE(6), 16);
    for (let at = 8, record = 0; record < count && at + 8 <= message.length; record += 1) {
      const [kind = 0, auxiliary = 0] = message.subarray(at);
      const sources = message.readUInt16BE(at + 2);
      // To leave is to include nobody; to exclude some, or to allow some more, is to be there.
      if ([2, 4, 5].includes(kind)) this.#say(message, at + 4, true);
      if (kind === 1 || kind === 3) this.#say(message, at + 4, sources > 0);
      at += 8 + 4 * (sources + auxiliary);
    }
  }
  #say(message: Buffer, at: number, joins: boolean): void {
    const group = [...message.subarray(at, at + 4)];
    const [first = 0] = group;
    if (first < 224 || first > 239 || group.join(".") === "224.0.0.1") return;
    if (!joins) this.groups.delete(group.join("."));
    else if (this.groups.size < 16) this.groups.add(group.join("."));
  }
}
/** A report as a guest may send it, or what only begins as one. */
function drawReport(random: Random): Buffer {
  const group = (): readonly number[] =>
    random.percent(90)
      ? [239, 192, 7, random.below(22)]
      : octets(random.pick(["224.0.0.1", "224.0.0.5", "223.255.255.255", "240.0.0.1", "0.0.0.0"]));
  const type = random.pick([0x12, 0x16, 0x16, 0x17, 0x17, 0x22, 0x22, 0x22, 0x11, 0x13, random.below(256)]);
  if (type !== 0x22) return cut(random, Buffer.from([type, random.below(256), 0, 0, ...group(), 0, 0, 0, 0]));
  const records = Array.from({ length: random.pick([0, 1, 1, 2, 3, 16, 20]) }, () => {
    const sources = random.pick([0, 0, 0, 1, 2]);
    const auxiliary = random.pick([0, 0, 0, 0, 1]);
    const told = random.percent(3) ? random.pick([255, 0xffff]) : sources;
    const inside = Array.from({ length: 4 * (sources + auxiliary) }, () => random.below(256));
    return [random.between(0, 7), auxiliary, told >> 8, told & 255, ...group(), ...inside];
  });
  const count = random.percent(85) ? records.length : random.pick([0, 1, 17, 0xffff]);
  return cut(random, Buffer.from([type, 0, 0, 0, 0, 0, count >> 8, count & 255, ...records.flat()]));
}
const cut = (random: Random, message: Buffer): Buffer =>
  random.percent(85) ? message : message.subarray(0, random.below(message.length + 1));

test("a question is one of IGMPv3, with a TTL of 1 and the router alert", () => {
  const frame = query(mac("02:ce:11:5d:00:01"), ipv4("10.64.0.1"));
  assert.equal(frame.subarray(0, 14).toString("hex"), "01005e00000102ce115d00010800");
  assert.deepEqual([frame[22], frame[23], frame.subarray(34, 38).toString("hex")], [1, 2, "94040000"]);
  assert.deepEqual([checksum(frame.subarray(14, 38)), checksum(frame.subarray(38, 50))], [0, 0]);
  assert.equal(
    frame
      .subarray(38, 50)
      .toString("hex")
      .replace(/^(....)..../, "$1"),
    "116400000000027d0000",
  );
});
test("who is silent for 260 s of asking is a member no more, and not before", () => {
  const groups = Buffer.alloc(64);
  groups.set(octets("239.192.0.9"), 0);
  groups.set(octets("239.192.0.7"), 8);
  const heard = Buffer.alloc(128);
  heard.writeBigUInt64LE(1000n * second, 0);
  heard.writeBigUInt64LE(1100n * second, 16);
  const entry = joined.encode({ groups, heard });
  const at = (now: bigint, began: bigint) => membersAt(entry, now * second, began * second).groups;
  assert.deepEqual(at(1260n, 0n), ["239.192.0.7", "239.192.0.9"]);
  assert.deepEqual(at(1261n, 0n), ["239.192.0.7"]);
  assert.deepEqual(at(1400n, 0n), []);
  assert.deepEqual(at(5000n, 4900n), ["239.192.0.7", "239.192.0.9"], "nobody asked until then");
  assert.deepEqual(membersAt(membersAt(entry, 1261n * second, 0n).left, 0n, 0n).groups, ["239.192.0.7"]);
});

const plan = (name: string, host: HostKey, number: number): GuestPlan => ({
  name,
  host,
  address: `10.64.0.${number * 10}`,
  number,
  cell: 1,
  identities: [number, 100 + number, 10],
});
const sender = plan("sender", "a", 1);
const near = plan("near", "a", 2);
const far = plan("far", "b", 3);
const rules = [rule(1, 10, 10, "udp", 5353), rule(2, 10, 10, "udp", markPort)];
const group = "239.192.7.7";

describe("groups that guests join by themselves", { skip: !canRun() }, () => {
  const installation = new Installation();
  const hands = {} as Record<"sender" | "near" | "far", Hand>;
  const all = [policy(1, 1, rules)];
  before(async () => {
    await installation.start();
    await installation.apply([sender, near, far], all);
    for (const each of [sender, near, far]) hands[each.name as "near"] = await Hand.open(installation, each);
  });
  after(() => installation.stop());
  beforeEach(async () => {
    for (const hand of Object.values(hands)) await hand.forget();
  });

  const report = (type: number, of: string): Buffer => {
    const message = Buffer.from([type, 0, 0, 0, ...octets(of)]);
    message.writeUInt16BE(checksum(message), 2);
    return message;
  };
  const records = (...each: readonly (readonly [type: number, group: string])[]): Buffer => {
    const body = each.flatMap(([type, of]) => [type, 0, 0, 0, ...octets(of)]);
    const message = Buffer.from([0x22, 0, 0, 0, 0, 0, 0, each.length, ...body]);
    message.writeUInt16BE(checksum(message), 2);
    return message;
  };
  const says = (hand: Hand, to: string, message: Buffer): Promise<void> => hand.send(hand.packet(to, 2, message));
  const copies = async (to: string): Promise<string> => {
    await hands.sender.send(hands.sender.packet(to, 17, udp(6000, 5353, Buffer.from("to many"))));
    const got: string[] = [];
    for (const name of ["near", "far"] as const)
      got.push(...(await hands.sender.arrivedAt(hands[name])).map(() => name));
    return got.join(" ");
  };
  /** Reports are looked at a few times a second; what is sent meanwhile is of no matter. */
  const until = async (to: string, expected: string): Promise<void> => {
    for (;;) {
      if ((await copies(to)) === expected) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal(await copies(to), expected);
  };

  test("a report makes a member, and reaches nobody", async () => {
    assert.equal(await copies(group), "");
    await says(hands.near, group, report(0x16, group));
    assert.deepEqual(await hands.near.arrivedAt(hands.sender), []);
    await until(group, "near");
  });
  test("one who leaves is a member no more", async () => {
    await says(hands.near, "224.0.0.2", report(0x17, group));
    await until(group, "");
  });
  test("reports of version 3 name several groups, and how they are joined", async () => {
    await says(hands.near, "224.0.0.22", records([4, group], [2, "239.192.7.8"], [6, "239.192.7.9"]));
    await until(group, "near");
    assert.deepEqual([await copies("239.192.7.8"), await copies("239.192.7.9")], ["near", ""]);
    await says(hands.near, "224.0.0.22", records([3, "239.192.7.8"]));
    await until("239.192.7.8", "");
    assert.equal(await copies(group), "near");
  });
  test("another host is told of members, and sends a copy", async () => {
    await says(hands.far, group, report(0x16, group));
    await installation.apply([sender, near, { ...far, groups: [group] }], all);
    await until(group, "near far");
    await installation.apply([sender, near, far], all);
    await until(group, "near");
  });
  test("a membership survives the driver", async () => {
    installation.agents.delete(installation.drivers.a);
    await installation.drivers.a.stop();
    assert.equal(await copies(group), "near", "without one");
    await installation.startDriver("a");
    await installation.apply([sender, near, { ...far, groups: [group] }], all);
    await until(group, "near far");
  });
  test("a flood of reports reaches nobody, ends nobody's membership, and others join meanwhile", async () => {
    const group = "239.192.7.10";
    await says(hands.near, group, report(0x16, group));
    await until(group, "near");
    const flood = Array.from({ length: 5_000 }, (_, at) => {
      const to = `239.193.${at >> 8}.${at & 255}`;
      return hands.sender.packet(to, 2, report(at % 3 === 2 ? 0x17 : 0x16, to));
    });
    // In the name of the gateway too, and a question of nobody's: who asks is the host.
    const question = hands.sender.packet("224.0.0.1", 2, report(0x11, "0.0.0.0"));
    const flooding = (async () => {
      for (let at = 0; at < flood.length; at += 250)
        await hands.sender.send(
          ...flood.slice(at, at + 250),
          question,
          hands.sender.packet("224.0.0.2", 2, report(0x17, group)),
        );
    })();
    await says(hands.near, "239.192.7.11", report(0x16, "239.192.7.11"));
    await flooding;
    assert.deepEqual(await hands.sender.arrivedAt(hands.near), [], "none of it left its tap");
    assert.equal(await copies(group), "near", "who leaves is the sender himself");
    await until("239.192.7.11", "near");
    for (const each of [group, "239.192.7.11"]) await says(hands.near, "224.0.0.2", report(0x17, each));
    await until(group, "");
  });
  test("who joins more groups than it may has the first of them", async () => {
    const many = Array.from({ length: 40 }, (_, at) => `239.192.8.${at}`);
    for (const each of many) await says(hands.near, each, report(0x16, each));
    const got = async (): Promise<number> => {
      let count = 0;
      for (const each of many) if ((await copies(each)) === "near") count += 1;
      return count;
    };
    // A few lists are written at each look.
    while ((await got()) < 15) await new Promise((resolve) => setTimeout(resolve, 100));
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(await got(), 15, "and the one before");
    assert.equal(await copies(group), "near far");
  });
  test("a machine that moves is a member where its guest says so anew, and nowhere else", async () => {
    const moved: GuestPlan = { ...far, host: "a" };
    await hands.far.close();
    await installation.apply([sender, near, moved], all);
    hands.far = await Hand.open(installation, moved);
    assert.equal(await copies(group), "near", "its guest has not spoken here");
    await says(hands.far, group, report(0x16, group));
    await until(group, "near far");
    await hands.far.close();
    await installation.apply([sender, near, far], all);
    hands.far = await Hand.open(installation, far);
    assert.equal(await copies(group), "near", "where it was it has to say so again, too");
  });
  test("whatever a guest reports, it is in the groups that its reports say, and in no others", async () => {
    const random = new Random(seed);
    const reference = new Reference();
    const machine = installation.hostMachines.b;
    const shown = machine.run("ip", "-j", "link", "show", "dev", tapName(uidOf(far)));
    const [{ ifindex }] = JSON.parse(shown) as [{ readonly ifindex: number }];
    const key = Buffer.alloc(4);
    key.writeUInt32LE(ifindex);
    const pin = `${installation.directory}/b/run/bpf/diverter/maps/memberships`;
    const noted = (): readonly string[] => {
      const words = ["-j", "map", "lookup", "pinned", pin, "key", ...[...key].map(String)];
      const found = JSON.parse(machine.run("bpftool", ...words)) as { readonly value: readonly string[] };
      return membersAt(Buffer.from(found.value.map(Number)), 0n, 0n).groups;
    };
    const first = report(0x16, group);
    await says(hands.far, group, first);
    reference.hear(first);
    let [most, changed] = [0, 0];
    for (let round = 0; round < 150; round += 1) {
      const messages = Array.from({ length: 8 }, () => drawReport(random));
      await hands.far.send(...messages.map((message) => hands.far.packet("224.0.0.22", 2, message)));
      const before = [...reference.groups].sort().join(" ");
      for (const message of messages) reference.hear(message);
      const wanted = [...reference.groups].sort();
      const story = `round ${round}, CELLS_SEED=${seed}: ${messages.map((each) => each.toString("hex")).join(" ")}`;
      assert.deepEqual([...noted()].sort(), wanted, story);
      most = Math.max(most, wanted.length);
      if (wanted.join(" ") !== before) changed += 1;
    }
    assert.ok(most === 16 && changed > 50, `${most} groups at most, ${changed} rounds changed something`);
  });
});
