import type { Bundle } from "../cell/cell.ts";
import { standardPrototypes } from "../cell/schema.ts";
import type { Diagnostic, Position } from "../diagnostics/diagnostic.ts";
import { diagnosticPages } from "../diagnostics/diagnostic-codes.ts";
import { renderDiagnostic } from "../diagnostics/render-diagnostic.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { standardFiles } from "../smartfrog/standard-files.ts";
import { smartFrogTree } from "../smartfrog/tree.ts";
import { formatSmartFrog } from "../smartfrog-format/format.ts";
import { piecesOf } from "../smartfrog-format/pieces.ts";
import { checkDocument, readSpecification } from "./specification.ts";

/*
 * A fuzzer of specifications. It mutates known texts (bytes, words, whole lines, pieces of other texts) and makes new ones
 * from the language's own words, and holds every outcome against what must be so of any text at all: of the reader, of
 * the tree, of the formatter and of JSON. One seed gives one sequence of texts, on every machine; a text that breaks a
 * rule is made small before it is shown. A test runs it for some seconds, CI for a minute, and this for a night:
 *   CELLS_FUZZ_SECONDS=28800 ./cells test model/specification/fuzz.test.ts
 */

/** Numbers from 0 to 1, the same for the same seed (mulberry32, by Tommy Ettinger, public domain). */
export function numbersOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Everything that the readers treat in a way of its own, so that chance finds it. */
const smartFrogWords: readonly string[] = [
  "extends",
  "ROOT",
  "PARENT",
  "ATTRIB",
  "HERE",
  "THIS",
  "LAZY",
  "DATA",
  "OPTIONAL",
  "TBD",
  "NULL",
  "APPLY",
  "ASSERT",
  "IF",
  "THEN",
  "ELSE",
  "FI",
  "SWITCH",
  "ENDSWITCH",
  "true",
  "false",
  "HOST",
  "PROPERTY",
  "CONSTANT",
  "{",
  "}",
  "(",
  ")",
  "[",
  "]",
  "[|",
  "|]",
  ",",
  ";",
  ":",
  "+",
  "-",
  "*",
  "/",
  "%",
  "<>",
  "++",
  "==",
  "!=",
  "<=",

  "&&",
  "||",
  "!",
  "->",
  "x|",
  "--",
  "#include",
  "##",
  "#",
  "#HEX#",
  "#BIN#0101",
  '"',
  "\\",
  "//",
  "/*",
  "*/",
  "\n",
  "Cell",
  "VM",
  "Volume",
  "VolumeCopy",
  "Subnet",
  "VolumeConnection",
  "VirtualInterface",
  "NetworkRule",

  "VolumeGrant",
  "CellController",
  "x.memory",
  "x.size",
  "x.data",
  "x.vm",
  "x.subnet",
  "x.type",
  "x.name",
  "x.cidr",
  "sfConfig",
  "[sfFinal]",
  "[sfOverride]",
  "[sfTemp]",
  "[sfLocal]",
  "a",
  "b",
  "c:d",
  "__proto__",
  "constructor",
  "#codebase",
  "#B64#AAEC#",
  "extends:X",
  "phaseList",
  "[sfIgnoreLink]",
  "a:--",
  "9007199254740993L",
  "'x'",
  "“y”",
  "0",
  "1",
  "-1",
  "128",
  "2147483648",
  "9L",
  "1.5F",
  "1e999",
  "0x1f",
  '"<ref:/shop/a>"',
  '"<ref:../b>"',
  '""',
  "\ufeff",
  "\0",
  "é",
  "\u{1f600}",
  "\ud800",
  "\u2028",
  "\t",
  "\r\n",
];
const jsonWords: readonly string[] = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  "null",
  "true",
  "false",
  "0",
  "-1",
  "1e999",
  "1.5",
  '"x.type"',
  '"VM"',
  '"Cell"',
  '"<ref:/shop/vm>"',
  '"<ref:',
  '"x.memory"',
  '"x.data"',
  '"__proto__"',
  '"constructor"',
  '""',
  "\n",
  '"\\ud800"',
  "\ufeff",
  "\0",
  "é",
  "//",
];

/** Texts, one after another: a mutated one of `corpus`, or a new one. */
export class Texts {
  readonly #random: () => number;
  readonly #corpus: readonly Bundle[];

  constructor(seed: number, corpus: readonly Bundle[]) {
    this.#random = numbersOf(seed);
    this.#corpus = corpus;
  }

