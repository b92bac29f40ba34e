import type { Diagnostic, Position } from "../diagnostics/diagnostic.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import { limits } from "../limits.ts";
import { fail, ok, type Result } from "../result.ts";
import { tokenize } from "../smartfrog/text/lexer.ts";
import { parseBundle } from "../smartfrog/text/parser.ts";
import { type Piece, piecesOf } from "./pieces.ts";

/*
 * The formatter of SmartFrog texts. It moves white space and nothing else: each token and each comment comes out as it
 * went in, in the same order, so the meaning cannot change (and is compared at the end all the same). Line breaks are
 * the author's: a formatter that decides about them itself tears tables and groups apart. What it does decide:
 * - two spaces for each open `{`, `(` or `[`, two more where an attribute goes on in a further line;
 * - a block that does not end on its line has its braces at line ends and line beginnings; one that does keeps its line;
 * - one space or none between tokens of a line, no space at a line's end, at most one empty line in a row, none at the
 *   beginning or end of a block;
 * - a comment behind code keeps its column where it can, so that what was aligned stays aligned.
 */

/** Of other files, or of what is well written but refused later: neither concerns the form of this text. */
const otherFaults = [
  "syntax/include-missing",
  "syntax/include-absolute",
  "syntax/include-outside",
  "syntax/include-cycle",
  "limit/include",
];

/** The text in its one form, ending in a newline; or its syntax errors, since what cannot be read is not touched. */
export function formatSmartFrog(file: string, text: string): Result<string, readonly Diagnostic[]> {
  const diagnostics = new Diagnostics(otherFaults);
  const starts = startsIn(file, text, diagnostics);
  const formatted = diagnostics.none ? layOut(file, text, starts, diagnostics) : null;
  if (formatted === null) return fail(diagnostics.list);
  if (tokensOf(file, formatted) !== tokensOf(file, text)) throw new Error(`the formatter would change ${file}`);
  return ok(formatted);
}

/*
 * Each step on its own, so that what it needed is gone before the next: the tokens, the syntax tree and the pieces of a
 * large text together would be larger than all else.
 */
function startsIn(file: string, text: string, diagnostics: Diagnostics): ReadonlySet<number> {
  const starts = new Set<number>();
  if (text.length > limits.textLength)
    diagnostics.add({
      code: "limit/text",
      message: `The text is larger than ${limits.textLength / 1024 / 1024} MiB`,
      hint: "Split the cell into several.",
    });
  else {
    const { attributes, prototypes, extendsAt } = parseBundle({ main: file, files: { [file]: text } }, diagnostics);
    if (extendsAt) starts.add(place(extendsAt.line, extendsAt.column));
    collectStarts([attributes, prototypes], starts);
  }
  return starts;
}
function layOut(file: string, text: string, starts: ReadonlySet<number>, diagnostics: Diagnostics): string | null {
  const pieces = piecesOf(text, limits.tokens + 1);
  if (!pieces) throw new Error(`the formatter cannot split ${file}, which the lexer can`);
  if (pieces.length > limits.tokens) {
    diagnostics.add({
      code: "limit/tokens",
      message: `This text has more than ${limits.tokens} words, signs, values and comments`,
      hint: "Leave out some of the comments, or split it into several files.",
    });
    return null;
  }
  return new Formatter(pieces, starts).run();
}

/** What tells two sequences of tokens apart: their number, and a sum over all of their characters (FNV-1a, twice). */
function tokensOf(file: string, text: string): string {
  const tokens = tokenize(file, text, new Diagnostics());
  let [one, other] = [0x811c9dc5, 0x01000193];
  const take = (code: number): void => {
    one = Math.imul(one ^ code, 0x01000193);
    other = Math.imul(other + code, 0x85ebca6b) ^ (other >>> 13);
  };
  for (const { kind, text: characters } of tokens) {
    take(kind.charCodeAt(0));
    take(kind.length);
    take(characters.length);
    for (let at = 0; at < characters.length; at++) take(characters.charCodeAt(at));
  }
  return `${tokens.length} ${one} ${other}`;
}

/** As one number: a text may have half a million. */
const place = (line: number, column: number): number => line * 2 ** 25 + column;

/** What holds no attributes, and is not looked into: a large text has very many of it. */
const leaves: ReadonlySet<string> = new Set(["position", "scalar", "tags", "name"]);

/** Where attributes begin, from anything of the syntax tree that says so. */
function collectStarts(syntax: readonly unknown[], into: Set<number>): void {
  const open: unknown[] = [syntax];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const node = next as Record<string, unknown> & { readonly namePosition?: Position };
    if (node.namePosition) into.add(place(node.namePosition.line, node.namePosition.column));
    for (const name in node) {
      const value = node[name];
      if (typeof value === "object" && value !== null && name !== "namePosition" && !leaves.has(name)) open.push(value);
    }
  }
}

interface Bracket {
  /** Levels of the line, or for a block of the attribute, that it was opened in. */
  readonly indent: number;
  readonly block: boolean;
}

class Formatter {
  readonly #pieces: readonly Piece[];
  readonly #starts: ReadonlySet<number>;
  /** Of blocks: whether the closing brace stands on another line than the opening one, by either's index. */
  readonly #broken: ReadonlyMap<number, boolean>;
  readonly #open: Bracket[] = [];
  #out: string[] = [];
  readonly #before: string[] = [];
  /** Columns that the current line has so far. */
  #column = 0;
  /** Levels of the current line, without and with those of an attribute that goes on. */
  #base = 0;
  #indent = 0;

