import { formatNetwork, type Network, parseIpv4, parseNetwork } from "../addresses/addresses.ts";
import { didYouMean, truthMeant } from "../diagnostics/closest-name.ts";
import { isIncomplete } from "../diagnostics/unknown.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { limits } from "../limits.ts";
import type { AttributeKind, AttributeSchema } from "./attributes/kinds.ts";
import type { ElementType, PortRange, RuleEnd } from "./cell.ts";
import { cidr, elementPath } from "./identifiers.ts";
import { readImage } from "./image-name.ts";
import { follow, isBrokenReference, referenceIn, type Target } from "./reference.ts";
import { mostRules, readAccountPath, readRuleText } from "./tenants/rules.ts";
import { inUnit } from "./units.ts";
import { ValueFault } from "./value-fault.ts";

/** What an attribute's value means: by kind a number, boolean, text (links: the path), rule end, port range or data. */
export type Meaning =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "end"; readonly value: RuleEnd }
  | { readonly kind: "ports"; readonly value: PortRange }
  | { readonly kind: "texts"; readonly value: readonly string[] }
  | { readonly kind: "data"; readonly value: Json }
  /** It depends on what could not be worked out, which has been told. */
  | { readonly kind: "unknown" };

export interface DocumentContext {
  readonly document: JsonObject;
  /** Type of every element by its path without a leading `/`. */
  readonly types: ReadonlyMap<string, ElementType>;
  readonly cellPath: string;
  /** Attributes that `x.data` may still copy out of the document before it is too large. */
  budget: number;
  /** Characters of the texts in it, which many references may lead to. */
  characters: number;
  /** What `x.data` has copied already, so that what is referred to again and again is kept once. */
  readonly copies: Map<JsonObject, DataCopy>;
}
interface DataCopy {
  readonly json: Json;
  /** Attributes in it, and how deep they are nested. */
  readonly size: number;
  readonly characters: number;
  readonly height: number;
}
/** Any empty object. */
const nothing: JsonObject = Object.freeze({});

const text = (value: string): Meaning => ({ kind: "text", value });
const isFault = (target: Target): target is Extract<Target, { kind: "fault" }> => target.kind === "fault";
const labelPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Without lower-casing first: some letters beyond ASCII have a lower case within. */
const mixedLabelPattern = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

export function show(json: Json): string {
  const shown = JSON.stringify(json);
  return shown.length > 60 ? `${shown.slice(0, 60)}…` : shown;
}

const mostAddresses = 8;
/** Reads one attribute of the component at `holder`: follows references, then checks type and range. */
export function readValue(
  context: DocumentContext,
  holder: readonly string[],
  name: string,
  schema: AttributeSchema,
  json: Json,
): Meaning | ValueFault {
  const { kind } = schema;
  if (kind.kind === "data")
    return name === "x.cell" ? { kind: "data", value: json } : readData(context, holder, name, json);
  if (typeof json === "string" && isBrokenReference(json))
    return new ValueFault(
      "reference/syntax",
      `${show(json)} is not a complete reference`,
      "A reference reads `<ref:/path>`, with `>` at the end.",
    );
  const reference = typeof json === "string" ? referenceIn(json) : null;
  if (reference === null && Array.isArray(json) && lists.has(kind.kind))
    return readItems(context, holder, name, schema, json);
  if (reference === null) return literal(name, schema, json);
  const target = follow(context.document, holder, reference);
  if (isFault(target)) return new ValueFault(target.code, target.message, target.hint);
  if (target.kind === "unknown") return { kind: "unknown" };
  if (target.kind === "value") {
    const meaning = literal(name, schema, target.value);
    if (!(meaning instanceof ValueFault)) return meaning;
    return new ValueFault(
      meaning.code,
      `\`<ref:${reference}>\` has the value ${show(target.value)}: ${meaning.message}`,
      meaning.hint,
    );
  }
  if (target.kind === "foreign") return foreignMeaning(kind, name, target);
  const path = target.path.join("/");
  if (!context.types.has(path) && isIncomplete(target.component)) return { kind: "unknown" };
  return elementMeaning(context, kind, name, reference, path);
}

