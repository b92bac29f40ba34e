import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName, uid } from "../../model/cell/identifiers.ts";
import { noUsage } from "../../model/check/check-limits.ts";
import { type DesiredLife, lifeKey } from "../documents/cells.ts";
import { actualKey } from "../documents/vocabulary.ts";
import { toJson } from "../outbox.ts";
import { self, World } from "./manager.testing.ts";
import type { FoundController } from "./work.ts";

/** Says which HA Managers there are, by their numbers. */
const thereIn =
  (world: World) =>
  (...numbers: readonly number[]) =>
    world.report({ kind: "instances", instances: { placer: [1], storageManager: [1], haManager: numbers } });

test("a cell whose HA Manager is gone says so, and has another one at its parent's word, and only then", () => {
  const root = peerName("controller.root");
  const world = new World();
  const there = thereIn(world);
  const guard = () => {
    const { guard: told, unguarded } = (world.desired.get("controller.one/life") ?? {}) as unknown as DesiredLife;
    return [told, unguarded, world.cell("r-1", root)?.services?.haManager, world.cell("r-1", root)?.unguarded];
  };
  const asks = (haManager: number) => world.want("r-1", "one", root, { services: { haManager } });
  const has = (number: number | undefined) => {
    const quota = { serial: 1, holds: noUsage, asks: null };
    const life = { phase: "ready", reason: null, version: 1, empty: false, quota };
    const value = toJson({ ...life, ...(number === undefined ? {} : { guard: number }) });
    world.step({ kind: "actual", from: peerName("controller.one"), key: actualKey(self, lifeKey), value });
  };
  there(1, 2, 3);
  asks(2);
  has(undefined);
  const made = world.work()[0]?.services;
  asks(3);
  assert.deepEqual(guard(), [undefined, undefined, 2, undefined], "the one that it has is there");
  there(1, 3);
  assert.deepEqual(guard(), [3, undefined, 2, true], "its controller has not said yet that it knows");
  has(3);
  assert.deepEqual(guard(), [3, undefined, 3, undefined]);
  assert.deepEqual(world.work()[0]?.services, made, "what it was made with stays at its VM");
  world.restart();
  there(1, 2, 3);
  asks(2);
  assert.deepEqual(guard()[0], 3, "the former one that is back gets nothing by that");
  asks(7);
  there(1, 2);
  has(3);
  assert.deepEqual(guard(), [3, true, 3, true], "there is no such one");
});

test("a number that was written before counts as soon as the former one is gone, and one that is gone itself never", () => {
  const root = peerName("controller.root");
  const world = new World();
  const there = thereIn(world);
  const told = () => (world.desired.get("controller.one/life") as unknown as DesiredLife | undefined)?.guard;
  const asks = (haManager: number) => world.want("r-1", "one", root, { services: { haManager } });
  there(1, 2, 3, 4);
  asks(2);
  asks(4);
  asks(3);
  world.restart();
  there(1, 2, 3, 4);
  asks(3);
  assert.equal(told(), undefined, "the one that it was made with is there");
  there(1, 4);
  assert.equal(
    told(),
    undefined,
    "the one that is written is gone as well, and what was written before that is no word any more",
  );
  there(1, 3, 4);
  assert.equal(told(), 3, "nobody had to write it again");
});

test("a Cell Manager that has lost its store has a cell's HA Manager from its controller, or from its parent again", () => {
  const root = peerName("controller.root");
  const world = new World();
  const there = thereIn(world);
  const told = () => (world.desired.get("controller.one/life") as unknown as DesiredLife | undefined)?.guard;
  const made: FoundController = {
    uid: uid("r-1"),
    cell: cellName("one"),
    cellNumber: 100,
    services: { placer: 1, storageManager: 1, haManager: 2 },
  };
  const lose = (...numbers: readonly number[]) => {
    world.clients.clear();
    world.lose();
    there(...numbers);
    world.report({ kind: "found", controllers: [made] });
  };
  const has = (guard: number) => {
    const quota = { serial: 1, holds: noUsage, asks: null };
    const value = toJson({ phase: "ready", reason: null, version: 1, empty: false, quota, guard });
    world.step({ kind: "actual", from: peerName("controller.one"), key: actualKey(self, lifeKey), value });
  };
  lose(1, 3);
  world.want("r-1", "one", root, { services: { haManager: 3 } });
  assert.equal(told(), 3);
  lose(1, 2, 3);
  world.want("r-1", "one", root, { services: { haManager: 3 } });
  assert.equal(told(), undefined, "the number is another one's by now, and nobody has said that it moved");
  has(3);
  assert.equal(told(), 3);
  world.report({ kind: "found", controllers: [made] });
  assert.equal(told(), 3);
});

test("a cell that ends has another HA Manager by itself, since nobody can ask for one any more", () => {
  const root = peerName("controller.root");
  const world = new World();
  const there = thereIn(world);
  const told = () => world.desired.get("controller.one/life") as unknown as DesiredLife | undefined;
  there(1, 2, 3, 4);
  world.want("r-1", "one", root, { services: { haManager: 2 } });
  world.want("r-2", "two", root, { services: { haManager: 3 } });
  there(1, 3, 4);
  assert.deepEqual([told()?.guard, told()?.unguarded], [undefined, true]);
  world.want("r-1", "one", root, { services: { haManager: 2 }, ending: true });
  assert.deepEqual([told()?.guard, told()?.unguarded, told()?.ending], [4, undefined, true]);
});

test("a Cell Manager whose store is older takes a cell's HA Manager from its controller, and not while the controller has yet to hear of a move", () => {
  const root = peerName("controller.root");
  const world = new World();
  const there = thereIn(world);
  const told = () => {
    const { guard, guardMoves } = (world.desired.get("controller.one/life") ?? {}) as unknown as DesiredLife;
    return [guard, guardMoves];
  };
  const has = (guard: number, guardMoves?: number) => {
    const quota = { serial: 1, holds: noUsage, asks: null };
    const life = { phase: "ready", reason: null, version: 1, empty: false, quota, guard };
    const value = toJson({ ...life, ...(guardMoves === undefined ? {} : { guardMoves }) });
    world.step({ kind: "actual", from: peerName("controller.one"), key: actualKey(self, lifeKey), value });
  };
  const asks = (haManager: number) => world.want("r-1", "one", root, { services: { haManager } });
  there(1, 2, 3, 4);
  asks(2);
  there(1, 3, 4);
  asks(3);
  assert.deepEqual(told(), [3, 1]);
  has(3, 1);
  there(1, 4);
  asks(4);
  assert.deepEqual(told(), [4, 2]);
  has(3, 1);
  assert.deepEqual(told(), [4, 2], "it has not heard of that yet");
  has(3);
  assert.deepEqual(told(), [4, 2], "nor does one of an earlier version say which is later");
  // The store was put back to before that: its controller has been moved since.
  has(5, 3);
  assert.deepEqual(told(), [5, 3]);
});
