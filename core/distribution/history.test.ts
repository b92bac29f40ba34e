import assert from "node:assert/strict";
import { test } from "node:test";
import { createNetwork, machineOf, restart, settle } from "./network.testing.ts";
import { createOwnHistory } from "./node/history.ts";

test("what a store kept of its starts is in their order, however it was kept", () => {
  const mark = (start: string) => ({ start, count: 1 });
  const stored = new Map([3, 1, 11, 2].map((number) => [number, mark(`start-${number}`)]));
  assert.deepEqual(
    createOwnHistory(stored, "drawn").marks.map(({ number, start }) => `${number} ${start}`),
    ["1 start-1", "2 start-2", "3 start-3", "11 start-11"],
  );
});

test("a store's first start is a mark in its history, and a start that does nothing more is none", () => {
  const network = createNetwork(["a"]);
  const marks = (): number => machineOf(network, "a").node?.distribution.history.marks.length ?? -1;
  settle(network);
  assert.equal(marks(), 1);
  restart(network, "a");
  settle(network);
  assert.equal(marks(), 1);
});
