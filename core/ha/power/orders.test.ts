import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";
import type { DueOrder } from "./orders.ts";

const uuid = "00112233-4455-6677-8899-aabbccddeeff";
const controller = { kind: "ipmi", address: "10.9.0.1", user: "cells", sealed: "sealed", host: "h1", uuid };
const ask = (world: World, request: JsonObject): Json => {
  const [reply] = world.give({ kind: "request", id: 1, request }).filter((effect) => effect.kind === "reply");
  return reply?.response ?? null;
};
const next = (world: World): readonly DueOrder[] =>
  ask(world, { kind: "ha-power-next" }) as unknown as readonly DueOrder[];
/** What is due, after so long; each order as `action nonce`. */
const due = (world: World, afterMs = 0): readonly string[] => {
  world.ms += afterMs;
  return next(world).map(({ action, nonce }) => `${action} ${nonce}`);
};
const reads = (world: World, nonce: number, more: JsonObject = {}): void => {
  const said = { power: "off", uuid, reason: null, ...more };
  ask(world, { kind: "ha-power-read", host: "h1", nonce, ...said });
};
const hears = (world: World, ...hosts: readonly string[]): void => {
  for (const host of hosts) world.give({ kind: "reachable", peer: `host.${host}` as never, reachable: true });
};
/** A VM of a host with a controller, which is lost, and other hosts that are heard. */
const lost = (): World => {
  const world = new World(5);
  ask(world, { kind: "ha-power-register", host: "h1", controller });
  hears(world, "h2", "h3");
  world.protect("a-1", 1, "h1");
  assert.deepEqual(due(world), [], "of a host that is not lost nothing is asked");
  world.lose("h1");
  return world;
};

test("the power of a lost host is read; one that its fence waits for is cut, once, and read as off it is a fence", () => {
  const world = lost();
  assert.deepEqual(due(world), ["read 1"]);
  reads(world, 1, { power: "on" });
  assert.equal(world.stepOf("a-1"), "Fencing");
  assert.deepEqual(due(world, 2000), [], "the storage has its time");
  assert.deepEqual(due(world, 1500), ["off 2"]);
  assert.deepEqual(due(world, 1000), [], "it is given once");
  assert.equal(world.stepOf("a-1"), "Fencing", "that it was given says nothing");
  reads(world, 2);
  assert.equal(world.stepOf("a-1"), "Restarting");
  const item = world.state.active.get("a-1" as never);
  assert.deepEqual([item?.fencedBy, world.state.over.get("a-1" as never)?.by], ["power", "stopped"]);
  assert.deepEqual(due(world, 20_000), [], "and nothing more is asked");
});

test("a power that somebody else has cut needs no fence, and no order", () => {
  const world = new World(5);
  ask(world, { kind: "ha-power-register", host: "h1", controller });
  hears(world, "h2");
  world.protect("a-1", 1, "h1");
  world.pause();
  world.lose("h1");
  assert.deepEqual(due(world), ["read 1"]);
  reads(world, 1);
  world.release();
  assert.equal(world.state.active.get("a-1" as never)?.fencedBy, "stopped");
});

