import assert from "node:assert/strict";
import { test } from "node:test";
import { RateBound } from "./byte-rate.ts";

test("what is too much pauses its socket until the time for it has passed", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  const calls: string[] = [];
  const socket = { pause: () => calls.push("pause"), resume: () => calls.push("resume") } as never;
  const bound = new RateBound(socket, { bytesPerSecond: 1000, burstBytes: 500 }, () => now);
  bound.take(500);
  assert.deepEqual(calls, []);
  bound.take(250);
  assert.deepEqual(calls, ["pause"]);
  now = 250;
  context.mock.timers.tick(249);
  assert.deepEqual(calls, ["pause"]);
  context.mock.timers.tick(1);
  assert.deepEqual(calls, ["pause", "resume"]);
  // Who holds it decides when it goes on; what was too much still counts.
  bound.take(100);
  bound.hold(true);
  context.mock.timers.tick(1000);
  assert.deepEqual(calls.slice(2), ["pause", "pause"]);
  bound.hold(false);
  assert.equal(calls.at(-1), "resume");
});
