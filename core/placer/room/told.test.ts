import assert from "node:assert/strict";
import { test } from "node:test";
import { host, world } from "../placer.testing.ts";
import { mostTold } from "./told.ts";

const names = Array.from({ length: 40 }, (_, at) => `h${at + 10}`);

test("of many hosts a document says some, one for each rule among them, and counts them all", () => {
  const it = world(names);
  for (const name of names) it.say(name, host(name, name === "h48" ? 9000 : 3000));
  it.administer("h49", "disabled");
  it.want("a", 4000, 1, { cpus: 100 });
  const { refusals = [], counts, reason } = it.get("a") ?? assert.fail();
  assert.equal(refusals.length, mostTold);
  assert.deepEqual(counts, [
    { kind: "memory", hosts: 38 },
    { kind: "cpus", hosts: 1 },
    { kind: "closed", hosts: 1 },
  ]);
  const kinds = new Set(refusals.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), ["closed", "cpus", "memory"], "who goes by rules misses none");
  assert.equal(refusals[0]?.host, "h10", "in the order of all");
  assert.match(reason ?? "", /; of 40 hosts that it may know of 38 are without the memory, 1 is/);
});

test("of as many hosts as it says each is said, and nothing is counted", () => {
  const few = names.slice(0, mostTold);
  const it = world(few);
  for (const name of few) it.say(name, host(name));
  it.want("a", 4000);
  const { refusals = [], counts } = it.get("a") ?? assert.fail();
  assert.deepEqual([refusals.length, counts], [mostTold, undefined]);
});

test("what is to leave a host and finds no other has as few sentences", () => {
  const it = world(names);
  for (const name of names) it.say(name, host(name, name === "h10" ? 9000 : 1500));
  it.want("a", 4000);
  assert.equal(it.get("a")?.host, "h10");
  it.administer("h10", "maintenance");
  const { leave } = it.get("a") ?? assert.fail();
  assert.deepEqual(
    [leave?.to, leave?.refusals.length, leave?.counts],
    [null, mostTold, [{ kind: "memory", hosts: 39 }]],
  );
});