test("what was placed for a boot that was never heard of is over by a reading that was asked for since, for itself alone", () => {
  const world = new World(5);
  ask(world, { kind: "ha-power-register", host: "h1", controller });
  hears(world, "h2", "h3");
  world.protect("a-1", 1, "h1");
  world.protect("a-2", 1, "h1", "shop", { boot: 8 });
  world.lose("h1");
  assert.deepEqual(due(world, 1), ["read 1"]);
  world.protect("a-3", 1, "h1", "shop", { boot: 1000 });
  world.ms += 1;
  reads(world, 1);
  assert.deepEqual([world.stepOf("a-1"), world.stepOf("a-2")], ["Restarting", "Restarting"]);
  assert.equal(world.stepOf("a-3"), "Fencing", "the order was given before");
  assert.deepEqual([world.state.power.offs.get(hostName("h1"))?.boot], [7], "of what no host said nobody is told");
  world.protect("a-2", 1, "h1", "shop", { boot: 9 });
  assert.equal(due(world, 10_000).length, 1, "it is asked for once more");
  reads(world, 2);
  assert.equal(world.stepOf("a-3"), "Restarting");
  assert.deepEqual(due(world, 20_000), []);
  const plug = new World(5);
  const { uuid: _uuid, ...rest } = controller;
  const agent = { ...rest, kind: "agent", agent: "fence_apc", plug: "7", uuid: "" };
  ask(plug, { kind: "ha-power-register", host: "h1", controller: agent });
  hears(plug, "h2", "h3");
  plug.protect("a-1", 1, "h1");
  plug.protect("a-2", 1, "h1", "shop", { boot: 8 });
  plug.lose("h1");
  due(plug, 1);
  reads(plug, 1, { uuid: null, power: "on" });
  assert.deepEqual(due(plug, 3500), ["off 2"]);
  reads(plug, 2, { uuid: null });
  assert.deepEqual([plug.stepOf("a-1"), plug.stepOf("a-2")], ["Restarting", "Fencing"], "an agent shows no machine");
  assert.deepEqual(due(plug, 20_000), []);
});

test("on, silence, another machine's UUID, an answer to another order, or to one before a start, are no fence", () => {
  const world = lost();
  due(world);
  due(world, 4000);
  const [, order] = [1, 2];
  for (const [nonce, more] of [
    [order, { power: "on" }],
    [order, { power: null, uuid: null, reason: "the controller does not answer" }],
    [order, { uuid: "00112233-4455-6677-8899-aabbccddeef0" }],
    [order, { uuid: null }],
    [order - 1, {}],
    [order + 1, {}],
  ] as const) {
    const again = lost();
    due(again);
    due(again, 4000);
    reads(again, nonce, more);
    assert.equal(again.stepOf("a-1"), "Fencing", JSON.stringify(more));
    assert.equal(again.state.power.offs.size, 0);
  }
  world.restart();
  reads(world, order);
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Fencing", "an order is void after a start");
});

test("an agent shows no machine: what it reads off counts once it was asked to cut the power in that boot", () => {
  const { uuid: _uuid, ...rest } = controller;
  const agent = { ...rest, kind: "agent", agent: "fence_apc", plug: "7", uuid: "" };
  const world = new World(5);
  ask(world, { kind: "ha-power-register", host: "h1", controller: agent });
  hears(world, "h2", "h3");
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.deepEqual(due(world), ["read 1"]);
  reads(world, 1, { uuid: null });
  assert.equal(world.stepOf("a-1"), "Fencing", "a plug that is off all the time reads so as well");
  assert.match(world.state.power.said.get("h1" as never)?.sentence ?? "", /counts once it was asked to cut the power/);
  assert.deepEqual(due(world, 3500), ["off 2"]);
  reads(world, 2, { uuid: null, power: null, reason: "fence_apc did not end in time" });
  assert.equal(world.stepOf("a-1"), "Fencing");
  assert.deepEqual(due(world, 10_000), ["read 3"]);
  reads(world, 3, { uuid: null });
  assert.equal(world.stepOf("a-1"), "Restarting", "a slow one is read as off later");
  world.protect("a-2", 1, "h1");
  const [off] = [world.state.power.offs.get("h1" as never)];
  assert.equal(off?.boot, 7);
});

test("one plug is not two hosts'; the same one is registered for its own again, and one with a UUID is what it shows", () => {
  const world = new World(5);
  const { uuid: _uuid, ...rest } = controller;
  const agent = { ...rest, kind: "agent", agent: "fence_apc", plug: "7", uuid: "" };
  const register = (host: string, more: JsonObject): Json =>
    ask(world, { kind: "ha-power-register", host, controller: { ...agent, host, ...more } });
  assert.deepEqual(register("h1", {}), {});
  assert.deepEqual(register("h2", {}), { taken: "h1" });
  assert.deepEqual(register("h2", { agent: "fence_apc_snmp" }), { taken: "h1" }, "another program for the same device");
  assert.ok(!world.records.has("power/h2"));
  for (const more of [{ plug: "8" }, { address: "10.9.0.2" }, { kind: "ipmi", uuid }])
    assert.deepEqual(register("h2", more), {}, JSON.stringify(more));
  assert.deepEqual(register("h1", { options: { ssh: "1" } }), {});
});

