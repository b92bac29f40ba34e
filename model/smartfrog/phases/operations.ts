import { limits } from "../../limits.ts";
import type { Value } from "../component.ts";
import { javaDouble, javaFloat } from "../text/java-number.ts";
import type { Operator } from "../text/syntax.ts";
import type { NumberType } from "../text/tokens.ts";

/** Thrown when working out expressions costs more than a specification may. */
export const budgetSpent = Symbol("budget spent");

/**
 * What working out the expressions of one document may still cost. A few lines of SmartFrog double a vector or a text
 * sixty times over, so everything that can grow is paid for before it is made.
 */
export class Budget {
  #steps: number = limits.evaluation;
  #characters: number = limits.textLength;

  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw budgetSpent;
  }
  spendText(characters: number): void {
    this.#characters -= characters;
    if (this.#characters < 0) throw budgetSpent;
  }
}

/** Operands that do not fit their operator. */
export class OperationError {
  readonly message: string;
  readonly hint: string;
  readonly code: string;
  constructor(message: string, hint: string, code = "link/operand") {
    this.message = message;
    this.hint = hint;
    this.code = code;
  }
}

/**
 * A vector of these items. One that is shared many times, by vectors of vectors of it, would grow without end wherever
 * it is written out, so its size is that of everything inside.
 */
export function vectorOf(items: readonly Value[]): Value | OperationError {
  let [size, depth] = [1, 0];
  for (const item of items) {
    const inner = item.kind === "vector" ? extents.get(item) : undefined;
    size += inner?.size ?? 1;
    depth = Math.max(depth, inner?.depth ?? 0);
  }
  if (size > limits.attributes) return tooLarge();
  if (depth >= limits.nesting)
    return new OperationError(
      `Vectors are nested deeper than ${limits.nesting} levels`,
      "Use fewer levels.",
      "limit/nesting",
    );
  const vector: Value = { kind: "vector", items };
  extents.set(vector, { size, depth: depth + 1 });
  return vector;
}
const extents = new WeakMap<Value, { readonly size: number; readonly depth: number }>();
const tooLarge = (): OperationError =>
  new OperationError(`This vector has more than ${limits.attributes} items`, "Join less.", "limit/attributes");

type NumberValue = Extract<Value, { kind: "number" }>;
const widths: readonly NumberType[] = ["int", "long", "float", "double"];
const boolean = (value: boolean): Value => ({ kind: "boolean", value });

/**
 * Applies an operator to values; throws `budgetSpent` when that is too much. The type of a number is the widest of its
 * operands'; whole numbers stay in range.
 */
export function operate(operator: Operator, operands: readonly Value[], budget: Budget): Value | OperationError {
  if (operator === "==" || operator === "!=") {
    const [left, right] = operands;
    if (!left || !right) return new OperationError(`\`${operator}\` takes two values`, "Write `(a == b)`.");
    return boolean(equal(left, right, budget) === (operator === "=="));
  }
  if (operator === "++") {
    const parts = operands.map((operand) => text(operand, budget));
    if (parts.reduce((sum, part) => sum + part.length, 0) > limits.textLength)
      return new OperationError(
        `This text is longer than ${limits.textLength} characters`,
        "Join less.",
        "limit/evaluation",
      );
    return { kind: "string", value: parts.join("") };
  }
  if (operator === "<>") {
    // As HP's runtime joins them: what is no vector is passed over.
    const vectors = operands.filter((operand) => operand.kind === "vector");
    const size = vectors.reduce((sum, vector) => sum + vector.items.length, 0);
    budget.spend(size);
    if (size > limits.attributes) return tooLarge();
    return vectorOf(vectors.flatMap((vector) => vector.items));
  }
  if (operator === "!" || operator === "&&" || operator === "||" || operator === "->" || operator === "x|")
    return logic(operator, operands);
  return arithmetic(operator, operands);
}

function logic(operator: "!" | "&&" | "||" | "->" | "x|", operands: readonly Value[]): Value | OperationError {
  const values = operands.filter((operand) => operand.kind === "boolean").map((operand) => operand.value);
  const [left = false, right = false] = values;
  if (values.length < operands.length)
    return new OperationError(`\`${operator}\` takes true and false only`, "Compare values first: `(a == 1)`.");
  if (operator === "!") return boolean(!left);
  if (operator === "&&") return boolean(values.every((value) => value));
  if (operator === "||") return boolean(values.some((value) => value));
  // HP's parser computes `true -> false` as false and `false -> true` as true, and exclusive or for `x|`.
  return boolean(operator === "->" ? !left || right : left !== right);
}