/** A list in which references are replaced by the values that they lead to. */
function readItems(
  context: DocumentContext,
  holder: readonly string[],
  name: string,
  schema: AttributeSchema,
  json: readonly Json[],
): Meaning | ValueFault {
  const items: Json[] = [];
  for (const item of json) {
    const reference = typeof item === "string" ? referenceIn(item) : null;
    const target = reference === null ? null : follow(context.document, holder, reference);
    if (target?.kind === "unknown") return { kind: "unknown" };
    if (target !== null && isFault(target)) return new ValueFault(target.code, target.message, target.hint);
    if (target !== null && target.kind !== "value")
      return new ValueFault(
        "reference/target",
        `\`${name}\` takes values, but \`<ref:${reference}>\` leads to no value of this document`,
        "Refer to an attribute, as in `<ref:/params/network>`.",
      );
    items.push(target?.value ?? item);
  }
  return literal(name, schema, items);
}

function foreignMeaning(
  kind: AttributeKind,
  name: string,
  target: Extract<Target, { kind: "foreign" }>,
): Meaning | ValueFault {
  const { domain, path } = target;
  if (kind.kind === "domain") {
    if (path === "") return text(domain);
    return new ValueFault("reference/target", `\`${name}\` names a cell as a whole`, `Write \`<ref://${domain}/>\`.`);
  }
  if (kind.kind === "end" && path !== "") return { kind: "end", value: { kind: "foreign", domain, path } };
  if (kind.kind === "link" && kind.foreign && path !== "") return text(`//${domain}/${path}`);
  return new ValueFault(
    "reference/foreign",
    `\`${name}\` cannot refer into another cell`,
    "Refer to something in this document.",
  );
}

const endTypes: readonly ElementType[] = ["Subnet", "VM", "VirtualInterface"];

function elementMeaning(
  context: DocumentContext,
  kind: AttributeKind,
  name: string,
  reference: string,
  path: string,
): Meaning | ValueFault {
  const type = context.types.get(path);
  const wanted = kind.kind === "link" ? kind.to : kind.kind === "end" ? endTypes : [];
  if (wanted.length === 0)
    return new ValueFault(
      "reference/target",
      `\`${name}\` takes a value, but \`<ref:${reference}>\` leads to the component \`/${path}\``,
      kind.kind === "domain"
        ? "Another cell is named by its domain: `<ref://domain/>`."
        : "Refer to an attribute, as in `<ref:/params/memory>`.",
    );
  if (type && wanted.includes(type)) {
    if (kind.kind === "link") return text(path);
    if (type === "Subnet" || type === "VM" || type === "VirtualInterface")
      return { kind: "end", value: { kind: "element", path: elementPath(path), type } };
  }
  const article = `a ${wanted.join(" or ")}`;
  const hint = elementsHint(context, wanted);
  if (type)
    return new ValueFault("reference/type", `\`${name}\` must refer to ${article}; \`/${path}\` is a ${type}`, hint);
  if (path.split("/")[0] !== context.cellPath)
    return new ValueFault(
      "reference/outside",
      `\`/${path}\` stands outside the cell, so it is a template and no element`,
      "Refer to an element inside the cell.",
    );
  return new ValueFault(
    "reference/type",
    `\`${name}\` must refer to ${article}; \`/${path}\` is a component without a type`,
    hint,
  );
}

const mostNamed = 3;
/** What was said of each cell's elements: many of them may be at fault. */
const hints = new WeakMap<DocumentContext["types"], Map<string, string>>();
/** Elements that a link could lead to, or that there is none. */
function elementsHint({ types }: DocumentContext, wanted: readonly ElementType[]): string {
  const known = hints.get(types) ?? new Map<string, string>();
  hints.set(types, known);
  const key = wanted.join(" ");
  const hint = known.get(key) ?? elementsOf(types, wanted);
  known.set(key, hint);
  return hint;
}
function elementsOf(types: DocumentContext["types"], wanted: readonly ElementType[]): string {
  const paths: string[] = [];
  for (const [path, type] of types) {
    if (!wanted.includes(type)) continue;
    if (paths.length === mostNamed) return `Such elements are ${paths.join(", ")} and others.`;
    paths.push(`\`<ref:/${path}>\``);
  }
  if (paths.length === 0) return "The cell has no such element yet: add one.";
  return paths.length === 1 ? `The only such element is ${paths[0]}.` : `Such elements are ${paths.join(" and ")}.`;
}

/** SmartFrog leaves a lazy reference to whoever runs the component, and here nobody does. */
function leftOpen(name: string, json: string): ValueFault {
  const [word = "", ...rest] = json.split(" ");
  const plain = /^ROOT(?::[A-Za-z_$][\w.-]*)+$/.test(rest.join(" "));
  const path = plain ? `, or write \`"<ref:${rest.join(" ").slice("ROOT".length).replaceAll(":", "/")}>"\`` : "";
  return new ValueFault(
    "schema/value",
    `\`${name}\` must be known when the cell is submitted, and \`${word}\` leaves ${plain ? `\`${rest.join(" ")}\`` : "it"} to be worked out later`,
    `Leave out \`${word}\`${path}: the value is then worked out when the text is read.`,
  );
}

