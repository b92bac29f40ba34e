import assert from "node:assert/strict";
import { test } from "node:test";
import { Places, Questions } from "./places.ts";

const limits = { inAll: 64, reserved: 16, perCell: 16 };
const cell = (name: string) => ({ kind: "cell", cell: name }) as const;
const operator = { kind: "operator" } as const;
/** Takes as many as it gets. */
const fill = (places: Places, name: string): number => {
  let count = 0;
  while (typeof places.take(cell(name)) === "function") count += 1;
  return count;
};

test("a cell alone has its whole share, and gives back what it took", () => {
  const places = new Places(limits);
  assert.equal(fill(places, "a"), 16);
  assert.equal(places.take(cell("a")), "share");
  const end = places.take(cell("b"));
  assert.ok(typeof end === "function");
  end();
  end();
  assert.equal(fill(new Places(limits), "b"), 16);
});

test("the cells of a few greedy tenants leave a place for the next one, and the operator's part to the operator", () => {
  const places = new Places(limits);
  const taken = Array.from({ length: 6 }, (_, index) => fill(places, `greedy-${index}`));
  assert.ok(taken[0] === 16 && taken.every((count) => count > 0), taken.join(" "));
  assert.equal(typeof places.take(cell("modest")), "function");
  for (let count = 0; count < limits.reserved; count += 1) assert.equal(typeof places.take(operator), "function");
});

test("however many cells take all that they can, the operator has his part", () => {
  const places = new Places(limits);
  for (let index = 0; index < 200; index += 1) fill(places, `cell-${index}`);
  assert.equal(places.take(cell("another")), "full");
  let count = 0;
  while (typeof places.take(operator) === "function") count += 1;
  assert.equal(count, limits.reserved);
});

test("what the operator uses takes nothing from the cells' part but where all is taken", () => {
  const places = new Places(limits);
  for (let count = 0; count < limits.reserved; count += 1) places.take(operator);
  assert.equal(fill(places, "a"), 16);
});

test("questions about one cell, from one address, and in all are bounded apart", () => {
  const questions = new Questions({ inAll: 20, perAddress: 6, perCell: 4, perBoth: 2 });
  const ask = (name: string, address: string) => questions.begin(name, address);
  const first = ask("a", "x");
  assert.ok(first !== null && ask("a", "x") !== null);
  assert.equal(ask("a", "x"), null);
  assert.ok(ask("a", "y") !== null && ask("a", "z") !== null);
  assert.equal(ask("a", "w"), null);
  first();
  assert.ok(ask("a", "w") !== null);
  for (const name of ["b", "c", "d", "e", "f"]) ask(name, "x");
  assert.equal(ask("g", "x"), null);
  assert.ok(ask("g", "y") !== null);
});
