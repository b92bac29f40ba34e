import { closestName } from "../../diagnostics/closest-name.ts";
import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import type { Attribute, Component, Placement } from "../component.ts";
import { standardFileWith } from "../standard-files.ts";
import {
  type AttributeSyntax,
  type Expression,
  type Prototype,
  type Reference,
  referenceText,
} from "../text/syntax.ts";
import {
  attributeOf,
  charactersOf,
  constantOrigin,
  contentOf,
  copied,
  hasAttribute,
  isPlain,
  LazyCopy,
  put,
  sizeOf,
  unlinkedState,
  Written,
} from "./copies.ts";

/** Thrown when a limit is passed: going on would only cost more. The fault is already reported. */
export const limitPassed = Symbol("limit passed");

/** A document: its attributes, and what it extends itself. */
export interface DocumentSyntax {
  readonly attributes: readonly AttributeSyntax[];
  readonly prototypes: readonly Prototype[];
  /** Some attributes, anywhere in it, could not be read, so any component may lack one. */
  readonly faulty: boolean;
}

/**
 * Type and place phase: merges supertypes and puts placed attributes where they belong. A supertype is completed before
 * it is copied; a component's own nested components are completed after its supertypes are merged, so they see inherited
 * names. `standard` are prototypes that are in scope as if included first. `place` is the second of the two phases:
 * nothing is to be placed while types are at fault.
 */
export function resolveTypes(
  document: DocumentSyntax,
  standard: ReadonlyMap<string, Component>,
  origin: Position,
  diagnostics: Diagnostics,
): Resolver {
  return new Resolver(document, standard, origin, diagnostics);
}

/** Prototypes that carry nothing but their type. */
export function standardTypes(names: readonly string[]): ReadonlyMap<string, Component> {
  return new Map(names.map((name) => [name, standardPrototype(name)]));
}

export class Resolver {
  readonly root: Component;
  /** Whether the document itself has a component that the function phase is about. */
  hasFunctions = false;
  readonly #standard: ReadonlyMap<string, Component>;
  readonly #diagnostics: Diagnostics;
  #attributes = 0;
  #characters = 0;
  #unnamed = 0;
  #following = 0;
  #placed = 0;
  #places = false;
  /** Until placements and functions change components that others were copied from. */
  #lazily = true;
  #puts = false;
  /** Components that have a template of plain values, for as long as nobody changes it. */
  readonly #made: Written[] = [];
  /** Every component that has something to place, in document order. */
  readonly #placing: Component[] = [];
  /** Where the prototypes of a document that extends others are looked for: its own attributes, made once before. */
  readonly #beside: Component | null = null;
  /** Components that lack something, which has been told. */
  readonly #incomplete = new Set<Component>();
  readonly #faulty: boolean;

  constructor(
    { attributes, prototypes, faulty }: DocumentSyntax,
    standard: ReadonlyMap<string, Component>,
    position: Position,
    diagnostics: Diagnostics,
  ) {
    this.#standard = standard;
    this.#diagnostics = diagnostics;
    const block: Prototype = { kind: "block", attributes };
    this.#faulty = faulty;
    if (prototypes.length > 0) {
      this.#beside = new Written(null, "", { prototypes: [block], data: false, position });
      this.#complete(this.#beside);
    }
    this.root = new Written(null, "", { prototypes: [...prototypes, block], data: false, position });
    this.#complete(this.root);
  }

  /** The parameters of an `APPLY` or `ASSERT`, which stand in a scope of their own below `parent`. */
  parameters(apply: Extract<Expression, { kind: "apply" }>, parent: Component): Component {
    this.#lazily = false;
    this.#puts = false;
    const { prototypes, position, form } = apply;
    const component = new Written(parent, "", { prototypes, data: false, position });
    component.role = form;
    this.#complete(component);
    return component;
  }

