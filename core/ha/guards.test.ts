import assert from "node:assert/strict";
import { test } from "node:test";
import { haSettings } from "../../model/cell/attributes/ha-settings.ts";
import { member, World, wallMs } from "./world.testing.ts";

test("many hosts that are lost at once: tenants' VMs wait until a person has looked, the management's do not", () => {
  const world = new World(20);
  world.protect("a-1", 1, "h3");
  world.protect("r-1", 1, "h3", "root");
  world.protect("a-2", 1, "h1");
  world.lose("h1");
  assert.equal(world.stepOf("a-2"), "Fencing", "one host is no storm");
  world.lose("h2");
  world.lose("h3");
  assert.deepEqual(world.state.storm?.hosts, ["h1", "h2", "h3"]);
  assert.equal(world.stepOf("a-1"), "Investigating");
  assert.match(world.state.active.get("a-1" as never)?.held ?? "", /3 hosts were lost/);
  assert.equal(world.stepOf("r-1"), "Fencing");
  world.ms += 3_600_000;
  world.give({ kind: "timer", name: "look" });
  assert.equal(world.stepOf("a-1"), "Investigating", "time alone releases nothing");
  world.release();
  assert.deepEqual([world.stepOf("a-1"), world.state.storm], ["Fencing", null]);
});

test("the cell with the gateway is held by no storm and no number of starts, or nobody could release anything", () => {
  const world = new World(20);
  world.set({}, "primary");
  world.protect("p-1", 1, "h3", "primary");
  for (const host of ["h1", "h2", "h3"]) world.lose(host);
  assert.deepEqual(world.state.storm?.hosts, ["h1", "h2", "h3"]);
  assert.equal(world.stepOf("p-1"), "Fencing");
  world.restart();
  world.lose("h3");
  assert.equal(world.stepOf("p-1"), "Fencing", "it is said again after a start");
  const other = new World(20);
  other.protect("p-1", 1, "h3", "primary");
  for (const host of ["h1", "h2", "h3"]) other.lose(host);
  assert.equal(other.stepOf("p-1"), "Investigating", "a positive control: a cell of that name which is not the way in");
  other.set({}, "primary");
  assert.equal(other.stepOf("p-1"), "Fencing", "whoever is told of it late goes on at once");
  other.set({ maxRetries: 3 }, "Not a name");
  assert.ok(other.events.includes("document/refused"));
});

test("that it is paused outlasts a start; three of a hundred hosts are no storm, nor are three in an hour", () => {
  const world = new World(20);
  for (const host of ["h1", "h2", "h3"]) world.lose(host);
  world.restart();
  assert.notEqual(world.state.storm, null);
  const many = new World(100);
  for (const host of ["h1", "h2", "h3"]) many.lose(host);
  assert.equal(many.state.storm, null);
  const slow = new World(20);
  for (const host of ["h1", "h2", "h3"]) {
    slow.lose(host);
    slow.ms += 200_000;
  }
  assert.equal(slow.state.storm, null);
});

test("a VM whose hosts die soon after it comes is held at the second one, until it is released", () => {
  const world = new World(5);
  world.loseTwice("a-1");
  assert.equal(world.stepOf("a-1"), "Investigating");
  world.release({ cell: "shop", path: "shop/other" });
  assert.equal(world.stepOf("a-1"), "Investigating");
  world.release({ cell: "shop", path: "shop/a-1" });
  assert.equal(world.stepOf("a-1"), "Fencing");
});

/** Its host is lost and comes back so often, each time long after the VM came; then once more. */
const loseOften = (world: World, often: number, everyMs = 610_000): void => {
  let incarnation = 1;
  for (let times = 0; times < often; times += 1) {
    world.protect("a-1", incarnation, "h1");
    world.ms += everyMs;
    world.lose("h1", incarnation);
    assert.equal(world.stepOf("a-1"), "Fencing", `the start ${times + 1}`);
    world.fenced("a-1", incarnation);
    incarnation += 1;
    const returned = { host: "h1", generation: incarnation - 1, incarnation: 0, declaredAt: wallMs, reporters: 3 };
    world.give({ kind: "actual", from: member, key: "dead/h1", value: { ...returned, returned: incarnation } });
  }
  world.protect("a-1", incarnation, "h1");
  world.ms += 10_000;
  world.lose("h1", incarnation);
};

test("how often within which time is as the operator sets it, and outlasts a start", () => {
  const world = new World(5);
  world.set({ maxRetries: 2, timeBetweenFailures: 7200 });
  world.restart();
  loseOften(world, 2);
  assert.match(world.state.active.get("a-1" as never)?.held ?? "", /2 times within 120 min/);
  world.set({ maxRetries: 3, timeBetweenFailures: 7200 });
  assert.equal(world.stepOf("a-1"), "Fencing", "what was held goes on where the number allows it");
  const short = new World(5);
  short.set({ maxRetries: 2, timeBetweenFailures: 600 });
  loseOften(short, 2);
  assert.equal(short.stepOf("a-1"), "Fencing", "the first one is too long ago");
});

