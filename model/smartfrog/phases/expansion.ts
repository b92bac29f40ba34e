import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import type { Component, Value } from "../component.ts";
import { constantOrigin } from "./copies.ts";
import { limitPassed } from "./resolver.ts";

/** What something is when written out: attributes and items, characters of its texts, levels. */
interface Extent {
  size: number;
  characters: number;
  depth: number;
}

/**
 * How much a tree grows when links to components, vectors and texts are written out as copies. Links share, so a small
 * text can mean a tree without end: that is found by counting, before anything is written. `isCopied` says which linked
 * components are. Throws `limitPassed` when a limit is told.
 */
export function boundExpansion(
  component: Component,
  diagnostics: Diagnostics,
  isCopied: (linked: Component) => boolean,
): void {
  new Expansion(diagnostics, isCopied).component(component, 0);
}

class Expansion {
  readonly #diagnostics: Diagnostics;
  readonly #isCopied: (linked: Component) => boolean;
  readonly #known = new Map<Value, Extent>();

  constructor(diagnostics: Diagnostics, isCopied: (linked: Component) => boolean) {
    this.#diagnostics = diagnostics;
    this.#isCopied = isCopied;
  }

  component(copy: Component, level: number): Extent {
    const at = constantOrigin(copy) ?? copy;
    const known = this.#known.get(at);
    if (known) return known;
    // One that would contain itself counts as nothing inside itself; that is told by who writes it.
    const extent: Extent = { size: 1, characters: 0, depth: 1 };
    this.#known.set(at, extent);
    for (const [name, { content, link }] of at.attributes) {
      const plain = content.kind === "component" && content.role === "plain" ? content : null;
      const value = link.state === "done" ? link.value : plain;
      extent.size++;
      extent.characters += name.length;
      if (value && (value === plain || value.kind !== "component" || this.#isCopied(value)))
        add(extent, this.#value(value, level + 1));
      this.#check(extent, level, at);
    }
    return extent;
  }

  #value(value: Value, level: number): Extent {
    if (value.kind === "component") return this.component(value, level);
    if (value.kind === "string" || value.kind === "bytes") return { size: 0, characters: value.value.length, depth: 0 };
    if (value.kind !== "vector") return nothing;
    const known = this.#known.get(value);
    if (known) return known;
    const extent: Extent = { size: value.items.length, characters: 0, depth: 1 };
    for (const item of value.items)
      if (item.kind !== "component" || this.#isCopied(item)) add(extent, this.#value(item, level + 1));
    this.#known.set(value, extent);
    return extent;
  }

  #check({ size, characters, depth }: Extent, level: number, at: Component): void {
    if (level + depth > 2 * limits.nesting)
      this.#stop("limit/nesting", "Components linked into one another are nested too deep here", at);
    if (size > limits.attributes)
      this.#stop("limit/attributes", `The tree grows beyond ${limits.attributes} attributes here`, at);
    if (characters > limits.characters)
      this.#stop("limit/text", `The names and texts of the tree grow beyond ${limits.characters} characters here`, at);
  }

  #stop(code: string, message: string, { position }: Component): never {
    this.#diagnostics.add({ code, message, position, hint: "Use fewer links to what is large." });
    throw limitPassed;
  }
}

const nothing: Extent = { size: 0, characters: 0, depth: 0 };

function add(to: Extent, inner: Extent): void {
  to.size += inner.size;
  to.characters += inner.characters;
  to.depth = Math.max(to.depth, inner.depth + 1);
}
