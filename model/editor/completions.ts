import type { AttributeSchema } from "../cell/attributes/kinds.ts";
import { standardPrototypes } from "../cell/schema.ts";
import type { Completion } from "./completion.ts";
import { type Cursor, cursorAt, elementType, schemaFor } from "./cursor.ts";
import { inText, referenceTexts } from "./path-completions.ts";
import type { BundleView, TreeNode } from "./sources/bundle-tree.ts";
import { attributesOf, attributeText, kindText, literalsOf, requiredOf, typeText } from "./sources/schema-text.ts";
import type { SourceAttribute, SourceReference, Span } from "./sources/source.ts";

export interface Completions {
  readonly items: readonly Completion[];
  /** There are more; with further letters others may come. */
  readonly incomplete: boolean;
}

/** Most that are offered at once: nobody reads more, and each is sent. */
const mostItems = 500;

/**
 * What could stand at an offset of one of the bundle's texts, which may be broken there and elsewhere: attributes of the
 * component's type, values of an attribute, prototypes, paths of references and files to include.
 */
export function completionsAt(view: BundleView, file: string, offset: number): Completions {
  const cursor = cursorAt(view, file, offset);
  const items = cursor ? itemsAt(cursor) : [];
  const seen = new Set<string>();
  const single = items.filter(({ label }) => !seen.has(label) && seen.add(label));
  return { items: single.slice(0, mostItems), incomplete: single.length > mostItems };
}

function itemsAt(cursor: Cursor): readonly Completion[] {
  const { writing, view, file } = cursor;
  const [holder] = cursor.holders;
  switch (writing.kind) {
    case "nothing":
      return [];
    case "include":
      return Object.keys(view.bundle.files)
        .filter((name) => name.endsWith(".sf") && name !== file.name)
        .map((name) => fileItem(relativeTo(file.name, name), writing.include.path.inner));
    case "name":
      return nameItems(cursor, writing.attribute, writing.name ?? { start: cursor.offset, end: cursor.offset });
    case "string":
      return holder ? inText(cursor, holder, writing.attribute, writing.string) : [];
    case "prototype":
      return holder ? prototypeItems(cursor, holder, writing.attribute, writing.reference) : [];
    case "reference":
      return holder && writing.reference ? referenceItems(cursor, holder, writing.attribute, writing.reference) : [];
    case "value":
      return holder ? valueItems(cursor, holder, writing.attribute, writing.word) : [];
  }
}

const fileItem = (path: string, replace: Span): Completion => ({
  label: path,
  kind: "file",
  replace,
  insert: path,
  rank: 0,
});

/** `name` as a file beside or below `from` includes it. */
function relativeTo(from: string, name: string): string {
  const [here, there] = [from.split("/").slice(0, -1), name.split("/")];
  let same = 0;
  while (same < here.length && here[same] === there[same] && same < there.length - 1) same++;
  return [...here.slice(same).map(() => ".."), ...there.slice(same)].join("/");
}

/** Attributes of the component's type and of its templates. Those that its block has already are left out. */
function nameItems(cursor: Cursor, attribute: SourceAttribute | null, replace: Span): readonly Completion[] {
  const [holder] = cursor.holders;
  if (!holder || (attribute && attribute.name.length > 1)) return [];
  const { place, file } = cursor;
  const present = new Set(
    place.block.entries.flatMap((entry) =>
      entry.kind === "attribute" && entry !== attribute && entry.name.length === 1 ? [entry.name[0]?.text] : [],
    ),
  );
  const bare = attribute?.value === null || attribute === null;
  const json = file.language === "json";
  const type = elementType(holder);
  const written = (name: string): string =>
    json ? `"${name}"` : /^[A-Za-z_$][\w.\-+@#~$%^&]*$/.test(name) ? name : JSON.stringify(name);
  const items: Completion[] = [];
  for (const [name, schema] of type === null ? [] : attributesOf(type)) {
    if (present.has(name) || (name === "x.type" && !json)) continue;
    const star = name.endsWith("*");
    const plain = star ? name.slice(0, -1) : name;
    items.push({
      label: name,
      kind: "attribute",
      replace,
      insert: star ? plain : written(plain),
      ...(bare && !star ? { snippet: attributeSnippet(written(plain), schema, json) } : {}),
      ...(json ? { filter: `"${name}"` } : {}),
      detail: `${kindText(schema.kind).replaceAll("`", "")}${schema.unit === undefined ? "" : `, ${schema.unit}`}`,
      docs: attributeText(name, schema),
      rank: schema.required ? 0 : name.includes(".", 2) ? 2 : 1,
    });
  }
  for (const member of holder.members.values()) {
    if (present.has(member.name) || member.from === null || member.name.startsWith("x.")) continue;
    items.push({
      label: member.name,
      kind: "component",
      replace,
      insert: written(member.name),
      rank: 3,
      detail: "of a template",
    });
  }
  if (json && !present.has("x.type") && type === null)
    items.push({ label: "x.type", kind: "attribute", replace, insert: '"x.type"', filter: '"x.type"', rank: 4 });
  return items;
}

const escaped = (text: string): string => text.replace(/[\\$}]/g, "\\$&");