/** A value that is written out, or that a reference led to. */
function literal(name: string, { kind, unit }: AttributeSchema, json: Json): Meaning | ValueFault {
  const wrong = (wanted: string, hint?: string): ValueFault =>
    new ValueFault("schema/value", `\`${name}\` must be ${wanted}, not ${show(json)}`, hint);
  if (typeof json === "string" && /^(?:LAZY|DATA) /.test(json)) return leftOpen(name, json);
  switch (kind.kind) {
    case "integer": {
      const range =
        kind.maximum === Number.MAX_SAFE_INTEGER
          ? `at least ${kind.minimum}`
          : `from ${kind.minimum} to ${kind.maximum}`;
      if (typeof json !== "number" || !Number.isInteger(json))
        return wrong(
          "a whole number",
          inUnit(json, unit) ??
            `Write it ${typeof json === "number" ? "without a fraction" : "without quotes"}, ${range}${unit ? ` ${unit}` : ""}.`,
        );
      if (json < kind.minimum || json > kind.maximum)
        return new ValueFault("schema/range", `\`${name}\` is ${json}; it must be ${range}${unit ? ` ${unit}` : ""}`);
      return { kind: "number", value: json };
    }
    case "boolean":
      return typeof json === "boolean"
        ? { kind: "boolean", value: json }
        : wrong("true or false", `Write ${truthMeant(String(json)) ?? "it"}, without quotes.`);
    case "choice":
      if (typeof json === "string" && kind.values.includes(json)) return text(json);
      return wrong(kind.values.map((value) => `"${value}"`).join(" or "), didYouMean(String(json), kind.values).hint);
    case "networks":
      return list(name, json, readNetwork) ?? wrong('a list of networks or "internet"', 'Write ["192.168.0.0/16"].');
    case "groups":
      return list(name, json, readGroup) ?? wrong("a list of multicast addresses", 'Write ["239.255.0.1"].');
    case "labels":
      return kind.paths
        ? (list(name, json, readAccountPath) ?? wrong("a list of paths of accounts", 'Write ["ROOT/acme/dev"].'))
        : kind.images
          ? (list(name, json, readImage) ?? wrong("a list of images", 'Write ["debian"].'))
          : (list(name, json, readLabel) ?? wrong("a list of words", 'Write ["ssd"].'));
    case "rules":
      if (show(json) === "[]") return wrong("at least one rule", 'Write ["allow cell.read"].');
      if (Array.isArray(json) && json.length > mostRules) return wrong(`at most ${mostRules} rules`);
      return list(name, json, readRuleText) ?? wrong("a list of rules", 'Write ["deny vm.console", "allow vm.*"].');
    case "words": {
      const right = quoted(kind.values);
      if (show(json) === "[]") return wrong(`at least one of ${right}`, `Leave \`${name}\` out for all of them.`);
      return list(name, json, readWord(kind.values)) ?? wrong(`a list of ${right}`, `Write ["${kind.values[0]}"].`);
    }
    case "addresses":
      if (Array.isArray(json) && json.length > mostAddresses)
        return new ValueFault(
          "schema/value",
          `\`${name}\` has ${json.length} addresses; at most ${mostAddresses} are asked`,
        );
      return list(name, json, readAddress) ?? wrong("a list of IPv4 addresses", 'Write ["10.0.0.9"].');
    case "ports":
      return ports(json) ?? wrong('a port or "from-to", 1 to 65535', 'Write 80, "80" or "8000-8080".');
    case "link":
      return wrong(
        `a reference to a ${kind.to.join(" or ")}`,
        'Write "<ref:/path>", which starts at the document, or "<ref:../name>", which starts at the component around this one.',
      );
    case "domain":
      return wrong("a reference to another cell", 'Write "<ref://other.cells.example.com/>".');
    case "data":
      return { kind: "data", value: json };
    default:
      return typeof json === "string" && json !== ""
        ? textLiteral(name, kind, json)
        : wrong("a text", "Write it in double quotes.");
  }
}

