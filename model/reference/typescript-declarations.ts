import type { AttributeKind, AttributeSchema, TypeSchema } from "../cell/attributes/kinds.ts";
import { cellAttributes } from "../cell/attributes/of-cells.ts";
import type { ElementType } from "../cell/cell.ts";
import { commonAttributes, elementSchemas } from "../cell/schema.ts";

/**
 * The TypeScript builder `cells/model` as its author's editor sees it, from the one table of attributes. The functions
 * themselves are in `runtime/specification/typescript/builder.ts`; both take their names from here.
 */
export const builderFunctions: Readonly<Record<ElementType, string>> = {
  VM: "vm",
  Volume: "volume",
  VolumeCopy: "volumeCopy",
  Subnet: "subnet",
  VolumeConnection: "connection",
  VirtualInterface: "vif",
  NetworkRule: "rule",
  VolumeGrant: "grant",
  CellController: "controller",
  Host: "host",
  Domain: "domain",
  Account: "account",
  Role: "role",
  Zone: "zone",
  Pod: "pod",
  Cluster: "cluster",
  Dedication: "dedication",
  AffinityGroup: "affinityGroup",
  Offering: "offering",
  HostFlavor: "hostFlavor",
  Pool: "pool",
  PoolHost: "poolHost",
};
const typeNames: Readonly<Record<ElementType, string>> = {
  VM: "Vm",
  Volume: "Volume",
  VolumeCopy: "VolumeCopy",
  Subnet: "Subnet",
  VolumeConnection: "Connection",
  VirtualInterface: "Vif",
  NetworkRule: "Rule",
  VolumeGrant: "Grant",
  CellController: "Controller",
  Host: "Host",
  Domain: "Domain",
  Account: "Account",
  Role: "Role",
  Zone: "Zone",
  Pod: "Pod",
  Cluster: "Cluster",
  Dedication: "Dedication",
  AffinityGroup: "AffinityGroup",
  Offering: "Offering",
  HostFlavor: "HostFlavor",
  Pool: "Pool",
  PoolHost: "PoolHost",
};
const types = Object.keys(builderFunctions) as readonly ElementType[];

/** Attributes of a type as an author writes them: without `x.`, those with a dot as an object. `x.type` is the function. */
interface Written {
  readonly name: string;
  readonly schema: AttributeSchema | null;
  readonly inside: readonly Written[];
  /** Any name is one: `x.placement.*`. */
  readonly open: AttributeSchema | null;
}

const commonToElements = ["x.public", "x.movedFrom"];

function writtenOf(table: TypeSchema): readonly Written[] {
  const groups = new Map<string, { inside: Written[]; open: AttributeSchema | null }>();
  const found: (Written | string)[] = [];
  for (const [name, schema] of Object.entries(table)) {
    const [first = "", second] = name.slice(2).split(".");
    if (second === undefined) {
      found.push({ name: first, schema, inside: [], open: null });
      continue;
    }
    const group = groups.get(first) ?? { inside: [], open: null };
    if (!groups.has(first)) found.push(first);
    groups.set(first, group);
    if (second === "*") group.open = schema;
    else group.inside.push({ name: second, schema, inside: [], open: null });
  }
  return found.map((each) =>
    typeof each === "string" ? { name: each, schema: null, ...(groups.get(each) ?? { inside: [], open: null }) } : each,
  );
}

/** Names of attributes that are objects of others, such as `liveness` of a VM: `x.liveness.port` is `liveness: { port }`. */
export function nestedAttributes(type: ElementType | "Cell"): readonly string[] {
  const table = type === "Cell" ? cellAttributes : elementSchemas[type];
  return writtenOf(table)
    .filter(({ schema }) => schema === null)
    .map(({ name }) => name);
}

const union = (names: readonly string[]): string => names.join(" | ");

function typeOf(name: string, kind: AttributeKind): string {
  switch (kind.kind) {
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "choice":
      return union(kind.values.map((value) => JSON.stringify(value)));
    case "link":
      return union([...kind.to.map((type) => typeNames[type]), "Reference"]);
    case "domain":
      return "Reference";
    case "end":
      return union(["Subnet", "Vm", "Vif", "Reference", '"internet"', '"controller"', "(string & {})"]);
    case "networks":
    case "groups":
    case "labels":
    case "rules":
    case "addresses":
      return "readonly string[]";
    case "words":
      return `readonly (${union(kind.values.map((value) => JSON.stringify(value)))})[]`;
    case "ports":
      return "number | string";
    case "data":
      return name === "cell" ? "Cell | Data" : "Data";
    default:
      return "string";
  }
}

const effects: Readonly<Record<AttributeSchema["effect"], string | null>> = {
  change: "A change takes effect in place.",
  restart: "A change restarts the VM.",
  replace: "A change replaces the element by a new one.",
  none: null,
};

function comment(schema: AttributeSchema): string {
  const { kind, unit } = schema;
  const range = kind.kind === "integer" ? `${kind.minimum} to ${kind.maximum}` : null;
  const counted = range === null ? unit : unit === undefined ? range : `${unit}, ${range}`;
  const parts = [
    schema.docs,
    counted === undefined || counted === null ? null : `In ${counted}.`.replace(/^In (?=[-\d])/, ""),
    schema.default === undefined ? null : `Default: ${JSON.stringify(schema.default)}.`,
    effects[schema.effect],
  ];
  // Nothing from a table may end the comment that it stands in.
  return `/** ${parts
    .filter((part) => part !== null)
    .join(" ")
    .replaceAll("*/", "* /")} */`;
}