function attributeSnippet(name: string, schema: AttributeSchema, json: boolean): string {
  const { kind } = schema;
  const [between, end] = json ? [": ", ""] : [" ", ";"];
  const shown = escaped(name);
  const standard = schema.default === undefined ? "" : escaped(String(schema.default));
  const choice = (values: readonly string[]): string =>
    `\${1|${values.map((each) => each.replace(/[,|\\$}]/g, "\\$&")).join(",")}|}`;
  switch (kind.kind) {
    case "integer":
      return `${shown}${between}\${1:${standard === "" ? kind.minimum : standard}}${end}`;
    case "boolean":
      return `${shown}${between}${choice(schema.default === true ? ["false", "true"] : ["true", "false"])}${end}`;
    case "choice":
      return `${shown}${between}"${choice(kind.values)}"${end}`;
    case "link":
    case "end":
      return `${shown}${between}"<ref:$1>"${end}`;
    case "domain":
      return `${shown}${between}"<ref://$1/>"${end}`;
    case "data":
      return json ? `${shown}: { $0 }` : `${shown} extends {\n\t$0\n}`;
    case "ports":
      return `${shown}${between}\${1:80}${end}`;
    default:
      return `${shown}${between}"$1"${end}`;
  }
}

/** Components that could be extended: the standard ones, and those that are in sight. */
function prototypeItems(
  cursor: Cursor,
  holder: TreeNode,
  attribute: SourceAttribute,
  reference: SourceReference | null,
): readonly Completion[] {
  const { offset, view } = cursor;
  const last = reference?.steps.findLast(({ start }) => start <= offset);
  const index = reference && last ? reference.steps.indexOf(last) : 0;
  const replace = last && offset <= last.end ? last : { start: offset, end: offset };
  const prefix = (reference?.steps ?? []).filter((step) => step.end < offset && step !== last);
  const inner = reference && offset > (last?.end ?? offset) ? reference.steps : prefix;
  if (reference && (index > 0 || inner.length > 0)) {
    const found = view.tree.reference(holder, { ...reference, steps: inner }).target;
    return found ? componentItems(found, replace, 0) : [];
  }
  const blockless = !attribute.component?.parts.some((part) => part.kind === "block");
  const standard = standardPrototypes.map((name): Completion => {
    const type = elementTypeNamed(name);
    const fields = type && blockless ? requiredOf(type) : [];
    const block = fields.map((field, at) => `\n\t${field} \${${at + 1}:${placeholder(type, field)}};`).join("");
    return {
      label: name,
      kind: "type",
      replace,
      insert: name,
      detail: "element type",
      rank: 1,
      ...(type ? { docs: typeText(type) } : {}),
      ...(fields.length > 0 ? { snippet: `${name} {${block}$0\n}` } : {}),
    };
  });
  const inSight: Completion[] = [];
  for (let at: TreeNode | null = holder; at; at = at.parent)
    inSight.push(
      ...componentItems(at, replace, at.parent ? 2 : 0).filter(({ label }) => label !== attribute.name[0]?.text),
    );
  return [...inSight, ...standard].filter(({ detail }) => detail !== "Cell");
}