function arithmetic(operator: string, operands: readonly Value[]): Value | OperationError {
  const numbers = operands.filter((operand): operand is NumberValue => operand.kind === "number");
  const [left, right] = numbers;
  if (numbers.length < operands.length || !left || !right)
    return new OperationError(`\`${operator}\` takes numbers only`, "Use `++` to join texts.");
  const [a, b] = [left.value, right.value];
  if (operator === "<") return boolean(a < b);
  if (operator === ">") return boolean(a > b);
  if (operator === "<=") return boolean(a <= b);
  if (operator === ">=") return boolean(a >= b);
  const widest = numbers.reduce((most, number) => Math.max(most, widths.indexOf(number.type)), 0);
  const type = widths[widest] ?? "double";
  const whole = type === "int" || type === "long";
  if (whole && Number(b) === 0 && (operator === "/" || operator === "%"))
    return new OperationError("Division by zero", "Check the divisor.");
  if (type === "long") return long(operator, numbers);
  const value = compute(
    operator,
    numbers.map((number) => Number(number.value)),
    whole,
  );
  if (type === "int" && (value > 2_147_483_647 || value < -2_147_483_648))
    return new OperationError("The outcome does not fit into 32 bits", "Make one operand a long: `1024L`.");
  if (!Number.isFinite(value)) return new OperationError("The outcome is too large a number", "Use smaller operands.");
  if (type !== "float") return { kind: "number", type, value };
  const float = Math.fround(value);
  return Number.isFinite(float)
    ? { kind: "number", type, value: float, single: true }
    : new OperationError("The outcome does not fit into a float of 32 bits", "Make one operand a double: `1.5D`.");
}

/** Exact, where the doubles of JavaScript are not. */
function long(operator: string, numbers: readonly NumberValue[]): Value | OperationError {
  const values = numbers.map((number) => BigInt(number.value));
  const [a = 0n, b = 0n] = values;
  let value = operator === "-" ? a - b : operator === "/" ? a / b : operator === "%" ? a % b : a;
  if (operator === "+" || operator === "*")
    for (const each of values.slice(1)) {
      value = operator === "+" ? value + each : value * each;
      // What is left of a product of many would take long to work out.
      if (BigInt.asIntN(128, value) !== value) break;
    }
  return BigInt.asIntN(64, value) === value
    ? { kind: "number", type: "long", value }
    : new OperationError("The outcome does not fit into 64 bits", "Use smaller operands, or a double: `1024D`.");
}

function compute(operator: string, numbers: readonly number[], whole: boolean): number {
  const [a = 0, b = 0] = numbers;
  if (operator === "+") return numbers.reduce((sum, number) => sum + number, 0);
  if (operator === "*") return numbers.reduce((product, number) => product * number, 1);
  if (operator === "-") return a - b;
  if (operator === "%") return a % b;
  return whole ? Math.trunc(a / b) : a / b;
}

/** Characters that are compared in the time of one step. */
const charactersOfStep = 64;

function equal(left: Value, right: Value, budget: Budget): boolean {
  budget.spend(1);
  if (left.kind === "vector" && right.kind === "vector")
    return (
      left.items.length === right.items.length &&
      left.items.every((item, index) => equal(item, right.items[index] ?? item, budget))
    );
  if (left.kind === "component" || right.kind === "component") return left === right;
  if (left.kind === "null" || right.kind === "null") return left.kind === right.kind;
  if (left.kind === "lazy" || right.kind === "lazy" || left.kind === "nothing" || right.kind === "nothing")
    return false;
  if (left.kind === "vector" || right.kind === "vector") return false;
  if (left.kind === "string" || left.kind === "bytes") budget.spend(Math.floor(left.value.length / charactersOfStep));
  // As Java compares objects: numbers of different types are never equal.
  if (left.kind === "number" && right.kind === "number") {
    if (left.type !== right.type) return false;
    return left.type === "float"
      ? Math.fround(Number(left.value)) === Math.fround(Number(right.value))
      : left.value === right.value;
  }
  return left.kind === right.kind && left.value === right.value;
}

/** A value as `++` joins it. */
export function text(value: Value, budget: Budget): string {
  budget.spend(1);
  if (value.kind === "string" || value.kind === "bytes") budget.spendText(value.value.length);
  else if (value.kind === "lazy") budget.spendText(value.text.length);
  else if (value.kind === "component") budget.spendText(value.name.length);
  if (value.kind === "number" && value.type === "float") return javaFloat(value.value);
  if (value.kind === "number" && value.type === "double") return javaDouble(value.value);
  if (value.kind === "nothing") return "";
  if (value.kind === "vector") return `[${value.items.map((item) => text(item, budget)).join(", ")}]`;
  if (value.kind === "null") return "NULL";
  if (value.kind === "bytes") return `#HEX#${value.value}#`;
  if (value.kind === "lazy") return value.text;
  return value.kind === "component" ? value.name : String(value.value);
}
