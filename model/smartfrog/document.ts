import type { Bundle } from "../cell/cell.ts";
import type { Position } from "../diagnostics/diagnostic.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { AttributePositions, MadeFrom, ObjectPositions, Positions, Replaced } from "../diagnostics/positions.ts";
import { markIncomplete, unknownValue } from "../diagnostics/unknown.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { type InSlices, inOneGo } from "../slices.ts";
import type { Attribute, Component, Value } from "./component.ts";
import { attributeOf, constantOrigin } from "./phases/copies.ts";
import { boundExpansion } from "./phases/expansion.ts";
import { link } from "./phases/linker.ts";
import { bounded, costOf, type Phases, runPhasesInSlices } from "./phases/phases.ts";
import type { Resolver } from "./phases/resolver.ts";
import { replacedBy } from "./phases/templates.ts";
import { linkReached } from "./reached.ts";
import { standardFiles } from "./standard-files.ts";
import { shortestFloat } from "./text/java-number.ts";
import { leftUnlinked } from "./text/print.ts";

/**
 * A SmartFrog bundle through all phases. `sfConfig`, if the document has one, is the only part that is linked. Faults go
 * to `diagnostics`. With some of them nothing is left, and the answer is null; with the others what is left can still be
 * checked, so that all faults of a text are told in one go.
 */
export const resolveSmartFrog = (
  bundle: Bundle,
  standard: readonly string[],
  diagnostics: Diagnostics,
): Phases | null => inOneGo(resolveInSlices(bundle, standard, diagnostics));
export function* resolveInSlices(
  bundle: Bundle,
  standard: readonly string[],
  diagnostics: Diagnostics,
): InSlices<Phases | null> {
  const phases = yield* runPhasesInSlices(bundle, standard, diagnostics, true);
  if (typeof phases === "string" || diagnostics.full) return null;
  yield costOf(bundle);
  return bounded(() => {
    const grew = linkDocument(phases, diagnostics);
    if (diagnostics.full) return null;
    const typed = new Typed();
    if (grew) boundExpansion(phases.root, diagnostics, (linked) => !typed.has(linked));
    return phases;
  });
}

/**
 * Links what is deployed: `sfConfig` if there is one, else the components of type Cell. The templates beside a cell may
 * leave to their users what is still missing in them, so `TBD`, unknown names and functions that lack their parameters
 * are no faults there. Answers whether the document got larger.
 */
function linkDocument({ root, resolver }: Phases, diagnostics: Diagnostics): boolean {
  const faults = diagnostics.size;
  const isSound = (): boolean => diagnostics.size === faults;
  const parts = [...root.attributes.values()].map(({ content }) => content).filter((part) => part.kind === "component");
  const configuration = parts.find((part) => part.name === "sfConfig");
  const cells = parts.filter((part) => isCell(part));
  if (configuration) {
    link(configuration, resolver, diagnostics);
    linkReached(root, [configuration], resolver, diagnostics);
    return true;
  }
  let grew = false;
  for (const cell of cells) grew = link(cell, resolver, diagnostics) || grew;
  const outside = new Diagnostics(cells.length > 0 ? templateFaults : []);
  try {
    grew = link(root, resolver, outside) || grew;
  } finally {
    // Also those of a limit, which ends it.
    for (const fault of outside.list) diagnostics.add(fault);
  }
  if (cells.length === 0 || (isSound() && !outside.passedOver)) return grew;
  linkReached(root, cells, resolver, diagnostics);
  return true;
}
const templateFaults = ["link/tbd", "link/unknown", "link/operand", "link/function", "link/assertion"];

function isCell(component: Component): boolean {
  const type = attributeOf(component, "x.type")?.content;
  return type?.kind === "scalar" && type.scalar.kind === "string" && type.scalar.value === "Cell";
}

/**
 * The canonical JSON of a resolved document, with the positions of everything in it. What JSON cannot hold goes to
 * `diagnostics`.
 */
export function smartFrogDocument(
  { root, resolver }: Phases,
  diagnostics: Diagnostics,
): { readonly document: JsonObject; readonly positions: Positions } {
  const writer = new DocumentWriter(resolver, diagnostics);
  const document = writer.component(root);
  writer.sayLongs();
  return { document, positions: writer };
}

const outcomeOf = (attribute: Attribute): Value | null => leftUnlinked(attribute) ?? linkedValue(attribute);
const linkedValue = ({ content, link }: Attribute): Value | null =>
  link.state === "done" ? link.value : content.kind === "scalar" ? content.scalar : null;
/** Assertions have been checked, and nobody else asks for them. */
function isGone(attribute: Attribute): boolean {
  const value = outcomeOf(attribute);
  return (
    value?.kind === "nothing" ||
    (value?.kind === "lazy" && value.form === "ASSERT") ||
    attribute.tags.includes("sfTemp")
  );
}

class ComponentPositions implements ObjectPositions {
  readonly #component: Component;

