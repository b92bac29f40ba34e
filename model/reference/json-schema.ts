import type { AttributeKind, AttributeSchema, ChangeEffect, TypeSchema } from "../cell/attributes/kinds.ts";
import { cellAttributes } from "../cell/attributes/of-cells.ts";
import type { ElementType } from "../cell/cell.ts";
import { bootImagePattern } from "../cell/image-name.ts";
import { commonAttributes, elementSchemas, elementTypes, typeDocs } from "../cell/schema.ts";
import { accountPaths } from "../cell/tenants/rules.ts";
import type { Json, JsonObject } from "../json/json.ts";

/*
 * JSON Schema (draft 2020-12) of a specification, for editors and other programs. It comes from the one table, and is an
 * outer bound of the checks: what they accept validates, and what it refuses they refuse. Some of what they know no schema
 * can say: where a reference leads, whether two addresses are the same, that a second cell in one document is one too many.
 *
 * Each type names all its `x.` attributes and lets no other in; every other name is the author's own. Conditions on
 * `x.type` rather than `oneOf`: an editor then says what is wrong with a VM, not that something is none of ten types.
 */

/** Where the schema can be had; a name, nothing is loaded from there. */
export const schemaId = "https://cells.internal/schema/specification.json";

const either = (...schemas: readonly JsonObject[]): JsonObject =>
  schemas.length === 1 && schemas[0] ? schemas[0] : { anyOf: schemas };
const definition = (name: string): JsonObject => ({ $ref: `#/$defs/${name}` });

/** Both ways to write a reference, to what `inside` says as a pattern. */
const referencePattern = (inside: string): string => `^(?:<ref:${inside}>|ref:(?![\\s\\S]*\\s)${inside})$`;
const domain = "//[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?";
const local = "(?!//)[\\s\\S]*";
const octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const address = `${octet}(?:\\.${octet}){3}`;
const label = (letters: string): string => `^[${letters}0-9](?:[${letters}0-9-]{0,61}[${letters}0-9])?$`;
/** At most five digits, from 1 to 65535. */
const port = "(?!0+(?:-|$))(?:[0-9]{1,4}|[0-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

const definitions: Readonly<Record<string, JsonObject>> = {
  reference: {
    title: "A reference to a value of this document",
    description:
      "`<ref:/path>` from the document, `<ref:../name>` from the component that holds the attribute. The attribute takes the value that stands there.",
    type: "string",
    pattern: referencePattern(local),
  },
  elementReference: {
    title: "A reference to an element of this document",
    description: "`<ref:/shop/vm>` from the document, `<ref:../vm>` from the component that holds the attribute.",
    type: "string",
    pattern: referencePattern(local),
  },
  foreignReference: {
    title: "A reference to an element of another cell",
    description: "`<ref://other.cells.example.com/shop/vm>`; the element must be `x.public`.",
    type: "string",
    pattern: referencePattern(`${domain}/[\\s\\S]*[^/][\\s\\S]*`),
  },
  cellReference: {
    title: "A reference to another cell as a whole",
    description: "`<ref://other.cells.example.com/>`",
    type: "string",
    pattern: referencePattern(`${domain}/*`),
  },
  address: { title: "An IPv4 address", type: "string", pattern: `^${address}$` },
  multicast: {
    title: "A multicast address",
    type: "string",
    pattern: `^(?:22[4-9]|23[0-9])(?:\\.${octet}){3}$`,
  },
  network: {
    title: "A network in CIDR notation",
    type: "string",
    pattern: `^${address}(?:/(?:[0-9]|[12][0-9]|3[0-2]))?$`,
  },
  mac: {
    title: "A MAC address of one card",
    type: "string",
    pattern: "^[0-9a-fA-F][02468aceACE](?::[0-9a-fA-F]{2}){5}$",
  },
  label: { title: "A DNS label in lower case", type: "string", pattern: label("a-z") },
  mixedLabel: { title: "A DNS label", type: "string", pattern: label("A-Za-z") },
  rule: {
    title: "A rule of a role",
    type: "string",
    pattern: "^(?:allow|deny) (?:\\*|[a-z]+(?:\\.[a-z]+)*(?:\\.\\*)?)$",
  },
  port: { title: "A port", type: "integer", minimum: 1, maximum: 65_535 },
  ports: { title: 'A port or "from-to"', type: "string", pattern: `^${port}(?:-${port})?$` },
  /** What begins like a reference and is none was surely meant as one. */
  text: { type: "string", minLength: 1, not: { pattern: "^<\\s*[Rr][Ee][Ff]:[\\s\\S]*[^>]$|^<\\s*[Rr][Ee][Ff]:$" } },
};