  /** Whether a component may lack something that was told: a supertype, an attribute that could not be read. */
  isIncomplete(component: Component): boolean {
    if (this.#faulty) return true;
    if (this.#incomplete.size === 0) return false;
    return this.#incomplete.has(component) || (component instanceof LazyCopy && this.isIncomplete(component.origin));
  }
  /** Whether a name that is not found from a component outwards may be one of those that were lost. */
  mayHaveLost(component: Component | null): boolean {
    if (this.#faulty) return true;
    if (this.#incomplete.size === 0) return false;
    for (let at = component; at; at = at.parent) if (this.isIncomplete(at)) return true;
    return false;
  }

  /** In several passes: a placed component may be what another placement needs. */
  place(): void {
    if (!this.#places) return;
    // Counted before the copies are made that they stand in.
    if (placementsIn(this.root) > limits.placed)
      this.#stop(
        "limit/placed",
        `There are more than ${limits.placed} placements, with those of copies`,
        this.root.position,
      );
    this.#forgetTemplates();
    collectPlacements(this.root, this.#placing);
    this.#lazily = false;
    this.#puts = true;
    let open = this.#placing.flatMap((component) =>
      component.placements.map((placement) => ({ component, placement })),
    );
    for (let progress = true; progress && open.length > 0; ) {
      const inside: Component[] = [];
      const left = open.filter(({ component, placement }) => !this.#put(component, placement, inside));
      progress = left.length < open.length;
      // What was placed may have something to place itself.
      for (const component of inside) for (const placement of component.placements) left.push({ component, placement });
      open = left;
    }
    for (const { component, placement } of open) this.#unplaced(component, placement);
  }

  #unplaced(component: Component, { name, namePosition }: Placement): void {
    const [first = ""] = name;
    this.#incomplete.add(component);
    if (this.#faulty || this.#lostOnTheWay(component, name)) return;
    const outside = !component.attributes.has(first) && enclosing(component, first);
    const target = name.slice(0, -1).join(":");
    const known = [...component.attributes].filter(([, { content }]) => content.kind === "component");
    const closest = closestName(
      first,
      Array.from(known, ([each]) => each),
    );
    this.#diagnostics.add({
      code: "place/unresolved",
      message: `There is no component \`${target}\` to put \`${name.at(-1)}\` into`,
      hint: outside
        ? `\`${first}\` stands further out: write the placement beside it.`
        : closest && !component.attributes.has(first)
          ? `Did you mean \`${closest}\`?`
          : "A placement `a:b value` needs a component `a` beside it.",
      position: namePosition,
    });
  }

  /** Whether what a placement leads through lacks something. */
  #lostOnTheWay(component: Component, name: readonly string[]): boolean {
    let at: Component | null = component;
    for (const part of name) {
      if (at && this.isIncomplete(at) && at !== component) return true;
      at = child(at, part);
    }
    return false;
  }

  /** From here on templates may change, what was made from them does not. */
  #forgetTemplates(): void {
    for (const component of this.#made.splice(0)) component.forgetTemplate();
  }

  /** Makes the copies that nobody has looked into yet. */
  makeCopies(): void {
    this.#forgetTemplates();
    let attributes = 0;
    const open: Component[] = [this.root];
    for (let at = open.pop(); at; at = open.pop()) {
      attributes += at.attributes.size;
      if (attributes > limits.withFunctions)
        this.#stop(
          "limit/attributes",
          `A document with functions may have ${limits.withFunctions} attributes beside plain values; it grows beyond that here`,
          at.position,
        );
      for (const { content } of at.attributes.values())
        if (content.kind === "component" && !constantOrigin(content)) open.push(content);
    }
  }

  /** Only what stands beside the placement can be placed into. `inside`: components that came with what was placed. */
  #put(component: Component, placement: Placement, inside: Component[]): boolean {
    const [first, ...rest] = placement.name.slice(0, -1);
    const name = placement.name.at(-1);
    if (first === undefined || name === undefined) return true;
    let target = child(component, first);
    for (const part of rest) target = child(target, part);
    if (!target) return false;
    const before = target.attributes.get(name);
    if (before?.tags.includes("sfFinal")) {
      this.#final("place/final", name, placement.namePosition);
      return true;
    }
    const tags = union(before?.tags, placement.tags);
    const content = placement.made && this.#copy(placement.made, target);
    this.#set(target, name, placement, tags, content);
    if (content) collectPlacements(content, inside);
    return true;
  }

