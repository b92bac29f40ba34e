import assert from "node:assert/strict";
import { test } from "node:test";
import { type LocalPlan, localDefaults } from "../plan/plan.ts";
import type { Link } from "./devices.ts";
import { areTagsDue, probeForm, segmentChanges, wantedTags } from "./segments.ts";

const link = (name: string, more: Partial<Link>): readonly [string, Link] => {
  const none = { lower: null, number: null, local: null, remotes: new Set<string>(), master: null, kind: null };
  const plain = { index: 1, mtu: 1500, mac: "", isUp: true, isHairpin: false, addresses: new Set<string>() };
  return [name, { name, ...none, ...plain, ...more }];
};
const wanted: Pick<LocalPlan, "bridges" | "wire" | "tunnels"> = {
  bridges: [{ name: "sg-a", tag: 5, gateway: 0x01000001, prefixLength: 28 }],
  wire: "em2",
  tunnels: [{ tag: 5, bridge: "sg-a", local: "10.0.0.1", remotes: ["10.0.0.2", "10.0.0.3"] }],
};
const ends = new Set(["10.0.0.2", "10.0.0.3"]);
const inPlace = (vlan: Partial<Link>, tunnel: Partial<Link> = {}): ReadonlyMap<string, Link> =>
  new Map([
    link("em2", { index: 2, mtu: 9000 }),
    link("sg-a", { kind: "bridge", mac: "02:ce:01:00:00:01" }),
    link("vl_5", { index: 7, kind: "vlan", number: 5, lower: "em2", master: "sg-a", ...vlan }),
    link("vx_5", { kind: "vxlan", number: 5, local: "10.0.0.1", remotes: ends, master: "sg-a", ...tunnel }),
  ]);
const text = (links: ReadonlyMap<string, Link>, form?: "device" | "program"): readonly string[] =>
  segmentChanges(wanted, { links }, form).map((command) => command.join(" "));
const end = "fdb append 00:00:00:00:00:00 dev vx_5 dst";

test("a segment's bridge, VLAN and tunnel are made, each of the wire's size", () => {
  const found = text(new Map([link(localDefaults.bridge, {}), link("em2", { mtu: 9000 })]), "device");
  assert.deepEqual(found, [
    "ip link add name sg-a type bridge",
    "ip link set dev sg-a address 02:ce:01:00:00:01",
    "ip link set dev sg-a addrgenmode none up",
    "ip link add link em2 name vl_5 type vlan id 5",
    "ip link set dev vl_5 master sg-a",
    "ip link set dev vl_5 addrgenmode none up",
    "ip link add name vx_5 mtu 9000 type vxlan id 5 local 10.0.0.1 dstport 4789",
    `bridge ${end} 10.0.0.2 self permanent`,
    `bridge ${end} 10.0.0.3 self permanent`,
    "ip link set dev vx_5 master sg-a",
    "ip link set dev vx_5 addrgenmode none up",
  ]);
});

test("what is right stays, in either form, and what is another one is made anew", () => {
  for (const vlan of [{}, { kind: "ifb", number: null, lower: null }]) assert.deepEqual(text(inPlace(vlan)), []);
  for (const vlan of [{ lower: "em1" }, { number: 6 }, { kind: "dummy" }])
    assert.deepEqual(text(inPlace(vlan)).slice(0, 2), [
      "ip link delete dev vl_5",
      "ip link add link em2 name vl_5 type vlan id 5",
    ]);
  // A kernel that has the devices now.
  assert.equal(text(inPlace({ kind: "ifb" }), "device")[0], "ip link delete dev vl_5");
  assert.equal(text(inPlace({}, { local: "10.0.0.9" }))[0], "ip link delete dev vx_5");
  assert.deepEqual(text(inPlace({}, { remotes: new Set(["10.0.0.2", "10.0.0.4"]) })), [
    "bridge fdb del 00:00:00:00:00:00 dev vx_5 dst 10.0.0.4 self permanent",
    `bridge ${end} 10.0.0.3 self permanent`,
  ]);
});

test("devices of no segment go, and those of others by such names stay", () => {
  const others = [link("sg-b", { kind: "veth" }), link("vl_x", { kind: "vlan" }), link("vx_6", { kind: "dummy" })];
  const gone = [link("sg-c", { kind: "bridge" }), link("vl_9", { kind: "ifb" }), link("vx_9", { kind: "vxlan" })];
  assert.deepEqual(
    text(new Map([...inPlace({}), ...others, ...gone])),
    ["sg-c", "vl_9", "vx_9"].map((name) => `ip link delete dev ${name}`),
  );
});

test("tags by programs are due where one is missing, does not work or is nobody's", () => {
  const links = inPlace({ kind: "ifb" });
  const tags = wantedTags(wanted, { links });
  assert.deepEqual(tags, [{ wire: 2, tag: 5, device: 7 }]);
  assert.deepEqual(wantedTags(wanted, { links: inPlace({}) }), []);
  const works = tags.map((tag) => ({ ...tag, works: true }));
  assert.ok(!areTagsDue(tags, works) && !areTagsDue([], []));
  for (const found of [[], works.map((tag) => ({ ...tag, works: false })), [...works, ...works]])
    assert.ok(areTagsDue(tags, found));
  assert.ok(areTagsDue([], works));
});

test("the form is tried at the wire itself", async () => {
  const asked: string[] = [];
  const probe = (fails: string | null) =>
    probeForm(async (program, args) => {
      asked.push([program, ...args].join(" "));
      if (fails !== null) throw new Error(fails);
      return "";
    }, "em2");
  assert.equal(await probe(null), "device");
  assert.deepEqual(asked, ["ip link add link em2 name vl_probe type vlan id 4094", "ip link delete dev vl_probe"]);
  // The wire has that VLAN.
  assert.equal(await probe("ip ended with 2: RTNETLINK answers: File exists"), "device");
  assert.equal(await probe("ip ended with 2: Error: Unknown device type."), "program");
  assert.equal(await probe("ip ended with 2: RTNETLINK answers: Operation not supported"), "program");
  for (const why of ['1: Cannot find device "em2"', "null:", "2: RTNETLINK answers: Device or resource busy"])
    await assert.rejects(probe(`ip ended with ${why}`), { message: `ip ended with ${why}` });
});