const listOf = (items: JsonObject): JsonObject => ({ type: "array", items });

/** What may be written for an attribute of a kind; `data` may be anything. */
function valueSchema(kind: AttributeKind): JsonObject | true {
  const orReference = (schema: JsonObject): JsonObject => either(schema, definition("reference"));
  switch (kind.kind) {
    case "integer":
      return orReference({ type: "integer", minimum: kind.minimum, maximum: kind.maximum });
    case "boolean":
      return orReference({ type: "boolean" });
    case "choice":
      return orReference({ enum: kind.values });
    case "label":
      return orReference(definition(kind.mixedCase ? "mixedLabel" : "label"));
    case "text":
    case "path":
      return orReference(definition("text"));
    case "address":
    case "network":
    case "mac":
      return orReference(definition(kind.kind));
    case "networks":
      return either(
        listOf(either(definition("network"), { const: "internet" }, definition("reference"))),
        definition("reference"),
      );
    case "groups":
      return either(listOf(either(definition("multicast"), definition("reference"))), definition("reference"));
    case "labels":
      return either(
        listOf(
          either(
            kind.paths
              ? { pattern: accountPaths.source }
              : kind.images
                ? { pattern: bootImagePattern.source }
                : definition("label"),
            definition("reference"),
          ),
        ),
        definition("reference"),
      );
    case "rules":
      return either(listOf(either(definition("rule"), definition("reference"))), definition("reference"));
    case "words":
      return either(listOf(either({ enum: kind.values }, definition("reference"))), definition("reference"));
    case "addresses":
      return either(listOf(either(definition("address"), definition("reference"))), definition("reference"));
    case "ports":
      return either(definition("port"), definition("ports"), definition("reference"));
    case "link":
      return either(definition("elementReference"), ...(kind.foreign ? [definition("foreignReference")] : []));
    case "domain":
      return either(definition("cellReference"), definition("reference"));
    case "end":
      return either(definition("elementReference"), definition("foreignReference"), definition("network"), {
        enum: ["internet", "controller"],
      });
    case "data":
      return true;
  }
}

const effects: Readonly<Record<ChangeEffect, string>> = {
  change: "A change is made in place.",
  restart: "A change restarts the VM.",
  replace: "A change replaces the element by a new one.",
  none: "A change touches no element.",
};
export const effectOf = (effect: ChangeEffect): string => effects[effect];

/** How a default reads: as it would be written. */
export const defaultOf = ({ default: value, unit }: AttributeSchema): string | undefined =>
  value === undefined ? undefined : `${JSON.stringify(value)}${unit === undefined ? "" : ` ${unit}`}`;

function attribute(schema: AttributeSchema): JsonObject {
  const { kind, unit, required, docs, effect, default: fallback } = schema;
  const value = valueSchema(kind);
  const sentences = [
    docs,
    ...(unit === undefined ? [] : [`In ${unit}.`]),
    ...(fallback === undefined ? [] : [`Default: ${defaultOf(schema)}.`]),
    effects[effect],
  ];
  const annotations = { description: sentences.join(" "), ...(fallback === undefined ? {} : { default: fallback }) };
  // Without a value (null) an attribute counts as not written.
  if (value === true) return required ? { ...annotations, not: { type: "null" } } : annotations;
  const alternatives = Array.isArray(value.anyOf) ? value.anyOf.filter(isSchema) : [value];
  return { ...annotations, ...(required ? value : either(...alternatives, { type: "null" })) };
}
const isSchema = (json: Json): json is JsonObject => typeof json === "object" && json !== null && !Array.isArray(json);

/** `x.placement.*` stands for all names of one part. */
const isFamily = (name: string): boolean => name.endsWith(".*");
const familyPattern = (name: string): string => `^${name.slice(0, -1).replaceAll(".", "\\.")}[^.]+$`;

/** What a component holds beside its `x.` attributes: the author's own names, and further elements. */
const ownNames: JsonObject = {
  "^(?!x\\.)": definition("inside"),
  // Components are named by their paths, so a `/` cannot be part of a name.
  "^(?!x\\.)(?:\\.{0,2}$|[\\s\\S]*/)": { not: { type: "object" } },
};

