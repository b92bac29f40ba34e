import assert from "node:assert/strict";
import { test } from "node:test";
import { Steady, steadyMs } from "./steady.ts";

const id = "i-a7f05959";
/** What is told of the instance, with each word that it says; null: none that it may have. */
function world() {
  const steady = new Steady();
  const told: (number | undefined)[] = [];
  let nowMs = 0;
  const say = (address: number | null, afterMs = 5000): number | undefined => {
    nowMs += afterMs;
    const now = steady.take(new Map(address === null ? [] : [[id, address]]), nowMs).get(id);
    if (told.length === 0 || told.at(-1) !== now) told.push(now);
    return now;
  };
  return { say, told };
}

test("who says nothing, or no address that a machine may have, between one and another is told anew once a minute at most", () => {
  const { say, told } = world();
  for (let at = 0; at < 24; at += 1) say([1, null, 2, null][at % 4] ?? null);
  assert.deepEqual(told, [1, 2, 1], "in two minutes");
  const lawful = world();
  for (let at = 0; at < 24; at += 1) lawful.say([1, 2][at % 2] ?? null);
  assert.ok(lawful.told.length <= 3, "as without such words");
});

test("who says none for a minute has none, and the next one is told at once", () => {
  const { say, told } = world();
  assert.equal(say(1), 1);
  assert.equal(say(null), 1);
  assert.equal(say(null, steadyMs - 1), 1, "it may say it again");
  assert.equal(say(1, 0), 1);
  assert.equal(say(null), 1, "it counts from then");
  assert.equal(say(null, steadyMs - 1), 1);
  assert.equal(say(null, 1), undefined);
  assert.equal(say(2, 0), 2);
  assert.deepEqual(told, [1, undefined, 2]);
});
