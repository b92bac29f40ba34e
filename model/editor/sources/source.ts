import type { Position } from "../../diagnostics/diagnostic.ts";

/*
 * A text as an editor needs it: everything that was written, with where it begins and ends, also while half of it is
 * missing. The parser that `cells spec check` uses leaves out what is at fault, which is just where an author's cursor
 * stands; this tree leaves nothing out. It is made from the same tokens, reads every text without faults as the parser
 * does (a test compares them) and has one form for SmartFrog and JSON.
 *
 * Places are offsets into the text, in UTF-16 code units, as in strings of JavaScript and in the language server
 * protocol. A span ends behind its last character.
 */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Name extends Span {
  /** The name that is meant; in quotes and with escapes it is written differently. */
  readonly text: string;
  readonly quoted: boolean;
}

/** A string with its quotes. `inner` is what stands between them; `plain` if that is the value as it is. */
export interface SourceString extends Span {
  readonly value: string;
  readonly inner: Span;
  readonly plain: boolean;
}

export type StepKind = "ROOT" | "PARENT" | "THIS" | "ATTRIB" | "HERE" | "foreign";
/** One part of a SmartFrog reference. Only ATTRIB and HERE have a name, whose span is that of the name alone. */
export interface SourceStep extends Name {
  readonly kind: StepKind;
}
export interface SourceReference extends Span {
  readonly steps: readonly SourceStep[];
}

export interface SourceBlock extends Span {
  readonly entries: readonly SourceEntry[];
}
export type SourcePart =
  | { readonly kind: "reference"; readonly reference: SourceReference }
  | { readonly kind: "block"; readonly block: SourceBlock };

/** What `extends` begins, or an object of JSON: parts in the order in which they are merged. */
export interface SourceComponent extends Span {
  readonly parts: readonly SourcePart[];
}

export interface SourceAttribute extends Span {
  readonly kind: "attribute";
  readonly file: string;
  /** More than one is a placement; none is `--`. */
  readonly name: readonly Name[];
  readonly component: SourceComponent | null;
  /** All that are written in the value, of functions inside it as well. */
  readonly references: readonly SourceReference[];
  readonly strings: readonly SourceString[];
  /** Null while none is written; `null` of SmartFrog is none either. */
  readonly value: Span | null;
  /** The value is one string or one reference and nothing else. */
  readonly sole: "string" | "reference" | null;
  /** With its `;` or comma, behind which something else begins. */
  readonly terminated: boolean;
}
export interface SourceInclude extends Span {
  readonly kind: "include";
  readonly path: SourceString;
}
export type SourceEntry = SourceAttribute | SourceInclude;

export interface SourceFile {
  readonly name: string;
  readonly text: string;
  readonly language: "smartfrog" | "json";
  readonly top: SourceBlock;
  readonly lineStarts: readonly number[];
  /** Whether there may be placements in it. */
  readonly placing: boolean;
}

/** Where lines begin; only a newline ends one, as in the positions of diagnostics. */
export function lineStartsOf(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** Offset of a diagnostic's position, within the text whatever the position says. */
export function offsetOf(
  { text, lineStarts }: Pick<SourceFile, "text" | "lineStarts">,
  { line, column }: Pick<Position, "line" | "column">,
): number {
  const start = lineStarts[Math.min(Math.max(line, 1), lineStarts.length) - 1] ?? 0;
  return Math.min(start + Math.max(column, 1) - 1, text.length);
}

/** Line and column, from 1, of an offset. */
export function positionAt({ name, lineStarts }: SourceFile, offset: number): Position {
  let [low, high] = [0, lineStarts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((lineStarts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return { file: name, line: low + 1, column: offset - (lineStarts[low] ?? 0) + 1, length: 1 };
}

export const contains = ({ start, end }: Span, offset: number): boolean => start <= offset && offset <= end;

/** A path of `#include` from the file that it stands in; null if it leads outside the bundle. */
export function includedFile(from: string, path: string): string | null {
  if (path === "" || path.startsWith("/") || /^[A-Za-z]:|\\/.test(path)) return null;
  const parts = from.split("/").slice(0, -1);
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.join("/");
}

/** Attributes from the outside to the innermost whose value holds the offset, and the block that holds it last. */
export interface Place {
  readonly file: SourceFile;
  readonly offset: number;
  readonly chain: readonly SourceAttribute[];
  readonly block: SourceBlock;
  /** What of `block` holds the offset itself. */
  readonly entry: SourceEntry | null;
}

export function placeAt(file: SourceFile, offset: number): Place {
  const chain: SourceAttribute[] = [];
  let block = file.top;
  for (;;) {
    const entry = entryAt(block, offset);
    const inner =
      entry?.kind === "attribute"
        ? entry.component?.parts.find((part) => part.kind === "block" && within(part.block, offset))
        : undefined;
    if (entry?.kind !== "attribute" || inner?.kind !== "block") return { file, offset, chain, block, entry };
    chain.push(entry);
    block = inner.block;
  }
}

/** Behind the opening brace and before the end of the closing one. */
const within = ({ start, end }: Span, offset: number): boolean => start < offset && offset < end;

/** The last entry that begins before the offset and is not over there. */
function entryAt({ entries }: SourceBlock, offset: number): SourceEntry | null {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.start ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  const entry = entries[low - 1];
  if (!entry) return null;
  if (offset < entry.end) return entry;
  const open = entry.kind === "include" || !entry.terminated;
  return offset === entry.end && open ? entry : null;
}

/** Every attribute of a block and inside it, with those around it. */
export function* attributesIn(
  block: SourceBlock,
  around: readonly SourceAttribute[] = [],
): Generator<{ readonly attribute: SourceAttribute; readonly around: readonly SourceAttribute[] }> {
  for (const entry of block.entries) {
    if (entry.kind !== "attribute") continue;
    yield { attribute: entry, around };
    if (!entry.component) continue;
    const inside = [...around, entry];
    for (const part of entry.component.parts) if (part.kind === "block") yield* attributesIn(part.block, inside);
  }
}
