import { closestName } from "../closest-name.ts";
import type { Position } from "../diagnostic.ts";
import type { Diagnostics } from "../diagnostics.ts";
import { limits } from "../limits.ts";
import type { Attribute, Component, Placement } from "./component.ts";
import { type AttributeSyntax, type Expression, type Prototype, type Reference, referenceText } from "./syntax.ts";

/** Thrown when a limit is passed: going on would only cost more. The fault is already reported. */
export const limitPassed = Symbol("limit passed");

/**
 * Type and place phase: merges supertypes (LANGUAGE, step 1) and puts placed attributes where they belong. A supertype
 * is completed before it is copied; a component's own nested components are completed after its supertypes are merged,
 * so they see inherited names. `standard` are prototypes that are in scope as if included first.
 */
export function resolveTypes(
  attributes: readonly AttributeSyntax[],
  standard: readonly string[],
  origin: Position,
  diagnostics: Diagnostics,
): Component {
  const resolver = new Resolver(standard, diagnostics);
  const root = resolver.root(attributes, origin);
  if (diagnostics.none) resolver.place(root);
  return root;
}

class Resolver {
  readonly #standard: ReadonlyMap<string, Component>;
  readonly #diagnostics: Diagnostics;
  #attributes = 0;
  #unnamed = 0;
  #following = 0;
  #placed = 0;
  #places = false;
  /** Until placements change components that others were copied from. */
  #lazily = true;
  /** Every component that has something to place, in document order. */
  readonly #placing: Component[] = [];

  constructor(standard: readonly string[], diagnostics: Diagnostics) {
    this.#standard = new Map(standard.map((name) => [name, standardPrototype(name)]));
    this.#diagnostics = diagnostics;
  }

  root(attributes: readonly AttributeSyntax[], position: Position): Component {
    const root: Component = {
      ...{ kind: "component", parent: null, name: "", position, state: "new" },
      ...{ prototypes: [{ kind: "block", attributes }], attributes: new Map(), placements: [] },
    };
    this.#complete(root);
    return root;
  }

  /** In several passes: a placed component may be what another placement needs. */
  place(root: Component): void {
    if (!this.#places) return;
    collectPlacements(root, this.#placing);
    this.#lazily = false;
    let open = this.#placing.flatMap((component) =>
      component.placements.map((placement) => ({ component, placement })),
    );
    for (let progress = true; progress && open.length > 0; ) {
      const left = open.filter(({ component, placement }) => !this.#put(component, placement));
      progress = left.length < open.length;
      open = left;
    }
    for (const { placement } of open) {
      const target = placement.name.slice(0, -1).join(":");
      this.#diagnostics.add({
        code: "place/unresolved",
        message: `There is no component \`${target}\` to put \`${placement.name.at(-1)}\` into`,
        hint: "A placement `a:b value` needs a component `a` in scope.",
        position: placement.namePosition,
      });
    }
  }