  #shape(component: Component): void {
    component.state = "shaping";
    for (const prototype of component.prototypes) {
      if (prototype.kind === "block") {
        this.#addBlock(component, prototype.attributes);
        continue;
      }
      const target = this.#supertype(component, prototype.reference);
      if (target) this.#inherit(component, target);
      else this.#incomplete.add(component);
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
    // What a template of plain values has is complete.
    const inside = component.template ? component.own : component.attributes;
    let plain = component.role === "plain";
    for (const [name, { content }] of inside) {
      if (content.kind === "component") this.#complete(content);
      plain &&= isPlain(content) && name !== "phase.function";
    }
    for (const { made } of component.placements) if (made) this.#complete(made);
    component.state = "complete";
    if (component instanceof Written) component.plain = plain;
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
    let current: Component | null = component.parent ?? this.#beside;
    let first = true;
    for (const part of reference.parts) {
      let next: Component | null | undefined;
      if (part.kind === "ROOT") next = rootOf(component);
      // The first step up is from the component itself to what it stands in.
      else if (part.kind === "PARENT") next = first ? current : (current?.parent ?? null);
      else if (part.kind === "THIS") next = current;
      else if (part.kind !== "ATTRIB" && part.kind !== "HERE")
        return this.#unknown(reference, part.kind, null, component);
      else {
        if (!first && current?.state === "new") this.#shape(current);
        const holder: Component | null = part.kind === "HERE" ? current : enclosing(current, part.name);
        const found = holder ? contentOf(holder, part.name) : undefined;
        if (found && found.kind !== "component") return this.#notAComponent(reference, part.name);
        next = found ?? (first ? this.#standardNamed(part.name) : undefined);
        if (!next) return this.#unknown(reference, part.name, first ? null : current, component);
      }
      current = next;
      first = false;
      if (!current) return this.#unknown(reference, part.kind, null, component);
    }
    return current;
  }

  /** What a standard template places is placed in the document that uses it, also where that places nothing itself. */
  #standardNamed(name: string): Component | undefined {
    const standard = this.#standard.get(name);
    if (standard !== undefined && placementsIn(standard) > 0) this.#places = true;
    return standard;
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
    if (inside ? this.isIncomplete(inside) : this.mayHaveLost(from.parent ?? this.#beside)) return null;
    const standard = inside ? undefined : standardFileWith(name);
    const closest = closestName(name, inside ? inside.attributes.keys() : this.#inScope(from.parent));
    const otherwise = closest ? `Did you mean \`${closest}\`?` : "Define it here, further out, or in an included file.";
    this.#diagnostics.add({
      code: "type/unknown",
      message: `There is no component \`${name}\` ${inside ? `in \`${inside.name}\`` : "to extend"}`,
      hint: standard ? `\`${name}\` is in a standard file: write \`#include "${standard}"\` at the top.` : otherwise,
      position: reference.position,
    });
    return null;
  }

