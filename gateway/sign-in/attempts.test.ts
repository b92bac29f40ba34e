import assert from "node:assert/strict";
import { test } from "node:test";
import { Attempts } from "./attempts.ts";

test("after ten wrong sign-ins an address waits for a minute at most, and no other does", () => {
  const clock = { ms: 0 };
  const attempts = new Attempts(() => clock.ms);
  for (let n = 0; n < 10; n += 1) {
    assert.equal(attempts.waitS("a"), 0);
    attempts.wrong("a");
    clock.ms += 1000;
  }
  assert.equal(attempts.waitS("a"), 50);
  assert.equal(attempts.waitS("b"), 0);
  clock.ms += 50_000;
  assert.equal(attempts.waitS("a"), 0, "the first of them does not count any more");
  attempts.wrong("a");
  assert.equal(attempts.waitS("a"), 1);
  for (let n = 0; n < 5000; n += 1) attempts.wrong(`other-${n}`);
  assert.equal(attempts.waitS("a"), 0, "what is kept is bounded");
});
