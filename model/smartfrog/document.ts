import type { Bundle } from "../cell.ts";
import { Diagnostics } from "../diagnostics.ts";
import type { Json, JsonObject } from "../json.ts";
import { PositionedBuilder, type PositionedEntry, type Positions } from "../positions.ts";
import type { Component, Value } from "./component.ts";
import { link } from "./linker.ts";
import { parseBundle } from "./parser.ts";
import { limitPassed, resolveTypes } from "./resolver.ts";
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
  return { document: writer.component(root), positions: writer.builder.positions };
}

class DocumentWriter {
  readonly builder = new PositionedBuilder();
  readonly #typed = new Map<Component, boolean>();
  /** Components being written: a link to one of these would have no end. */
  readonly #open = new Set<Component>();

  component(component: Component): JsonObject {
    this.#open.add(component);
    const entries = new Map<string, PositionedEntry>();
    for (const [name, { namePosition, position, content, link }] of component.attributes) {
      let json: Json = null;
      if (content.kind === "component") json = this.component(content);
      else if (link.state === "done") json = this.#value(link.value);
      else if (content.kind === "scalar") json = this.#value(content.scalar);
      entries.set(name, { name: namePosition, value: position, json });
    }
    this.#open.delete(component);
    return this.builder.object(entries);
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