test("how often is looked and compared, and how long is kept, are as set, at once; what is malformed changes nothing", () => {
  const world = new World(5);
  world.protect("a-1", 1, "h1");
  assert.equal(world.lookAfterMs, null, "there is no work");
  world.lose("h1");
  assert.deepEqual([world.lookAfterMs, world.compareAfterMs], [60_000, 60_000]);
  world.set({ timeToSleep: 2, syncInterval: 7 });
  assert.deepEqual([world.lookAfterMs, world.compareAfterMs], [2000, 7000]);
  for (const [name, { least, most }] of Object.entries(haSettings)) {
    if (name === "spareHosts") continue;
    for (const wrong of [least - 1, most + 1, String(least)]) {
      world.set({ [name]: wrong });
      assert.ok(world.events.includes("document/refused"), `${name} ${wrong}`);
      assert.equal(world.state.settings.lookMs, 2000);
    }
  }
  world.set(5);
  assert.ok(world.events.includes("document/refused"));
  world.set({ timeBetweenCleanup: 3600 });
  assert.deepEqual([world.lookAfterMs, world.compareAfterMs], [60_000, 60_000], "what is not written is as preset");
  world.fenced("a-1", 1);
  world.protect("a-1", 2, "h2");
  assert.equal(world.lookAfterMs, null);
  const ended = (): number => world.state.ended.size;
  assert.equal(ended(), 1);
  world.ms += 3_599_000;
  world.give({ kind: "timer", name: "compare" });
  assert.equal(ended(), 1);
  world.ms += 2000;
  world.give({ kind: "timer", name: "compare" });
  assert.equal(ended(), 0);
});

test("a VM that was started again five times within an hour is held", () => {
  const world = new World(5);
  loseOften(world, 5);
  assert.equal(world.stepOf("a-1"), "Investigating");
  assert.match(world.state.active.get("a-1" as never)?.held ?? "", /5 times within 60 min/);
});

/** Hosts of the storm; null: there is none. */
const stormOf = (world: World): readonly string[] | null => world.state.storm?.hosts ?? null;

test("hosts in maintenance that are switched off are no storm, and an empty one is nothing at all", () => {
  const world = new World(20);
  for (const host of ["h1", "h2", "h3"]) world.administer(host, host === "h3" ? "disabled" : "maintenance");
  world.protect("a-1", 1, "h2");
  for (const host of ["h1", "h2"]) world.lose(host);
  assert.equal(world.state.active.size, 1, "of the one that was drained nothing is to be done");
  assert.equal(world.stepOf("a-1"), "Fencing", "what could not leave is looked after as ever");
  world.lose("h3");
  assert.equal(stormOf(world), null);
  for (const host of ["h4", "h5"]) world.lose(host);
  assert.deepEqual(stormOf(world), ["h3", "h4", "h5"], "a positive control");
});

test("that a host is in maintenance is heard again after a start, and ends with the operator's word", () => {
  const world = new World(20);
  for (const host of ["h1", "h2"]) world.administer(host, "maintenance");
  world.restart();
  world.administer("h2", null);
  for (const host of ["h1", "h2", "h3"]) world.lose(host);
  assert.equal(stormOf(world), null);
  world.lose("h4");
  assert.deepEqual(stormOf(world), ["h2", "h3", "h4"]);
});

test("the whole cloud is switched off in order: nothing of anybody is fenced, until it is released", () => {
  const world = new World(3);
  world.protect("a-1", 1, "h1");
  world.protect("r-1", 1, "h1", "root");
  world.pause();
  world.pause();
  world.lose("h1");
  assert.deepEqual([world.stepOf("a-1"), world.stepOf("r-1")], ["Investigating", "Investigating"]);
  assert.match(
    world.state.active.get("r-1" as never)?.held ?? "",
    /the operator has said that hosts will be switched off/,
  );
  world.restart();
  world.lose("h1");
  assert.equal(world.stepOf("r-1"), "Investigating", "it outlasts a start");
  assert.deepEqual([...world.state.alerts.keys()], ["alert/paused/"]);
  // The host is there again, and its machines with it.
  world.give({
    kind: "actual",
    from: member,
    key: "dead/h1",
    value: { host: "h1", generation: 1, incarnation: 0, declaredAt: wallMs, reporters: 3, returned: 2 },
  });
  assert.deepEqual([world.stepOf("a-1"), world.stepOf("r-1")], [undefined, undefined]);
  world.release();
  assert.equal(stormOf(world), null);
  world.lose("h1", 2);
  assert.equal(world.stepOf("r-1"), "Fencing", "a positive control");
});
