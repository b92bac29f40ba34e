import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { allocationOf } from "./allocations.ts";

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