  #put(component: Component, placement: Placement): boolean {
    const [first, ...rest] = placement.name.slice(0, -1);
    const name = placement.name.at(-1);
    if (first === undefined || name === undefined) return true;
    let target = child(enclosing(component, first), first);
    for (const part of rest) target = child(target, part);
    if (!target) return false;
    this.#set(target, name, placement, this.#instantiate(target, name, placement.value));
    const placed = child(target, name);
    if (placed) this.#complete(placed);
    return true;
  }

  #shape(component: Component): void {
    component.state = "shaping";
    for (const prototype of component.prototypes) {
      if (prototype.kind === "block") {
        for (const attribute of prototype.attributes) this.#add(component, attribute);
        continue;
      }
      const target = this.#supertype(component, prototype.reference);
      if (target) this.#inherit(component, target);
      // What is wrong with a type is wrong where the type was written, not in a prototype that no file holds.
      const type =
        target && this.#standard.get(target.name) === target ? component.attributes.get("x.type") : undefined;
      const { position } = prototype.reference;
      if (type) component.attributes.set("x.type", { ...type, namePosition: position, position });
    }
    component.state = "shaped";
  }

  #complete(component: Component): void {
    if (component.state === "complete") return;
    if (++this.#following > limits.references)
      this.#stop(
        "limit/references",
        `More than ${limits.references} prototypes extend one another`,
        component.position,
      );
    if (component.state === "new") this.#shape(component);
    component.state = "completing";
    for (const { content } of component.attributes.values()) if (content.kind === "component") this.#complete(content);
    component.state = "complete";
    this.#following--;
  }

  #supertype(component: Component, reference: Reference): Component | null {
    const target = this.#find(component, reference);
    if (!target) return null;
    if (target.state === "shaping" || target.state === "completing") {
      const name = referenceText(reference);
      const standard = [...this.#standard.keys()].find((known) => known.toLowerCase() === name.toLowerCase());
      this.#diagnostics.add({
        code: "type/cycle",
        message: `\`${name}\` extends itself, directly or through others`,
        hint:
          standard === undefined || standard === name
            ? "A component cannot extend itself, nor one that it stands in or that extends it."
            : `Did you mean the type \`${standard}\`?`,
        position: reference.position,
      });
      return null;
    }
    this.#complete(target);
    return target;
  }

  /** The component that a supertype's name means, seen from around `component`. */
  #find(component: Component, reference: Reference): Component | null {
    let current: Component | null = component.parent;
    for (const [index, part] of reference.parts.entries()) {
      let next: Component | null | undefined;
      if (part.kind === "ROOT") next = rootOf(component);
      else if (part.kind === "PARENT") next = current?.parent ?? null;
      else if (part.kind === "THIS") next = current;
      else {
        if (index > 0 && current?.state === "new") this.#shape(current);
        const holder: Component | null = part.kind === "HERE" ? current : enclosing(current, part.name);
        const found = holder?.attributes.get(part.name)?.content;
        if (found && found.kind !== "component") return this.#notAComponent(reference, part.name);
        next = found ?? (index === 0 ? this.#standard.get(part.name) : undefined);
        if (!next) return this.#unknown(reference, part.name, index === 0 ? null : current, component);
      }
      current = next;
      if (!current) return this.#unknown(reference, part.kind, null, component);
    }
    return current;
  }

  #notAComponent(reference: Reference, name: string): null {
    this.#diagnostics.add({
      code: "type/not-a-component",
      message: `\`${name}\` in \`${referenceText(reference)}\` is not a component, so it cannot be extended`,
      hint: "Extend something that is written `name extends … { … }`; links cannot be followed here.",
      position: reference.position,
    });
    return null;
  }
  #unknown(reference: Reference, name: string, inside: Component | null, from: Component): null {
    if (!this.#diagnostics.wants("type/unknown")) return null;
    const known = inside ? [...inside.attributes.keys()] : [...this.#standard.keys(), ...visibleNames(from.parent)];
    const closest = closestName(name, known);
    this.#diagnostics.add({
      code: "type/unknown",
      message: `There is no component \`${name}\` ${inside ? `in \`${inside.name}\`` : "to extend"}`,
      hint: closest ? `Did you mean \`${closest}\`?` : "Define it here, further out, or in an included file.",
      position: reference.position,
    });
    return null;
  }

  #add(component: Component, { name, namePosition, value }: AttributeSyntax): void {
    if (name && name.length > 1) {
      component.placements.push({ name, namePosition, value });
      this.#places = true;
      return;
    }
    const single = name?.[0] ?? `--${this.#unnamed++}`;
    this.#set(component, single, { namePosition, value }, this.#instantiate(component, single, value));
  }
  #set(
    into: Component,
    name: string,
    at: { namePosition: Position; value: Expression },
    content: Attribute["content"],
  ): void {
    this.#count(at.namePosition);
    const { namePosition, value } = at;
    into.attributes.set(name, { namePosition, position: value.position, content, link: unlinkedState(content) });
  }
  #instantiate(parent: Component, name: string, value: Expression): Attribute["content"] {
    if (value.kind !== "component") return value;
    return {
      ...{ kind: "component", parent, name, position: value.position, state: "new" },
      ...{ prototypes: value.prototypes, attributes: new Map(), placements: [] },
    };
  }

  /** Copies everything of a complete component; a name that is there keeps its place and gets the new value. */
  #inherit(into: Component, from: Component): void {
    const size = this.#lazily ? sizeOf(from) : { attributes: 0, height: 0 };
    if (depth(into) + size.height > limits.nesting)
      this.#stop("limit/nesting", `Components are nested deeper than ${limits.nesting} levels`, into.position);
    if (this.#lazily) this.#count(into.position, size.attributes);
    for (const placement of from.placements) into.placements.push(placement);
    for (const [name, attribute] of from.attributes) {
      if (!this.#lazily) this.#count(attribute.namePosition);
      into.attributes.set(
        name,
        attribute.content.kind === "scalar" ? attribute : copied(attribute, (component) => this.#copy(component, into)),
      );
    }
  }
  #copy(component: Component, parent: Component): Component {
    if (this.#lazily) return new LazyCopy(component, parent);
    const copy: Component = { ...component, parent, attributes: new Map(), placements: [] };
    this.#inherit(copy, component);
    return copy;
  }

  #count(position: Position, attributes = 1): void {
    this.#attributes += attributes;
    if (!this.#lazily) this.#placed += attributes;
    if (this.#placed > limits.placed)
      this.#stop("limit/placed", `Placements make more than ${limits.placed} attributes, here`, position);
    if (this.#attributes > limits.attributes)
      this.#stop("limit/attributes", `The document grows beyond ${limits.attributes} attributes here`, position);
  }
  #stop(code: string, message: string, position: Position): never {
    this.#diagnostics.add({ code, message, position, hint: "Use fewer or smaller templates." });
    throw limitPassed;
  }
}

/** A value that is written out means the same everywhere: there is nothing to link, and copies share the attribute. */
const unlinkedState = (content: Attribute["content"]): Attribute["link"] =>
  content.kind === "scalar" ? { state: "done", value: content.scalar } : { state: "open" };

function copied(attribute: Attribute, copy: (component: Component) => Component): Attribute {
  const { content } = attribute;
  if (content.kind === "scalar") return attribute;
  return {
    ...attribute,
    content: content.kind === "component" ? copy(content) : content,
    link: { state: "open" },
  };
}

/**
 * A copy of a complete component that is made when somebody looks into it. What only grows, such as templates that copy
 * one another, is then counted and refused before it is there.
 */
class LazyCopy implements Component {
  readonly kind = "component";
  readonly parent: Component;
  readonly name: string;
  readonly position: Position;
  readonly prototypes: readonly Prototype[] = [];
  readonly placements: Placement[];
  state: Component["state"] = "complete";
  readonly origin: Component;
  #attributes: Map<string, Attribute> | null = null;

  constructor(origin: Component, parent: Component) {
    this.parent = parent;
    this.name = origin.name;
    this.position = origin.position;
    this.placements = [...origin.placements];
    this.origin = origin;
  }

  /** Whether somebody has looked into it, and may have changed what is in it. */
  get open(): boolean {
    return this.#attributes !== null;
  }
  get attributes(): Map<string, Attribute> {
    if (this.#attributes) return this.#attributes;
    this.#attributes = new Map();
    for (const [name, attribute] of this.origin.attributes)
      this.#attributes.set(
        name,
        copied(attribute, (component) => new LazyCopy(component, this)),
      );
    return this.#attributes;
  }
}

const constants = new WeakMap<Component, boolean>();
/** Nothing but values that are written out, none of which is a reference: the same wherever it is copied to. */
function isConstant(component: Component): boolean {
  if (component instanceof LazyCopy) return isConstant(component.origin);
  const known = constants.get(component);
  if (known !== undefined) return known;
  const constant = [...component.attributes.values()].every(({ content }) => {
    if (content.kind === "component") return isConstant(content);
    return content.kind === "scalar" && !(content.scalar.kind === "string" && /ref:/i.test(content.scalar.value));
  });
  constants.set(component, constant);
  return constant;
}

/** What a copy that nobody has looked into is a copy of, if it is the same in every way; null for all others. */
export function constantOrigin(component: Component): Component | null {
  let origin = component;
  while (origin instanceof LazyCopy && !origin.open) origin = origin.origin;
  return origin !== component && !(origin instanceof LazyCopy) && isConstant(origin) ? origin : null;
}

/** Attributes of complete components, those inside included, and levels; placements change none that is in here. */
const sizes = new WeakMap<Component, { readonly attributes: number; readonly height: number }>();
function sizeOf(component: Component): { readonly attributes: number; readonly height: number } {
  if (component instanceof LazyCopy) return sizeOf(component.origin);
  const known = sizes.get(component);
  if (known !== undefined) return known;
  let [attributes, height] = [component.attributes.size, 0];
  for (const { content } of component.attributes.values()) {
    if (content.kind !== "component") continue;
    const inside = sizeOf(content);
    attributes += inside.attributes;
    height = Math.max(height, inside.height + 1);
  }
  const size = { attributes, height };
  sizes.set(component, size);
  return size;
}

function standardPrototype(name: string): Component {
  const position: Position = { file: "[standard prototypes]", line: 1, column: 1, length: 1 };
  const content = { kind: "scalar", scalar: { kind: "string", value: name }, position } as const;
  const attribute: Attribute = { namePosition: position, position, content, link: { state: "open" } };
  return {
    ...{ kind: "component", parent: null, name, position, state: "complete" },
    ...{ prototypes: [], attributes: new Map([["x.type", attribute]]), placements: [] },
  };
}

function collectPlacements(component: Component, into: Component[]): void {
  if (component.placements.length > 0) into.push(component);
  for (const { content } of component.attributes.values())
    if (content.kind === "component") collectPlacements(content, into);
}

function child(component: Component | null, name: string): Component | null {
  const content = component?.attributes.get(name)?.content;
  return content?.kind === "component" ? content : null;
}
function depth(component: Component): number {
  let count = 0;
  for (let at = component.parent; at; at = at.parent) count++;
  return count;
}
export function rootOf(component: Component): Component {
  let at = component;
  while (at.parent) at = at.parent;
  return at;
}
/** The closest component from `from` outwards that has an attribute `name`. */
export function enclosing(from: Component | null, name: string): Component | null {
  for (let at = from; at; at = at.parent) if (at.attributes.has(name)) return at;
  return null;
}
export function visibleNames(from: Component | null): string[] {
  const names: string[] = [];
  for (let at = from; at; at = at.parent) names.push(...at.attributes.keys());
  return names;
}
