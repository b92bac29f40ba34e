import assert from "node:assert/strict";
import { test } from "node:test";
import { timeToPowerOff } from "./powering-off.ts";

test("a guest has all of the time that it was given to power off; where nobody ever answered a second is enough", () => {
  assert.deepEqual([timeToPowerOff(10_000, true), timeToPowerOff(10_000, false)], [10_000, 1000]);
  assert.deepEqual([timeToPowerOff(300, true), timeToPowerOff(300, false)], [300, 300]);
});
