import { referenceIn } from "../cell/reference.ts";
import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Attribute, Component, Value } from "./component.ts";
import { constantOrigin } from "./phases/copies.ts";
import { linkAttributes } from "./phases/linker.ts";
import type { Resolver } from "./phases/resolver.ts";

/**
 * Links what elements refer to by a text such as `<ref:/params/memory>` and what stands outside of the linked parts: a
 * template may lack values, but not one that an element takes from it. What is reached and has no value is a fault.
 */
export function linkReached(
  root: Component,
  linked: readonly Component[],
  resolver: Resolver,
  diagnostics: Diagnostics,
): void {
  reopen(root, new Set([...linked]));
  const reached = new Reached(root, linked);
  for (const component of linked) reached.within(component);
  linkAttributes(reached.pending(), resolver, diagnostics);
}

/** What failed while nobody needed it may be tried again, so that it is told where it does matter. */
function reopen(component: Component, except: Set<Component>): void {
  if (except.has(component) || constantOrigin(component)) return;
  except.add(component);
  for (const attribute of unlike(component)) {
    if (attribute.link.state === "failed") attribute.link = { state: "open" };
    if (attribute.content.kind === "component") reopen(attribute.content, except);
  }
}

/** All but those of a template of plain values, which refer to nothing. */
const unlike = (component: Component): Iterable<Attribute> =>
  (component.template ? component.own : component.attributes).values();

interface Place {
  readonly holder: Component;
  readonly attribute: Attribute;
}

class Reached {
  readonly #root: Component;
  readonly #linked: ReadonlySet<Component>;
  readonly #seen = new Set<Component | Attribute>();
  readonly #open: Place[] = [];

  constructor(root: Component, linked: readonly Component[]) {
    this.#root = root;
    this.#linked = new Set(linked);
  }

  /** Every attribute that is reached and not linked yet, each once; what it refers to comes after it. */
  *pending(): Iterable<Place> {
    for (let place = this.#open.pop(); place; place = this.#open.pop()) {
      const { holder, attribute } = place;
      if (attribute.content.kind !== "component") yield place;
      this.#value(holder, currentValue(attribute));
    }
  }

  /** Looks for references in all of a component. */
  within(component: Component): void {
    if (this.#seen.has(component) || constantOrigin(component)) return;
    this.#seen.add(component);
    for (const attribute of unlike(component)) this.#value(component, currentValue(attribute));
  }

  #value(holder: Component, value: Value | null): void {
    if (value === null) return;
    if (value.kind === "component") this.#component(value);
    else if (value.kind === "vector") for (const item of value.items) this.#value(holder, item);
    else if (value.kind === "string") {
      const path = referenceIn(value.value);
      if (path !== null && !path.startsWith("//")) this.#follow(holder, path);
    }
  }

  /** One outside of the linked parts has attributes to be linked; one inside has been looked through. */
  #component(component: Component): void {
    if (this.#seen.has(component) || constantOrigin(component)) return;
    if (this.#isLinked(component)) {
      this.within(component);
      return;
    }
    this.#seen.add(component);
    for (const attribute of component.attributes.values()) this.#reach({ holder: component, attribute });
  }
  #reach(place: Place): void {
    if (this.#seen.has(place.attribute)) return;
    this.#seen.add(place.attribute);
    this.#open.push(place);
  }
  #isLinked(component: Component): boolean {
    for (let at: Component | null = component; at; at = at.parent) if (this.#linked.has(at)) return true;
    return false;
  }

  /** To what a reference leads, as far as components and links lead there. What leads nowhere is told by the check. */
  #follow(holder: Component, path: string): void {
    let at: Component | null = path.startsWith("/") ? this.#root : holder;
    const parts = path.split("/").filter((part) => part !== "" && part !== ".");
    for (const [index, part] of parts.entries()) {
      if (part === "..") {
        at = at?.parent ?? null;
        continue;
      }
      const attribute: Attribute | undefined = at?.attributes.get(part);
      if (!at || !attribute) return;
      const value = currentValue(attribute);
      if (value?.kind !== "component" || index === parts.length - 1) {
        if (!this.#isLinked(at)) this.#reach({ holder: at, attribute });
        return;
      }
      at = value;
    }
  }
}

function currentValue({ content, link }: Attribute): Value | null {
  if (link.state === "done") return link.value;
  if (content.kind === "scalar") return content.scalar;
  return content.kind === "component" && content.role === "plain" ? content : null;
}
