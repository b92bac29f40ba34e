import type { Value } from "./component.ts";
import { OperationError } from "./phases/operations.ts";

/** What a schema says of one attribute: the parameters of HP's `CheckSchemaElement`. */
type Parameters = ReadonlyMap<string, Value>;

/** The values of each Java class that a schema can name. */
const classes: ReadonlyMap<string, (value: Value) => boolean> = new Map([
  ["anyClass", () => true],
  ["java.lang.Object", () => true],
  ["java.lang.Integer", number("int")],
  ["java.lang.Long", number("long")],
  ["java.lang.Float", number("float")],
  ["java.lang.Double", number("double")],
  ["java.lang.Number", (value: Value) => value.kind === "number"],
  ["java.lang.String", (value: Value) => value.kind === "string"],
  ["java.lang.Boolean", (value: Value) => value.kind === "boolean"],
  ["java.util.Vector", (value: Value) => value.kind === "vector"],
  ["java.util.List", (value: Value) => value.kind === "vector"],
  ["java.util.Collection", (value: Value) => value.kind === "vector"],
  ["org.smartfrog.sfcore.common.SFNull", (value: Value) => value.kind === "null"],
  ["org.smartfrog.sfcore.common.SFByteArray", (value: Value) => value.kind === "bytes"],
  ["org.smartfrog.sfcore.componentdescription.ComponentDescription", (value: Value) => value.kind === "component"],
  ["org.smartfrog.sfcore.reference.Reference", (value: Value) => value.kind === "lazy"],
  ["org.smartfrog.sfcore.reference.SFReference", (value: Value) => value.kind === "lazy"],
  ["org.smartfrog.sfcore.languages.sf.sfreference.SFReference", (value: Value) => value.kind === "lazy"],
  ["org.smartfrog.sfcore.languages.sf.sfreference.SFApplyReference", (value: Value) => value.kind === "lazy"],
]);

function number(type: "int" | "long" | "float" | "double"): (value: Value) => boolean {
  return (value) => value.kind === "number" && value.type === type;
}

/** Checks the value of the attribute that `parameters` speak of; null if there is none. */
export function checkSchemaElement(parameters: Parameters, value: Value | null): Value | OperationError {
  const holds: Value = { kind: "boolean", value: true };
  const name = asText(parameters.get("name")) ?? "";
  const description = asText(parameters.get("description"));
  const shown = description === null ? `\`${name}\`` : `\`${name}\` (${description})`;
  const optional = parameters.get("optional");
  if (optional?.kind !== "boolean")
    return new OperationError("`optional` of a schema must be true or false", "Extend `Compulsory` or `Optional`.");
  const binding = asText(parameters.get("binding"));
  if (binding === null || !["anyBinding", "eager", "lazy"].includes(binding))
    return new OperationError(
      "`binding` of a schema must say when a value is known",
      'Write "eager", "lazy" or "anyBinding".',
    );
  const wanted = classNames(parameters.get("class"));
  if (wanted instanceof OperationError) return wanted;
  if (value === null)
    return optional.value
      ? holds
      : new OperationError(`The schema demands an attribute ${shown}, which is missing`, "Give it a value.");
  const fits = wanted.some((each) => classes.get(each)?.(value));
  if (value.kind === "lazy")
    return binding === "eager" && !fits
      ? new OperationError(`The schema demands a value for ${shown}, not a lazy reference`, "Remove `LAZY`.")
      : holds;
  if (binding === "lazy")
    return new OperationError(`The schema demands a lazy reference for ${shown}`, "Write `LAZY` before it.");
  if (fits) return holds;
  return new OperationError(
    `The schema demands ${wanted.map(shortName).join(" or ")} for ${shown}, which is ${kindOf(value)}`,
    "Give it a value of that type, or change the schema.",
  );
}

function classNames(value: Value | undefined): readonly string[] | OperationError {
  const names = value?.kind === "vector" ? value.items.map(asText) : [asText(value)];
  const texts = names.filter((name) => name !== null);
  if (texts.length < names.length || texts.length === 0)
    return new OperationError(
      "`class` of a schema must be a string or a vector of strings",
      'Write it as in `class "java.lang.Integer";`.',
    );
  const unknown = texts.find((name) => !classes.has(name));
  return unknown === undefined
    ? texts
    : new OperationError(
        `The schema names the Java class \`${unknown}\`, and there is no Java here`,
        "Use one of the types of `/org/smartfrog/predicates.sf`.",
      );
}

const asText = (value: Value | undefined): string | null => (value?.kind === "string" ? value.value : null);
const shortName = (name: string): string => name.slice(name.lastIndexOf(".") + 1);
const kindOf = (value: Value): string => (value.kind === "number" ? `a number (${value.type})` : `a ${value.kind}`);
