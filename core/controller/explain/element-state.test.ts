import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { shop, World } from "../world.testing.ts";

const stateOf = (world: World, path: string): JsonObject =>
  (world.ask({ method: "GET", path, state: true }).body as JsonObject).$state as JsonObject;

test("an element's state has its causes as data beside the sentence, and none where there is nothing to say", () => {
  const world = new World();
  world.put(shop({ web: { "x.type": "VM", "x.memory": 8192, "x.desiredState": "on" } }));
  const { reason, causes } = stateOf(world, "shop/web");
  assert.match(String(reason), /^no host can hold it: h1: /);
  const [{ kind, refusals } = {}] = causes as readonly JsonObject[];
  assert.deepEqual([kind, (refusals as readonly JsonObject[]).map(({ host }) => host)], ["no-host", ["h1", "h2"]]);
  assert.equal(stateOf(world, "shop/golden").causes, undefined);
});

test("a VM that runs says which of its disks keeps it waiting, and why", () => {
  const world = new World();
  world.put(shop());
  world.volumesAre.set(world.uidOf("shop/webDisk"), { reason: "storage server s1 is not reachable", available: false });
  world.settle();
  assert.equal(world.phase("shop/web"), "ready: its disk shop/webDisk: storage server s1 is not reachable");
  world.volumesAre.set(world.uidOf("shop/webDisk"), { reason: null });
  world.settle();
  assert.equal(world.standing("shop/web"), "ready");
});

test("an event of an element's state has the same causes", () => {
  const world = new World();
  world.put(shop());
  world.silent.add(peerName("storage-manager"));
  world.settle();
  const uid = world.uidOf("shop/dbDisk");
  const effects = world.step({
    kind: "actual",
    from: peerName("storage-manager"),
    key: `controller.shop/volume/${uid}`,
    value: { phase: "waiting", reason: "its server is full", server: null, sizeMiB: null },
  });
  const [event] = effects.flatMap((effect) =>
    effect.kind === "log" && effect.event === "element/state" && effect.fields.uid === uid ? [effect.fields] : [],
  );
  const causes = [{ kind: "said", by: "storage-manager", sentence: "its server is full" }];
  assert.deepEqual([event?.reason, event?.causes], ["its server is full", causes]);
});

test("a store of the previous version has sentences alone: they are told as said, until they are found anew", () => {
  const world = new World();
  world.put(shop());
  for (const [key, value] of world.records) {
    if (!key.startsWith("element/")) continue;
    const { causes: _causes, ...record } = value as JsonObject;
    world.records.set(key, { ...record, phase: "waiting", reason: "waits for shop/none" });
  }
  world.crash();
  assert.equal(world.standing("shop/web"), "waiting: said controller.shop");
  assert.equal(world.phase("shop/web"), "waiting: waits for shop/none");
  world.settle();
  assert.equal(world.standing("shop/web"), "ready");
});