function textLiteral(name: string, kind: AttributeKind, value: string): Meaning | ValueFault {
  const wrong = (wanted: string, hint?: string): ValueFault =>
    new ValueFault("schema/value", `\`${name}\` must be ${wanted}, not ${show(value)}`, hint);
  switch (kind.kind) {
    case "label":
      if ((kind.mixedCase ? mixedLabelPattern : labelPattern).test(value)) return text(value);
      return wrong(
        "a DNS label",
        `Use up to 63 ${kind.mixedCase ? "" : "lower-case "}letters, digits and \`-\`, with no \`-\` at either end.`,
      );
    case "address":
      return parseIpv4(value) === null ? wrong("an IPv4 address", "Write it like 10.64.0.5.") : text(value);
    case "network":
    case "end": {
      if (kind.kind === "end" && (value === "internet" || value === "controller"))
        return { kind: "end", value: { kind: value } };
      const network = parseNetwork(value);
      if (!network) {
        if (kind.kind === "network") return wrong("a network in CIDR notation", "Write it like 10.64.0.0/24.");
        return wrong(
          'a reference, an address or CIDR, "internet" or "controller"',
          `An element is written "<ref:../${value}>".`,
        );
      }
      if (network.hostBits) return beyondPrefix(value, network);
      if (kind.kind === "network") return text(formatNetwork(network));
      return { kind: "end", value: { kind: "cidr", cidr: cidr(formatNetwork(network)) } };
    }
    case "mac": {
      const mac = value.toLowerCase();
      if (!/^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/.test(mac))
        return wrong("a MAC address", "Write it like 02:00:0a:40:00:05.");
      if (Number.parseInt(mac.slice(0, 2), 16) % 2 === 1)
        return wrong(
          "the MAC address of a single network card",
          "Make its first byte even: an odd one makes it an address of many.",
        );
      return text(mac);
    }
    case "path":
      return text(value.replace(/^\//, ""));
    default:
      return text(value);
  }
}

const lists = new Set<AttributeKind["kind"]>(["networks", "groups", "labels", "rules", "words", "addresses"]);
type ReadItem = (name: string, text: string) => string | ValueFault;

/** A list of texts, each once; null: it is none. */
function list(name: string, json: Json, read: ReadItem): Meaning | ValueFault | null {
  if (!Array.isArray(json) || !json.every((item) => typeof item === "string")) return null;
  const items: string[] = [];
  for (const text of json) {
    const item = read(name, text);
    if (item instanceof ValueFault) return item;
    if (items.includes(item))
      return new ValueFault("schema/value", `\`${name}\` has ${show(item)} twice`, "Leave out one of the two.");
    items.push(item);
  }
  return { kind: "texts", value: Object.freeze(items) };
}

const quoted = (values: readonly string[]): string => values.map((value) => `"${value}"`).join(", ");
const readWord =
  (values: readonly string[]): ReadItem =>
  (name, item) => {
    if (values.includes(item)) return item;
    const said = `\`${name}\` has ${show(item)}, which is none of ${quoted(values)}`;
    return new ValueFault("schema/value", said, didYouMean(item, values).hint);
  };

function readNetwork(name: string, item: string): string | ValueFault {
  if (item === "internet") return item;
  const network = parseNetwork(item);
  if (network === null)
    return new ValueFault(
      "schema/value",
      `\`${name}\` has ${show(item)}, which is no network in CIDR notation`,
      'Write it like 192.168.0.0/16; all addresses outside of the installation are "internet".',
    );
  return network.hostBits ? beyondPrefix(item, network) : formatNetwork(network);
}

function readGroup(name: string, item: string): string | ValueFault {
  const address = parseIpv4(item);
  if (address !== null && address >>> 28 === 14) return item;
  const what = address === null ? "no IPv4 address" : "no multicast group";
  return new ValueFault(
    "schema/value",
    `\`${name}\` has ${show(item)}, which is ${what}`,
    "Groups are the addresses from 224.0.0.0 to 239.255.255.255; those that a cell may use as it likes begin with 239.",
  );
}

function readLabel(name: string, item: string): string | ValueFault {
  if (labelPattern.test(item)) return item;
  return new ValueFault(
    "schema/value",
    `\`${name}\` has ${show(item)}, which is no word`,
    "A word has lower-case letters, digits and `-`, at most 63, the first and the last no `-`: write one.",
  );
}

function readAddress(name: string, item: string): string | ValueFault {
  if (parseIpv4(item) !== null) return item;
  return new ValueFault(
    "schema/value",
    `\`${name}\` has ${show(item)}, which is no IPv4 address`,
    "Write it like 10.0.0.9.",
  );
}

const beyondPrefix = (text: string, network: Network): ValueFault =>
  new ValueFault(
    "schema/value",
    `${show(text)} has bits set beyond its prefix`,
    `The network is written "${formatNetwork(network)}".`,
  );

function ports(json: Json): Meaning | null {
  const match = /^([0-9]{1,5})(?:-([0-9]{1,5}))?$/.exec(
    typeof json === "number" ? String(json) : typeof json === "string" ? json : "",
  );
  if (!match) return null;
  const from = Number(match[1]);
  const to = Number(match[2] ?? match[1]);
  return from >= 1 && from <= to && to <= 65_535 ? { kind: "ports", value: { from, to } } : null;
}

/** `x.data` and the like: any structure, in which references are replaced by what they lead to. */
function readData(context: DocumentContext, holder: readonly string[], name: string, json: Json): Meaning | ValueFault {
  const value = isObject(json) ? copyObject(context, [...holder, name], json, 0) : copyData(context, holder, json, 0);
  return value instanceof ValueFault ? value : { kind: "data", value };
}

function copyData(context: DocumentContext, holder: readonly string[], json: Json, depth: number): Json | ValueFault {
  if (depth > limits.nesting || --context.budget < 0) return tooLarge();
  if (typeof json === "string") {
    const reference = referenceIn(json);
    if (reference === null) return copyText(context, json);
    const target = follow(context.document, holder, reference);
    if (isFault(target)) return new ValueFault(target.code, target.message, target.hint);
    if (target.kind === "foreign" || target.kind === "unknown") return json;
    if (target.kind === "value")
      return Array.isArray(target.value)
        ? copyData(context, [], target.value, depth + 1)
        : copyText(context, target.value);
    const path = target.path.join("/");
    return context.types.has(path)
      ? copyText(context, path)
      : copyObject(context, target.path, target.component, depth);
  }
  // An object inside a vector has no path of its own.
  if (isObject(json)) return copyObject(context, holder, json, depth + 1);
  return Array.isArray(json) ? copyArray(context, holder, json, depth) : json;
}

function copyText(context: DocumentContext, json: Json): Json | ValueFault {
  if (typeof json === "string") context.characters -= json.length;
  return context.characters < 0 ? tooLarge() : json;
}

function copyArray(
  context: DocumentContext,
  holder: readonly string[],
  items: readonly Json[],
  depth: number,
): Json | ValueFault {
  const copies: Json[] = [];
  for (const item of items) {
    const copy = copyData(context, holder, item, depth + 1);
    if (copy instanceof ValueFault) return copy;
    copies.push(copy);
  }
  return Object.freeze(copies);
}

/** `path` is the object's own: references in it lead from there. */
function copyObject(
  context: DocumentContext,
  path: readonly string[],
  object: JsonObject,
  depth: number,
): Json | ValueFault {
  const known = context.copies.get(object);
  if (known) {
    context.budget -= known.size;
    context.characters -= known.characters;
    const large = depth + known.height > limits.nesting || context.budget < 0 || context.characters < 0;
    return large ? tooLarge() : known.json;
  }
  if (depth > limits.nesting) return tooLarge();
  const { budget, characters } = context;
  const copies: [string, Json][] = [];
  let height = 0;
  for (const [name, item] of Object.entries(object)) {
    if (isObject(item) && --context.budget < 0) return tooLarge();
    const copy = isObject(item)
      ? copyObject(context, [...path, name], item, depth + 1)
      : copyData(context, path, item, depth + 1);
    if (copy instanceof ValueFault) return copy;
    copies.push([name, copy]);
    height = Math.max(height, heightOf(context, item, copy));
  }
  if (copies.length === 0) return nothing;
  const json = Object.freeze(Object.fromEntries(copies));
  const copy = { json, size: budget - context.budget, characters: characters - context.characters, height };
  context.copies.set(object, copy);
  context.copies.set(json, copy);
  return json;
}

/** Levels that an item adds to what holds it. */
function heightOf(context: DocumentContext, item: Json, copy: Json): number {
  if (Array.isArray(copy))
    return copy.reduce((most: number, each: Json) => Math.max(most, 1 + heightOf(context, each, each)), 1);
  if (!isObject(copy)) return 1;
  return 1 + ((isObject(item) ? context.copies.get(item) : context.copies.get(copy))?.height ?? 0);
}

const tooLarge = (): ValueFault =>
  new ValueFault(
    "limit/data",
    "This structure contains itself through a reference, or is too large",
    "Refer to the parts that are needed.",
  );
