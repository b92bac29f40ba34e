import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, cidr, uid } from "../../model/cell/identifiers.ts";
import { readConfigurationJson } from "../../model/eucalyptus/configuration/read.ts";
import { buildView } from "../../model/eucalyptus/view/build-view.ts";
import { readView } from "../../model/eucalyptus/view/read-view.ts";
import { writeView } from "../../model/eucalyptus/view/write-view.ts";
import { xmlLimits } from "../../model/eucalyptus/xml/read-xml.ts";
import type { DesiredSecurityGroup } from "../documents/network/eucalyptus.ts";
import { groupsBeyond, type Room, roomOfGroup, roomOfInstance, sum, viewRoom } from "./too-many-rules.ts";

const rule = {
  protocol: 6,
  fromPort: 10_000,
  toPort: 65_535,
  icmpType: 0,
  icmpCode: 0,
  cidr: cidr("255.255.255.240/28"),
};
const group = (name: string, cell: string, rules: number) =>
  [
    uid(name),
    { document: { uid: uid(name), cell: cellName(cell), ingress: Array(rules).fill(rule), egress: [] } },
  ] as const;
const nothing: Room = { elements: 0, characters: 0 };

test("who comes when a view is full has no rules there, whatever its name, and who was there keeps what it had", () => {
  const before = new Map<string, number>();
  const look = (
    groups: readonly (readonly [ReturnType<typeof uid>, { readonly document: DesiredSecurityGroup }])[],
  ) => {
    for (const known of before.keys()) if (!groups.some(([of]) => of === known)) before.delete(known);
    const beyond = groupsBeyond(groups, nothing, (of) => before.get(of) ?? null);
    for (const [of, { document }] of groups)
      if (beyond.has(of)) before.delete(of);
      else before.set(of, document.ingress.length);
    return [...beyond].map(([of, why]) => `${of} ${why}`);
  };
  const cells = Array.from({ length: 9 }, (_, index) => group(`m${index}`, `cell${index}`, 4000));
  assert.deepEqual(look(cells), [], "36,000 rules are had");
  const late = group("a", "late", 4000);
  assert.deepEqual(look([late, ...cells]), ["a view"]);
  assert.deepEqual(look([group("a", "late", 100), ...cells]), [], "what is small enough is had");
  // One that grows past the end has its own to lose alone.
  assert.deepEqual(look([group("a", "late", 4000), ...cells]), ["a view"]);
  assert.deepEqual(look([late, ...cells.slice(1)]), [], "where others end there is room");
  assert.deepEqual(look([late, ...cells]), ["m0 view"]);
  assert.deepEqual(look([group("x", "one", 3000), group("y", "one", 1001), late]), ["y cell"]);
});

test("what is counted of a view is no less than what its reader counts", () => {
  const read = readConfigurationJson(
    {
      Mode: "EDGE",
      InstanceDnsServers: ["10.1.1.1"],
      PublicIps: ["192.0.2.1-192.0.2.4"],
      Subnets: [{ Name: "s", Subnet: "10.0.0.0", Netmask: "255.0.0.0", Gateway: "10.0.0.1" }],
      Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.0.0.10-10.200.0.0"] }],
    },
    null,
  );
  assert.ok(read.ok);
  const owner = "a-cell-of-some-length.shop";
  const hex = (number: number): string => number.toString(16).padStart(8, "0");
  /** What a reader counts of a view of so many instances, each in a group of its own. */
  const counted = (count: number, rules: number): Room => {
    const securityGroups = Array.from({ length: count }, (_, index) => ({
      id: `sg-${hex(index)}`,
      owner,
      ingress: Array(rules).fill(rule),
      egress: [],
    }));
    const instances = securityGroups.map(({ id }, index) => ({
      id: `i-${hex(index)}`,
      owner,
      mac: "D0:0D:00:00:00:01",
      cluster: "one",
      node: "10.0.1.1",
      privateIp: 0x0a_00_00_0a + index,
      publicIp: 0xc0_00_02_01,
      securityGroups: [id],
    }));
    const clusters = [{ name: "one", ccIp: 1, nodes: ["10.0.1.1"] }];
    const view = buildView(read.value.configuration, { clusters, clcIp: 1, dnsDefault: [], securityGroups, instances });
    assert.ok(view !== null);
    const text = writeView(view);
    const found = readView(text);
    assert.ok(found.ok && found.value.view.securityGroups.length === count);
    return { elements: text.match(/<[a-zA-Z]/g)?.length ?? 0, characters: text.length };
  };
  const bare = counted(1, 0);
  for (const rules of [0, 1, 40]) {
    const [is, said] = [counted(101, rules), sum([roomOfInstance(owner), roomOfGroup(owner, rules)])];
    for (const what of ["elements", "characters"] as const)
      assert.ok(is[what] - bare[what] <= 101 * said[what], `${what} with ${rules} rules: ${is[what]}`);
    assert.ok(is.characters > 75 * said.characters, "it is not said to be much more");
  }
  const left = { elements: xmlLimits.elements - viewRoom.elements, characters: xmlLimits.length - viewRoom.characters };
  assert.ok(bare.elements < left.elements / 10 && bare.characters < left.characters / 10, "clusters have room beside");
});
