import assert from "node:assert/strict";
import { test } from "node:test";
import { createServiceNumbers } from "./service-numbers.ts";

test("what holds a process up for more than a second is named with its time, a step as well as a commit", () => {
  const held: [string, number][] = [];
  const numbers = createServiceNumbers((by, ms) => held.push([by, ms]));
  const stand = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  numbers.step({ kind: "start" }, () => undefined);
  numbers.commit(1, () => undefined);
  assert.equal(held.length, 0);
  numbers.step({ kind: "start" }, () => stand(1050));
  numbers.commit(1, () => stand(1050));
  assert.deepEqual(
    held.map(([by]) => by),
    ["step start", "commit"],
  );
  assert.ok(held.every(([, ms]) => ms >= 1000));
});
