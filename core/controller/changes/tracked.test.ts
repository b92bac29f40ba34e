import assert from "node:assert/strict";
import { test } from "node:test";
import { Task, TrackedMap, TrackedSet, Tracking, trackFields } from "./tracked.ts";

test("a task is stale exactly when what it has read last is another", () => {
  const tracking = new Tracking();
  const map = new TrackedMap<string, number>(tracking, [["a", 1]]);
  let told = 0;
  const task = new (class extends Task {
    override onStale(): void {
      told += 1;
    }
  })();
  tracking.run(task, () => map.get("a"));
  map.set("b", 1);
  map.set("a", 1);
  assert.deepEqual([task.isStale, told], [false, 0]);
  map.set("a", 2);
  map.set("a", 3);
  assert.deepEqual([task.isStale, told], [true, 1]);
  // What it read before, and does not read now, is nothing to it.
  tracking.run(task, () => map.get("c"));
  map.set("a", 4);
  assert.equal(task.isStale, false);
  map.set("c", 1);
  assert.equal(task.isStale, true);
  tracking.run(task, () => map.has("c"));
  map.delete("c");
  assert.equal(task.isStale, true);
});

test("what is read again, or anew between what is, counts once, and what is left out no more", () => {
  const tracking = new Tracking();
  const keys = Array.from({ length: 12 }, (_, at) => `k${at}`);
  const map = new TrackedMap<string, number>(tracking);
  const tasks = keys.map(() => new Task());
  const staleAfter = (key: string): number => {
    map.set(key, (map.peek(key) ?? 0) + 1);
    return tasks.filter(({ isStale }) => isStale).length;
  };
  const readAll = (read: readonly string[]): void => {
    for (const task of tasks)
      tracking.run(task, () => {
        for (const key of read) map.get(key);
      });
  };
  for (const read of [["a", "b", "c"], ["a", "b", "c"], ["a", "x", "b", "a", "c"], ["c", "a"], ["b"], []]) {
    for (const key of ["a", "b", "c", "x"]) {
      readAll(read);
      assert.equal(staleAfter(key), read.includes(key) ? tasks.length : 0, `${read}: ${key}`);
    }
  }
  // Each of them leaves the list of what many have read.
  readAll(["a"]);
  for (const [at, task] of tasks.entries()) {
    tracking.run(task, () => map.get("b"));
    assert.equal(staleAfter("a"), tasks.length - at - 1);
    for (const other of tasks.slice(at + 1)) tracking.run(other, () => map.get("a"));
  }
});

test("who looks at all of a collection rests on every change of it, and who reads nothing on none", () => {
  const tracking = new Tracking();
  const map = new TrackedMap<string, number>(tracking, [["a", 1]]);
  const set = new TrackedSet<string>(tracking);
  const readers: readonly (() => unknown)[] = [
    () => [...map],
    () => [...map.keys()],
    () => [...map.values()],
    () => map.size,
    () => {
      for (const _entry of map);
    },
  ];
  for (const read of readers) {
    const task = new Task();
    tracking.run(task, read);
    map.set("a", (map.peek("a") ?? 0) + 1);
    assert.equal(task.isStale, true, read.toString());
  }
  const task = new Task();
  tracking.run(task, () => [...set]);
  set.add("x");
  assert.equal(task.isStale, true);
  tracking.run(task, () => map.peek("a"));
  map.clear();
  set.clear();
  assert.equal(task.isStale, false);
});

test("fields are tracked in place, and keys keep the order in which they came", () => {
  const tracking = new Tracking();
  const state = trackFields(tracking, { one: 1, other: 1 }, ["one"]);
  const task = new Task();
  tracking.run(task, () => state.one + state.other);
  state.other = 2;
  assert.equal(task.isStale, false);
  state.one = 2;
  assert.equal(task.isStale, true);
  const map = new TrackedMap<string, number>(tracking, [
    ["a", 1],
    ["b", 1],
  ]);
  map.delete("a");
  map.set("a", 1);
  map.set("b", 2);
  assert.ok(map.orderOf("b") < map.orderOf("a"));
});
