import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";
import type { DueOrder } from "./orders.ts";

const second = peerName("ha-manager.2");
const controller = { kind: "ipmi", address: "10.9.0.1", user: "cells", sealed: "sealed", host: "h1", uuid: "u" };
const register = (world: World): void => {
  world.give({ kind: "request", id: 1, request: { kind: "ha-power-register", host: "h1", controller } });
};
const due = (world: World): readonly string[] => {
  const [reply] = world
    .give({ kind: "request", id: 1, request: { kind: "ha-power-next" } })
    .filter((effect) => effect.kind === "reply");
  return ((reply?.response ?? []) as unknown as readonly DueOrder[]).map(({ action, host }) => `${action} ${host}`);
};
const askedBy = (world: World): Json => world.state.outbox.desired.get(peerName("ha-manager"))?.get("power/h1") ?? null;
const ask = (world: World, value: JsonObject | null, from: PeerName = second): void => {
  world.give({ kind: "desired", from, key: "power/h1", value });
};

test("a further manager asks the first for the power of a lost host, and to cut it where the storage does not answer", () => {
  const world = new World(5, undefined, [], "ha-manager.2");
  world.protect("a-1", 1, "h1");
  world.ms += 1000;
  world.give({ kind: "timer", name: "asked" });
  assert.equal(askedBy(world), null, "of a host that is not lost nothing is asked");
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing");
  assert.deepEqual(askedBy(world), { host: "h1", boot: 7 });
  assert.deepEqual(due(world), [], "it has no controllers itself");
  world.ms += 3000;
  world.give({ kind: "timer", name: "recreate" });
  assert.deepEqual(askedBy(world), { host: "h1", boot: 7, cut: true });
  assert.match(JSON.stringify(world.state.active.get("a-1" as never)?.fencing), /the first HA Manager was asked/);
  world.fenced("a-1", 1);
  assert.equal(world.stepOf("a-1"), "Restarting");
  assert.equal(askedBy(world), null);
});

test("what was read for it comes by the Presence group: the boot is over, and so is what ran in it", () => {
  const world = new World(5, undefined, [], "ha-manager.2");
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing");
  const value = { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 3, ended: 7, boot: 7 };
  world.give({ kind: "actual", from: peerName("presence.1"), key: "dead/h1", value });
  assert.equal(world.stepOf("a-1"), "Restarting");
  assert.equal(askedBy(world), null);
});

test("the first cuts a power for another one, of a lost host alone, and reads it for that of a suspect", () => {
  const world = new World(5);
  register(world);
  world.boots("h1");
  world.give({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
  ask(world, { host: "h1", boot: 7, cut: true });
  assert.deepEqual(due(world), [], "nobody has declared it dead");
  world.lose("h1");
  assert.deepEqual(due(world), ["off h1"]);
  const reading = new World(5);
  register(reading);
  reading.boots("h1");
  reading.give({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
  reading.lose("h1");
  assert.deepEqual(due(reading), [], "nothing of it is protected here, and nobody asks");
  ask(reading, { host: "h1", boot: 7 });
  assert.deepEqual(due(reading), ["read h1"]);
});

test("neither asks after a boot that the host never said it was in, whoever says so", () => {
  const further = new World(5, undefined, [], "ha-manager.2");
  further.protect("b-1", 1, "h1", "liar", { boot: 2 ** 47 });
  further.lose("h1");
  assert.deepEqual(askedBy(further), { host: "h1", boot: 7 });
  const world = new World(5);
  register(world);
  world.give({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
  world.lose("h1");
  ask(world, { host: "h1", boot: 2 ** 47, cut: true });
  assert.deepEqual(due(world), [], "of that host no boot is known at all");
  world.boots("h1");
  assert.deepEqual(due(world), ["off h1"]);
  assert.equal(world.state.power.orders.get("h1" as never)?.boot, 7);
});

test("where many hosts were lost, and of one that is heard, no power is cut for anybody", () => {
  const stormy = new World(4);
  register(stormy);
  stormy.boots("h1");
  stormy.give({ kind: "reachable", peer: peerName("host.h4"), reachable: true });
  for (const host of ["h1", "h2", "h3"]) stormy.lose(host);
  ask(stormy, { host: "h1", boot: 7, cut: true });
  assert.deepEqual(due(stormy), ["read h1"]);
  const heard = new World(4);
  register(heard);
  heard.boots("h1");
  for (const host of ["h1", "h2"]) heard.give({ kind: "reachable", peer: peerName(`host.${host}`), reachable: true });
  heard.lose("h1");
  ask(heard, { host: "h1", boot: 7, cut: true });
  assert.deepEqual(due(heard), []);
});

test("a malformed word, or one about another host than its key, is refused, and one that is taken back is over", () => {
  const world = new World(5);
  register(world);
  world.boots("h1");
  world.give({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
  world.lose("h1");
  for (const bad of [
    { host: "h2", boot: 7 },
    { host: "h1" },
    { host: "h1", boot: -1 },
    { host: "h1", boot: 7, cut: 1 },
  ]) {
    ask(world, bad as JsonObject);
    assert.deepEqual(world.events, ["document/refused"]);
  }
  assert.deepEqual(due(world), []);
  ask(world, { host: "h1", boot: 7 });
  ask(world, null);
  assert.deepEqual(due(world), []);
});

test("a word of an earlier version, and one with more in it, is taken; one that cannot be read cuts and reads nothing", () => {
  const made = (value: JsonObject): World => {
    const world = new World(5);
    register(world);
    world.boots("h1");
    world.give({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
    world.lose("h1");
    ask(world, value);
    return world;
  };
  assert.deepEqual(due(made({ host: "h1", boot: 7 })), ["read h1"], "the first version of it asked for no cut");
  assert.deepEqual(due(made({ host: "h1", boot: 7, cut: true, urgent: true })), ["off h1"]);
  const later = made({ host: "h1", boots: [7], cut: true });
  assert.deepEqual(later.events, ["document/refused"]);
  assert.deepEqual(due(later), []);
  // What was asked before it stands.
  ask(later, { host: "h1", boot: 7 });
  ask(later, { host: "h1", boots: [7], cut: true });
  assert.deepEqual(due(later), ["read h1"]);
});
