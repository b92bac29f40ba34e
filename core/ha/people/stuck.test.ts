import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { World } from "../world.testing.ts";
import { reportOf } from "./report.ts";

const host = peerName("host.h1");
/** As preset, for both. */
const stuckAfterMs = 600_000;
const lists = (world: World, ...on: readonly (readonly [string, number])[]): void => {
  const machines = on.map(([vm, incarnation]) => ({ vm, incarnation, power: "on" }));
  world.give({ kind: "actual", from: host, key: "machines", value: { host: "h1", boot: 7, machines } });
};
const begun = (): World => {
  const world = new World(3);
  world.give({ kind: "reachable", peer: host, reachable: true });
  return world;
};
const look = (world: World, afterMs: number): readonly string[] => {
  world.ms += afterMs;
  world.give({ kind: "timer", name: "compare" });
  return (reportOf(world.state).alerts ?? []).map(({ kind, subject }) => `${kind} ${subject}`);
};

test("a VM that its host goes on listing though it is to stop, or does not list though it is to run, is an alert after ten minutes", () => {
  for (const [lost, listed] of [
    ["end", true],
    ["restart", false],
    ["leave", false],
  ] as const) {
    const world = begun();
    world.protect("a-1", 1, "h1", "shop", { lost });
    lists(world, ...(listed ? ([["a-1", 1]] as const) : []));
    assert.deepEqual(look(world, 60_000), [], "it has just been asked");
    assert.deepEqual(look(world, stuckAfterMs - 1), []);
    assert.deepEqual(look(world, 1), ["stuck h1"]);
    assert.match(reportOf(world.state).alerts?.[0]?.sentence ?? "", /^shop\/a-1 of h1 .* `cells why`/);
    assert.equal(world.state.active.size + world.state.ended.size, 0, "nothing is fenced");
    lists(world, ...(listed ? [] : ([["a-1", 1]] as const)));
    assert.deepEqual(look(world, 60_000), []);
  }
});

test("how long it may take to stop and to start is as the operator sets it, each for itself", () => {
  for (const [lost, listed, name, other] of [
    ["end", true, "stopRetryInterval", "restartRetryInterval"],
    ["restart", false, "restartRetryInterval", "stopRetryInterval"],
  ] as const) {
    const world = begun();
    world.set({ [name]: 20, [other]: 86_400 });
    world.protect("a-1", 1, "h1", "shop", { lost });
    lists(world, ...(listed ? ([["a-1", 1]] as const) : []));
    look(world, 60_000);
    assert.deepEqual(look(world, 19_999), [], name);
    assert.deepEqual(look(world, 1), ["stuck h1"], name);
    world.set({ [name]: 86_400, [other]: 20 });
    assert.deepEqual(look(world, 60_000), [], `${other} is about the other`);
  }
});

test("what is as it should be is none; nor is another incarnation's, nor what has just begun to differ", () => {
  const world = begun();
  world.protect("a-1", 1, "h1");
  lists(world, ["a-1", 1]);
  look(world, 60_000);
  assert.deepEqual(look(world, 2 * stuckAfterMs), []);
  world.protect("a-1", 1, "h1", "shop", { lost: "end" });
  look(world, 60_000);
  world.protect("a-1", 2, "h1");
  lists(world);
  look(world, stuckAfterMs - 60_000);
  assert.deepEqual(look(world, stuckAfterMs - 60_000), [], "counted anew");
  assert.deepEqual(look(world, 60_000), ["stuck h1"]);
  world.give({ kind: "desired", from: peerName("controller.shop"), key: "protected/a-1", value: null });
  assert.deepEqual(look(world, 60_000), []);
});

test("of a host that is not heard nobody knows what it says", () => {
  const world = begun();
  world.protect("a-1", 1, "h1", "shop", { lost: "leave" });
  lists(world);
  look(world, 60_000);
  assert.deepEqual(look(world, stuckAfterMs), ["stuck h1"]);
  world.give({ kind: "reachable", peer: host, reachable: false });
  assert.deepEqual(look(world, 60_000), []);
});

test("as long as something is protected all is compared each sync.interval, whatever is heard", () => {
  const world = begun();
  assert.equal(world.compareAfterMs, null);
  world.protect("a-1", 1, "h1");
  assert.equal(world.compareAfterMs, 60_000);
  world.compareAfterMs = null;
  world.give({ kind: "timer", name: "compare" });
  assert.equal(world.compareAfterMs, 60_000, "and again");
});