test("a start repeats no order; one that did not help is given again after its time alone", () => {
  const world = lost();
  due(world);
  assert.deepEqual(due(world, 4000), ["off 2"]);
  world.restart();
  hears(world, "h2");
  world.lose("h1");
  assert.deepEqual(due(world), []);
  assert.deepEqual(due(world, 10_000), ["read 3"], "what is read in between cuts nothing");
  reads(world, 3, { power: "on" });
  assert.deepEqual(due(world, 500_000), ["read 4"]);
  assert.deepEqual(due(world, 100_000), ["off 5"]);
});

/** A power that was ordered to be cut by two, and what the edge says of it. */
const cut = (said: JsonObject): World => {
  const world = lost();
  reads(world, due(world).length, { power: "on", by: "host.h2" });
  assert.deepEqual(due(world, 3500), ["off 2"]);
  reads(world, 2, said);
  return world;
};
const silence = { power: null, uuid: null, reason: "no answer" };

test("an order to cut that certainly nobody was handed is given again at once, and cuts nothing by itself", () => {
  const world = cut({ ...silence, given: null, isAnswered: false });
  assert.deepEqual(world.events, ["ha/power-not-cut"]);
  assert.deepEqual(due(world, 2000), ["off 3"]);
  reads(world, 3, { ...silence, given: "host.h3", isAnswered: false });
  assert.deepEqual(due(world, 2000), [], "somebody has it: it may be carried out");
  assert.deepEqual(due(world, 10_000), ["read 4"]);
  const before = lost();
  reads(before, due(before).length, { ...silence, given: null, isAnswered: false });
  assert.deepEqual(before.events, [], "of a reading nobody is given anything");
});

test("an order to cut whose executor said nothing more is given again once nobody can have it, and the power reads on", () => {
  for (const said of [silence, { power: "on", by: "host.h3" }]) {
    const world = cut({ ...said, given: "host.h2", isAnswered: false });
    assert.deepEqual(due(world, 12_000), ["read 3"]);
    reads(world, 3, { power: "on", by: "host.h3" });
    assert.deepEqual(due(world, 10_000), ["read 4"], "it may still be carried out");
    reads(world, 4, silence);
    assert.deepEqual(due(world, 10_000), ["read 5"], "nobody has read it since");
    reads(world, 5, { power: "on", by: "host.h3" });
    assert.deepEqual(due(world), ["off 6"]);
    reads(world, 6, { ...said, given: "host.h3", isAnswered: true });
    assert.deepEqual([...due(world, 100_000)], ["read 7"]);
    reads(world, 7, { power: "on", by: "host.h3" });
    assert.deepEqual(due(world, 10_000), ["read 8"], "a controller that does not obey is not asked again");
  }
  const other = cut({ ...silence, given: "host.h2", isAnswered: false });
  assert.deepEqual(due(other, 30_000), ["read 3"]);
  reads(other, 3, { power: "on", by: "host.h3", uuid: "99999999-4455-6677-8899-aabbccddeeff" });
  assert.deepEqual(due(other, 10_000), ["read 4"], "another machine's power says nothing");
  other.restart();
  hears(other, "h2", "h3");
  other.lose("h1");
  assert.deepEqual(due(other, 10_000), ["read 5"]);
  reads(other, 5, { power: "on", by: "host.h3" });
  assert.deepEqual(due(other, 10_000), ["read 6"], "after a start nobody knows who has it");
});

