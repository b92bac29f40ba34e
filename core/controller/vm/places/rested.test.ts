import assert from "node:assert/strict";
import { test } from "node:test";
import { type ElementPath, peerName } from "../../../../model/cell/identifiers.ts";
import { isoTime } from "../../../../model/cell/iso-time.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import type { DesiredGroup } from "../../../documents/tenancy.ts";
import type { DesiredPlacement } from "../../../documents/vocabulary.ts";
import { whyElement } from "../../explain/why-element.ts";
import { shownWithState } from "../../requests/shown.ts";
import { recordAt } from "../../state.ts";
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

function countsAt({ state }: World): Json {
  const shown = shownWithState(state, "shop/web");
  assert.ok(shown?.ok === true);
  return (shown.value as { $state: JsonObject }).$state.countsAt ?? null;
}
test("where a VM that was stopped counts, and until when, is in its state and in why, for as long as it is so", () => {
  const world = new World();
  world.put(grouped("on", { "x.placement.groups": ["replicas"], "x.placement.dedication": "preferred" }));
  const [{ at, incarnation } = assert.fail()] = placements(world);
  const shown = (): Json => countsAt(world);
  const told = (): readonly string[] => {
    const why = whyElement(world.state, recordAt(world.state, "shop/web" as ElementPath) ?? assert.fail());
    assert.ok(why.ok);
    return why.value.checks.flatMap(({ check, detail }) => (check === "still counts" ? [detail] : []));
  };
  assert.deepEqual([shown(), told()], [null, []], "it runs");
  world.put(grouped("off", { "x.placement.groups": ["replicas"], "x.placement.dedication": "preferred" }));
  const { untilMs } = world.state.vms.get(world.uidOf("shop/web"))?.rested ?? assert.fail();
  const leftMs = untilMs - world.state.now.wallMs;
  assert.ok(leftMs > 3_590_000 && leftMs <= 3_600_000, `${leftMs}`);
  const until = isoTime(untilMs);
  assert.deepEqual(shown(), { host: at, incarnation, until });
  const wishes = "affinity groups and implicit dedication";
  const sentence = `for ${wishes} incarnation ${incarnation} counts at ${at} until ${until}, without room there`;
  assert.deepEqual(told(), [sentence]);
  world.wait(3_600_001);
  for (const timer of [...world.timers.keys()]) if (timer.startsWith("rested/")) world.fire(timer);
  assert.deepEqual([shown(), told()], [null, []], "it is over");
  const plain = new World();
  plain.put(grouped("on", {}));
  plain.put(grouped("off", {}));
  assert.equal(countsAt(plain), null, "it asks for nothing of the kind");
});

test("one counts for as long as the Placer says that the operator has it, from its stop on", () => {
  const saying = (world: World, lastHostS: number): World => {
    world.step({
      kind: "actual",
      from: peerName("placer"),
      key: "hosts",
      value: { hosts: [], complete: false, lastHostS },
    });
    return world;
  };
  const world = saying(new World(), 7200);
  world.put(grouped("on"));
  world.put(grouped("off"));
  saying(world, 60);
  const [timer = assert.fail()] = [...world.timers.keys()].filter((name) => name.startsWith("rested/"));
  for (const afterMs of [1_000_000, 6_000_000]) {
    world.wait(afterMs);
    world.crash();
    world.settle();
    world.fire(timer);
    assert.equal(placements(world)[0]?.off, true, "it goes by what was said when it was stopped");
  }
  world.wait(200_001);
  world.fire(timer);
  assert.deepEqual(placements(world), []);
  const short = saying(new World(), 60);
  short.put(grouped("on"));
  short.put(grouped("off"));
  assert.equal(placements(short)[0]?.off, true);
  short.wait(60_001);
  short.fire(timer);
  assert.deepEqual(placements(short), []);
  const none = saying(new World(), 0);
  none.put(grouped("on"));
  none.put(grouped("off"));
  assert.deepEqual(placements(none), [], "not at all");
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