  constructor(component: Component) {
    this.#component = component;
  }
  get(name: string): AttributePositions | undefined {
    const attribute = attributeOf(this.#component, name);
    return attribute && places(attribute);
  }
  *values(): Iterable<AttributePositions> {
    for (const attribute of this.#component.attributes.values()) if (!isGone(attribute)) yield places(attribute);
  }
}
const places = (attribute: Attribute): AttributePositions => {
  const { namePosition: name, position: value } = attribute;
  return { name, value };
};

class DocumentWriter implements Positions {
  /** What each object was written from, which knows the positions: hardly one is ever asked for. */
  readonly #sources = new Map<JsonObject, Component>();
  /** Written once, however often it was copied. */
  readonly #constants = new Map<Component, JsonObject>();
  readonly #made = new Map<JsonObject, MadeFrom>();
  /** Who asks for a position asks for another one of the same object. */
  #last: { readonly object: JsonObject; readonly positions: ObjectPositions | undefined } | null = null;
  readonly #typed = new Typed();
  /** Numbers that JSON would not hold as they are, wherever they stand. */
  readonly #longs: { readonly number: string; readonly position: Position }[] = [];
  /** Components being written: a link to one of these would have no end. */
  readonly #open = new Set<Component>();
  readonly #resolver: Resolver;
  readonly #diagnostics: Diagnostics;
  /** What has no value because of one of these is not missed again. */
  readonly #faulty: boolean;

  constructor(resolver: Resolver, diagnostics: Diagnostics) {
    this.#resolver = resolver;
    this.#diagnostics = diagnostics;
    this.#faulty = !diagnostics.none;
  }

  /** Of a number that a template of ours only hands on its writer is told where he wrote it. */
  sayLongs(): void {
    const isOurs = ({ file }: Position): boolean => standardFiles.has(file);
    const own = new Set(this.#longs.flatMap(({ number, position }) => (isOurs(position) ? [] : [number])));
    for (const { number, position } of this.#longs)
      if (!isOurs(position) || !own.has(number))
        this.#diagnostics.add({
          code: "link/long",
          message: `${number} is beyond 2^53, and the numbers of a cell are exact up to there only`,
          hint: `Write it as a text: "${number}".`,
          position,
        });
  }

  get(object: JsonObject): ObjectPositions | undefined {
    if (this.#last?.object === object) return this.#last.positions;
    const component = this.#sources.get(object);
    const positions = component && new ComponentPositions(component);
    this.#last = { object, positions };
    return positions;
  }

  madeFrom(object: JsonObject): MadeFrom | undefined {
    return this.#made.get(object);
  }
  replaced(object: JsonObject): Replaced | undefined {
    const component = this.#sources.get(object);
    return component && replacedBy(component);
  }

  component(component: Component): JsonObject {
    const origin = constantOrigin(component);
    return origin ? this.#constant(origin) : this.#written(component);
  }
  #constant(component: Component): JsonObject {
    const known = this.#constants.get(component) ?? this.#written(component);
    this.#constants.set(component, known);
    return known;
  }

  /** What was made from a template of plain values, as a copy of that; null if its own attributes are too special. */
  #fromTemplate(component: Component, template: Component): JsonObject | null {
    const { own } = component;
    const made = this.#constant(template);
    for (const [name, attribute] of own) {
      const misplaced = name === "x.type" && !Object.hasOwn(made, name);
      if (misplaced || name === "__proto__" || isGone(attribute)) return null;
    }
    this.#open.add(component);
    const json: Record<string, Json> = { ...made };
    for (const [name, attribute] of own) json[name] = this.#attribute(attribute);
    this.#open.delete(component);
    this.#made.set(json, { template: made, own });
    return this.#finished(json, component);
  }

  #written(component: Component): JsonObject {
    const made = component.template && this.#fromTemplate(component, component.template);
    if (made) return made;
    this.#open.add(component);
    const { attributes } = component;
    const json: Record<string, Json> = {};
    const type = attributes.get("x.type");
    if (type && !isGone(type)) json["x.type"] = this.#attribute(type);
    for (const [name, attribute] of attributes) {
      if (attribute === type || isGone(attribute)) continue;
      if (name !== "__proto__") json[name] = this.#attribute(attribute);
      else Object.defineProperty(json, name, { value: this.#attribute(attribute), enumerable: true });
    }
    this.#open.delete(component);
    return this.#finished(json, component);
  }
  #finished(json: Record<string, Json>, component: Component): JsonObject {
    this.#sources.set(json, component);
    if (this.#resolver.isIncomplete(component)) markIncomplete(json);
    return Object.freeze(json);
  }

  #attribute(attribute: Attribute): Json {
    const { content } = attribute;
    if (content.kind === "component" && content.role === "plain") return this.component(content);
    const value = outcomeOf(attribute);
    if (value === null) return this.#faulty ? unknownValue : null;
    return this.#value(value, attribute.position);
  }

  #value(value: Value, position: Position): Json {
    switch (value.kind) {
      case "component":
        // A link to an element is a reference to it, not a second element.
        if (value.parent && value.parent.role !== "plain" && !this.#open.has(value)) return this.component(value);
        return this.#open.has(value) || this.#typed.has(value) ? `<ref:${pathOf(value)}>` : this.component(value);
      case "vector":
        return Object.freeze(value.items.map((item) => this.#value(item, position)));
      case "null":
      case "nothing":
        return null;
      case "bytes":
        return `#HEX#${value.value}#`;
      case "lazy":
        return value.text;
      case "number":
        if (value.type !== "long") return value.single ? shortestFloat(value.value) : value.value;
        if (!Number.isSafeInteger(Number(value.value))) this.#longs.push({ number: String(value.value), position });
        return Number(value.value);
      default:
        return value.value;
    }
  }
}

/** Which components are elements or hold some. */
class Typed {
  readonly #known = new Map<Component, boolean>();

  has(component: Component): boolean {
    const known = this.#known.get(component);
    if (known !== undefined) return known;
    const { attributes } = component;
    const typed =
      attributes.has("x.type") ||
      [...attributes.values()].some(({ content }) => content.kind === "component" && this.has(content));
    this.#known.set(component, typed);
    return typed;
  }
}

function pathOf(component: Component): string {
  const names: string[] = [];
  // What a function gives stands where the function does, under the function's name.
  for (let at = component; at.parent; at = at.parent) if (at.parent.role === "plain") names.unshift(at.name);
  return `/${names.join("/")}`;
}
