import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import type { DesiredProtected } from "../../../documents/ha.ts";
import type { DesiredConnection, DesiredVolume } from "../../../documents/vocabulary.ts";
import { shop, World } from "../../world.testing.ts";

const h1 = peerName("host.h1");
/** The shop, whose disks may be lost, but for these. */
const scratch = (...kept: readonly string[]): JsonObject => {
  const cell = { ...(shop().shop as Record<string, JsonObject>) };
  for (const name of ["webDisk", "dbDisk"])
    if (!kept.includes(name)) cell[name] = { ...cell[name], "x.recreatable": true };
  return { shop: cell };
};
const lost = (json: JsonObject): World => {
  const world = new World();
  world.step({ kind: "request", id: 1, request: { method: "HA" } });
  world.put(json);
  world.withdraw(h1);
  world.hosts.delete(hostName("h1"));
  return world;
};
const say = (world: World, path: string, by: string): void => {
  const vm = world.uidOf(path);
  const value = { vm, incarnation: 1, host: "h1", by };
  world.step({ kind: "actual", from: peerName("ha-manager"), key: `controller.shop/over/${vm}`, value });
  world.settle();
  for (const name of [...world.timers.keys()]) world.fire(name);
};
const ofVm = (world: World, vm: string) =>
  world.documents<DesiredConnection>("storage-manager", "connection").filter((each) => each.vm === world.uidOf(vm));
const protectedAt = (world: World, path: string) =>
  world.documents<DesiredProtected>("ha-manager", "protected").find((each) => each.path === path);

test("who writes to nothing but what may be lost is protected as such, and starts with other volumes at the word", () => {
  const world = lost(scratch());
  assert.equal(protectedAt(world, "shop/web")?.recreatable, true);
  const before = ofVm(world, "shop/web");
  assert.ok(before.length > 0);
  say(world, "shop/web", "recreatable");
  const run = world.state.vms.get(world.uidOf("shop/web"))?.run;
  assert.deepEqual([run?.host, run?.incarnation], ["h2", 2]);
  const after = ofVm(world, "shop/web");
  for (const { volume } of before) assert.ok(!after.some((each) => each.volume === volume), "no volume of before");
  for (const { volume } of after) {
    const document = world.documents<DesiredVolume>("storage-manager", "volume").find(({ uid }) => uid === volume);
    assert.ok(document !== undefined, "and each new one is asked for");
  }
  assert.match(world.state.vms.get(world.uidOf("shop/web"))?.lastEnd?.reason ?? "", /made anew/);
  assert.ok(
    world.effects.some((effect) => effect.kind === "log" && effect.event === "volume/recreated"),
    "people are told",
  );
});

test("one volume that must not be lost, and nothing is given up: the word does not count", () => {
  const world = lost(scratch("webDisk"));
  assert.equal(protectedAt(world, "shop/web")?.recreatable, undefined);
  assert.equal(protectedAt(world, "shop/db")?.recreatable, true);
  const uid = world.uidOf("shop/webDisk");
  say(world, "shop/web", "recreatable");
  assert.equal(world.state.vms.get(world.uidOf("shop/web"))?.run?.incarnation, 1);
  assert.equal(world.uidOf("shop/webDisk"), uid);
});

test("a fence at the storage leaves all volumes as they are", () => {
  const world = lost(scratch());
  const before = ofVm(world, "shop/web").map(({ volume }) => volume);
  say(world, "shop/web", "storage");
  assert.equal(world.state.vms.get(world.uidOf("shop/web"))?.run?.incarnation, 2);
  assert.deepEqual(
    ofVm(world, "shop/web").map(({ volume }) => volume),
    before,
  );
});

test("in a cell that was deployed all or none a new volume is no new deployment, which could be given back", () => {
  const { shop: cell } = scratch();
  const world = lost({ shop: { ...(cell as JsonObject), "x.policy.deploy": "all-or-none" } });
  say(world, "shop/web", "recreatable");
  const key = `element/${world.uidOf("shop/webDisk")}`;
  const written = world.effects.flatMap((effect) =>
    effect.kind === "write" && effect.key === key ? [(effect.value as JsonObject).reserving] : [],
  );
  assert.ok(written.length > 0 && !written.includes(true), "not for a moment");
  assert.equal(world.state.vms.get(world.uidOf("shop/web"))?.run?.incarnation, 2);
});
