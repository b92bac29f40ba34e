import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Attribute, Component, Placement } from "../component.ts";
import type { Expression, Prototype } from "../text/syntax.ts";

/*
 * Components and their copies. `extends` copies, and most of what is copied nobody ever looks into: a copy is made when
 * somebody does, and what is the same in all copies stays one.
 */

/** A component as it was written. */
export class Written implements Component {
  readonly kind = "component";
  readonly parent: Component | null;
  readonly name: string;
  readonly position: Position;
  readonly data: boolean;
  role: Component["role"] = "plain";
  readonly prototypes: readonly Prototype[];
  readonly placements: Placement[] = [];
  state: Component["state"] = "new";
  template: Component | null = null;
  own = new Map<string, Attribute>();
  /** Once complete: it has nothing but values that are written out, none of which is a reference. */
  plain = false;
  /** What copying it costs, once complete and somebody asked. */
  size: Size | null = null;
  /** The template's attributes and its own, once somebody looked into it. */
  #all: Map<string, Attribute> | null = null;

  constructor(
    parent: Component | null,
    name: string,
    from: { readonly prototypes: readonly Prototype[]; readonly data: boolean; readonly position: Position },
  ) {
    this.parent = parent;
    this.name = name;
    this.position = from.position;
    this.data = from.data;
    this.prototypes = from.prototypes;
  }

  get attributes(): Map<string, Attribute> {
    if (!this.template) return this.own;
    if (this.#all) return this.#all;
    this.#all = new Map();
    for (const [name, attribute] of this.template.attributes)
      if (!this.own.has(name))
        this.#all.set(
          name,
          copied(attribute, (inner) => new LazyCopy(inner, this)),
        );
      else this.#all.set(name, attribute);
    for (const [name, attribute] of this.own) this.#all.set(name, attribute);
    return this.#all;
  }
  put(name: string, attribute: Attribute): void {
    this.own.set(name, attribute);
    this.#all?.set(name, attribute);
  }
  /** Whether it can begin as that component, all of whose attributes are plain; then it does. */
  begins(template: Component): boolean {
    if (this.template !== null || this.own.size > 0 || !isPlain(template)) return false;
    this.template = template;
    return true;
  }
  forgetTemplate(): void {
    const { attributes } = this;
    this.template = null;
    this.own = attributes;
  }
}

export const put = (into: Component, name: string, attribute: Attribute): void => {
  if (into instanceof Written) into.put(name, attribute);
  else into.attributes.set(name, attribute);
};
/** The same as in `attributes`, to look at its tags: a template's attribute is not copied for that. */
export const attributeOf = (component: Component, name: string): Attribute | undefined =>
  component.template
    ? (component.own.get(name) ?? attributeOf(component.template, name))
    : component.attributes.get(name);

/** Whether there is an attribute of that name; a template's attributes are not copied for that. */
export const hasAttribute = (component: Component, name: string): boolean =>
  component.template
    ? component.own.has(name) || hasAttribute(component.template, name)
    : component.attributes.has(name);
/** What a name stands for. */
export const contentOf = (component: Component, name: string): Attribute["content"] | undefined =>
  (component.own.get(name) ?? component.attributes.get(name))?.content;

const isPlainText = (text: string): boolean => !/ref:/i.test(text);
/** Values that are written out, none of which is a reference: the same wherever they are copied to. */
export function isPlain(content: Attribute["content"]): boolean {
  if (content.kind === "scalar") return content.scalar.kind !== "string" || isPlainText(content.scalar.value);
  if (content instanceof Written) return content.state === "complete" && content.plain;
  return content instanceof LazyCopy && isPlain(content.origin);
}

/** A value that is written out means the same everywhere: there is nothing to link, and copies share the attribute. */
export const unlinkedState = (content: Attribute["content"]): Attribute["link"] =>
  content.kind === "scalar" ? { state: "done", value: content.scalar } : { state: "open" };

export function copied(attribute: Attribute, copy: (component: Component) => Component): Attribute {
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
export class LazyCopy implements Component {
  readonly kind = "component";
  readonly parent: Component;
  readonly name: string;
  readonly position: Position;
  readonly data: boolean;
  role: Component["role"];
  readonly prototypes: readonly Prototype[] = [];
  readonly placements: Placement[];
  state: Component["state"] = "complete";
  readonly origin: Component;
  readonly template = null;
  #attributes: Map<string, Attribute> | null = null;

  constructor(origin: Component, parent: Component) {
    this.parent = parent;
    this.name = origin.name;
    this.position = origin.position;
    this.data = origin.data;
    this.role = origin.role;
    this.placements = [...origin.placements];
    this.origin = origin;
  }

  /** Whether somebody has looked into it, and may have changed what is in it. */
  get open(): boolean {
    return this.#attributes !== null;
  }
  get own(): Map<string, Attribute> {
    return this.attributes;
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
  const plain = component.role === "plain" && !component.attributes.has("phase.function");
  const constant =
    plain &&
    [...component.attributes.values()].every(({ content }) => {
      if (content.kind === "component") return isConstant(content);
      return content.kind === "scalar" && !(content.scalar.kind === "string" && !isPlainText(content.scalar.value));
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

/** Characters of an attribute's name and of its value, if that is a text; what is inside a component is not in it. */
export const charactersOf = (name: string, value: Expression | Component): number => {
  const scalar = value.kind === "scalar" ? value.scalar : null;
  return name.length + (scalar?.kind === "string" || scalar?.kind === "bytes" ? scalar.value.length : 0);
};

interface Size {
  readonly attributes: number;
  readonly characters: number;
  readonly height: number;
}
/** Attributes of complete components, those inside included, and levels; placements change none that is in here. */
export function sizeOf(component: Component): Size {
  if (component instanceof LazyCopy) return sizeOf(component.origin);
  const known = component instanceof Written ? component.size : null;
  if (known) return known;
  let [attributes, characters, height] = [component.attributes.size, 0, 0];
  for (const [name, { content }] of component.attributes) {
    characters += charactersOf(name, content);
    if (content.kind !== "component") continue;
    const inside = sizeOf(content);
    attributes += inside.attributes;
    characters += inside.characters;
    height = Math.max(height, inside.height + 1);
  }
  const size = { attributes, characters, height };
  if (component instanceof Written) component.size = size;
  return size;
}
