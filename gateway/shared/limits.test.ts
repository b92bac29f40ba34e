import assert from "node:assert/strict";
import { test } from "node:test";
import { createLimits, known, unknown } from "./limits.ts";

const here = "192.0.2.1";
function world(): { readonly ask: (who: string, status?: number, source?: string) => number | null; now: number } {
  const state = { now: 0 };
  const limits = createLimits(() => state.now);
  return Object.assign(state, {
    ask: (who: string, status = 200, source = here) => {
      const begun = limits.begin(who, source);
      if ("waitS" in begun) return begun.waitS;
      begun.answered(status);
      return null;
    },
  });
}

test("who is known has so many requests at once and so many a second, and another one has his own", () => {
  const all = world();
  let taken = 0;
  while (taken < 1000 && all.ask("ann") === null) taken += 1;
  assert.ok(taken === known.burst || taken === known.burst + 1, String(taken));
  assert.equal(all.ask("ann"), 1, "after a second there are more");
  assert.equal(all.ask("bob"), null, "of the same address");
  all.now += 1000;
  taken = 0;
  while (taken < 1000 && all.ask("ann") === null) taken += 1;
  assert.equal(taken, known.rate);
  all.now += 3_600_000;
  taken = 0;
  while (taken < 1000 && all.ask("ann") === null) taken += 1;
  assert.equal(taken, known.burst, "never more than that at once");
});

test("who guesses is slow, by where he comes from, and costs nobody who is known anything", () => {
  const all = world();
  assert.equal(all.ask("ann"), null);
  let guesses = 0;
  while (guesses < 1000 && all.ask(`guess ${guesses}`, 401) === null) guesses += 1;
  assert.equal(guesses, unknown.burst);
  assert.equal(all.ask("ann"), null, "of the same address, and known");
  assert.equal(all.ask("guess", 401, "192.0.2.2"), null, "another address");
  assert.equal(all.ask("new"), 1, "who was never seen from there waits with him");
  all.now += 1000;
  assert.equal(all.ask("new"), null);
  assert.equal(all.ask("ann", 401), null);
  all.now += 100_000;
  for (let at = 0; at < 3 * unknown.burst; at += 1)
    assert.equal(all.ask(""), null, "a login that succeeds is no guess");
  for (let at = 0; at < unknown.burst; at += 1) all.ask("other", 401);
  assert.notEqual(all.ask("ann"), null, "a credential that ended is one like any other");
});
