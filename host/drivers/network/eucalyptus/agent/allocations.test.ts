import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { allocationOf, warningsOf } from "./allocations.ts";

const read = readView(readFileSync(join(import.meta.dirname, "../cases/managed-02-two-groups/gni.xml"), "utf8"));
const { view } = read.ok ? read.value : assert.fail(JSON.stringify(read.error));
const host = { address: "10.111.1.54", peer: "network" } as const;
const [first = assert.fail()] = view.instances;
const state = { mode: "MANAGED", missing: [], refused: null, left: [] };
const statesOf = (failed: Readonly<Record<string, string>>, parts?: ReadonlyMap<string, string>) =>
  new Map(
    allocationOf(view, host, { ...state, failed, ...(parts === undefined ? {} : { partly: { network: parts } }) }).map(
      ({ id, privateIp }) => [id, privateIp?.reason ?? privateIp?.state],
    ),
  );

test("what failed of one group or tap fails its instances alone; anything else fails all", () => {
  const why = "the group is not in place";
  const [group = assert.fail()] = first.securityGroups;
  for (const [name, isOf] of [
    [group, ({ securityGroups }: typeof first) => securityGroups.includes(group)],
    [`vn_${first.id}`, ({ id }: typeof first) => id === first.id],
  ] as const) {
    const said = statesOf({ network: why }, new Map([[name, why]]));
    for (const each of view.instances) assert.equal(said.get(each.id), isOf(each) ? why : "assigned", name);
    assert.ok([...said.values()].includes("assigned"));
    const more = statesOf({ network: why, addressing: "no" }, new Map([[name, why]]));
    assert.deepEqual(new Set(more.values()), new Set(["no"]));
  }
  assert.deepEqual(new Set(statesOf({ network: why }).values()), new Set([why]));
});

test("of what a plan warns, who asks about an instance is told what is its own", () => {
  const [own = assert.fail()] = first.securityGroups;
  const mine = [
    `a rule of ${own} names the security group sg-deadbeef, which is not in the view; it is left out`,
    `${own} has a tunnel to other clusters`,
  ];
  const others = [
    `${own}, sg-0therone have a tunnel to other clusters`,
    `a rule of sg-0therone names the security group ${own}; it is left out`,
    "no instance of the security group sg-0therone has an address of a segment; it has no rules",
    "10.0.0.1 is in no cluster of the view",
  ];
  assert.deepEqual(warningsOf({ warnings: [...others, ...mine] }, first), mine);
  assert.deepEqual(warningsOf({}, first), []);
});
