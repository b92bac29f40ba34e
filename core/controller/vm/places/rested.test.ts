import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import type { DesiredGroup } from "../../../documents/tenancy.ts";
import type { DesiredPlacement } from "../../../documents/vocabulary.ts";
import { shop, World } from "../../world.testing.ts";

const grouped = (state: "on" | "off", more: JsonObject = { "x.placement.groups": ["replicas"] }): JsonObject =>
  shop({
    web: { "x.type": "VM", "x.memory": 1024, "x.desiredState": state, ...more },
    replicas: { "x.type": "AffinityGroup", "x.kind": "host anti-affinity" },
  });
const placements = (world: World): readonly DesiredPlacement[] =>
  world.documents<DesiredPlacement>("placer", "placement").filter(({ path }) => path === "shop/web");

test("the Placer hears of a cell's affinity groups, until they have left the model", () => {
  const world = new World();
  world.put(grouped("on"));
  const said = world.documents<DesiredGroup>("placer", "group");
  assert.deepEqual(said, [
    { uid: world.uidOf("shop/replicas"), path: "shop/replicas", name: "replicas", kind: "host anti-affinity" },
  ]);
  const { replicas: _gone, ...rest } = (grouped("on") as { shop: JsonObject }).shop;
  world.put({ shop: rest as Json }, ["shop/replicas"]);
  assert.deepEqual(world.documents("placer", "group"), []);
  assert.equal(world.phases()["shop/replicas"], undefined);
});

test("a VM of a group that was stopped is said to be off where it ran, for an hour, also through a crash", () => {
  const world = new World();
  world.put(grouped("on"));
  const [{ at, off, incarnation } = assert.fail()] = placements(world);
  assert.equal(off, undefined);
  world.put(grouped("off"));
  const [rested = assert.fail()] = placements(world);
  assert.deepEqual([rested.off, rested.at, rested.incarnation], [true, at, incarnation]);
  world.wait(1_800_000);
  world.crash();
  world.settle();
  const [timer = assert.fail()] = [...world.timers.keys()].filter((name) => name.startsWith("rested/"));
  world.fire(timer);
  assert.equal(placements(world)[0]?.off, true, "it is not over");
  world.wait(1_800_001);
  world.fire(timer);
  assert.deepEqual(placements(world), []);
});

test("one that starts again has a place of its own, and one that asks for nobody beside it leaves nothing", () => {
  const world = new World();
  world.put(grouped("on"));
  world.put(grouped("off"));
  world.put(grouped("on"));
  assert.deepEqual(
    placements(world).map(({ off, incarnation }) => [off, incarnation]),
    [[undefined, 2]],
  );
  const plain = new World();
  plain.put(grouped("on", {}));
  plain.put(grouped("off", {}));
  assert.deepEqual(placements(plain), []);
});

test("one that is deleted counts nowhere any more", () => {
  const world = new World();
  world.put(grouped("on"));
  world.put(grouped("off"));
  const { web: _gone, ...rest } = (grouped("off") as { shop: JsonObject }).shop;
  const fewer = Object.fromEntries(
    Object.entries(rest).filter(([, value]) => !JSON.stringify(value).includes("<ref:/shop/web>")),
  );
  world.put({ shop: fewer as Json }, ["shop/web"]);
  assert.deepEqual(placements(world), []);
});
