import type { Bundle } from "../cell.ts";
import { Diagnostics } from "../diagnostics.ts";
import type { Json, JsonObject } from "../json.ts";
import { PositionedBuilder, type PositionedEntry, type Positions } from "../positions.ts";
import type { Component, Value } from "./component.ts";
import { boundExpansion } from "./expansion.ts";
import { link } from "./linker.ts";
import { guarded, type Phases, runPhases } from "./phases.ts";

/**
 * A SmartFrog bundle through all phases. `sfConfig`, if the document has one, is the only part that is linked (LANGUAGE,
 * step 1). Faults go to `diagnostics`, then the answer is null.
 */
export function resolveSmartFrog(
  bundle: Bundle,
  standard: readonly string[],
  diagnostics: Diagnostics,
): Component | null {
  const phases = runPhases(bundle, standard, diagnostics);
  if (typeof phases === "string") return null;
  return guarded(diagnostics, () => {
    linkDocument(phases, diagnostics);
    const typed = new Typed();
    if (diagnostics.none) boundExpansion(phases.root, diagnostics, (linked) => !typed.has(linked));
    return phases.root;
  });
}

/**
 * Links what is deployed: `sfConfig` if there is one, else the components of type Cell. The templates beside a cell may
 * leave to their users what is still missing in them, so `TBD`, unknown names and functions that lack their parameters
 * are no faults there.
 */
function linkDocument({ root, resolver }: Phases, diagnostics: Diagnostics): void {
  const parts = [...root.attributes.values()].map(({ content }) => content).filter((part) => part.kind === "component");
  const configuration = parts.find((part) => part.name === "sfConfig");
  const cells = parts.filter((part) => part.attributes.has("x.type") && isCell(part));
  if (configuration) {
    link(configuration, resolver, diagnostics);
    return;
  }
  for (const cell of cells) link(cell, resolver, diagnostics);
  if (!diagnostics.none) return;
  const outside = new Diagnostics(cells.length > 0 ? templateFaults : []);
  link(root, resolver, outside);
  for (const fault of outside.list) diagnostics.add(fault);
}
const templateFaults = ["link/tbd", "link/unknown", "link/operand", "link/function", "link/assertion"];

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
  readonly #typed = new Typed();
  /** Components being written: a link to one of these would have no end. */
  readonly #open = new Set<Component>();

  component(component: Component): JsonObject {
    this.#open.add(component);
    const entries = new Map<string, PositionedEntry>();
    for (const [name, { namePosition, position, content, link, tags }] of component.attributes) {
      const value = link.state === "done" ? link.value : content.kind === "scalar" ? content.scalar : null;
      // Assertions have been checked, and nobody else asks for them.
      const gone = value?.kind === "nothing" || (value?.kind === "lazy" && value.form === "ASSERT");
      if (gone || tags.includes("sfTemp")) continue;
      let json: Json = null;
      if (content.kind === "component" && content.role === "plain") json = this.component(content);
      else if (value) json = this.#value(value);
      entries.set(name, { name: namePosition, value: position, json });
    }
    this.#open.delete(component);
    return this.builder.object(entries);
  }

  #value(value: Value): Json {
    switch (value.kind) {
      case "component":
        // A link to an element is a reference to it, not a second element.
        if (value.parent && value.parent.role !== "plain" && !this.#open.has(value)) return this.component(value);
        return this.#open.has(value) || this.#typed.has(value) ? `<ref:${pathOf(value)}>` : this.component(value);
      case "vector":
        return Object.freeze(value.items.map((item) => this.#value(item)));
      case "null":
      case "nothing":
        return null;
      case "bytes":
        return `#HEX#${value.value}#`;
      case "lazy":
        return value.text;
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
