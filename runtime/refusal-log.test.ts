import assert from "node:assert/strict";
import { test } from "node:test";
import { createRefusalLog } from "./refusal-log.ts";

test("each thing is told at the first, then once a minute with the count of all, and strangers cannot fill the memory", () => {
  let nowMs = 0;
  const told: string[] = [];
  const log = createRefusalLog(() => nowMs);
  const refuse = (about: string): void => log.refused(about, (count) => told.push(`${about} ${count}`));
  for (let count = 0; count < 5; count += 1) refuse("a");
  refuse("b");
  assert.deepEqual(told, ["a 1", "b 1"]);
  nowMs = 59_999;
  refuse("a");
  nowMs = 60_000;
  refuse("a");
  refuse("a");
  assert.deepEqual(told, ["a 1", "b 1", "a 7"]);
  for (let number = 0; number < 10_000; number += 1) refuse(`c${number}`);
  assert.equal(told.length, 3 + 254 + 1, "all beyond 256 are one");
  assert.equal(log.total(), 8 + 1 + 10_000);
});
