import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import { toJson } from "../../outbox.ts";
import { World } from "../world.testing.ts";

const cellManager = peerName("cell-manager");
const child = { "x.type": "CellController", "x.cell": { web: { "x.type": "Cell" } } };
const withChild = { shop: { "x.type": "Cell", web: child } };
const without = { shop: { "x.type": "Cell" } };
const said = (phase: string, more: object = {}): object => ({
  phase,
  reason: null,
  controller: "controller.web.shop",
  address: "10.0.3.9",
  version: 1,
  quota: null,
  services: { placer: 1, storageManager: 1 },
  ended: false,
  ...more,
});

const desired = (world: World): DesiredCell | undefined => world.documents<DesiredCell>("cell-manager", "cell")[0];
const isThere = (world: World): boolean => [...world.state.elements.values()].some(({ path }) => path === "shop/web");
/** A cell with a child of which the Cell Manager says this. */
const begin = (says: object): { world: World; uid: string } => {
  const world = new World({ cellManager: true });
  world.put(withChild);
  const uid = desired(world)?.uid ?? assert.fail("no child is desired");
  world.children.set(uid, says);
  world.settle();
  return { world, uid };
};

test("a child that left the model is said to be ending until the Cell Manager says that it has ended", () => {
  const { world, uid } = begin(said("ready"));
  world.put(without);
  assert.deepEqual([desired(world)?.uid, desired(world)?.ending, desired(world)?.cell], [uid, true, "web.shop"]);
  world.crash();
  world.settle();
  assert.equal(desired(world)?.ending, true);
  world.children.set(uid, said("deleting"));
  world.settle();
  assert.ok(isThere(world));
  world.children.set(uid, said("deleting", { ended: true }));
  world.settle();
  assert.equal(desired(world), undefined);
  assert.ok(!isThere(world));
});

test("a child that a Cell Manager of an earlier version has made on Diverter says so where a mode was asked for", () => {
  const onEdge = { shop: { "x.type": "Cell", web: { ...child, "x.networkMode": "EDGE" } } };
  const phaseOf = (services: object): string => {
    const world = new World({ cellManager: true });
    world.put(onEdge);
    const uid = desired(world)?.uid ?? assert.fail("no child is desired");
    world.children.set(uid, said("ready", { services }));
    world.settle();
    return world.phase("shop/web");
  };
  const numbers = { placer: 1, storageManager: 1 };
  assert.equal(phaseOf({ ...numbers, networkMode: "EDGE" }), "ready");
  assert.match(
    phaseOf(numbers),
    /failed: .*it has made the cell with the networks of DIVERTER in place of EDGE, .*upgrade it, take the cell out/,
  );
});

test("what a Cell Manager without its store does not say is no child's end", () => {
  const { world, uid } = begin(said("ready"));
  world.silent.add(cellManager);
  world.settle();
  world.put(without);
  assert.equal(desired(world)?.ending, true, "it is not heard now");
  world.step({ kind: "forked", peer: cellManager, forked: false, itForked: true });
  world.children.delete(uid);
  world.silent.delete(cellManager);
  world.settle();
  assert.equal(desired(world)?.ending, true);
  assert.ok(isThere(world));
  world.children.set(uid, said("waiting"));
  world.settle();
  assert.equal(desired(world)?.ending, true);
  world.children.set(uid, said("deleting", { ended: true }));
  world.settle();
  assert.ok(!isThere(world));
});

test("one of the previous version is given the tombstone, as is one that never heard of the child", () => {
  const { ended: _ended, ...previous } = said("ready") as { readonly ended: boolean };
  const { world, uid } = begin(previous);
  world.put(without);
  assert.equal(desired(world), undefined);
  assert.ok(!isThere(world), `it says nothing more of ${uid}`);
  const other = new World({ cellManager: true });
  other.put(withChild);
  other.put(without);
  assert.equal(desired(other), undefined);
  assert.ok(!isThere(other));
});

test("a child that was taken back before, and that the Cell Manager has found again, is said to be ending", () => {
  const { ended: _ended, ...previous } = said("ready") as { readonly ended: boolean };
  const { world, uid } = begin(previous);
  const key = `controller.shop/cell/${uid}`;
  world.silent.add(cellManager);
  world.settle();
  world.put(without);
  assert.equal(desired(world), undefined, "the tombstone was enough for the previous version");
  world.step({ kind: "released", peer: cellManager, key: `cell/${uid}` });
  world.step({ kind: "actual", from: cellManager, key, value: toJson(said("waiting")) });
  world.step({ kind: "reachable", peer: cellManager, reachable: true });
  assert.deepEqual([desired(world)?.ending, desired(world)?.cell], [true, "web.shop"]);
  world.step({ kind: "actual", from: cellManager, key, value: toJson(said("deleting", { ended: true })) });
  assert.equal(desired(world), undefined);
});

