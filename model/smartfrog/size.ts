import type { Position } from "../diagnostic.ts";
import type { Diagnostics } from "../diagnostics.ts";
import { limits } from "../limits.ts";
import type { Component, Value } from "./component.ts";

interface Size {
  readonly attributes: number;
  readonly height: number;
}

/**
 * How large a linked document gets when it is written out. Links share what they lead to, and in writing everything
 * shared is repeated, so sixty lines can stand for 2^60 attributes. Each part is measured once, without writing it.
 */
export function checkSize(root: Component, diagnostics: Diagnostics): void {
  new Measure(diagnostics).component(root, 0);
}

class Measure {
  readonly #diagnostics: Diagnostics;
  readonly #known = new Map<Component | Value, Size>();
  #told = false;

  constructor(diagnostics: Diagnostics) {
    this.#diagnostics = diagnostics;
  }

  component(component: Component, depth: number): Size {
    const known = this.#known.get(component);
    if (known) return known;
    // What contains itself through a link is written as a reference there.
    this.#known.set(component, { attributes: 1, height: 1 });
    let [attributes, height] = [0, 0];
    for (const { content, link, position } of component.attributes.values()) {
      attributes += 1;
      let inside: Size | null = null;
      if (content.kind === "component") inside = this.component(content, depth + 1);
      else if (link.state === "done") inside = this.#value(link.value, depth + 1);
      if (!inside) continue;
      attributes += inside.attributes;
      height = Math.max(height, inside.height);
      this.#judge(attributes, depth + height + 1, position);
    }
    const size = { attributes, height: height + 1 };
    this.#known.set(component, size);
    return size;
  }

  #value(value: Value, depth: number): Size | null {
    if (value.kind === "component") return this.component(value, depth);
    if (value.kind !== "vector") return null;
    const known = this.#known.get(value);
    if (known) return known;
    let [attributes, height] = [value.items.length, 0];
    if (depth <= limits.nesting)
      for (const item of value.items) {
        const inside = this.#value(item, depth + 1);
        if (!inside) continue;
        attributes += inside.attributes;
        height = Math.max(height, inside.height);
      }
    const size = { attributes, height: height + 1 };
    this.#known.set(value, size);
    return size;
  }

  #judge(attributes: number, depth: number, position: Position): void {
    if (this.#told || (attributes <= limits.attributes && depth <= limits.nesting)) return;
    this.#told = true;
    this.#diagnostics.add(
      attributes > limits.attributes
        ? {
            code: "limit/attributes",
            message: `Written out with all that it links to, this has more than ${limits.attributes} attributes`,
            hint: "Link to an element, which is a reference, or to fewer and smaller components and vectors.",
            position,
          }
        : {
            code: "limit/nesting",
            message: `Written out with all that it links to, this is nested deeper than ${limits.nesting} levels`,
            hint: "Use fewer levels of components and vectors.",
            position,
          },
    );
  }
}
