import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import { World } from "../world.testing.ts";
import { hearingTimer } from "./hearing.ts";
import { offer } from "./offers.testing.ts";

const _placer = peerName("placer");
const manager = peerName("storage-manager");
const forked = (world: World, isForked: boolean): void =>
  void world.step({ kind: "forked", peer: manager, forked: isForked, itForked: false });
const asked = (world: World): readonly PeerName[] =>
  [...world.state.subscribed].filter((peer) => peer.startsWith("host.")).sort();
/** A minute in which nobody comes or goes. */
const minute = (world: World): void => {
  assert.ok(world.timers.has(hearingTimer), "it is looked at again");
  world.fire(hearingTimer);
};
const isDone = (world: World): boolean => world.state.hasHeardAll;

test("a controller without its store asks every host of the installation, and a whole one none that has nothing of its cell", () => {
  const world = new World();
  offer(world, ["h1", "h2"], true);
  assert.deepEqual(asked(world), []);
  forked(world, true);
  assert.deepEqual(asked(world), ["host.h1", "host.h2"]);
  offer(world, ["h1", "h2", "h3"], true);
  assert.deepEqual(asked(world), ["host.h1", "host.h2", "host.h3"], "one that comes later, too");
});

test("it asks on after its release and over its starts, until each host was heard and holds nothing that it does not know", () => {
  const world = new World();
  const h2 = peerName("host.h2");
  offer(world, ["h1"], false);
  forked(world, true);
  forked(world, false);
  world.settle();
  minute(world);
  assert.equal(isDone(world), false, "the Placer has not heard every host");
  world.silent.add(h2);
  offer(world, ["h1", "h2"], true);
  world.settle();
  minute(world);
  assert.equal(isDone(world), false, "one of them is away");
  world.crash();
  offer(world, ["h1", "h2"], true);
  assert.deepEqual(asked(world), ["host.h1", "host.h2"]);
  world.silent.delete(h2);
  world.settle();
  world.step({ kind: "kept", peer: h2, key: "vm/c1-40", value: {} });
  minute(world);
  assert.equal(isDone(world), false, "one holds a machine until an operator ends it");
  world.crash();
  offer(world, ["h1", "h2"], true);
  world.settle();
  minute(world);
  assert.equal(isDone(world), true);
  world.crash();
  offer(world, ["h1", "h2"], true);
  assert.deepEqual(asked(world), []);
  assert.equal(world.timers.has(hearingTimer), false);
  forked(world, true);
  forked(world, false);
  assert.deepEqual(asked(world), ["host.h1", "host.h2"], "its store was lost once more");
  assert.equal(isDone(world), false);
});

test("a controller without its store asks the directory for published names of its cell", () => {
  const world = new World({ directory: true });
  assert.equal(world.state.subscribed.has(peerName("directory")), false);
  forked(world, true);
  assert.ok(world.state.subscribed.has(peerName("directory")));
});