  next(): Bundle {
    const origin = this.#one(this.#corpus);
    if (origin === undefined || this.#below(10) === 0) return this.#made();
    const json = origin.main.endsWith(".json");
    const names = Object.keys(origin.files);
    const name = this.#below(3) === 0 ? (this.#one(names) ?? origin.main) : origin.main;
    let text = origin.files[name] ?? "";
    for (let times = 1 + this.#below(1 + this.#below(12)); times > 0; times--) text = this.#mutated(text, json);
    return { main: origin.main, files: { ...origin.files, [name]: text.slice(0, 60_000) } };
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }
  #one<T>(items: readonly T[]): T | undefined {
    return items[this.#below(items.length)];
  }
  #word(json: boolean): string {
    return this.#one(json ? jsonWords : smartFrogWords) ?? "";
  }

  /** Words of the language in any order, most of them in pairs of brackets. */
  #made(): Bundle {
    const json = this.#below(4) === 0;
    const words: string[] = json ? [] : ["shop extends Cell {"];
    for (let count = this.#below(60); count > 0; count--) words.push(this.#word(json));
    if (!json) words.push("}");
    const main = json ? "made.json" : "made.sf";
    return { main, files: { [main]: words.join(this.#below(3) === 0 ? "" : " ") } };
  }

  #mutated(text: string, json: boolean): string {
    const at = this.#below(text.length + 1);
    const length = this.#below(Math.min(text.length - at, this.#below(8) === 0 ? 400 : 12) + 1);
    const [before, piece, after] = [text.slice(0, at), text.slice(at, at + length), text.slice(at + length)];
    switch (this.#below(8)) {
      case 0:
        return before + after;
      case 1:
        return before + piece + piece.repeat(this.#below(8) === 0 ? this.#below(300) : 1) + after;
      case 2:
        return `${before} ${this.#word(json)} ${piece}${after}`;
      case 3:
        return before + this.#word(json) + after;
      case 4:
        return before + String.fromCharCode(this.#below(this.#below(3) === 0 ? 65_536 : 128)) + piece + after;
      case 5: {
        const other = this.#one(this.#corpus);
        const source = other?.files[other.main] ?? "";
        const from = this.#below(source.length);
        return before + source.slice(from, from + this.#below(200)) + after;
      }
      case 6: {
        const lines = text.split("\n");
        const line = lines.splice(this.#below(lines.length), 1);
        return lines.toSpliced(this.#below(lines.length + 1), 0, ...line).join("\n");
      }
      default: {
        const words = text.split(/\b/);
        const [first, second] = [this.#below(words.length), this.#below(words.length)];
        const moved = words[second] ?? "";
        return words
          .with(second, words[first] ?? "")
          .with(first, moved)
          .join("");
      }
    }
  }
}

/** What is wrong with what became of a text; null if nothing is. Never throws. */
export function broken(bundle: Bundle): string | null {
  try {
    const result = readSpecification(bundle);
    const why = result.ok ? brokenCell(result.value.document) : brokenRefusal(bundle, result.error);
    if (why !== null || !bundle.main.endsWith(".sf")) return why;
    return brokenTree(bundle) ?? brokenForm(bundle, result.ok ? JSON.stringify(result.value.document) : null);
  } catch (error) {
    return `it throws ${error instanceof Error ? error.stack : String(error)}`;
  }
}

function brokenRefusal(bundle: Bundle, errors: readonly Diagnostic[]): string | null {
  if (errors.length === 0) return "it is refused without a reason";
  for (const diagnostic of errors) {
    const why = brokenDiagnostic(bundle, diagnostic);
    if (why !== null) return `${why}: ${diagnostic.code}: ${diagnostic.message}`;
  }
  return null;
}

/** What `cells spec tree` shows: a tree that is JSON again, or a phase with its faults. */
function brokenTree(bundle: Bundle): string | null {
  const outcome = smartFrogTree(bundle, standardPrototypes);
  if (!outcome.ok) return brokenRefusal(bundle, outcome.errors);
  const text = JSON.stringify(outcome.sfConfig);
  return JSON.stringify(JSON.parse(text)) === text || /"\$long":-?\d{16}/.test(text) ? null : "its tree is no JSON";
}

/** What `cells spec fmt` makes of the main file: stable, with every comment, and it still means the same. */
function brokenForm(bundle: Bundle, document: string | null): string | null {
  const { main, files } = bundle;
  const text = files[main] ?? "";
  const formatted = formatSmartFrog(main, text);
  if (!formatted.ok)
    return document === null ? null : `it is accepted, and cannot be formatted: ${formatted.error[0]?.code}`;
  const again = formatSmartFrog(main, formatted.value);
  if (!again.ok) return "formatted, it is refused";
  if (again.value !== formatted.value) return "formatted twice, it becomes another text";
  if (commentsOf(text) !== commentsOf(formatted.value)) return "formatted, its comments are others";
  if (document === null) return null;
  const read = readSpecification({ main, files: { ...files, [main]: formatted.value } });
  if (!read.ok) return `formatted, it is refused: ${read.error[0]?.message}`;
  return JSON.stringify(read.value.document) === document ? null : "formatted, it means another cell";
}
const commentsOf = (text: string): string =>
  (piecesOf(text) ?? [])
    .filter(({ kind }) => kind !== "code")
    .map((comment) => comment.text.replace(/\s+/g, " ").trim())
    .join("\n");

/** Faults of a whole document stand nowhere in it. */
const placeless: ReadonlySet<string> = new Set([
  "schema/no-cell",
  "syntax/main-missing",
  "syntax/language",
  "limit/text",
]);

function brokenDiagnostic(bundle: Bundle, diagnostic: Diagnostic): string | null {
  const { code, message, position, hint = "", related = [] } = diagnostic;
  if (!diagnosticPages.has(code)) return "its code has no page";
  if (/\bundefined\b|\bNaN\b|\[object /.test(hint.replace(/`[^`]*`|"[^"]*"/g, ""))) return "its hint is none";
  if (renderDiagnostic(diagnostic, bundle.files, false) === "") return "it cannot be shown";
  for (const other of related) if (!insideText(bundle, other.position)) return "a related place is outside the text";
  if (message === "" || /\bundefined\b|\bNaN\b|\[object /.test(message.replace(/`[^`]*`|"[^"]*"/g, "")))
    return "its message is none";
  if (position === undefined) return placeless.has(code) ? null : "it has no position";
  if (!insideText(bundle, position)) return `its position ${JSON.stringify(position)} is outside the text`;
  const own = [position, ...related.map((other) => other.position)].some(({ file }) =>
    Object.hasOwn(bundle.files, file),
  );
  return own ? null : "it says no place in the writer's own text";
}

/**
 * The end of a line, and of the text, is a place in it: something can be missing there. The text may be that of a
 * standard file, whose templates the writer fills in.
 */
function insideText(bundle: Bundle, { file, line, column, length }: Position): boolean {
  const text = Object.hasOwn(bundle.files, file) ? bundle.files[file] : standardFiles.get(file)?.();
  const found = text?.split("\n")[line - 1];
  return found !== undefined && column >= 1 && column <= found.length + 1 && Number.isInteger(length) && length >= 1;
}

/** An accepted document gives an equal cell again, as it is stored, and as it is written in JSON. */
function brokenCell(document: JsonObject): string | null {
  const stored = checkDocument(document);
  if (!stored.ok) return `its document is refused: ${stored.error[0]?.message}`;
  if (!same(stored.value.document, document)) return "its document becomes another one when it is read again";
  const text = JSON.stringify(document);
  const written = readSpecification({ main: "again.json", files: { "again.json": text } });
  if (!written.ok) return `written in JSON it is refused: ${written.error[0]?.message}`;
  return JSON.stringify(written.value.document) === text ? null : "written in JSON it becomes another one";
}

function same(one: Json, other: Json): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** A smaller bundle that is broken for the same kind of reason: halves, then lines, then characters are left out. */
export function shrunk(bundle: Bundle, holds: (smaller: Bundle) => boolean, tries = 2000): Bundle {
  let [smallest, left] = [bundle, tries];
  for (const name of Object.keys(bundle.files)) {
    for (let size = smallest.files[name]?.length ?? 0; size >= 1; size = Math.floor(size / 2))
      for (let at = 0; at < (smallest.files[name]?.length ?? 0) && left > 0; ) {
        const text = smallest.files[name] ?? "";
        const smaller = {
          ...smallest,
          files: { ...smallest.files, [name]: text.slice(0, at) + text.slice(at + size) },
        };
        left--;
        if (holds(smaller)) smallest = smaller;
        else at += size;
      }
  }
  return smallest;
}