test("a tombstone that the previous version took ends no child at a Cell Manager that has lost its store since", () => {
  const { ended: _ended, ...previous } = said("ready") as { readonly ended: boolean };
  const { world, uid } = begin(previous);
  const key = `controller.shop/cell/${uid}`;
  world.silent.add(cellManager);
  world.settle();
  world.put(without);
  world.step({ kind: "released", peer: cellManager, key: `cell/${uid}` });
  // It has not heard yet which controllers there are, and says nothing of any.
  world.step({ kind: "forked", peer: cellManager, forked: false, itForked: true });
  world.step({ kind: "actual", from: cellManager, key, value: null });
  world.step({ kind: "reachable", peer: cellManager, reachable: true });
  assert.ok(isThere(world));
  world.step({ kind: "actual", from: cellManager, key, value: toJson(said("waiting")) });
  assert.deepEqual([desired(world)?.uid, desired(world)?.ending], [uid, true]);
  assert.ok(isThere(world));
  world.step({ kind: "actual", from: cellManager, key, value: toJson(said("deleting", { ended: true })) });
  assert.deepEqual([desired(world), isThere(world)], [undefined, false]);
});

test("a child that an operator has given to its parent keeps its UID, and its parent hears it although it has forgotten its grants", () => {
  const { world, uid } = begin(said("failed", { controller: "controller.web.shop" }));
  const cell = world.state.options.cellUid;
  const say = (key: string, value: object): void =>
    void world.step({ kind: "actual", from: cellManager, key: `controller.shop/cell/${key}`, value: toJson(value) });
  for (const is of ["c9-4", `${cell}-0`, `${cell}-x`, `${cell}-9007199254740991`]) {
    say(uid, said("failed", { is }));
    assert.equal(desired(world)?.uid, uid, `${is} is no number that this cell can have given`);
  }
  say(uid, said("failed", { is: `${cell}-4711` }));
  const document = desired(world);
  assert.equal(document?.uid, `${cell}-4711`);
  assert.deepEqual([document?.cell, world.documents("cell-manager", "cell").length], ["web.shop", 1]);
  assert.ok(world.state.counters.nextNumber > 4711);
  const { amount: holds } = document?.grant ?? assert.fail();
  const more = { ...holds, vms: 3 };
  const quota = { serial: 70, holds: { ...holds, vms: 2 }, asks: { number: 9, amount: more } };
  say(`${cell}-4711`, said("ready", { quota }));
  assert.deepEqual(desired(world)?.grant, { amount: more, serial: 71, answered: 9, refusal: null });
  world.crash();
  world.settle();
  assert.equal(desired(world)?.uid, `${cell}-4711`);
});

test("it ends none either when that one has been there for long, and has not heard which controllers there are", () => {
  for (const lives of [true, false]) {
    const { ended: _ended, ...previous } = said("ready") as { readonly ended: boolean };
    const { world, uid } = begin(previous);
    const key = `controller.shop/cell/${uid}`;
    const says = (value: object | null): void =>
      void world.step({ kind: "actual", from: cellManager, key, value: value === null ? null : toJson(value) });
    world.silent.add(cellManager);
    world.settle();
    world.put(without);
    world.step({ kind: "released", peer: cellManager, key: `cell/${uid}` });
    world.step({ kind: "forked", peer: cellManager, forked: false, itForked: true });
    says(null);
    world.step({ kind: "reachable", peer: cellManager, reachable: true });
    // It says of what it is asked for that it has to hear first which there are.
    if (desired(world) !== undefined) says(said("waiting", { version: 0 }));
    world.step({ kind: "timer", name: "older/cell-manager" });
    world.step({ kind: "forked", peer: cellManager, forked: false, itForked: false });
    assert.ok(isThere(world), "a minute later nothing is known yet");
    assert.deepEqual([desired(world)?.uid, desired(world)?.ending], [uid, true], "so it is asked about its end");
    if (lives) says(said("deleting"));
    assert.equal(isThere(world), true);
    says(said("deleting", { ended: true }));
    assert.deepEqual([desired(world), isThere(world)], [undefined, false]);
  }
});
