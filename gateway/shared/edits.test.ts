import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonPatchOperation } from "../../model/json/patch.ts";
import { applyEdit } from "./edits.ts";
import { uuidOf } from "./uuid.ts";

const operation: JsonPatchOperation = { op: "add", path: "/a", value: 1 };

test("an edit is made of what is there now, five times at most, and what changes nothing is not asked for", async () => {
  let reads = 0;
  let patches = 0;
  const document = (works: number) => ({
    read: async () => ++reads,
    patch: async () => ++patches === works,
  });
  const seen: unknown[] = [];
  const edit = (found: unknown) => {
    seen.push(found);
    return [operation];
  };
  assert.equal(await applyEdit(document(3), edit), true);
  assert.deepEqual([seen, patches], [[1, 2, 3], 3]);
  patches = 0;
  assert.equal(await applyEdit(document(9), edit), false);
  assert.equal(patches, 5);
  patches = 0;
  assert.equal(await applyEdit(document(9), () => []), true);
  assert.equal(patches, 0);
});

test("a UUID of words is of version 5, the same again, and another one for other words", () => {
  const one = uuidOf("volume", "ann", "k");
  assert.match(one, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(uuidOf("volume", "ann", "k"), one);
  assert.notEqual(uuidOf("volume", "ann k"), one);
  assert.notEqual(uuidOf("volume", "annk", ""), one);
});
