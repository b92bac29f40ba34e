import type { Value } from "../component.ts";
import type { Operator } from "../text/syntax.ts";
import { type Budget, OperationError, operate, text, vectorOf } from "./operations.ts";

/**
 * The standard functions that need no Java, by the class that HP's `functions.sf` names for each; the names that a
 * document uses come from `../standard-files.ts`. What a function gets
 * are its parameters by name, in order; the names that begin with `sf` and `phase.` are not among them.
 */
export interface FunctionState {
  /** What `next` has given last in this document. */
  last: number;
  /** What working out the expressions of the document may still cost. */
  readonly budget: Budget;
}
type Parameters = ReadonlyMap<string, Value>;
type StandardFunction = (parameters: Parameters, state: FunctionState) => Value | OperationError;

export const functionPackage = "org.smartfrog.sfcore.languages.sf.functions.";
const packages = [functionPackage, "org.smartfrog.sfcore.languages.sf.predicates."];

const missing = (name: string): OperationError =>
  new OperationError(`The parameter \`${name}\` is missing`, `Give it: \`${name} …;\`.`);

/** Takes all parameters in order, whatever their names. */
const joining =
  (operator: Operator): StandardFunction =>
  (parameters, { budget }) => {
    const values = [...parameters.values()];
    const [only] = values;
    if (!only) return new OperationError("This function has no parameters", "Give it some: `-- 1; -- 2;`.");
    return values.length === 1 && operator !== "<>" ? only : operate(operator, values, budget);
  };
const binary =
  (operator: Operator): StandardFunction =>
  (parameters, { budget }) => {
    const [left, right] = [parameters.get("left"), parameters.get("right")];
    if (!left || !right) return missing(left ? "right" : "left");
    return operate(operator, [left, right], budget);
  };

const joined: readonly (readonly [string, Operator])[] = [
  ["Sum", "+"],
  ["Product", "*"],
  ["And", "&&"],
  ["Or", "||"],
  ["Concatenate", "++"],
];
const compared: readonly (readonly [string, Operator])[] = [
  ["Minus", "-"],
  ["Divide", "/"],
  ["Mod", "%"],
  ["EQ", "=="],
  ["NE", "!="],
  ["GE", ">="],
  ["LE", "<="],
  ["GT", ">"],
  ["LT", "<"],
  ["Implies", "->"],
  ["Xor", "x|"],
];
const standard: ReadonlyMap<string, StandardFunction> = new Map<string, StandardFunction>([
  ...joined.map(([name, operator]): [string, StandardFunction] => [name, joining(operator)]),
  ...compared.map(([name, operator]): [string, StandardFunction] => [name, binary(operator)]),
  ["Not", (parameters, { budget }) => operateOn(parameters, "data", (data) => operate("!", [data], budget))],
  ["Vector", (parameters) => vectorOf([...parameters.values()])],
  [
    "Append",
    (parameters, { budget }) =>
      operate(
        "<>",
        [...parameters.values()].filter((value) => value.kind === "vector"),
        budget,
      ),
  ],
  ["IfThenElse", ifThenElse],
  ["Format", format],
  ["Next", next],
  ["CheckAssertions", checkAssertions],
]);
/** Known, but not one outcome for one text, or done by a constraint solver in Java. */
const elsewhere: ReadonlyMap<string, string> = new Map([
  ...["Random", "Date", "UserInput"].map((name) => [name, "the same text must always mean the same cell"] as const),
  ...["Constraint", "Array", "Aggregator", "NSumProduct", "AllDifferent", "PrettyPrint", "ApplyEffects"].map(
    (name) => [name, "it belongs to HP's constraint solver, which is Java"] as const,
  ),
]);

/** The simple name of a standard function's class, e.g. `Sum`; null for any other class. */
export function standardClass(name: string): string | null {
  const inside = packages.find((prefix) => name.startsWith(prefix));
  return inside === undefined ? null : name.slice(inside.length);
}

/** Why a class cannot be applied here, or null if it can. */
export function refusal(className: string): string | null {
  const name = standardClass(className);
  if (name !== null && (standard.has(name) || name === "CheckSchemaElement")) return null;
  const reason = name === null ? undefined : elsewhere.get(name);
  return reason ?? "it is a Java class, and there is no Java here";
}

/** Applies a function for which there is no refusal. */
export function applyFunction(className: string, parameters: Parameters, state: FunctionState): Value | OperationError {
  const apply = standard.get(standardClass(className) ?? "");
  if (!apply) return new OperationError(`\`${className}\` cannot be applied`, "Use one of the standard functions.");
  return apply(parameters, state);
}

function operateOn(
  parameters: Parameters,
  name: string,
  apply: (value: Value) => Value | OperationError,
): Value | OperationError {
  const value = parameters.get(name);
  return value ? apply(value) : missing(name);
}

function ifThenElse(parameters: Parameters): Value | OperationError {
  const [condition, then, otherwise] = ["if", "then", "else"].map((name) => parameters.get(name));
  if (!condition || !then || !otherwise) return missing(condition ? (then ? "else" : "then") : "if");
  if (condition.kind !== "boolean")
    return new OperationError("`if` must be true or false", "Compare values: `if (a == 1);`.");
  return condition.value ? then : otherwise;
}

/** `$0` to `$9` in `format` become the parameters `s0` to `s9`; what is no string leaves nothing, as at HP. */
function format(parameters: Parameters, { budget }: FunctionState): Value | OperationError {
  const pattern = parameters.get("format");
  if (pattern && pattern.kind !== "string")
    return new OperationError("`format` must be a string", 'Write it as in `format "$0:$1";`.');
  budget.spendText(pattern?.value.length ?? 0);
  let absent: string | null = null;
  const value = (pattern?.value ?? "").replace(/\$([0-9])/g, (_place, digit: string) => {
    const parameter = parameters.get(`s${digit}`);
    if (!parameter) absent ??= `s${digit}`;
    if (parameter?.kind !== "string") return "";
    budget.spendText(parameter.value.length);
    return parameter.value;
  });
  return absent === null ? { kind: "string", value } : missing(absent);
}

/** 0, 1, 2, … within a document, or from `base` on. */
function next(parameters: Parameters, state: FunctionState): Value | OperationError {
  const base = parameters.get("base");
  if (base && (base.kind !== "number" || base.type !== "int"))
    return new OperationError("`base` must be a whole number", "Write it as in `base 100;`.");
  const least = base?.kind === "number" ? base.value : 0;
  state.last = least > state.last ? least : state.last + 1;
  return { kind: "number", type: "int", value: state.last };
}

function checkAssertions(parameters: Parameters, { budget }: FunctionState): Value | OperationError {
  for (const [name, value] of parameters)
    if (value.kind !== "boolean" || !value.value)
      return new OperationError(
        `The assertion \`${name}\` ${value.kind === "boolean" ? "does not hold" : `is ${text(value, budget)}, not true or false`}`,
        "Change what it speaks of, or the assertion.",
      );
  return { kind: "boolean", value: true };
}
