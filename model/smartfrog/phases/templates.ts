import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Replaced } from "../../diagnostics/positions.ts";
import type { Attribute, Component } from "../component.ts";
import { type Expression, type Reference, referenceText } from "../text/syntax.ts";
import { usesOf } from "./applied-where.ts";
import { contentOf, LazyCopy } from "./copies.ts";
import { enclosing, rootOf } from "./resolver.ts";

/*
 * Which template something came from, for hints that name it. Only looked for once there is a fault: while documents are
 * resolved nobody keeps what a copy was copied from.
 */

const writtenOf = (component: Component): Component =>
  component instanceof LazyCopy ? writtenOf(component.origin) : component;

/** The component that a supertype's reference leads to by names alone; null: none, or a standard prototype. */
function supertype(component: Component, reference: Reference): Component | null {
  let at: Component | null = component.parent;
  for (const [index, part] of reference.parts.entries()) {
    if (part.kind === "ROOT") at = rootOf(component);
    else if (part.kind === "PARENT") at = index === 0 ? at : (at?.parent ?? null);
    else if (part.kind === "ATTRIB" || part.kind === "HERE") {
      const holder: Component | null = part.kind === "HERE" ? at : enclosing(at, part.name);
      const found = holder ? contentOf(holder, part.name) : undefined;
      at = found?.kind === "component" ? found : null;
    } else return null;
  }
  return at;
}

interface FromTemplate {
  /** The template as `extends` names it. */
  readonly template: string;
  readonly content: Attribute["content"];
}
/** What the last of a component's templates that has something at a path inside gives it there. */
function fromTemplate(component: Component, path: readonly string[]): FromTemplate | null {
  const written = writtenOf(component);
  for (const prototype of [...written.prototypes].reverse()) {
    if (prototype.kind !== "reference") continue;
    let content: Attribute["content"] | null | undefined = supertype(written, prototype.reference);
    for (const name of path) content = content?.kind === "component" ? contentOf(content, name) : undefined;
    if (content) return { template: referenceText(prototype.reference), content };
  }
  return null;
}

/** What a component took the place of, if the one that it stands in got one of that name from a template. */
export function replacedBy(component: Component): Replaced | undefined {
  const { parent, name } = component;
  const found = parent?.parent ? fromTemplate(parent, [name]) : null;
  if (found?.content.kind !== "component") return undefined;
  const { template, content } = found;
  if (writtenOf(content) === writtenOf(component)) return undefined;
  return {
    template,
    component: `${template}:${name}`,
    has: (attribute) => contentOf(content, attribute) !== undefined,
  };
}

/** Which attribute is `TBD`, what needs it, and where it is to be given. `holder` has the attribute; `at` is its place. */
export function missingValue(holder: Component, at: Position): { readonly message: string; readonly hint: string } {
  const name = [...holder.attributes].find(([, { content }]) => within(content, at))?.[0] ?? "This attribute";
  const used = usesOf(holder, at).related?.[0]?.position;
  const path = [name];
  let user: Component | null = used ? holder : null;
  while (user && user.parent?.attributes.get(user.name)?.namePosition !== used) {
    path.unshift(user.name);
    user = user.parent;
  }
  if (!user) return { message: `\`${name}\` is \`TBD\`: it has no value`, hint: "Write its value instead of `TBD`." };
  const template = fromTemplate(user, path)?.template;
  const inside = path.length > 1 ? `\`${name}\` in \`${path.slice(0, -1).join("/")}\`` : `\`${name}\``;
  const whose = template === undefined ? "" : ` of the template \`${template}\``;
  const opening = `${user.name} extends ${template === undefined ? "" : `${template} `}{ … }`;
  return {
    message: `${inside}${whose} is \`TBD\`, and \`${pathOf(user)}\` gives it no value`,
    hint: `Give it where the template is used: write \`${path.join(":")} …;\` in \`${opening}\`.`,
  };
}

const pathOf = (component: Component): string =>
  component.parent?.parent ? `${pathOf(component.parent)}/${component.name}` : component.name;

/** Whether an expression was written at a place, or has one in it that was. */
function within(content: Attribute["content"] | Expression, at: Position): boolean {
  if (content.position === at) return true;
  switch (content.kind) {
    case "vector":
      return content.items.some((item) => within(item, at));
    case "operation":
      return content.operands.some((operand) => within(operand, at));
    case "choice":
      return [...content.cases.flatMap(({ condition, value }) => [condition, value]), content.otherwise].some(
        (part) => part && within(part, at),
      );
    case "reference":
      return content.otherwise !== null && within(content.otherwise, at);
    default:
      return false;
  }
}
