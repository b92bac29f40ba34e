import type { Bundle } from "../../cell/cell.ts";
import { isObject, type Json, type JsonObject } from "../../json/json.ts";
import { fail, ok, type Result } from "../../result.ts";
import { type BundleView, type Member, TreeNode, viewBundle } from "../sources/bundle-tree.ts";
import type { SourceAttribute, SourceBlock } from "../sources/source.ts";
import { applyEdits, type Edit } from "../text-edit.ts";

/*
 * What a form changes becomes a change of the texts that the model was made from: the one place is written anew, and everything else stays as it
 * is, with its comments. What has no place of its own in the texts, since a template has it or a loop makes it, is refused with a sentence: who
 * wrote it that way has to say what is meant.
 */
export type ElementChange =
  /** Attributes of a component that is there; null takes one out. */
  | { readonly kind: "set"; readonly path: string; readonly attributes: Attributes<Json | null> }
  /** An element more. Components around it that are not there are made. */
  | { readonly kind: "add"; readonly path: string; readonly type: string; readonly attributes: Attributes<Json> }
  | { readonly kind: "remove"; readonly path: string };
type Attributes<T> = { readonly [name: string]: T };

/** The texts with the changes made, one after the other; a sentence where one has no place there. */
export function patchTexts(bundle: Bundle, changes: readonly ElementChange[]): Result<Bundle, string> {
  let now = bundle;
  for (const change of changes) {
    const next = patched(now, change);
    if (!next.ok) return next;
    now = next.value;
  }
  return ok(now);
}

function patched(bundle: Bundle, change: ElementChange): Result<Bundle, string> {
  if (/\.json$/.test(bundle.main)) return patchedJson(bundle, change);
  if (!bundle.main.endsWith(".sf")) return fail(`${bundle.main} is neither SmartFrog nor JSON`);
  const view = viewBundle(bundle);
  const edits = change.kind === "set" ? setEdits(view, change) : [editOf(view, change)];
  const made: Edit[] = [];
  for (const edit of edits) {
    if (!edit.ok) return edit;
    const { file } = edit.value;
    if (view.tree.tops(file).length > 1)
      return fail(`${file} is included in several places, which would all be changed`);
    made.push(edit.value);
  }
  return ok(applyEdits(bundle, made));
}
type Edits = Result<Edit, string>;

const nodeAt = ({ tree }: BundleView, path: readonly string[]): TreeNode | null => {
  let node: TreeNode | null = tree.root;
  for (const name of path) node = node?.child(name) ?? null;
  return node;
};
/** The braces that are a component's alone; null: it has none of its own. */
function ownBlock(node: TreeNode): SourceBlock | null {
  if (node.source instanceof TreeNode) return null;
  const blocks = node.source.parts.flatMap((part) => (part.kind === "block" ? [part.block] : []));
  return blocks.at(-1) ?? null;
}
const noBraces = (path: string): Result<never, string> =>
  fail(`${path} has no braces of its own in the text: what is in it comes from a template or is made by one`);

function setEdits(view: BundleView, { path, attributes }: Extract<ElementChange, { kind: "set" }>): readonly Edits[] {
  const node = nodeAt(view, path.split("/"));
  if (node === null) return [fail(`${path} does not stand in the text`)];
  const block = ownBlock(node);
  if (block === null) return [noBraces(path)];
  const added: string[] = [];
  const edits = Object.entries(attributes).flatMap(([name, value]): readonly Edits[] => {
    const member = node.members.get(name);
    const why = member === undefined || member.from !== null ? null : whyKept(view, member, value === null);
    if (why !== null) return [fail(`${path} has ${name} with ${why}`)];
    if (value === null) return member === undefined ? [] : [withoutMember(view, `${path}/${name}`, member)];
    if (member === undefined || member.from !== null) {
      added.push(`${name} ${written(value)};`);
      return [];
    }
    const { value: span, file, component } = member.attribute;
    if (span === null || component !== null) return [fail(`${path} has ${name} without a value that could be another`)];
    return [ok({ file, start: span.start, end: span.end, text: written(value) })];
  });
  return added.length === 0 ? edits : [...edits, ok(insertion(view, node.file, block, added.join(" ")))];
}

