import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../limits.ts";
import type { Value } from "../component.ts";
import { OperationError, vectorOf } from "./operations.ts";

const item: Value = { kind: "boolean", value: true };
const items = (count: number): readonly Value[] => Array.from({ length: count }, () => item);
const made = (of: readonly Value[]): Value => {
  const value = vectorOf(of);
  assert.ok(!(value instanceof OperationError), JSON.stringify(value));
  return value;
};

test("a vector counts with all that is inside, shared or not, and may have just as much as is allowed", () => {
  // A thousand each, itself among them.
  const row = made(items(999));
  const rows = Array.from({ length: limits.attributes / 1000 - 1 }, () => row);
  made([...rows, ...items(999)]);
  const beyond = vectorOf([...rows, ...items(1000)]);
  assert.ok(beyond instanceof OperationError);
  assert.equal(beyond.code, "limit/attributes");
});

test("vectors are in one another as deeply as is allowed", () => {
  let value = made(items(1));
  for (let depth = 1; depth < limits.nesting; depth += 1) value = made([value]);
  const beyond = vectorOf([value]);
  assert.ok(beyond instanceof OperationError);
  assert.equal(beyond.code, "limit/nesting");
});
