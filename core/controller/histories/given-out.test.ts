import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { bothOf } from "../changes/agreement.ts";
import { stopRun } from "../vm/life-cycle.ts";
import { goneVolume, shop, World } from "../world.testing.ts";
import { goOnAt, isOwn } from "./given-out.ts";

const manager = peerName("storage-manager");
const host = peerName("host.h9");
const forked = (world: World, isForked: boolean): void =>
  void world.step({ kind: "forked", peer: manager, forked: isForked, itForked: false });

test("of a receiver whose store is older only what this store itself gave out is taken back", () => {
  const world = new World();
  const own = goneVolume(world);
  const number = world.state.counters.nextNumber;
  const isTakenBack = (name: string): boolean => {
    world.step({ kind: "forked", peer: host, forked: false, itForked: true });
    world.step({ kind: "kept", peer: host, key: name, value: {} });
    return world.state.outbox.releasing.get(host)?.has(name) === true;
  };
  assert.equal(isTakenBack(`vm/${own}`), true);
  assert.equal(
    isTakenBack(`vm/c1-${number}`),
    false,
    "another store gave it out, and nobody has said yet that there is one",
  );
  assert.equal(isTakenBack("places/shop"), true, "there was never another store of this cell");
  forked(world, true);
  world.step({ kind: "kept", peer: manager, key: `volume/c1-${number + 40}`, value: {} });
  forked(world, false);
  world.put(shop({ scratch: { "x.type": "Volume", "x.size": 8 } }));
  for (const start of ["this start", "the next one"]) {
    for (const other of [number, number + 40, number + 1000, world.state.counters.nextNumber])
      assert.equal(isTakenBack(`vm/c1-${other}`), false, `c1-${other} is of the store that was lost, at ${start}`);
    assert.equal(isTakenBack("places/shop"), false);
    assert.equal(isTakenBack(`connection/${own}`), true);
    assert.equal(
      isTakenBack(`connection/${world.uidOf("shop/scratch")}`),
      true,
      "what it gives out afterwards is its own",
    );
    world.crash();
  }
});

test("a store that the previous version let count, or that was put back from a backup, takes back nothing that it cannot know", () => {
  for (const isPutBack of [false, true]) {
    const world = new World();
    const own = goneVolume(world);
    const { nextNumber } = world.state.counters;
    if (!isPutBack) world.records.set("lost", { lost: true, heard: true });
    world.crash(isPutBack ? { wasRestored: true } : {});
    world.step({ kind: "forked", peer: host, forked: false, itForked: true });
    for (const name of [own, `c1-${nextNumber}`])
      world.step({ kind: "kept", peer: host, key: `vm/${name}`, value: {} });
    const taken = [...(world.state.outbox.releasing.get(host) ?? [])];
    assert.deepEqual(taken, isPutBack ? [`vm/${own}`] : []);
  }
});

test("a store that is let count again and again remembers a bounded number of ranges", () => {
  const world = new World();
  world.put(shop());
  const { nextNumber } = world.state.counters;
  for (let count = 0; count < 300; count += 1) {
    world.state.counters = {
      ...world.state.counters,
      ...goOnAt(world.state.counters, world.state.counters.nextNumber + 5),
    };
    world.state.counters = { ...world.state.counters, nextNumber: world.state.counters.nextNumber + 1 };
  }
  assert.equal(world.state.counters.skipped?.length, 256);
  assert.equal(isOwn(world.state, `c1-${nextNumber - 1}`), true);
  assert.equal(
    isOwn(world.state, `c1-${nextNumber + 5}`),
    false,
    "of the first ones it is not remembered which were its own",
  );
  assert.equal(isOwn(world.state, `c1-${world.state.counters.nextNumber - 1}`), true);
  assert.equal(isOwn(world.state, `c1-${world.state.counters.nextNumber - 2}`), false);
});

test("a service that has seen a later store, and holds nothing of it, has numbers go on; a host's word counts for nothing, and others' come to the same", () => {
  const one = new World();
  one.step({ kind: "seen-later", peer: peerName("host.h9") });
  assert.deepEqual(one.state.counters.nextNumber, 1);
  one.step({ kind: "seen-later", peer: peerName("placer") });
  const { counters, policy } = one.state;
  assert.ok(counters.nextNumber > 2 ** 20 && counters.nextIdentity > 2 ** 10 && policy.version > 2 ** 10);
  one.step({ kind: "seen-later", peer: peerName("storage-manager") });
  assert.deepEqual(one.state.counters, counters);
  one.put(shop());
  assert.equal(one.standing("shop/db"), "ready", "nothing waits for that");
});

test("of VMs that such a store knows, the next incarnations are others, too", () => {
  const one = new World();
  one.put(shop());
  const { incarnation } = one.state.vms.get(one.uidOf("shop/db")) ?? assert.fail();
  one.step({ kind: "seen-later", peer: peerName("placer") });
  for (const state of bothOf(one.state)) stopRun(state, one.uidOf("shop/db"));
  one.step({ kind: "timer", name: "look" });
  one.settle();
  assert.ok((one.state.vms.get(one.uidOf("shop/db"))?.incarnation ?? 0) > incarnation + 100);
});
