import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredProtected } from "../../documents/ha.ts";
import { shop, World } from "../world.testing.ts";

const h1 = peerName("host.h1");
const off = (): JsonObject => {
  const cell = shop().shop as Record<string, JsonObject>;
  return { shop: { ...cell, web: { ...cell.web, "x.desiredState": "off" } } };
};
const force = (world: World, vm = "shop/web", tentative = false) =>
  world.ask({ method: "FORCE-STOP", vm, tentative }) as { readonly status: number; readonly body: JsonObject };
const away = (world: World): void => {
  world.withdraw(h1);
  world.hosts.delete(hostName("h1"));
};
const runOf = (world: World) => world.state.vms.get(world.uidOf("shop/web"))?.run ?? null;

test("a VM whose host is away is freed of it by the operator, who hears what nobody has looked at", () => {
  const world = new World();
  world.put(shop());
  assert.match(String(JSON.stringify(force(world))), /h1 is heard/, "its host can say it itself");
  away(world);
  const said = JSON.stringify(force(world, "shop/web", true));
  assert.match(said, /nobody has seen that incarnation 1 has ended/);
  assert.match(said, /storage servers have ended its writing/);
  assert.match(JSON.stringify(force(world)), /is to run: switch it off first/);
  world.put(off());
  assert.equal(runOf(world)?.stage, "stopping", "its host has not confirmed it");
  force(world, "shop/web", true);
  world.settle();
  assert.equal(runOf(world)?.stage, "stopping", "asking changes nothing");
  force(world);
  world.settle();
  assert.equal(runOf(world), null);
  assert.ok(world.effects.some((effect) => effect.kind === "log" && effect.event === "vm/forced"));
  world.put(shop());
  world.settle();
  assert.deepEqual([runOf(world)?.incarnation, runOf(world)?.host], [2, "h2"]);
});

test("what runs nowhere needs no force, and what is no VM is told", () => {
  const world = new World();
  world.put(off());
  assert.match(JSON.stringify(force(world)), /nothing of shop\/web runs anywhere/);
  assert.equal(world.standing("shop/web"), "ready", "off by the ordinary way");
  assert.match(JSON.stringify(force(world, "shop/webDisk")), /is no VM of the cell shop/);
});

test("one whose host is heard is stopped by the ordinary way, as the refusal says", () => {
  const world = new World();
  world.put(shop());
  assert.match(JSON.stringify(force(world)), /h1 is heard, and stops what it runs/);
  world.put(off());
  world.settle();
  assert.equal(runOf(world), null);
});

test("the HA Manager hears of what was freed until a later incarnation is there", () => {
  const world = new World();
  world.step({ kind: "request", id: 1, request: { method: "HA" } });
  world.put(shop());
  away(world);
  world.put(off());
  force(world);
  world.settle();
  const said = () =>
    world
      .documents<DesiredProtected>("ha-manager", "protected")
      .filter(({ path }) => path === "shop/web")
      .map(({ incarnation, host, lost, forced }) => [incarnation, host, lost, forced]);
  assert.equal(runOf(world), null);
  assert.deepEqual(said(), [[1, "h1", "end", true]]);
  world.put(shop());
  world.settle();
  assert.deepEqual(said(), [[2, "h2", "restart", undefined]]);
});
