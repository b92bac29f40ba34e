import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../limits.ts";
import type { Value } from "../component.ts";
import type { Operator } from "../text/syntax.ts";
import { Budget, OperationError, operate, vectorOf } from "./operations.ts";

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

const int = (value: number): Value => ({ kind: "number", type: "int", value });
const worked = (operator: Operator, ...operands: readonly Value[]): unknown => {
  const value = operate(operator, operands, new Budget());
  return value instanceof OperationError
    ? value.message
    : value.kind === "number" || value.kind === "boolean"
      ? value.value
      : value;
};

test("vectors are equal item by item, and of one length", () => {
  const [one, two] = [made([int(1)]), made([int(1), int(2)])];
  assert.equal(worked("==", two, made([int(1), int(2)])), true);
  assert.equal(worked("==", two, made([int(1), int(3)])), false);
  assert.equal(worked("==", one, two), false);
  assert.equal(worked("==", two, one), false);
  assert.equal(worked("!=", made([]), made([])), false);
});

test("whole numbers are divided by all but zero, and cut off towards zero", () => {
  assert.equal(worked("/", int(7), int(2)), 3);
  assert.equal(worked("/", int(-7), int(2)), -3);
  assert.equal(worked("%", int(7), int(2)), 1);
  for (const operator of ["/", "%"] as const) assert.equal(worked(operator, int(7), int(0)), "Division by zero");
  assert.equal(worked("-", int(7), int(0)), 7);
});
