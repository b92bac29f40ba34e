import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "../world.testing.ts";

const path = "shop/a-1";
/** A VM whose host is lost, and that a guard holds. */
const held = (): World => {
  const world = new World(5);
  world.loseTwice("a-1");
  assert.equal(world.stepOf("a-1"), "Investigating");
  return world;
};
const outcomeOf = (world: World): string | undefined =>
  [...world.state.ended.values()].find(({ incarnation }) => incarnation === 2)?.outcome;

test("what is cancelled is left alone: nothing is fenced, whatever is heard and however long it is, also after a start", () => {
  const world = held();
  assert.equal(world.word("ha-cancel", path), null);
  assert.match(outcomeOf(world) ?? "", /the operator has cancelled it/);
  for (const again of [
    () => world.release({ cell: "shop", path }),
    () => world.give({ kind: "timer", name: "look" }),
    () => world.restart(),
    () => world.lose("h2"),
    () => {
      world.returns("h2");
      world.lose("h2", 3);
    },
    () => {
      world.ms += 200_000_000;
      world.give({ kind: "timer", name: "compare" });
      world.lose("h2", 3);
    },
  ]) {
    again();
    assert.equal(world.stepOf("a-1"), undefined, again.toString());
  }
  assert.equal(world.word("ha-cancel", path), null, "said twice is said once");
  assert.equal(world.word("ha-retry", path), null);
  assert.equal(world.stepOf("a-1"), "Fencing", "and goes on from the start, when that is wanted");
});

test("the next incarnation is another matter", () => {
  const world = held();
  world.word("ha-cancel", path);
  world.ms += 700_000;
  world.protect("a-1", 3, "h3");
  world.ms += 700_000;
  world.lose("h3");
  assert.equal(world.stepOf("a-1"), "Fencing");
  assert.equal(world.word("ha-retry", "shop/a-2")?.status, 404);
});

test("a fence that has begun is not cancelled: it says why, and what keeps the VM off", () => {
  const world = new World(5);
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing");
  const refusal = world.word("ha-cancel", path);
  assert.equal(refusal?.status, 409);
  assert.match(
    refusal?.message ?? "",
    /is at Fencing: a fence that has begun is carried through.*`cells stop shop\/a-1`/,
  );
  world.fenced("a-1", 1);
  assert.equal(world.stepOf("a-1"), "Restarting");
});

test("of what nothing is being done about, that is said; another cell's VM of that name is not meant", () => {
  const world = held();
  for (const verb of ["ha-cancel", "ha-retry"] as const) {
    assert.match(
      world.word(verb, "shop/a-9")?.message ?? "",
      /nothing is being done about shop\/a-9; `cells ha` shows/,
    );
    assert.equal(world.word(verb, path, "other")?.status, 404);
  }
  assert.equal(world.stepOf("a-1"), "Investigating");
});

test("what waits is asked about anew, and nothing is over by that", () => {
  const world = new World(3);
  const host = { host: "h1", state: "up", address: "10.0.1.1", mac: "02:00:00:00:01:01", memoryMiB: 9, reservedMiB: 0 };
  const more = { cpus: 1, cpuSpeedMHz: 1000, accelerator: "tcg" };
  world.give({ kind: "actual", from: "host.h1" as never, key: "host", value: { ...host, ...more } });
  for (const peer of ["host.h2", "host.h3"]) world.give({ kind: "reachable", peer: peer as never, reachable: true });
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Investigating");
  const asked = () => world.state.asking.get("h1" as never);
  const since = asked()?.sinceMs;
  world.ms += 3000;
  assert.equal(world.word("ha-retry", path), null);
  assert.equal(asked()?.sinceMs, (since ?? 0) + 3000, "who is asked has the whole time once more");
  assert.equal(world.stepOf("a-1"), "Investigating");
  assert.deepEqual([...world.state.over], []);
});