  constructor(pieces: readonly Piece[], starts: ReadonlySet<number>) {
    this.#pieces = pieces;
    this.#starts = starts;
    this.#broken = brokenBlocks(pieces);
  }

  run(): string {
    for (const [index, piece] of this.#pieces.entries()) {
      const before = this.#pieces[index - 1];
      const breaks = before ? this.#breaks(index, before, piece) : 0;
      if (breaks > 0) this.#put("\n".repeat(breaks));
      if (breaks > 0 || !before) this.#begin(index, piece);
      else this.#put(this.#spaces(before, piece));
      this.#put(piece.kind === "block-comment" ? this.#blockComment(piece.text) : trimmed(piece));
      this.#track(piece);
    }
    if (this.#pieces.length > 0) this.#put("\n");
    return [...this.#before, ...this.#out].join("");
  }

  #put(text: string): void {
    const newline = text.lastIndexOf("\n");
    this.#column = newline < 0 ? this.#column + text.length : text.length - newline - 1;
    // In pieces: half a million short texts are not kept at once.
    if (this.#out.push(text) < 4096) return;
    this.#before.push(this.#out.join(""));
    this.#out = [];
  }

  #breaks(index: number, before: Piece, piece: Piece): number {
    const wanted = Math.min(piece.breaks, 2);
    if (before.kind === "line-comment") return Math.max(1, isCode(piece, "}") ? 1 : wanted);
    if (before.kind === "code" && piece.kind === "code") {
      if (piece.text === ";" || piece.text === "," || piece.text === "{") return 0;
      if (before.text === "{" && piece.text === "}") return 0;
    }
    if (isCode(before, "{")) {
      if (piece.kind !== "code" && piece.breaks === 0) return 0;
      return this.#broken.get(index - 1) ? 1 : 0;
    }
    if (isCode(piece, "}")) return this.#broken.get(index) ? 1 : 0;
    if (isCode(before, "}") && this.#broken.get(index - 1) && this.#starts.has(place(piece.line, piece.column)))
      return Math.max(1, wanted);
    return wanted;
  }

  /** Indents a line that begins with `piece`. */
  #begin(index: number, piece: Piece): void {
    const inner = this.#open.at(-1);
    const level = inner ? inner.indent + 1 : 0;
    const closing = inner && piece.kind === "code" && /^(?:[})\]]|\|\])$/.test(piece.text);
    this.#base = closing ? inner.indent : level;
    this.#indent = this.#base;
    if (!closing && (inner === undefined || inner.block) && this.#goesOn(index, piece)) this.#indent++;
    this.#put("  ".repeat(this.#indent));
  }
  /** Whether a line that begins with it continues the attribute before it. */
  #goesOn(index: number, piece: Piece): boolean {
    if (piece.kind !== "code" || index === 0 || /^(?:#include(?:[ \t]*\?)?|[;{[])$/.test(piece.text)) return false;
    return !this.#starts.has(place(piece.line, piece.column));
  }

  #track({ kind, text }: Piece): void {
    if (kind !== "code") return;
    if (text === "{") this.#open.push({ indent: this.#base, block: true });
    else if (text === "(" || text === "[" || text === "[|") this.#open.push({ indent: this.#indent, block: false });
    else if (text === "}" || text === ")" || text === "]" || text === "|]") this.#open.pop();
  }

  /** Between two pieces of one line. */
  #spaces(before: Piece, piece: Piece): string {
    if (piece.kind === "line-comment" && piece.gap > 1) return " ".repeat(Math.max(1, piece.column - 1 - this.#column));
    if (before.kind !== "code" || piece.kind !== "code") return " ";
    if (piece.text === "(" && before.text !== "(" && piece.gap === 0) return "";
    return clings(before.text, piece.text) && joinable(before.text, piece.text) ? "" : " ";
  }

  /** Lines that begin with `*` stand below the first one's; others were laid out by hand. */
  #blockComment(text: string): string {
    const [first = "", ...rest] = text.split("\n");
    const margin = " ".repeat(this.#column + 1);
    const line = (each: string): string => (/^\s*\*/.test(each) ? margin + each.trim() : each.trimEnd());
    return [rest.length > 0 ? first.trimEnd() : first, ...rest.map(line)].join("\n");
  }
}

const isCode = (piece: Piece, text: string): boolean => piece.kind === "code" && piece.text === text;
const trimmed = ({ kind, text }: Piece): string => (kind === "line-comment" ? text.trimEnd() : text);

function brokenBlocks(pieces: readonly Piece[]): ReadonlyMap<number, boolean> {
  const broken = new Map<number, boolean>();
  const open: { readonly index: number; readonly line: number }[] = [];
  for (const [index, piece] of pieces.entries()) {
    if (isCode(piece, "{")) open.push({ index, line: piece.line });
    else if (isCode(piece, "}")) {
      const opening = open.pop();
      if (!opening) continue;
      broken.set(opening.index, opening.line !== piece.line);
      broken.set(index, opening.line !== piece.line);
    }
  }
  return broken;
}

/** Tokens that are written without a space between them. */
const clings = (before: string, after: string): boolean =>
  /^(?:[;,)\]:]|\|\])$/.test(after) || /^(?:[([:!]|\[\|)$/.test(before);

/** Whether two tokens are still the same two without a space, unlike `x` and `|]`. */
function joinable(before: string, after: string): boolean {
  if (after === ";" || after === ",") return true;
  const pieces = piecesOf(before + after);
  return pieces?.length === 2 && pieces[0]?.text === before && pieces[1]?.text === after;
}
