import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import type { ActualVm, DesiredVm } from "../../documents/vocabulary.ts";
import { shop, World } from "../world.testing.ts";

/*
 * A machine that runs is not yet a guest that has come up. Where the agent of the guest says so, the VM is ready from then on, and what is
 * declared as x.ready decides, else what is known of its image.
 */
const web = (more: JsonObject = {}): JsonObject => ({
  web: { ...((shop().shop as JsonObject).web as JsonObject), ...more },
});
/** A cell whose image has an agent, or nothing is known of it. */
const worldOf = (more: JsonObject, hasAgent = true): World => {
  const world = new World();
  world.hasAgent = hasAgent;
  world.put(shop(web(more)));
  return world.settle();
};
const says = (world: World, actual: Partial<ActualVm>, incarnation = 1): void => {
  world.ended.set(`${world.uidOf("shop/web")}@${incarnation}`, actual);
  world.settle();
};
const asked = (world: World): DesiredVm["ready"] => world.vm("shop/web")?.document.ready;

test("a VM whose image has an agent is ready when its guest has come up, and its links with it", () => {
  const world = worldOf({});
  assert.equal(asked(world), "booted");
  says(world, { guest: "booting" });
  assert.equal(world.standing("shop/web"), "working: guest-boots");
  assert.equal(world.standing("shop/webCard"), "working: waits-for shop/web");
  says(world, { guest: "up" });
  assert.deepEqual([world.standing("shop/web"), world.standing("shop/webCard")], ["ready", "ready"]);
});

test("one of whose image nothing is known is ready when its machine runs, unless its guest is asked for", () => {
  const world = worldOf({}, false);
  assert.deepEqual([asked(world), world.standing("shop/web")], [undefined, "ready"]);
  world.put(shop(web({ "x.ready": "booted" })));
  says(world, { guest: "booting" });
  assert.equal(asked(world), "booted");
  assert.equal(world.standing("shop/web"), "working: guest-boots");
});

test('x.ready "started" asks nobody, and a change of it starts nothing again', () => {
  const world = worldOf({ "x.ready": "started" });
  assert.deepEqual([asked(world), world.standing("shop/web")], [undefined, "ready"]);
  world.put(shop(web()));
  says(world, { guest: "late" });
  assert.equal(world.standing("shop/web"), "failed: guest-late shop/web seconds=300");
  world.put(shop(web({ "x.ready": "started" })));
  assert.equal(world.standing("shop/web"), "ready");
  assert.equal(world.vm("shop/web")?.document.incarnation, 1);
});

test("a guest that does not come up is told as failed, is left as it is, and is ready when it comes up after all", () => {
  const world = worldOf({});
  says(world, { guest: "late" });
  assert.equal(world.standing("shop/web"), "failed: guest-late shop/web seconds=300");
  const { stuck } = (world.ask({ method: "GET", path: "shop/web", state: true }).body as JsonObject)
    .$state as JsonObject;
  assert.equal(stuck, true, "so that nobody waits for it");
  assert.equal(world.vm("shop/web")?.document.incarnation, 1, "x.restartOnFailure is about ends");
  says(world, { guest: "up" });
  assert.equal(world.standing("shop/web"), "ready");
});

test("what holds a guest up counts before that it boots", () => {
  const world = worldOf({});
  says(world, { guest: "booting", phase: "waiting", reason: "its disk gives errors" });
  assert.equal(world.standing("shop/web"), "waiting: said host.h1");
});

test("a guest that resets itself boots again", () => {
  const world = worldOf({});
  says(world, { guest: "up" });
  says(world, { guest: "booting", reboots: 1 });
  assert.equal(world.standing("shop/web"), "working: guest-boots");
});

test("a host that does not say yet what is asked of it has not confirmed it", () => {
  const world = worldOf({});
  says(world, { guest: undefined } as unknown as Partial<ActualVm>);
  assert.equal(world.standing("shop/web"), "working: unconfirmed host.h1 x.ready");
});
