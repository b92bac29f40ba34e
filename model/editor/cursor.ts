import type { AttributeSchema } from "../cell/attributes/kinds.ts";
import type { ElementType } from "../cell/cell.ts";
import { attributeSchema, isElementType } from "../cell/schema.ts";
import { BundleTree, type BundleView, type TreeNode } from "./sources/bundle-tree.ts";
import {
  contains,
  type Name,
  type Place,
  placeAt,
  type SourceAttribute,
  type SourceFile,
  type SourceInclude,
  type SourceReference,
  type SourceString,
  type Span,
} from "./sources/source.ts";

/** What the author is writing at a place. */
export type Writing =
  | { readonly kind: "nothing" }
  /** The name of an attribute; `name` is the part of it at the cursor, null before its first letter. */
  | { readonly kind: "name"; readonly attribute: SourceAttribute | null; readonly name: Name | null }
  | { readonly kind: "string"; readonly attribute: SourceAttribute; readonly string: SourceString }
  /** A SmartFrog reference in a value or behind `extends`; null before its first letter. */
  | { readonly kind: "reference"; readonly attribute: SourceAttribute; readonly reference: SourceReference | null }
  | { readonly kind: "prototype"; readonly attribute: SourceAttribute; readonly reference: SourceReference | null }
  /** A value of which nothing is there, or a word of it that is no reference. */
  | { readonly kind: "value"; readonly attribute: SourceAttribute; readonly word: Span }
  | { readonly kind: "include"; readonly include: SourceInclude };

export interface Cursor {
  readonly view: BundleView;
  readonly place: Place;
  readonly file: SourceFile;
  readonly offset: number;
  readonly writing: Writing;
  /** The component whose block holds the place; several if the file is included in several. */
  readonly holders: readonly TreeNode[];
}

/** Null if the bundle has no such file in a language that is known here. */
export function cursorAt(view: BundleView, name: string, offset: number): Cursor | null {
  const file = view.tree.files.get(name);
  if (!file || offset < 0 || offset > file.text.length) return null;
  const place = placeAt(file, offset);
  const reached = view.tree.holders(place);
  // What the main file does not include is looked at by itself.
  const holders = reached.length > 0 ? reached : new BundleTree(name, view.tree.files).holders(place);
  return { view, place, file, offset, writing: writingAt(place), holders };
}

function writingAt(place: Place): Writing {
  const { file, offset, entry } = place;
  if (inComment(file, offset)) return { kind: "nothing" };
  if (entry === null) return { kind: "name", attribute: null, name: null };
  if (entry.kind === "include")
    return contains(entry.path.inner, offset) ? { kind: "include", include: entry } : { kind: "nothing" };
  const name = entry.name.find((each) => contains(each, offset));
  if (name) return { kind: "name", attribute: entry, name };
  const string = entry.strings.find(({ inner }) => contains(inner, offset));
  if (string) return { kind: "string", attribute: entry, string };
  const reference = entry.references.find((each) => contains(each, offset));
  if (reference) return { kind: "reference", attribute: entry, reference };
  if (entry.component && file.language === "smartfrog") return inPrototypes(entry, file, offset);
  return inValue(entry, file, offset);
}

function inPrototypes(attribute: SourceAttribute, file: SourceFile, offset: number): Writing {
  const { component } = attribute;
  if (!component || offset < component.start + "extends".length) return { kind: "nothing" };
  let reference: SourceReference | null = null;
  let last = component.start;
  for (const part of component.parts) {
    const span = part.kind === "block" ? part.block : part.reference;
    if (part.kind === "reference" && contains(span, offset)) reference = part.reference;
    if (span.end <= offset) last = Math.max(last, span.end);
  }
  if (reference) return { kind: "prototype", attribute, reference };
  const before = file.text.slice(last, offset);
  if (/^extends\s+(?:(?:DATA|LAZY)\s+)?$/.test(before) || /^\s*,\s*$/.test(before))
    return { kind: "prototype", attribute, reference: null };
  return before.includes("\n") ? { kind: "name", attribute: null, name: null } : { kind: "nothing" };
}

function inValue(attribute: SourceAttribute, file: SourceFile, offset: number): Writing {
  const { value, name, start } = attribute;
  const named = name.at(-1)?.end ?? start;
  const from = value?.end ?? named;
  if (value && contains(value, offset)) {
    const word = /[^\s,;:{}[\]()"]*$/.exec(file.text.slice(value.start, offset))?.[0] ?? "";
    return { kind: "value", attribute, word: { start: offset - word.length, end: offset } };
  }
  if (offset <= named) return { kind: "nothing" };
  const between = file.text.slice(from, offset);
  if (file.language === "json") {
    const missing = value === null && /^\s*:\s*$/.test(between);
    return missing ? { kind: "value", attribute, word: { start: offset, end: offset } } : { kind: "nothing" };
  }
  if (between.includes("\n")) return { kind: "name", attribute: null, name: null };
  if (value !== null || between.includes(";")) return { kind: "nothing" };
  return { kind: "value", attribute, word: { start: offset, end: offset } };
}

/** Of a longer line only the end is looked at. */
const longestLine = 10_000;
function inComment({ text }: SourceFile, offset: number): boolean {
  const line = text
    .slice(Math.max(text.lastIndexOf("\n", offset - 1) + 1, offset - longestLine), offset)
    .replace(/"(?:\\.|[^"\\])*"?/g, "");
  if (line.includes("//")) return true;
  const open = offset < 2 ? -1 : text.lastIndexOf("/*", offset - 2);
  if (open < 0) return false;
  const begun = text
    .slice(Math.max(text.lastIndexOf("\n", open) + 1, open - longestLine), open)
    .replace(/"(?:\\.|[^"\\])*"/g, "");
  return !/"|\/\//.test(begun) && !text.slice(open + 2, offset).includes("*/");
}

/** A component's type, if it is one of the language. */
export function elementType(node: TreeNode | null | undefined): ElementType | "Cell" | null {
  const type = node?.type ?? null;
  return type !== null && (type === "Cell" || isElementType(type)) ? type : null;
}

/** What the schema says of an attribute of a component. */
export function schemaFor(holder: TreeNode | undefined, attribute: SourceAttribute): AttributeSchema | undefined {
  const [name] = attribute.name;
  const type = elementType(holder);
  return name && attribute.name.length === 1 && type !== null ? attributeSchema(type, name.text) : undefined;
}
