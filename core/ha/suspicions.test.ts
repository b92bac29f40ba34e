import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { DueOrder } from "./power/orders.ts";
import type { Storm } from "./state.ts";
import { member, World } from "./world.testing.ts";

const uuid = "00112233-4455-6677-8899-aabbccddeeff";
const ask = (world: World, request: JsonObject): Json =>
  world
    .give({ kind: "request", id: 1, request })
    .flatMap((each) => (each.kind === "reply" ? [each.response] : []))[0] ?? null;
const due = (world: World): readonly string[] =>
  (ask(world, { kind: "ha-power-next" }) as unknown as readonly DueOrder[]).map(
    ({ host, action, nonce }) => `${action} ${host} ${nonce}`,
  );
const reads = (world: World, power: "on" | "off", host = "h1", nonce = 1): void =>
  void ask(world, { kind: "ha-power-read", host, nonce, power, uuid, reason: null });
const register = (world: World, host: string): void => {
  const controller = { kind: "ipmi", address: "10.9.0.1", user: "cells", sealed: "sealed", host, uuid };
  ask(world, { kind: "ha-power-register", host, controller });
};
const suspect = (world: World, host = "h1", isSuspected = true, from = member): void => {
  const value = isSuspected ? { host, generation: 1, incarnation: 0 } : null;
  world.give({ kind: "actual", from, key: `suspected/${host}`, value });
};
const reachable = (world: World, host: string, isHeard: boolean): void =>
  void world.give({ kind: "reachable", peer: peerName(`host.${host}`), reachable: isHeard });
/** A VM at h1, which has a management controller and is heard; all hosts say where they are. */
const begun = (hosts = 3): World => {
  const world = new World(hosts);
  register(world, "h1");
  for (let host = 1; host <= hosts; host += 1) {
    reachable(world, `h${host}`, true);
    const value = {
      host: `h${host}`,
      state: "up",
      address: `10.0.1.${host}`,
      mac: `02:00:00:00:01:0${host}`,
      memoryMiB: 9,
      reservedMiB: 0,
      cpus: 1,
      cpuSpeedMHz: 1000,
      accelerator: "tcg",
    };
    world.give({ kind: "actual", from: peerName(`host.h${host}`), key: "host", value });
  }
  world.protect("a-1", 1, "h1");
  return world;
};
const machines = (world: World): void => {
  const value = { host: "h1", boot: 7, machines: [{ vm: "a-1", incarnation: 1, power: "on" }] };
  world.give({ kind: "actual", from: peerName("host.h1"), key: "machines", value });
};

test("members of Presence that come are followed, and a host is suspected where most of all say so", () => {
  const world = begun();
  const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));
  const effects = world.give({ kind: "request", id: 1, request: { kind: "members", members } });
  const asked = effects.flatMap((effect) => (effect.kind === "subscribe" ? [`${effect.to} ${effect.prefix}`] : []));
  assert.deepEqual(asked.toSorted(), [
    "presence.2 dead/",
    "presence.2 suspected/",
    "presence.3 dead/",
    "presence.3 suspected/",
  ]);
  suspect(world);
  assert.deepEqual(world.events, []);
  suspect(world, "h1", true, peerName("presence.3"));
  assert.deepEqual(world.events, ["ha/suspected"]);
});

test("a host that is suspected has its power read, and never cut, and nothing is done about its VMs", () => {
  const world = begun();
  assert.deepEqual(due(world), [], "of a host that nobody suspects nothing is asked");
  suspect(world);
  assert.deepEqual(world.events, ["ha/suspected"]);
  assert.deepEqual(due(world), ["read h1 1"], "though its connection is not silent for long enough yet");
  reads(world, "on");
  world.ms += 60_000;
  assert.deepEqual(due(world), ["read h1 2"]);
  assert.equal(world.stepOf("a-1"), undefined);
  suspect(world, "h1", false);
  assert.deepEqual(world.events, ["ha/not-suspected"]);
  world.ms += 60_000;
  assert.deepEqual(due(world), []);
  assert.equal(world.state.ended.size, 0);
});

test("a power that was read as off needs no declaration: what it says later than a Host Manager's list, counts", () => {
  const world = begun();
  machines(world);
  world.ms += 5_000;
  suspect(world);
  due(world);
  reads(world, "off");
  assert.equal(world.stepOf("a-1"), "Restarting");
  assert.equal(world.state.over.get("a-1" as never)?.by, "stopped");
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Restarting");
});