/** In characters. */
const longestLine = 120;

function property({ name, schema, inside, open }: Written, indent: string): readonly string[] {
  if (schema) {
    const optional = schema.required ? "" : "?";
    const type = typeOf(name, schema.kind).replaceAll("\n", " ");
    const line = `${indent}readonly ${name}${optional}: ${type};`;
    const head = [`${indent}${comment(schema)}`];
    if (line.length <= longestLine) return [...head, line];
    // As a formatter would have it: one choice on each line.
    const choices = type.split(" | ").map((each) => `${indent}  | ${each}`);
    return [...head, `${indent}readonly ${name}${optional}:`, ...choices.slice(0, -1), `${choices.at(-1)};`];
  }
  const lines = inside.flatMap((each) => property(each, `${indent}  `));
  if (open)
    lines.push(`${indent}  ${comment(open)}`, `${indent}  readonly [name: string]: ${typeOf(name, open.kind)};`);
  return [`${indent}readonly ${name}?: {`, ...lines, `${indent}};`];
}

function attributesOf(name: string, table: TypeSchema, common: TypeSchema): readonly string[] {
  const written = [...writtenOf(table), ...writtenOf(common)];
  return [`  export interface ${name} {`, ...written.flatMap((each) => property(each, "    ")), "  }"];
}

const head = `// Types of Cells specifications in TypeScript, made by \`cells spec types\`: do not edit, make them again.

/** What is printed is shown to who runs \`cells\`, and is no part of the cell. */
declare var console: {
  log(...values: readonly unknown[]): void;
  info(...values: readonly unknown[]): void;
  warn(...values: readonly unknown[]): void;
  error(...values: readonly unknown[]): void;
  debug(...values: readonly unknown[]): void;
};

declare module "cells/model" {
  const type: unique symbol;
  const reference: unique symbol;
  /** An element. It gets its path from where it stands in the cell, and stands there once; others refer to it by itself. */
  interface Element<Type extends string> {
    readonly [type]: Type;
  }
  /** A reference as text; see \`ref\`. */
  export interface Reference {
    readonly [reference]: true;
  }
  /** A whole cell; see \`cell\`. */
  export interface Cell {
    readonly [type]: "Cell";
  }
`;

const middle = `  /** Any structure. An element in it means its path. */
  export type Data =
    | string
    | number
    | boolean
    | null
    | AnyElement
    | Reference
    | readonly Data[]
    | { readonly [name: string]: Data };
  /** What stands under a name of a cell, of a group or of an element: an element, a group of more, or a value of your own. */
  export interface Content {
    readonly [name: string]: Data;
  }

  /**
   * The cell: \`export default cell("shop", { … })\` is what a specification's main file gives. Groups are plain objects:
   * \`{ web: { machine: vm({ … }) } }\` puts the VM at \`shop/web/machine\`.
   */
  export function cell(name: string, content: Content, attributes?: CellAttributes): Cell;
  /**
   * A reference where there is no object to refer by: into another cell (\`ref("//other.cells.example.com/a/b")\`), or to
   * what stands elsewhere in the document (\`ref("/shop/web/machine")\`).
   */
  export function ref(path: string): Reference;
`;

/** The ambient declaration of \`cells/model\`, as \`cells spec types\` prints it. Ends with a newline. */
export function typescriptDeclarations(): string {
  const lines = types.map((type) => `  export type ${typeNames[type]} = Element<${JSON.stringify(type)}>;`);
  const [first, pools] = [types.indexOf("Host"), types.indexOf("HostFlavor")];
  const [inEveryCell, inTheRootCell, ofPools] = [types.slice(0, first), types.slice(first, pools), types.slice(pools)];
  lines.push(`  type CellElement = ${union(inEveryCell.map((type) => typeNames[type]))};`);
  lines.push(`  type RootElement = ${union(inTheRootCell.map((type) => typeNames[type]))};`);
  lines.push(`  type PoolElement = ${union(ofPools.map((type) => typeNames[type]))};`);
  lines.push("  export type AnyElement = CellElement | RootElement | PoolElement;");
  const common = Object.fromEntries(
    Object.entries(commonAttributes).filter(([name]) => commonToElements.includes(name)),
  );
  const functions = types.flatMap((type) => {
    const attributes = `${typeNames[type]}Attributes`;
    return [
      "",
      ...attributesOf(attributes, elementSchemas[type], common),
      `  /** An element of type ${type}; \`content\` is what stands inside it and means nothing to the cloud, or elements of their own. */`,
      `  export function ${builderFunctions[type]}(attributes: ${attributes}, content?: Content): ${typeNames[type]};`,
    ];
  });
  const cell = attributesOf("CellAttributes", cellAttributes, common);
  return `${head}${lines.join("\n")}\n${middle}\n${cell.join("\n")}\n${functions.join("\n")}\n}\n`;
}