test("an order that may have been carried out since is not given again: by what was asked before nobody could have it, or of a power that was off", () => {
  const silent = { given: "host.h2", isAnswered: false };
  const early = cut({ ...silence, ...silent });
  assert.deepEqual(due(early, 16_000), ["read 3"]);
  early.ms += 10_000;
  reads(early, 3, { power: "on", by: "host.h3" });
  assert.deepEqual(due(early), ["read 4"], "it may have been cut since it was read");
  reads(early, 4, { power: "on", by: "host.h3" });
  assert.deepEqual(due(early), ["off 5"], "a positive control");
  const world = lost();
  reads(world, due(world).length, { power: "on", by: "host.h2" });
  assert.deepEqual(due(world, 3500), ["off 2"]);
  world.ms += 1;
  world.protect("a-2", 1, "h1", "shop", { boot: 8 });
  reads(world, 2, { power: "off", by: "host.h3", ...silent });
  assert.deepEqual([world.stepOf("a-1"), world.stepOf("a-2")], ["Restarting", "Fencing"]);
  assert.deepEqual(due(world, 30_000), ["read 3"]);
  reads(world, 3, { power: "on", by: "host.h3" });
  assert.deepEqual(world.events, [], "somebody has switched it on");
  assert.deepEqual(due(world, 10_000), ["read 4"]);
});

test("no power is cut of a host that is heard, in a storm, of what is held, or with nobody to carry it out", () => {
  const heard = lost();
  due(heard);
  hears(heard, "h1");
  assert.deepEqual(due(heard, 60_000), []);
  const storm = new World(5);
  ask(storm, { kind: "ha-power-register", host: "h1", controller });
  hears(storm, "h4", "h5");
  storm.protect("r-1", 1, "h1", "root");
  for (const host of ["h1", "h2", "h3"]) storm.lose(host);
  assert.equal(storm.stepOf("r-1"), "Fencing", "the management's goes on by its storage");
  assert.deepEqual(due(storm, 60_000), ["read 1"]);
  storm.release();
  assert.deepEqual(due(storm, 20_000), ["off 2"], "a positive control");
  const alone = new World(5);
  ask(alone, { kind: "ha-power-register", host: "h1", controller });
  alone.protect("a-1", 1, "h1");
  alone.lose("h1");
  assert.deepEqual(due(alone, 60_000), []);
});

test("off is said of the boot that the host was in: what was placed for a later one is not over", () => {
  const world = lost();
  due(world);
  reads(world, 1);
  assert.equal(world.stepOf("a-1"), "Restarting");
  world.state.power.offs.set("h1" as never, { host: "h1" as never, boot: 6, at: 0 });
  world.restart();
  assert.equal(world.state.power.offs.get("h1" as never)?.boot, 7, "and it is durable");
  const earlier = lost();
  earlier.state.power.offs.set("h1" as never, { host: "h1" as never, boot: 6, at: 0 });
  due(earlier, 4000);
  reads(earlier, 1, { power: "on" });
  assert.equal(earlier.stepOf("a-1"), "Fencing");
});

test("no boot is believed above the one that the host has said: what a controller says of it ends no later one", () => {
  const world = new World(5);
  ask(world, { kind: "ha-power-register", host: "h1", controller });
  hears(world, "h2");
  world.protect("a-1", 1, "h1");
  world.protect("b-1", 1, "h1", "liar", { boot: 2 ** 47 });
  world.lose("h1");
  assert.deepEqual(due(world), ["read 1"]);
  reads(world, 1);
  assert.equal(world.state.power.offs.get("h1" as never)?.boot, 7);
  assert.equal(world.stepOf("a-1"), "Restarting", "a positive control");
  assert.equal(world.stepOf("b-1"), "Fencing");
  world.returns("h1");
  world.boots("h1", 8);
  world.protect("a-1", 2, "h1", "shop", { boot: 8 });
  assert.equal(world.state.over.has("a-1" as never), false, "it runs in a boot that nobody has read off");
  world.restart();
  assert.equal(world.state.power.boots.get("h1" as never), 8, "and it is durable");
});

