import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed, ElementState } from "../../../model/api.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { shop, World } from "../world.testing.ts";

/** Power by verbs: what `cells start`, `stop` and `restart` put, and what is said of machines that are off by failure. */
const put = (world: World, path: string, json: Json, dryRun = false): Changed => {
  const { status, body } = world.ask({ method: "PUT", path, json, dryRun });
  assert.equal(status, 200, JSON.stringify(body));
  world.settle();
  return body as unknown as Changed;
};
const actions = ({ plan }: Changed): readonly string[] =>
  plan.steps.flatMap(({ action, path }) => (action === "none" ? [] : [`${action} ${path}`]));
const stateOf = (world: World, path: string): ElementState =>
  (world.ask({ method: "GET", path, state: true }).body as JsonObject).$state as unknown as ElementState;
const powerOff = (world: World, path: string): void => {
  const incarnation = world.vm(path)?.document.incarnation ?? assert.fail(`${path} runs`);
  world.ended.set(`${world.uidOf(path)}@${incarnation}`, {
    power: "off",
    ended: "exited",
    phase: "failed",
    reason: null,
  });
  world.settle();
};
const once = (): JsonObject => ({ "x.type": "VM", "x.memory": 1024, "x.restartOnFailure": false });

test("a VM is started again when its counter grows, and left alone when it falls or goes", () => {
  const world = new World();
  world.put(shop());
  const incarnation = (): number => stateOf(world, "shop/web").incarnation ?? 0;
  assert.equal(incarnation(), 1);
  assert.deepEqual(actions(put(world, "shop/web/x.restart", 1)), ["restart shop/web"]);
  assert.equal(incarnation(), 2);
  assert.deepEqual(actions(put(world, "shop/web/x.restart", 7)), ["restart shop/web"]);
  assert.equal(incarnation(), 3);
  for (const lower of [4, 0]) assert.deepEqual(actions(put(world, "shop/web/x.restart", lower)), []);
  put(world, "shop/web/x.restart", 2);
  assert.equal(incarnation(), 4);
  // A text that does not say anything of the counter restarts nothing.
  assert.deepEqual(actions(put(world, "", shop())), []);
  assert.deepEqual([incarnation(), stateOf(world, "shop/web").phase], [4, "ready"]);
  assert.deepEqual(actions(put(world, "shop/web/x.restart", 1)), ["restart shop/web"]);
  assert.equal(incarnation(), 5);
});

test("what failed is told by a change that leaves it so, and the counter starts it again", () => {
  const world = new World();
  const model = shop({ web: once() });
  world.put(model);
  powerOff(world, "shop/web");
  const unchanged = put(world, "", model, true);
  assert.deepEqual(actions(unchanged), []);
  assert.deepEqual(
    unchanged.failed?.map(({ path, type }) => `${path} ${type}`),
    ["shop/web VM"],
  );
  assert.match(unchanged.failed?.[0]?.reason ?? "", /^its guest powered off by itself; it stays off because/);
  assert.equal(put(world, "", shop({ web: { ...once(), "x.priority": 3 } }), true).failed, undefined);
  const started = put(world, "shop/web/x.restart", 1);
  assert.deepEqual([actions(started), started.failed], [["restart shop/web"], undefined]);
  assert.deepEqual([stateOf(world, "shop/web").phase, stateOf(world, "shop/web").incarnation], ["ready", 2]);
});

test("what cannot become ready is stuck, with all that needs it, and nothing else is", () => {
  const world = new World();
  world.put(shop({ web: once() }));
  powerOff(world, "shop/web");
  const stuck = (): readonly string[] => {
    const { body } = world.ask({ method: "GET", path: "shop", state: true });
    return Object.entries(body as JsonObject).flatMap(([name, element]) =>
      (element as { readonly $state?: ElementState }).$state?.stuck === true ? [name] : [],
    );
  };
  assert.deepEqual(stuck().toSorted(), ["web", "webBoot", "webCard"]);
  put(world, "shop/web/x.restart", 1);
  assert.deepEqual(stuck(), []);
  world.put(shop({ inner: { "x.type": "CellController", "x.cell": { inner: { "x.type": "Cell" } } } }));
  assert.deepEqual(stuck(), ["inner"], "nobody makes cells here");
});
