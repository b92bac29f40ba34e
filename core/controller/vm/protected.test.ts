import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredProtected } from "../../documents/ha.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { shop, World } from "../world.testing.ts";

const ha = peerName("ha-manager");
const h1 = peerName("host.h1");
const protectedOf = (world: World): readonly DesiredProtected[] =>
  world.documents<DesiredProtected>("ha-manager", "protected");
/** h1 is lost, and nothing more is placed there. */
const lost = (json = shop()): World => {
  const world = new World();
  world.step({ kind: "request", id: 1, request: { method: "HA" } });
  world.put(json);
  world.withdraw(h1);
  world.hosts.delete(hostName("h1"));
  return world;
};
const fireAll = (world: World): void => {
  world.settle();
  for (const name of [...world.timers.keys()]) world.fire(name);
};
const say = (world: World, path: string, more: JsonObject = {}): void => {
  const vm = world.uidOf(path);
  const value: Json = { vm, incarnation: 1, host: "h1", by: "storage", ...more };
  world.step({ kind: "actual", from: ha, key: `controller.shop/over/${vm}`, value });
  fireAll(world);
};
const guardOf = (world: World): unknown => world.desired.get(peerName("storage-manager"))?.get("guard");
const runOf = (world: World, path: string) => [world.vm(path)?.host, world.vm(path)?.document.incarnation];

test("every incarnation that a host was told of is looked after, where there is an HA Manager", () => {
  const none = new World();
  none.put(shop());
  assert.deepEqual(protectedOf(none), []);
  const world = lost();
  const [first] = protectedOf(world);
  assert.equal(protectedOf(world).length, 2);
  assert.deepEqual(
    [first?.incarnation, first?.host, first?.cell, first?.storageManager, first?.isolated],
    [1, "h1", "shop", "storage-manager", "keep"],
  );
  const [there] = world.vm("shop/web")?.document.interfaces ?? [];
  const web = protectedOf(world).find(({ path }) => path === "shop/web");
  assert.deepEqual([web?.address, web?.address !== undefined], [there?.address, true]);
});

test("what the HA Manager says to be over starts elsewhere, and nothing else does", () => {
  const world = lost();
  say(world, "shop/web", { incarnation: 2 });
  say(world, "shop/web", { host: "h3" });
  assert.deepEqual(runOf(world, "shop/web"), ["host.h1", 1], "that was another one");
  say(world, "shop/web");
  assert.deepEqual(runOf(world, "shop/web"), ["host.h2", 2]);
  assert.deepEqual(runOf(world, "shop/db"), ["host.h1", 1], "of which nothing was said");
  const isRestart = (path: string): unknown =>
    world.documents<DesiredPlacement>("placer", "placement").find((each) => each.path === path)?.restart;
  assert.deepEqual(
    [isRestart("shop/web"), isRestart("shop/db")],
    [true, undefined],
    "a host that is kept for that may have it",
  );
  assert.deepEqual(world.state.vms.get(world.uidOf("shop/web"))?.lastEnd?.how, "host died");
});

test("one that is stopped at a lost host is free when it is over, and is asked for as such", () => {
  const world = lost();
  const { shop: cell = {} } = shop();
  const web = { ...(cell as Record<string, object>).web, "x.desiredState": "off" };
  const off = { shop: { ...(cell as object), web } } as never;
  world.put(off);
  const { web: _web, webBoot: _boot, webCard: _card, toDb: _rule, ...rest } = cell as Record<string, object>;
  const deleted = lost();
  deleted.put({ shop: rest } as never, ["shop/webDisk"]);
  const ending = protectedOf(deleted).find(({ path }) => path === "shop/web");
  assert.deepEqual([ending?.lost, ending?.deleted], ["end", true], "and one that has left the model says so");
  const ofWeb = () => protectedOf(world).find(({ path }) => path === "shop/web");
  assert.equal(ofWeb()?.lost, "end");
  say(world, "shop/web");
  assert.equal(ofWeb(), undefined);
  assert.equal(world.vm("shop/web"), null);
});

test("one that is not started again by itself waits for its host", () => {
  const { shop: cell = {} } = shop();
  const web = { ...(cell as Record<string, object>).web, "x.restartOnFailure": false };
  const world = lost({ shop: { ...(cell as object), web } } as never);
  assert.equal(protectedOf(world).find(({ path }) => path === "shop/web")?.lost, "leave");
});

test("a cell that is bound to a further HA Manager is its own, and says so where its volumes' leases are", () => {
  const second = peerName("ha-manager.2");
  const world = new World({ haManager: second });
  world.step({ kind: "request", id: 1, request: { method: "HA" } });
  world.put(shop());
  assert.deepEqual(protectedOf(world), []);
  assert.equal(world.documents("ha-manager.2", "protected").length, 2);
  assert.deepEqual(guardOf(world), { cell: "shop", haManager: "ha-manager.2" });
  world.withdraw(h1);
  world.hosts.delete(hostName("h1"));
  say(world, "shop/web");
  assert.deepEqual(runOf(world, "shop/web"), ["host.h1", 1], "the first has no part in it");
  const vm = world.uidOf("shop/web");
  const value: Json = { vm, incarnation: 1, host: "h1", by: "storage" };
  world.step({ kind: "actual", from: second, key: `controller.shop/over/${vm}`, value });
  fireAll(world);
  assert.deepEqual(runOf(world, "shop/web"), ["host.h2", 2]);
  const first = lost();
  assert.equal(guardOf(first), undefined, "of the first nothing is said");
});