test("what a Host Manager says later than the power was read, vetoes", () => {
  const world = begun();
  world.pause();
  suspect(world);
  due(world);
  reads(world, "off");
  assert.equal(world.stepOf("a-1"), "Investigating", "the operator has all of it wait");
  world.ms += 1_000;
  machines(world);
  world.release();
  assert.equal(world.stepOf("a-1"), "Investigating");
});

test("a VM that was placed for a later boot than the one that was read as off is not over", () => {
  const world = begun();
  suspect(world);
  due(world);
  world.protect("a-1", 2, "h1", "shop", { boot: 8 });
  reads(world, "off");
  assert.equal(world.stepOf("a-1"), undefined);
});

test("neighbours of a suspect are asked, so nobody waits for them when it is declared", () => {
  const world = begun();
  suspect(world);
  const asked = world.state.asking.get("h1" as never);
  assert.deepEqual(asked?.peers, ["host.h2", "host.h3"]);
  for (const peer of ["host.h2", "host.h3"] as const) {
    const value = { host: "h1", asked: 2, answered: 0, mac: null };
    world.give({ kind: "actual", from: peerName(peer), key: "ha-manager/probe/h1", value });
  }
  reachable(world, "h1", false);
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing", "they have answered before");
});

test("so are those of a host that this manager has lost alone, for half a minute, and not of many that it loses at once", () => {
  const asked = (world: World): readonly string[] => [...(world.state.asking.get("h1" as never)?.peers ?? [])];
  const world = begun();
  reachable(world, "h1", false);
  assert.deepEqual(asked(world), ["host.h2", "host.h3"]);
  assert.equal(world.stepOf("a-1"), undefined, "nothing is done about its VMs");
  world.ms += 29_999;
  world.give({ kind: "timer", name: "asked" });
  assert.equal(asked(world).length, 2);
  world.ms += 1;
  world.give({ kind: "timer", name: "asked" });
  assert.deepEqual(asked(world), [], "it is this manager that does not hear it");
  const heard = begun();
  reachable(heard, "h1", false);
  reachable(heard, "h1", true);
  assert.deepEqual(asked(heard), []);
  const cut = begun(6);
  for (const name of ["h1", "h6"]) reachable(cut, name, false);
  assert.deepEqual(asked(cut), ["host.h2", "host.h3"]);
  reachable(cut, "h5", false);
  assert.deepEqual(asked(cut), [], "it has lost its network");
  const some = begun(6);
  for (const name of ["h4", "h5", "h6"]) reachable(some, name, false);
  some.ms += 30_000;
  reachable(some, "h4", false);
  reachable(some, "h1", false);
  assert.deepEqual(asked(some), ["host.h2", "host.h3"], "those that were lost long ago are none of many at once");
});

test("one member of several is not believed, nor who is none", () => {
  const world = begun();
  suspect(world, "h1", true, peerName("host.h2"));
  assert.deepEqual(due(world), []);
  const several = new World(3, ["presence.1", "presence.2", "presence.3"].map(peerName));
  register(several, "h1");
  reachable(several, "h2", true);
  several.protect("a-1", 1, "h1");
  suspect(several);
  assert.deepEqual(due(several), []);
  suspect(several, "h1", true, peerName("presence.3"));
  assert.deepEqual(due(several), ["read h1 1"]);
});

test("hosts that have no power count as lost before they are declared, each once: many at once are a storm", () => {
  const world = begun(5);
  for (const [index, host] of ["h1", "h2", "h3"].entries()) {
    register(world, host);
    world.protect(`a-${index + 1}`, 1, host);
  }
  for (const host of ["h1", "h2"]) suspect(world, host);
  for (const host of ["h1", "h2"]) {
    due(world);
    reads(world, "off", host);
    world.lose(host);
  }
  const stormOf = (): Storm | null => world.state.storm;
  assert.equal(stormOf(), null, "two are none");
  suspect(world, "h3");
  due(world);
  reads(world, "off", "h3");
  assert.deepEqual(stormOf()?.hosts, ["h1", "h2", "h3"]);
  assert.equal(world.stepOf("a-3"), "Investigating");
});
