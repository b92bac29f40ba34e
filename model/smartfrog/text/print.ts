import { type Attribute, type Component, isLeftUnlinked, type Value } from "../component.ts";
import { javaDouble, javaFloat } from "./java-number.ts";
import { type Expression, type Operator, type Reference, referenceText, type Scalar } from "./syntax.ts";

/**
 * Text of what stays unevaluated: a lazy reference, a function with a lazy parameter, an assertion. It reads as HP's
 * runtime prints it, expressions as the functions that they stand for.
 */
const functions = "org.smartfrog.sfcore.languages.sf.functions.";
const operatorClasses: Readonly<Record<Operator, string>> = {
  "!": "Not",
  "+": "Sum",
  "-": "Minus",
  "*": "Product",
  "/": "Divide",
  "%": "Mod",
  "==": "EQ",
  "!=": "NE",
  ">=": "GE",
  "<=": "LE",
  "<": "LT",
  ">": "GT",
  "++": "Concatenate",
  "<>": "Append",
  "&&": "And",
  "||": "Or",
  "->": "Implies",
  "x|": "Xor",
};
const nary: ReadonlySet<Operator> = new Set(["+", "*", "++", "<>", "&&", "||"]);
const apply = (name: string, parameters: readonly (readonly [string, Expression])[]): string =>
  `APPLY {sfFunctionClass "${functions}${name}";\n${parameters.map(([key, value]) => `${key} ${expressionText(value)};\n`).join("")}}`;

/** A reference with what stands before it: `LAZY OPTIONAL a:b`. */
export function lazyText(reference: Reference, when: "LAZY" | "DATA", otherwise: Expression | null): string {
  const none = otherwise?.kind === "scalar" && otherwise.scalar.kind === "null";
  const optional = otherwise === null ? "" : none ? "OPTIONAL " : `OPTIONAL  (${expressionText(otherwise)}) `;
  return when === "LAZY"
    ? `LAZY ${optional}${referenceText(reference)}`
    : `${optional}DATA ${referenceText(reference)}`;
}

/** A component that the function phase made a function or an assertion of. */
export function functionText(component: Component): string {
  const attributes = [...component.attributes].filter(([name]) => name !== "sfAssertionPhase");
  return `${component.role} {${attributes.map(([name, attribute]) => `${name} ${attributeText(attribute)}`).join("")}}`;
}

function attributeText({ content }: Attribute): string {
  if (content.kind !== "component") return `${expressionText(content)};\n`;
  if (content.role !== "plain") return `${functionText(content)};\n`;
  const inside = [...content.attributes].map(([name, attribute]) => `  ${name} ${attributeText(attribute)}`);
  return inside.length === 0 ? "extends ;\n" : `extends ${content.data ? "DATA " : ""}{\n${inside.join("")}}\n`;
}

export function expressionText(expression: Expression): string {
  switch (expression.kind) {
    case "scalar":
      return scalarText(expression.scalar);
    case "tbd":
      return "TBD";
    case "reference": {
      const { reference, when, otherwise } = expression;
      if (when !== "eager") return lazyText(reference, when, otherwise);
      return lazyText(reference, "LAZY", otherwise).slice("LAZY ".length);
    }
    case "vector":
      return expression.literal
        ? `[|${expression.items.map(expressionText).join(", ")}|]`
        : apply(
            "Vector",
            expression.items.map((item) => ["--", item]),
          );
    case "operation": {
      const { operator, operands } = expression;
      const names = nary.has(operator) ? [] : operands.length === 1 ? ["data"] : ["left", "right"];
      return apply(
        operatorClasses[operator],
        operands.map((operand, index) => [names[index] ?? "--", operand]),
      );
    }
    case "choice":
      return choiceText(expression);
    case "apply": {
      const attributes = expression.prototypes.flatMap((part) => (part.kind === "block" ? part.attributes : []));
      const inside = attributes.map(({ name, value }) => `${name?.join(":") ?? "--"} ${expressionText(value)};\n`);
      const when = expression.when === "eager" ? "" : `${expression.when} `;
      return `${when}${expression.form} {${inside.join("")}}`;
    }
    case "component":
      return "extends …";
  }
}

function choiceText({ cases, otherwise }: Extract<Expression, { kind: "choice" }>): string {
  const [first, ...more] = cases;
  if (first && more.length === 0 && otherwise)
    return apply("IfThenElse", [
      ["if", first.condition],
      ["then", first.value],
      ["else", otherwise],
    ]);
  const parts = cases.map(({ condition, value }) => `IF ${expressionText(condition)} THEN ${expressionText(value)}`);
  return `SWITCH ${parts.join(" ")} ENDSWITCH`;
}

/** The value of an attribute that its tag `sfIgnoreLink` keeps as it was written; null for all others. */
export function leftUnlinked(attribute: Attribute): Value | null {
  const { content } = attribute;
  if (!isLeftUnlinked(attribute) || content.kind === "component") return null;
  return { kind: "lazy", when: "sfIgnoreLink", text: expressionText(content), form: "reference" };
}

/** As it can be read again. */
export function scalarText(scalar: Scalar): string {
  switch (scalar.kind) {
    case "null":
      return "NULL";
    case "boolean":
      return String(scalar.value);
    case "bytes":
      return `#HEX#${scalar.value}#`;
    case "string":
      return quoted(scalar.value);
    case "number":
      if (scalar.type === "float") return `${javaFloat(scalar.value)}F`;
      if (scalar.type === "double") return `${javaDouble(scalar.value)}D`;
      return scalar.type === "long" ? `${scalar.value}L` : String(scalar.value);
  }
}

const escaped: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\t": "\\t",
  "\r": "\\r",
  "\b": "\\b",
  "\f": "\\f",
  '"': '\\"',
  "\\": "\\\\",
};
const quoted = (text: string): string => `"${text.replace(/[\n\t\r\b\f"\\]/g, (each) => escaped[each] ?? each)}"`;