  *#inScope(from: Component | null): Iterable<string> {
    yield* this.#standard.keys();
    yield* visibleNames(from);
  }

  #addBlock(component: Component, attributes: readonly AttributeSyntax[]): void {
    // Within one block a name may be repeated; `sfFinal` and `sfOverride` are about what comes from elsewhere.
    const { template } = component;
    const isFirst = component.own.size === 0;
    const inherited = isFirst || attributes.length === 1 ? null : new Map<string, Attribute | undefined>();
    for (const { name, unique, namePosition, tags, value } of attributes) {
      if (name && (unique || name.length > 1)) {
        const target = unique ? [...name, `--${this.#unnamed++}`] : name;
        const made = value.kind === "component" ? new Written(component, target.at(-1) ?? "", value) : null;
        component.placements.push({ name: target, namePosition, tags, value, made });
        this.#places = true;
        continue;
      }
      const single = name?.[0] ?? `--${this.#unnamed++}`;
      let before: Attribute | undefined;
      if (!isFirst) {
        before = inherited?.has(single) ? inherited.get(single) : attributeOf(component, single);
        inherited?.set(single, before);
      } else if (template !== null) before = attributeOf(template, single);
      if (before?.tags.includes("sfFinal")) this.#final("type/final", single, namePosition);
      if (!before && tags.includes("sfOverride"))
        this.#diagnostics.add({
          code: "type/override",
          message: `\`${single}\` is tagged \`sfOverride\`, but there is nothing of that name to override`,
          hint: "Remove the tag, or extend a component that has this attribute.",
          position: namePosition,
        });
      const own = tags.length > 0 || before ? tags : (attributeOf(component, single)?.tags ?? tags);
      this.#set(component, single, { namePosition, value }, union(before?.tags, own));
    }
  }
  #final(code: string, name: string, position: Position): void {
    this.#diagnostics.add({
      code,
      message: `\`${name}\` is tagged \`sfFinal\`, so it cannot be given another value`,
      hint: "Leave it as its template has it, or remove the tag there.",
      position,
    });
  }
  #set(
    into: Component,
    name: string,
    at: { readonly namePosition: Position; readonly value: Expression },
    tags: readonly string[],
    made: Component | null = null,
  ): void {
    if (name === "phase.function") this.hasFunctions = true;
    const { namePosition, value } = at;
    this.#count(namePosition, 1, charactersOf(name, value));
    const content = value.kind === "component" ? (made ?? new Written(into, name, value)) : value;
    put(into, name, { namePosition, position: value.position, tags, content, link: unlinkedState(content) });
  }

  /** Copies everything of a complete component; a name that is there keeps its place and gets the new value. */
  #inherit(into: Component, from: Component): void {
    if (this.isIncomplete(from)) this.#incomplete.add(into);
    const size = this.#lazily ? sizeOf(from) : { attributes: 0, characters: 0, height: 0 };
    if (depth(into) + size.height > limits.nesting)
      this.#stop("limit/nesting", `Components are nested deeper than ${limits.nesting} levels`, into.position);
    if (this.#lazily) this.#count(into.position, size.attributes, size.characters);
    for (const placement of from.placements) into.placements.push(placement);
    if (this.#lazily && into instanceof Written && into.begins(from)) {
      this.#made.push(into);
      return;
    }
    for (const [name, attribute] of from.attributes) {
      if (!this.#lazily) this.#count(attribute.namePosition, 1, charactersOf(name, attribute.content));
      const before = attributeOf(into, name);
      if (before?.tags.includes("sfFinal")) this.#final("type/final", name, into.position);
      const copy = copied(attribute, (component) => this.#copy(component, into));
      const tags = union(before?.tags, attribute.tags);
      put(into, name, tags === copy.tags ? copy : { ...copy, tags });
    }
  }
  #copy(component: Component, parent: Component): Component {
    if (this.#lazily) return new LazyCopy(component, parent);
    const copy = new Written(parent, component.name, component);
    copy.role = component.role;
    copy.state = component.state;
    this.#inherit(copy, component);
    return copy;
  }

  #count(position: Position, attributes: number, characters: number): void {
    this.#attributes += attributes;
    this.#characters += characters;
    if (this.#puts) this.#placed += attributes;
    if (this.#placed > limits.placed)
      this.#stop("limit/placed", `Placements make more than ${limits.placed} attributes, here`, position);
    if (this.#attributes > limits.attributes)
      this.#stop("limit/attributes", `The document grows beyond ${limits.attributes} attributes here`, position);
    if (this.#characters > limits.characters)
      this.#stop(
        "limit/text",
        `The names and texts of the document grow beyond ${limits.characters} characters here`,
        position,
      );
  }
  #stop(code: string, message: string, position: Position): never {
    this.#diagnostics.add({ code, message, position, hint: "Use fewer or smaller templates." });
    throw limitPassed;
  }
}

function standardPrototype(name: string): Component {
  const position: Position = { file: "[standard prototypes]", line: 1, column: 1, length: 1 };
  const content = { kind: "scalar", scalar: { kind: "string", value: name }, position } as const;
  const link = { state: "done", value: content.scalar } as const;
  const attribute: Attribute = { namePosition: position, position, tags: [], content, link };
  const prototype = new Written(null, name, { prototypes: [], data: false, position });
  prototype.put("x.type", attribute);
  prototype.state = "complete";
  prototype.plain = true;
  return prototype;
}

function union(some: readonly string[] | undefined, more: readonly string[]): readonly string[] {
  if (some === undefined || some.length === 0) return more;
  return more.length === 0 ? some : [...new Set([...some, ...more])];
}

/** Of complete components, before any of them is placed. */
const placements = new WeakMap<Component, number>();
function placementsIn(component: Component): number {
  if (component instanceof LazyCopy && !component.open) return placementsIn(component.origin);
  const known = placements.get(component);
  if (known !== undefined) return known;
  let count = component.placements.length;
  for (const { made } of component.placements) if (made) count += placementsIn(made);
  // What begins as a template has its placements already, and what is inside has those inside.
  if (component.template) count += placementsIn(component.template);
  for (const { content } of (component.template ? component.own : component.attributes).values())
    if (content.kind === "component") count += placementsIn(content);
  placements.set(component, count);
  return count;
}

function collectPlacements(component: Component, into: Component[]): void {
  if (placementsIn(component) === 0) return;
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
  for (let at = from; at; at = at.parent) if (hasAttribute(at, name)) return at;
  return null;
}
/** Names that could be meant at a place, the nearest first: a hint looks at some of them only. */
export function* visibleNames(from: Component | null): Iterable<string> {
  for (let at = from; at; at = at.parent) yield* at.attributes.keys();
}
