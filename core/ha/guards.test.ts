import assert from "node:assert/strict";
import { test } from "node:test";
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

test("a VM that was started again five times within an hour is held", () => {
  const world = new World(5);
  let incarnation = 1;
  for (let times = 0; times < 5; times += 1) {
    world.protect("a-1", incarnation, "h1");
    world.ms += 610_000;
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
  assert.equal(world.stepOf("a-1"), "Investigating");
  assert.match(world.state.active.get("a-1" as never)?.held ?? "", /5 times within an hour/);
});
