import { Diagnostics } from "../diagnostics/diagnostics.ts";
import { piecesIn, SourceParser } from "./sources/smartfrog-source.ts";
import {
  lineStartsOf,
  type SourceAttribute,
  type SourceBlock,
  type SourceComponent,
  type SourceEntry,
  type SourceFile,
  type SourcePart,
  type SourceReference,
  type SourceString,
  type Span,
} from "./sources/source.ts";

/*
 * A keystroke changes one block of a text of thousands. Only the innermost block around what changed is read again; what
 * stands before it is the same, and what stands behind is moved. A test holds the outcome against reading all of it.
 */

/** The source tree of a text that was another before; null if that is not worth more than reading the whole. */
export function reparsed(previous: SourceFile, text: string): SourceFile | null {
  const start = commonStart(previous.text, text);
  const change = { start, end: previous.text.length - commonEnd(previous.text, text, start) };
  const by = text.length - previous.text.length;
  const around = blocksAround(previous, change);
  for (let level = around.length - 1; level >= 0; level--) {
    const block = around[level]?.block;
    const read = block && interior(previous.name, text, { start: block.start + 1, end: block.end - 1 + by });
    if (!block || !read) continue;
    let inside: SourceBlock = { start: block.start, end: block.end + by, entries: read.entries };
    for (let outer = level; outer >= 0; outer--) {
      const at = around[outer];
      if (at) inside = withPart(at, inside, by);
    }
    const top = { ...inside, start: -1, end: text.length + 1 };
    return { ...previous, text, top, lineStarts: lineStartsOf(text), placing: previous.placing || read.placing };
  }
  return null;
}

const step = 4096;
function commonStart(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let at = 0;
  while (at + step <= shorter && a.startsWith(b.slice(at, at + step), at)) at += step;
  while (at < shorter && a[at] === b[at]) at++;
  return at;
}
/** Characters at the end that are the same, without those that are counted at the start. */
function commonEnd(a: string, b: string, start: number): number {
  const most = Math.min(a.length, b.length) - start;
  let same = 0;
  while (
    same + step <= most &&
    a.slice(a.length - same - step, a.length - same) === b.slice(b.length - same - step, b.length - same)
  )
    same += step;
  while (same < most && a[a.length - 1 - same] === b[b.length - 1 - same]) same++;
  return same;
}

/** A block, and where in the block around it it stands. */
interface Nested {
  readonly outer: SourceBlock;
  readonly entry: number;
  readonly attribute: SourceAttribute;
  readonly component: SourceComponent;
  readonly part: number;
  readonly block: SourceBlock;
}

/** Closed blocks that hold the change between their braces, the outermost first. */
function blocksAround({ top, text }: SourceFile, change: Span): readonly Nested[] {
  const found: Nested[] = [];
  for (let outer = top; ; ) {
    const entry = outer.entries.findLastIndex(({ start }) => start <= change.start);
    const attribute = outer.entries[entry];
    const component = attribute?.kind === "attribute" ? attribute.component : null;
    const holds = (part: SourcePart): boolean =>
      part.kind === "block" &&
      part.block.start < change.start &&
      change.end < part.block.end &&
      text[part.block.end - 1] === "}";
    const part = component?.parts.findIndex(holds) ?? -1;
    const inner = component?.parts[part];
    if (attribute?.kind !== "attribute" || !component || inner?.kind !== "block") return found;
    found.push({ outer, entry, attribute, component, part, block: inner.block });
    outer = inner.block;
  }
}

/** What stands between braces, if it closes all that it opens and nothing else. */
function interior(
  file: string,
  text: string,
  { start, end }: Span,
): { readonly entries: readonly SourceEntry[]; readonly placing: boolean } | null {
  const inside = text.slice(start, end);
  // A comment, or what is taken for one or for a text, would go on over the brace behind it.
  if (/\/\/|[#'“”„]/.test(inside.slice(inside.lastIndexOf("\n") + 1))) return null;
  const diagnostics = new Diagnostics(["syntax/character", "syntax/number", "syntax/escape"]);
  const pieces = piecesIn(file, inside, start, diagnostics);
  if (!diagnostics.none) return null;
  let depth = 0;
  for (const { token } of pieces) {
    if (token.kind !== "symbol") continue;
    if (token.text === "{") depth++;
    else if (token.text === "}" && --depth < 0) return null;
  }
  if (depth !== 0) return null;
  const parser = new SourceParser(file, text, pieces);
  const { entries } = parser.file();
  return parser.stray ? null : { entries, placing: parser.placing };
}

/** The block around another with that in its place. */
function withPart({ outer, entry, attribute, component, part }: Nested, block: SourceBlock, by: number): SourceBlock {
  const parts = component.parts.map((each, index): SourcePart => {
    if (index === part) return { kind: "block", block };
    return index < part ? each : movedPart(each, by);
  });
  const { value } = attribute;
  const changed: SourceAttribute = {
    ...attribute,
    end: attribute.end + by,
    component: { parts, start: component.start, end: component.end + by },
    value: value && { start: value.start, end: value.end + by },
  };
  const entries = outer.entries.map((each, index): SourceEntry => {
    if (index === entry) return changed;
    return index < entry || by === 0 ? each : movedEntry(each, by);
  });
  return { start: outer.start, end: outer.end + by, entries };
}

function moved<T extends Span>(span: T, by: number): T {
  return { ...span, start: span.start + by, end: span.end + by };
}
const movedPart = (part: SourcePart, by: number): SourcePart =>
  part.kind === "block"
    ? { kind: "block", block: movedBlock(part.block, by) }
    : { kind: "reference", reference: movedReference(part.reference, by) };
const movedBlock = ({ start, end, entries }: SourceBlock, by: number): SourceBlock => ({
  start: start + by,
  end: end + by,
  entries: entries.map((entry) => movedEntry(entry, by)),
});
const movedReference = ({ start, end, steps }: SourceReference, by: number): SourceReference => ({
  start: start + by,
  end: end + by,
  steps: steps.map((each) => moved(each, by)),
});
const movedString = (string: SourceString, by: number): SourceString => ({
  ...moved(string, by),
  inner: moved(string.inner, by),
});
function movedEntry(entry: SourceEntry, by: number): SourceEntry {
  if (entry.kind === "include") return { ...moved(entry, by), path: movedString(entry.path, by) };
  const { component, value } = entry;
  return {
    ...moved(entry, by),
    name: entry.name.map((each) => moved(each, by)),
    component: component && { ...moved(component, by), parts: component.parts.map((part) => movedPart(part, by)) },
    references:
      entry.references.length === 0 ? entry.references : entry.references.map((each) => movedReference(each, by)),
    strings: entry.strings.length === 0 ? entry.strings : entry.strings.map((each) => movedString(each, by)),
    value: value && moved(value, by),
  };
}
