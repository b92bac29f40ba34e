import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "../world.testing.ts";
import { recreateAfterMs } from "./recreatable.ts";

const begun = (more: { readonly recreatable?: true }): World => {
  const world = new World(1);
  world.protect("a-1", 1, "h1", "shop", more);
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing");
  return world;
};
const look = (world: World, name = "recreate") => world.give({ kind: "timer", name });
const over = (world: World) => world.state.over.get("a-1" as never)?.by;

test("what nobody fences goes on with new volumes after a while, if all of them may be made anew", () => {
  const world = begun({ recreatable: true });
  world.ms += recreateAfterMs - 1;
  look(world);
  assert.equal(over(world), undefined, "the others come first");
  world.ms += 1;
  look(world);
  assert.equal(over(world), "recreatable", "its controller is told that it may go on: never that it has ended");
  assert.equal(world.state.ended.size + world.state.active.size, 1);
  assert.equal(world.state.active.get("a-1" as never)?.fencedBy, "recreatable");
});

test("without that it is fenced or waits", () => {
  const world = begun({});
  world.ms += 10 * recreateAfterMs;
  look(world);
  look(world, "look");
  assert.equal(world.stepOf("a-1"), "Fencing");
  assert.equal(over(world), undefined);
});

test("a storage that answers loses nothing", () => {
  const world = begun({ recreatable: true });
  world.ms += 5_000;
  world.fenced("a-1", 1);
  assert.equal(over(world), "storage");
});

test("a timer is set for it, and again after a crash", () => {
  const world = new World(1);
  world.protect("a-1", 1, "h1", "shop", { recreatable: true });
  let due: number[] = [];
  const give = world.give.bind(world);
  world.give = (input) => {
    const effects = give(input);
    for (const effect of effects)
      if (effect.kind === "timer" && effect.name === "recreate" && effect.afterMs !== null) due.push(effect.afterMs);
    return effects;
  };
  world.lose("h1");
  assert.deepEqual(due, [recreateAfterMs]);
  due = [];
  world.ms += 4_000;
  world.restart();
  assert.deepEqual(due, [recreateAfterMs - 4_000]);
});