const scalar = String.raw`(?:"(?:[^"\\]|\\.)*"|-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[LlFfDd]?|true|false)`;
const literal = new RegExp(String.raw`^(?:${scalar}|\[\s*(?:${scalar}\s*(?:,\s*${scalar}\s*)*)?\])$`, "s");
/** What of a value would be lost with it that nobody means to take away; null: nothing. */
function whyKept({ bundle }: BundleView, { attribute }: Member, goes: boolean): string | null {
  const { value: span, file } = attribute;
  if (span === null || attribute.component !== null) return null;
  const text = (bundle.files[file] ?? "").slice(span.start, span.end);
  if (/\/[/*]/.test(text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, ""))) return "a comment in its value";
  return goes || literal.test(text) ? null : "a value that is worked out or stands elsewhere";
}

function editOf(view: BundleView, change: Exclude<ElementChange, { kind: "set" }>): Edits {
  const path = change.path.split("/");
  const [around, name] = [path.slice(0, -1), path.at(-1) ?? ""];
  const member = nodeAt(view, around)?.members.get(name);
  if (change.kind === "remove")
    return member === undefined
      ? fail(`${change.path} does not stand in the text`)
      : withoutMember(view, change.path, member);
  if (member !== undefined) return fail(`${change.path} stands in the text already`);
  const attributes = Object.entries(change.attributes).map(([each, value]) => ` ${each} ${written(value)};`);
  let text = `${name} extends ${change.type} {${attributes.join("")} }`;
  for (let depth = around.length; depth > 0; depth -= 1) {
    const node = nodeAt(view, around.slice(0, depth));
    const block = node === null ? null : ownBlock(node);
    if (node !== null && block !== null) return ok(insertion(view, node.file, block, text));
    if (node !== null) return noBraces(around.slice(0, depth).join("/"));
    text = `${around[depth - 1]} extends { ${text} }`;
  }
  return fail(`no component ${around[0]} stands in ${view.bundle.main}`);
}

function withoutMember({ bundle }: BundleView, path: string, { attribute, declarations, from }: Member): Edits {
  if (from !== null) return fail(`${path} comes from a template`);
  if (declarations.length > 1) return fail(`${path} is written in ${declarations.length} places`);
  return ok(removal(bundle.files[attribute.file] ?? "", attribute));
}
/** The whole line as well, where nothing else stands there. */
function removal(text: string, { file, start, end }: SourceAttribute): Edit {
  const begin = text.lastIndexOf("\n", start - 1) + 1;
  const [, rest = ""] = /^([ \t]*)/.exec(text.slice(end)) ?? [];
  const behind = end + rest.length;
  const isAlone = text.slice(begin, start).trim() === "" && (text[behind] === "\n" || behind === text.length);
  if (isAlone) return { file, start: begin, end: Math.min(behind + 1, text.length), text: "" };
  return { file, start, end: /\s/.test(text[start - 1] ?? "") ? behind : end, text: "" };
}
/** Before the closing brace: on a line of its own where that stands on one. */
function insertion({ bundle }: BundleView, file: string, { end }: SourceBlock, line: string): Edit {
  const text = bundle.files[file] ?? "";
  const brace = text[end - 1] === "}" ? end - 1 : end;
  const begin = text.lastIndexOf("\n", brace - 1) + 1;
  const indent = text.slice(begin, brace);
  if (indent.trim() === "") return { file, start: begin, end: begin, text: `${indent}  ${line}\n` };
  const gap = /\s$/.test(text.slice(0, brace)) ? "" : " ";
  return { file, start: brace, end: brace, text: `${gap}${line} ` };
}
const written = (value: Json): string =>
  Array.isArray(value) ? `[${value.map(written).join(", ")}]` : JSON.stringify(value);

function patchedJson(bundle: Bundle, change: ElementChange): Result<Bundle, string> {
  const { main, files } = bundle;
  const text = files[main] ?? "";
  let document: Json;
  try {
    document = JSON.parse(text) as Json;
  } catch (error) {
    return fail(`${main} is no JSON: ${(error as Error).message}`);
  }
  if (tokensOf(text) !== JSON.stringify(document))
    return fail(`${main} has names twice, or numbers, that would not stay as they are written`);
  const after = isObject(document)
    ? inDocument(document, change, change.path.split("/"))
    : fail(`${main} has no components`);
  if (!after.ok) return after;
  return ok({ main, files: { ...files, [main]: `${JSON.stringify(after.value, null, 2)}\n` } });
}

/** The text without what is between its parts, and its strings as they are always written. */
const tokensOf = (text: string): string =>
  text.replaceAll(/"(?:[^"\\]+|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? JSON.stringify(JSON.parse(part)) : ""));

/** The same in a model, as JSON has it. */
export function inDocument(
  holder: JsonObject,
  change: ElementChange,
  path: readonly string[],
): Result<JsonObject, string> {
  const [name = "", ...rest] = path;
  const own = holder[name];
  if (rest.length > 0) {
    if (own === undefined ? change.kind !== "add" || path.join("/") === change.path : !isObject(own))
      return fail(`${change.path} does not stand in the text`);
    const inner = inDocument(isObject(own) ? own : {}, change, rest);
    return inner.ok ? ok({ ...holder, [name]: inner.value }) : inner;
  }
  if (change.kind === "add") {
    if (own !== undefined) return fail(`${change.path} stands in the text already`);
    return ok({ ...holder, [name]: { "x.type": change.type, ...change.attributes } });
  }
  if (!isObject(own)) return fail(`${change.path} does not stand in the text`);
  const { [name]: _, ...others } = holder;
  if (change.kind === "remove") return ok(others);
  const kept = Object.entries({ ...own, ...change.attributes }).filter(([each]) => change.attributes[each] !== null);
  return ok({ ...holder, [name]: Object.fromEntries(kept) as JsonObject });
}
