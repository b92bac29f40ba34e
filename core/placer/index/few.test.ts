import assert from "node:assert/strict";
import { test } from "node:test";
import { allOf, type Few, putInto, takeFrom } from "./few.ts";

test("a key has all that was put there, whether one or several, and goes with the last of it", () => {
  const map = new Map<string, Few<string>>();
  const all = (): readonly string[] => [...allOf(map.get("key"))];
  assert.deepEqual(all(), []);
  for (const item of ["a", "a", "b", "c", "b"]) putInto(map, "key", item);
  assert.deepEqual(all(), ["a", "b", "c"]);
  takeFrom(map, "key", "x");
  takeFrom(map, "key", "a");
  takeFrom(map, "other", "a");
  assert.deepEqual(all(), ["b", "c"]);
  takeFrom(map, "key", "b");
  takeFrom(map, "key", "b");
  assert.deepEqual(all(), ["c"]);
  putInto(map, "key", "d");
  assert.deepEqual(all(), ["c", "d"]);
  takeFrom(map, "key", "d");
  takeFrom(map, "key", "c");
  assert.deepEqual([...map.keys()], []);
});