const former: JsonObject = Object.fromEntries(
  Object.entries(commonAttributes).flatMap(([name, schema]) =>
    name === "x.movedFrom" ? [[name, attribute(schema)]] : [],
  ),
);

function typeSchema(type: ElementType | "Cell", table: TypeSchema): JsonObject {
  const all = Object.entries({ ...table, ...commonAttributes });
  const required = Object.entries(table).flatMap(([name, { required }]) => (required ? [name] : []));
  const { docs } = commonAttributes["x.type"] ?? { docs: "" };
  return {
    title: type,
    description: typeDocs[type],
    type: "object",
    properties: {
      "x.type": { description: docs, const: type },
      ...Object.fromEntries(
        all.filter(([name]) => name !== "x.type" && !isFamily(name)).map(([name, schema]) => [name, attribute(schema)]),
      ),
    },
    patternProperties: {
      ...Object.fromEntries(
        all.filter(([name]) => isFamily(name)).map(([name, schema]) => [familyPattern(name), attribute(schema)]),
      ),
      ...ownNames,
    },
    additionalProperties: false,
    required: ["x.type", ...required],
    ...(type === "Cell" ? {} : acrossAttributes[type]),
  };
}

/** As a computed name: an object with a method-like `then` is taken for a promise by linters. */
const thenKeyword = "then";
const condition = (test: JsonObject, consequence: JsonObject, otherwise?: JsonObject): JsonObject => ({
  if: test,
  [thenKeyword]: consequence,
  ...(otherwise === undefined ? {} : { else: otherwise }),
});
const given = (name: string): JsonObject => ({ required: [name], properties: { [name]: { not: { type: "null" } } } });
const is = (name: string, value: Json): JsonObject => ({ required: [name], properties: { [name]: { const: value } } });
const isReferred = (name: string): JsonObject => ({
  required: [name],
  properties: { [name]: { type: "string", pattern: referencePattern(local) } },
});
/** What the checks say of several attributes together, as far as a schema can. */
const acrossAttributes: Readonly<Partial<Record<ElementType, JsonObject>>> = {
  VM: condition(is("x.liveness.protocol", "udp"), given("x.liveness.port")),
  // What a reference stands for, no schema can say.
  Subnet: either(given("x.size"), given("x.cidr"), is("x.addressRange", "management"), isReferred("x.addressRange")),
  VolumeGrant: either(given("x.vm"), given("x.cell"), given("x.account"), given("x.domain")),
  NetworkRule: condition(is("x.protocol", "icmp"), { not: either(given("x.port1"), given("x.port2")) }),
};

/** JSON Schema (draft 2020-12) of a specification: JSON, and YAML read as JSON. */
export function specificationSchema(): JsonObject {
  const types = elementTypes.map((type): [string, Json] => [type, typeSchema(type, elementSchemas[type])]);
  const isCell = is("x.type", "Cell");
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: schemaId,
    title: "Specification of a cell",
    description:
      "One cell, and the parameters and templates that stand beside it. Attributes that the cloud heeds begin with `x.`; every other name is the author's own. A document has exactly one component of type Cell.",
    type: "object",
    // At least one of the names is the cell's; that it is only one, no schema can say.
    not: { additionalProperties: { not: { type: "object", ...isCell } } },
    patternProperties: {
      // An editor's `$schema` is one of them: a text like any other.
      "^": definition("outside"),
      [`^(?!${label("a-z").slice(1)})`]: {
        description: "Where the component's name is no DNS label, the cell needs an `x.name`.",
        ...condition({ type: "object", ...isCell }, given("x.name")),
      },
    },
    $defs: {
      outside: {
        description: "The cell, or a parameter or template of the author's.",
        ...condition({ type: "object", ...isCell }, definition("Cell")),
      },
      inside: {
        description: "An element, a group of elements, or a value of the author's.",
        ...condition({ type: "object" }, definition("component")),
      },
      component: {
        ...condition(
          { required: ["x.type"] },
          {
            properties: { "x.type": { description: "The type of the element.", enum: elementTypes } },
            allOf: elementTypes.map((type) => condition(is("x.type", type), definition(type))),
          },
          definition("group"),
        ),
      },
      group: {
        title: "A group",
        description: "It has no type, so it has no attributes of the cloud's either, but where it was before.",
        type: "object",
        properties: former,
        patternProperties: ownNames,
        additionalProperties: false,
      },
      Cell: typeSchema("Cell", cellAttributes),
      ...Object.fromEntries(types),
      ...definitions,
    },
  };
}
