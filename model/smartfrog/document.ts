import type { Bundle } from "../cell.ts";
import { Diagnostics } from "../diagnostics.ts";
import type { Json, JsonObject } from "../json.ts";
import type { AttributePositions, Positions } from "../positions.ts";
import type { Attribute, Component, Value } from "./component.ts";
import { link } from "./linker.ts";
import { parseBundle } from "./parser.ts";
import { constantOrigin, limitPassed, resolveTypes } from "./resolver.ts";
import { checkSize } from "./size.ts";

/**
 * A SmartFrog bundle through all phases. `sfConfig`, if the document has one, is the only part that is linked (LANGUAGE,
 * step 1). Faults go to `diagnostics`, then the answer is null.
 */
export function resolveSmartFrog(
  bundle: Bundle,
  standard: readonly string[],
  diagnostics: Diagnostics,
): Component | null {
  const attributes = parseBundle(bundle, diagnostics);
  if (!diagnostics.none) return null;
  try {
    const origin = { file: bundle.main, line: 1, column: 1, length: 1 };
    const root = resolveTypes(attributes, standard, origin, diagnostics);
    if (!diagnostics.none) return null;
    const shares = linkDocument(root, diagnostics);
    if (shares && diagnostics.none) checkSize(root, diagnostics);
    return diagnostics.none ? root : null;
  } catch (thrown) {
    if (thrown === limitPassed) return null;
    throw thrown;
  }
}

/**
 * Links what is deployed: `sfConfig` if there is one, else the components of type Cell. The templates beside a cell may
 * leave to their users what is still missing in them, so `TBD` and unknown names are no faults there. Answers whether
 * anything may be shared.
 */
function linkDocument(root: Component, diagnostics: Diagnostics): boolean {
  const parts = [...root.attributes.values()].map(({ content }) => content).filter((part) => part.kind === "component");
  const configuration = parts.find((part) => part.name === "sfConfig");
  const cells = parts.filter((part) => part.attributes.has("x.type") && isCell(part));
  if (configuration) {
    link(configuration, diagnostics);
    return true;
  }
  for (const cell of cells) link(cell, diagnostics);
  if (!diagnostics.none) return false;
  const outside = new Diagnostics(cells.length > 0 ? ["link/tbd", "link/unknown"] : []);
  try {
    return link(root, outside);
  } finally {
    for (const fault of outside.list) diagnostics.add(fault);
  }
}

function isCell(component: Component): boolean {
  const type = component.attributes.get("x.type")?.content;
  return type?.kind === "scalar" && type.scalar.kind === "string" && type.scalar.value === "Cell";
}

/** The canonical JSON of a resolved document, with the positions of everything in it. */
export function smartFrogDocument(root: Component): { readonly document: JsonObject; readonly positions: Positions } {
  const writer = new DocumentWriter();
  return { document: writer.component(root), positions: writer };
}

class DocumentWriter implements Positions {
  /** What each object was written from, which knows the positions: hardly one is ever asked for. */
  readonly #sources = new Map<JsonObject, Component>();
  /** Written once, however often it was copied. */
  readonly #constants = new Map<Component, JsonObject>();
  readonly #typed = new Map<Component, boolean>();
  /** Components being written: a link to one of these would have no end. */
  readonly #open = new Set<Component>();

  get(object: JsonObject): { get(name: string): AttributePositions | undefined } | undefined {
    const attributes = this.#sources.get(object)?.attributes;
    return (
      attributes && {
        get: (name) => {
          const attribute = attributes.get(name);
          return attribute && { name: attribute.namePosition, value: attribute.position };
        },
      }
    );
  }

  component(component: Component): JsonObject {
    const origin = constantOrigin(component);
    if (!origin) return this.#written(component);
    const known = this.#constants.get(origin) ?? this.#written(origin);
    this.#constants.set(origin, known);
    return known;
  }

  #written(component: Component): JsonObject {
    this.#open.add(component);
    const { attributes } = component;
    const json: Record<string, Json> = {};
    const type = attributes.get("x.type");
    if (type) json["x.type"] = this.#attribute(type);
    for (const [name, attribute] of attributes) {
      if (attribute === type) continue;
      if (name !== "__proto__") json[name] = this.#attribute(attribute);
      else Object.defineProperty(json, name, { value: this.#attribute(attribute), enumerable: true });
    }
    this.#open.delete(component);
    const object = Object.freeze(json);
    this.#sources.set(object, component);
    return object;
  }

  #attribute({ content, link }: Attribute): Json {
    if (content.kind === "component") return this.component(content);
    if (link.state === "done") return this.#value(link.value);
    return content.kind === "scalar" ? this.#value(content.scalar) : null;
  }

  #value(value: Value): Json {
    switch (value.kind) {
      case "component":
        // A link to an element is a reference to it, not a second element.
        return this.#open.has(value) || this.#hasType(value) ? `<ref:${pathOf(value)}>` : this.component(value);
      case "vector":
        return Object.freeze(value.items.map((item) => this.#value(item)));
      case "null":
        return null;
      case "bytes":
        return `#HEX#${value.value}#`;
      case "lazy":
        return value.text;
      default:
        return value.value;
    }
  }

  #hasType(component: Component): boolean {
    const known = this.#typed.get(component);
    if (known !== undefined) return known;
    const { attributes } = component;
    const typed =
      attributes.has("x.type") ||
      [...attributes.values()].some(({ content }) => content.kind === "component" && this.#hasType(content));
    this.#typed.set(component, typed);
    return typed;
  }
}

function pathOf(component: Component): string {
  const names: string[] = [];
  for (let at = component; at.parent; at = at.parent) names.unshift(at.name);
  return `/${names.join("/")}`;
}
