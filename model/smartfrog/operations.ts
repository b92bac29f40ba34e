import { limits } from "../limits.ts";
import type { Value } from "./component.ts";
import type { Operator } from "./syntax.ts";
import type { NumberType } from "./tokens.ts";

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
  constructor(message: string, hint: string) {
    this.message = message;
    this.hint = hint;
  }
}

type NumberValue = Extract<Value, { kind: "number" }>;
const widths: readonly NumberType[] = ["int", "long", "float", "double"];
const boolean = (value: boolean): Value => ({ kind: "boolean", value });

/** Applies an operator to values; throws `budgetSpent` when that is too much. The type of a number is the widest of its operands'; whole numbers stay in range. */
export function operate(operator: Operator, operands: readonly Value[], budget: Budget): Value | OperationError {
  if (operator === "==" || operator === "!=") {
    const [left, right] = operands;
    if (!left || !right) return new OperationError(`\`${operator}\` takes two values`, "Write `(a == b)`.");
    return boolean(equal(left, right, budget) === (operator === "=="));
  }
  if (operator === "++") return { kind: "string", value: operands.map((operand) => text(operand, budget)).join("") };
  if (operator === "<>") {
    const vectors = operands.filter((operand) => operand.kind === "vector");
    if (vectors.length < operands.length)
      return new OperationError("`<>` joins vectors only", "Use `++` to join texts.");
    budget.spend(vectors.reduce((sum, { items }) => sum + items.length, 0));
    return { kind: "vector", items: vectors.flatMap((vector) => vector.items) };
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
  const type = widths[Math.max(...numbers.map((number) => widths.indexOf(number.type)))] ?? "double";
  const whole = type === "int" || type === "long";
  if (whole && b === 0 && (operator === "/" || operator === "%"))
    return new OperationError("Division by zero", "Check the divisor.");
  const value = compute(operator, numbers, whole);
  if (type === "int" && (value > 2_147_483_647 || value < -2_147_483_648))
    return new OperationError("The outcome does not fit into 32 bits", "Make one operand a long: `1024L`.");
  if (!Number.isFinite(value) || (whole && !Number.isSafeInteger(value)))
    return new OperationError("The outcome is too large a number", "Use smaller operands.");
  return { kind: "number", type, value };
}

function compute(operator: string, numbers: readonly NumberValue[], whole: boolean): number {
  const [a = 0, b = 0] = numbers.map((number) => number.value);
  if (operator === "+") return numbers.reduce((sum, number) => sum + number.value, 0);
  if (operator === "*") return numbers.reduce((product, number) => product * number.value, 1);
  if (operator === "-") return a - b;
  if (operator === "%") return a % b;
  return whole ? Math.trunc(a / b) : a / b;
}

function equal(left: Value, right: Value, budget: Budget): boolean {
  budget.spend(1);
  if (left.kind === "vector" && right.kind === "vector")
    return (
      left.items.length === right.items.length &&
      left.items.every((item, index) => equal(item, right.items[index] ?? item, budget))
    );
  if (left.kind === "component" || right.kind === "component") return left === right;
  if (left.kind === "null" || right.kind === "null") return left.kind === right.kind;
  if (left.kind === "vector" || right.kind === "vector" || left.kind === "lazy" || right.kind === "lazy") return false;
  return left.kind === right.kind && left.value === right.value;
}

/** A value as `++` joins it. */
function text(value: Value, budget: Budget): string {
  budget.spend(1);
  if (value.kind === "string" || value.kind === "bytes") budget.spendText(value.value.length);
  if (value.kind === "vector") return `[${value.items.map((item) => text(item, budget)).join(", ")}]`;
  if (value.kind === "null") return "NULL";
  if (value.kind === "bytes") return `#HEX#${value.value}#`;
  if (value.kind === "lazy") return value.text;
  return value.kind === "component" ? value.name : String(value.value);
}
