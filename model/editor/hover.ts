import { getAt } from "../cell/document.ts";
import { follow, referenceIn } from "../cell/reference.ts";
import { isElementType, standardPrototypes } from "../cell/schema.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { diagnosticPages, exampleText } from "../diagnostics/diagnostic-codes.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { resolveSmartFrog, smartFrogDocument } from "../smartfrog/document.ts";
import { parseJsonText } from "../specification/json-text.ts";
import { type Cursor, cursorAt, elementType, schemaFor } from "./cursor.ts";
import { type Found, foundAt } from "./navigation.ts";
import type { BundleView, TreeNode } from "./sources/bundle-tree.ts";
import { attributeText, typeText } from "./sources/schema-text.ts";
import { contains, offsetOf, type Span } from "./sources/source.ts";

/** What an editor shows at a place, in Markdown. */
export interface Hover {
  readonly text: string;
  readonly span: Span;
}

/**
 * What is to be known of an offset: the attribute of the schema, what a name or reference leads to and the value that
 * comes of it, and for a place that is at fault, according to `diagnostics`, the page of `cells explain`.
 */
export function hoverAt(
  view: BundleView,
  file: string,
  offset: number,
  diagnostics: readonly Diagnostic[] = [],
): Hover | null {
  const cursor = cursorAt(view, file, offset);
  if (!cursor) return null;
  const meaning = meaningAt(cursor);
  const fault = faultAt(cursor, diagnostics);
  if (!meaning || !fault) return meaning ?? fault;
  return { text: `${meaning.text}\n\n---\n\n${fault.text}`, span: meaning.span };
}

function faultAt({ file, offset }: Cursor, diagnostics: readonly Diagnostic[]): Hover | null {
  for (const { code, position } of diagnostics) {
    if (position?.file !== file.name) continue;
    const start = offsetOf(file, position);
    const span = { start, end: start + position.length };
    const page = diagnosticPages.get(code);
    if (!contains(span, offset) || !page) continue;
    const fenced = (text: string): string => `\`\`\`smartfrog\n${text}\n\`\`\``;
    const { title, why, wrong, right } = page;
    const text = `**${code}**: ${title}\n\n${why}\n\nWrong:\n${fenced(exampleText(wrong))}\nRight:\n${fenced(exampleText(right))}`;
    return { text, span };
  }
  return null;
}

function meaningAt(cursor: Cursor): Hover | null {
  const { writing } = cursor;
  const [holder] = cursor.holders;
  if (writing.kind === "include")
    return { text: `The file \`${writing.include.path.value}\``, span: writing.include.path };
  if (writing.kind === "name" && writing.attribute && writing.name) {
    const schema = schemaFor(holder, writing.attribute);
    if (schema) {
      const value = holder ? valueAt(cursor.view, [...holder.path, writing.name.text]) : undefined;
      const shown = value === undefined || isObject(value) ? "" : `\n\nHere: \`${shownValue(value)}\``;
      return { text: `${attributeText(writing.name.text, schema)}${shown}`, span: writing.name };
    }
  }
  const found = foundAt(cursor);
  if (!found) return null;
  const text = foundText(cursor, found);
  return text === null ? null : { text, span: found.span };
}

function foundText({ view, file }: Cursor, { node, member, owner, prototype, span }: Found): string | null {
  const written = file.text.slice(span.start, span.end);
  if (prototype && !member && !node) {
    if (!standardPrototypes.includes(written)) return null;
    return typeText(isElementType(written) ? written : "Cell");
  }
  if (!member && node) return `\`/${node.path.join("/")}\`${kindOf(node)}`;
  if (!member || !owner) return null;
  const path = [...owner.path, member.name];
  const value = node ? undefined : valueAt(view, path);
  const shown = node
    ? kindOf(node)
    : value === undefined
      ? writtenValue(view, member.attribute)
      : ` = \`${shownValue(value)}\``;
  const links = node && !member.attribute.component ? `, a link to \`/${node.path.join("/")}\`` : "";
  return `\`/${path.join("/")}\`${shown}${links}`;
}

const kindOf = (node: TreeNode): string => {
  const type = elementType(node);
  return type === null ? ": a component" : `: ${type}`;
};

function writtenValue(view: BundleView, { file, value }: { file: string; value: Span | null }): string {
  const text = value && view.tree.files.get(file)?.text.slice(value.start, Math.min(value.end, value.start + 200));
  return text ? `, written \`${text.replace(/\s+/g, " ")}\`` : "";
}

const shownValue = (value: Json): string => {
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

const documents = new WeakMap<BundleView, JsonObject | null>();
/** The document that the texts make, if they are sound so far. */
function documentOf(view: BundleView): JsonObject | null {
  const known = documents.get(view);
  if (known !== undefined) return known;
  const { bundle } = view;
  const diagnostics = new Diagnostics();
  const text = bundle.files[bundle.main] ?? "";
  let document: JsonObject | null = null;
  if (bundle.main.endsWith(".json")) document = parseJsonText(bundle.main, text, diagnostics)?.document ?? null;
  else if (bundle.main.endsWith(".sf")) {
    const phases = resolveSmartFrog(bundle, standardPrototypes, diagnostics);
    document = phases && diagnostics.none ? smartFrogDocument(phases, diagnostics).document : null;
  }
  documents.set(view, document);
  return document;
}

/** What stands at a path when all is worked out, references followed. */
function valueAt(view: BundleView, path: readonly string[]): Json | undefined {
  const document = documentOf(view);
  if (!document || path.some((part) => part.includes("/"))) return undefined;
  const found = getAt(document, path.join("/"));
  if (!found.ok) return undefined;
  const reference = typeof found.value === "string" ? referenceIn(found.value) : null;
  if (reference === null) return found.value;
  const target = follow(document, path.slice(0, -1), reference);
  if (target.kind === "value") return target.value;
  return target.kind === "component" ? `/${target.path.join("/")}` : found.value;
}