const elementTypeNamed = (name: string): ReturnType<typeof elementType> =>
  standardPrototypes.includes(name) ? (name as ReturnType<typeof elementType>) : null;

function placeholder(type: ReturnType<typeof elementType>, field: string): string {
  const schema = type && attributesOf(type).find(([name]) => name === field)?.[1];
  if (schema?.kind.kind === "integer") return String(schema.kind.minimum);
  return schema?.kind.kind === "link" || schema?.kind.kind === "end" ? '"<ref:>"' : '""';
}

function componentItems(node: TreeNode, replace: Span, rank: number): readonly Completion[] {
  const items: Completion[] = [];
  for (const { name, attribute } of node.members.values()) {
    if (!attribute.component || name.startsWith("x.")) continue;
    const detail = items.length < mostItems ? (node.child(name)?.type ?? "component") : "component";
    items.push({ label: name, kind: "component", replace, insert: name, detail, rank });
  }
  return items;
}

/** Names that a SmartFrog reference could go on with. */
function referenceItems(
  cursor: Cursor,
  holder: TreeNode,
  attribute: SourceAttribute,
  reference: SourceReference,
): readonly Completion[] {
  const { offset, view } = cursor;
  const last = reference.steps.findLast(({ start }) => start <= offset);
  const behind = last !== undefined && offset > last.end;
  const replace = last && !behind ? last : { start: offset, end: offset };
  const before = behind ? reference.steps : reference.steps.filter((step) => step !== last && step.end <= offset);
  if (before.length === 0) return valueItems(cursor, holder, attribute, replace);
  const found = view.tree.reference(holder, { ...reference, steps: before }).target;
  if (!found) return [];
  const names = [...found.members.values()].map(
    ({ name, attribute: { component } }): Completion => ({
      label: name,
      kind: component ? "component" : "value",
      replace,
      insert: name,
      rank: 0,
    }),
  );
  return [...names, { label: "PARENT", kind: "keyword", replace, insert: "PARENT", rank: 5 }];
}

const keywords = ["extends", "ROOT", "PARENT", "THIS", "ATTRIB", "HERE", "LAZY", "OPTIONAL", "TBD", "IF", "SWITCH"];

/** Values of an attribute of which nothing is written yet, or a word without quotes. */
function valueItems(
  cursor: Cursor,
  holder: TreeNode,
  attribute: SourceAttribute,
  replace: Span,
): readonly Completion[] {
  const schema = schemaFor(holder, attribute);
  const json = cursor.file.language === "json";
  const values = schema
    ? literalsOf(schema).map(
        (text): Completion => ({
          label: text,
          kind: "value",
          replace,
          insert: text,
          rank: 0,
          ...(schema.default !== undefined && JSON.stringify(schema.default) === text ? { detail: "default" } : {}),
        }),
      )
    : [];
  const references = referenceTexts(holder, schema).map(
    (text): Completion => ({
      label: text,
      kind: "component",
      replace,
      insert: JSON.stringify(text),
      filter: JSON.stringify(text),
      rank: 1,
    }),
  );
  if (json) {
    const types = attribute.name[0]?.text === "x.type" ? standardPrototypes.map((each) => JSON.stringify(each)) : [];
    const names = types.map((text): Completion => ({ label: text, kind: "type", replace, insert: text, rank: 0 }));
    return [...values, ...names, ...references];
  }
  const words = keywords.map((word): Completion => ({ label: word, kind: "keyword", replace, insert: word, rank: 4 }));
  return [...values, ...references, ...visibleItems(holder, attribute, replace), ...(schema ? words.slice(1) : words)];
}

/** What a word without quotes may name: attributes here and further out. */
function visibleItems(holder: TreeNode, attribute: SourceAttribute, replace: Span): readonly Completion[] {
  const items: Completion[] = [];
  for (let at: TreeNode | null = holder; at && items.length <= mostItems; at = at.parent)
    for (const { name, attribute: found } of at.members.values())
      if (found !== attribute && !name.startsWith("x."))
        items.push({ label: name, kind: found.component ? "component" : "value", replace, insert: name, rank: 3 });
  return items;
}
