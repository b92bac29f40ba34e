import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { reportOf } from "../people/report.ts";
import { World } from "../world.testing.ts";

const host = peerName("host.h1");
const begun = (): World => {
  const world = new World(5);
  world.give({ kind: "reachable", peer: host, reachable: true });
  return world;
};
const lists = (world: World, ...machines: readonly (readonly [string, number, "on" | "off"])[]): void => {
  const listed = machines.map(([vm, incarnation, power]) => ({ vm, incarnation, power }));
  world.give({ kind: "actual", from: host, key: "machines", value: { host: "h1", boot: 7, machines: listed } });
};
const compare = (world: World, afterMs: number): void => {
  world.ms += afterMs;
  world.give({ kind: "timer", name: "compare" });
};
const items = (world: World): readonly string[] =>
  reportOf(world.state).items.map(({ type, step, incarnation }) => `${type} ${incarnation} ${step}`);

test("a VM that leaves its host is a Migration: it waits for room, is stopped there, and goes on elsewhere", () => {
  const world = begun();
  world.protect("a-1", 1, "h1", "shop", { leaves: true });
  assert.deepEqual(items(world), ["Migration 1 Scheduled"]);
  world.restart();
  world.protect("a-1", 1, "h1", "shop", { leaves: true, lost: "end" });
  assert.deepEqual(items(world), ["Migration 1 Migrating"]);
  world.restart();
  assert.deepEqual(items(world), ["Migration 1 Migrating"]);
  world.protect("a-1", 2, "h2");
  assert.deepEqual(items(world), ["Migration 1 Done"]);
  assert.equal(world.state.fences.size, 0);
});

test("who is called back before it has begun to leave stays, and is sent away again as a new item", () => {
  const world = begun();
  world.protect("a-1", 1, "h1", "shop", { leaves: true });
  world.protect("a-1", 1, "h1");
  assert.deepEqual(items(world), ["Migration 1 Cancelled"]);
  world.protect("a-1", 1, "h1", "shop", { leaves: true });
  assert.deepEqual(items(world), ["Migration 1 Scheduled"]);
});

test("where the host is lost meanwhile the move ends, and one item of the incarnation fences it", () => {
  for (const lost of ["restart", "end"]) {
    const world = begun();
    world.protect("a-1", 1, "h1", "shop", { leaves: true, lost });
    world.lose("h1");
    assert.deepEqual(items(world).slice().sort(), [
      ...(lost === "end" ? [] : ["HA 1 Fencing"]),
      "Migration 1 Cancelled",
      ...(lost === "end" ? ["Stop 1 Fencing"] : []),
    ]);
    world.fenced("a-1", 1);
    assert.equal(world.stepOf("a-1"), "Restarting");
  }
});

test("a stop that its host does not carry out is a CheckStop, looked at twice before; it is given up after all tries", () => {
  const world = begun();
  world.set({ stopRetryInterval: 600, maxRetries: 2 });
  world.protect("a-1", 1, "h1", "shop", { lost: "end" });
  lists(world, ["a-1", 1, "on"]);
  compare(world, 60_000);
  assert.deepEqual(items(world), [], "it has just been asked");
  compare(world, 60_000);
  assert.deepEqual(items(world), ["CheckStop 1 Stopping"]);
  compare(world, 1_199_999);
  assert.deepEqual(items(world), ["CheckStop 1 Stopping"]);
  compare(world, 1);
  assert.deepEqual(items(world), ["CheckStop 1 Done"]);
  assert.equal(reportOf(world.state).items[0]?.gaveUp, true);
  assert.deepEqual(
    reportOf(world.state).alerts?.map(({ kind }) => kind),
    ["stuck"],
    "it stays until that is over",
  );
  for (let days = 0; days < 3; days += 1) {
    compare(world, 86_400_000);
    assert.deepEqual(items(world), ["CheckStop 1 Done"], "it is not tried again for that incarnation");
  }
  lists(world, ["a-1", 1, "off"]);
  compare(world, 60_000);
  assert.deepEqual(reportOf(world.state).alerts, []);
});

test("a stop that ends meanwhile is done, and one that is not wanted any more is cancelled", () => {
  for (const [after, step] of [
    [(world: World): void => lists(world, ["a-1", 1, "off"]), "Done"],
    [(world: World): void => world.protect("a-1", 1, "h1"), "Cancelled"],
    [(world: World): void => world.protect("a-1", 2, "h1"), "Done"],
  ] as const) {
    const world = begun();
    world.protect("a-1", 1, "h1", "shop", { lost: "end" });
    lists(world, ["a-1", 1, "on"]);
    for (let times = 0; times < 2; times += 1) compare(world, 60_000);
    after(world);
    assert.deepEqual(items(world), [`CheckStop 1 ${step}`]);
  }
});

test("what an operator has freed is a ForceStop: nothing fences it, and it is done when its host says that it has ended", () => {
  const world = begun();
  world.protect("a-1", 1, "h1", "shop", { lost: "end", forced: true });
  assert.deepEqual(items(world), ["ForceStop 1 Stopping"]);
  world.give({ kind: "reachable", peer: host, reachable: false });
  world.lose("h1");
  assert.deepEqual(items(world), ["ForceStop 1 Stopping"], "no item of another kind");
  assert.equal(world.word("ha-cancel", "shop/a-1")?.status, 409);
  world.returns("h1");
  world.give({ kind: "reachable", peer: host, reachable: true });
  lists(world, ["a-1", 1, "on"]);
  assert.deepEqual(items(world), ["ForceStop 1 Stopping"]);
  lists(world, ["a-1", 1, "off"]);
  assert.deepEqual(items(world), ["ForceStop 1 Done"]);
});

test("one that is freed while it is fenced ends that item", () => {
  const world = begun();
  world.protect("a-1", 1, "h1", "shop", { lost: "end" });
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing");
  world.protect("a-1", 1, "h1", "shop", { lost: "end", forced: true });
  assert.deepEqual(items(world), ["ForceStop 1 Stopping", "Stop 1 Cancelled"]);
});

test("an item of another version is an Error, and what is due is scheduled anew", () => {
  const world = begun();
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing");
  const item = world.records.get("item/a-1/1") as object;
  world.records.set("item/a-1/1", { ...item, step: "Evacuating" });
  world.restart();
  assert.deepEqual(items(world), ["HA 1 Error"]);
  assert.equal(world.records.has("item/a-1/1"), false);
  world.lose("h1", 2);
  assert.deepEqual(items(world), ["HA 1 Fencing", "HA 1 Error"]);
  world.restart();
  assert.deepEqual(items(world), ["HA 1 Fencing", "HA 1 Error"]);
});

test("a HA Manager of the previous version is given no record that it would take for an item of its own", () => {
  const world = begun();
  world.protect("a-1", 1, "h1", "shop", { leaves: true });
  world.protect("a-2", 1, "h1", "shop", { lost: "end", forced: true });
  const records = [...world.records.keys()].filter((key) => /^(?:item|work)\//.test(key));
  assert.deepEqual(records.sort(), ["work/a-1/1", "work/a-2/1"]);
});
