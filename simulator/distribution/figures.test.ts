import assert from "node:assert/strict";
import { test } from "node:test";
import { measureRetraction, measureUpdates } from "./figures.ts";

const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));

test("an update reaches every subscriber once, also those whose connection breaks meanwhile", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  const figures = measureUpdates({ subscribers: 200, seed, keys: 10, updates: 5, broken: 0.2, slow: 0.2 });
  assert.equal(figures.missed, 0);
  assert.equal(figures.deliveredMs.length, 1000);
  assert.ok(figures.broken > 50, `${figures.broken} connections broke`);
});

test("a declared death withdraws at every subscriber all that the host said, and nothing does before", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  const figures = measureRetraction({ subscribers: 200, seed, keys: 10, updates: 0, broken: 0.2, slow: 0.2 });
  assert.equal(figures.missed, 0);
  assert.equal(figures.withdrawnMs.length, 200);
  assert.ok(figures.broken > 50, `${figures.broken} connections broke`);
});