test("what a version before has kept as read off of a boot that there was not yet ends nothing that runs", () => {
  const world = new World(5);
  ask(world, { kind: "ha-power-register", host: "h1", controller });
  hears(world, "h1");
  world.boots("h1", 7);
  world.state.power.offs.set(hostName("h1"), { host: hostName("h1"), boot: 2 ** 47, at: 1, told: true });
  world.protect("a-1", 1, "h1", "shop", { boot: 7 });
  assert.equal(world.state.active.size, 0, "nothing is over");
});

test("of a host that never said in which boot it is no power is asked after, and why says so", () => {
  const world = lost();
  world.state.power.boots.clear();
  assert.deepEqual(due(world, 60_000), []);
  world.give({ kind: "timer", name: "look" });
  const said = world.state.active.get("a-1" as never)?.fencing;
  assert.match(JSON.stringify(said), /never said in which boot it is/);
});

test("a controller that is forgotten is asked nothing, and nothing that is told has its secret", () => {
  const world = lost();
  due(world);
  reads(world, 1, { power: "on" });
  const report = ask(world, { kind: "ha" }) as JsonObject;
  const { host, kind, address } = controller;
  const said = `its controller at ${address} reads on`;
  assert.deepEqual(report.power, [{ host, kind, address, uuid, said }]);
  assert.ok(!JSON.stringify(report).includes("sealed"));
  assert.deepEqual(ask(world, { kind: "ha-power-remove", host: "h1" }), { wasThere: true });
  assert.deepEqual(due(world, 60_000), []);
  assert.deepEqual(
    [...world.records.keys()].filter((key) => key.startsWith("power/")),
    [],
  );
  assert.deepEqual(ask(world, { kind: "ha-power-remove", host: "h1" }), { wasThere: false });
});

test("the edge is told when there may be something to ask, and waits meanwhile", () => {
  const world = new World(5);
  const wait = (id: number): readonly number[] =>
    world
      .give({ kind: "request", id, request: { kind: "ha-power-wait" } })
      .flatMap((effect) => (effect.kind === "reply" ? [effect.id] : []));
  assert.deepEqual(wait(101), []);
  hears(world, "h2", "h3");
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.equal(world.state.power.waiting, 101, "that host has no controller");
  const registered = { kind: "ha-power-register", host: "h1", controller };
  const told = world.give({ kind: "request", id: 1, request: registered });
  assert.deepEqual(
    told.flatMap((effect) => (effect.kind === "reply" ? [effect.id] : [])),
    [1, 101],
  );
  assert.deepEqual(wait(102), [102], "it is still being worked on");
});

test("of so many hosts at once as the operator sets the power is asked for, and each has its turn", () => {
  const world = new World(40);
  world.set({ haWorkers: 2 });
  hears(world, "h9");
  world.pause();
  for (const host of ["h1", "h2", "h3"]) {
    ask(world, { kind: "ha-power-register", host, controller: { ...controller, host } });
    world.protect(`vm-${host}`, 1, host);
    world.lose(host);
  }
  const hosts = (afterMs = 0): readonly string[] => {
    world.ms += afterMs;
    return next(world).map(({ host, action }) => `${host} ${action}`);
  };
  assert.deepEqual(hosts(), ["h1 read", "h2 read"]);
  assert.deepEqual(hosts(1000), [], "both are under way");
  ask(world, { kind: "ha-power-read", host: "h1", nonce: 1, power: null, uuid: null, reason: "no answer" });
  assert.deepEqual(hosts(), ["h3 read"]);
  assert.deepEqual(hosts(9000), ["h1 read"], "nobody has answered about h2, which makes way");
  assert.deepEqual(hosts(1000), ["h2 read"], "so does h3");
  world.set({ haWorkers: 3 });
  assert.deepEqual(hosts(), ["h3 read"]);
});
