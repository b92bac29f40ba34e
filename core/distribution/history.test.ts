import assert from "node:assert/strict";
import { test } from "node:test";
import { createOwnHistory } from "./node/history.ts";

test("what a store kept of its starts is in their order, however it was kept", () => {
  const mark = (start: string) => ({ start, count: 1 });
  const stored = new Map([3, 1, 11, 2].map((number) => [number, mark(`start-${number}`)]));
  assert.deepEqual(
    createOwnHistory(stored, "drawn").marks.map(({ number, start }) => `${number} ${start}`),
    ["1 start-1", "2 start-2", "3 start-3", "11 start-11"],
  );
});
