import { isForEditors } from "../cell/document.ts";
import { withoutUnit } from "../cell/units.ts";
import type { Position } from "../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import { PositionedBuilder, type PositionedEntry, type Positions } from "../diagnostics/positions.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { limits, tooManyElements } from "../limits.ts";

/** Thrown where nothing further can be learnt: at a limit, at the end of the text, or when enough has been told. */
const stopped = Symbol("stopped");

/**
 * Parses JSON (RFC 8259) and keeps where everything was written. A name that is given twice in one object is a fault.
 * Answers null with the faults in `diagnostics`: all of them, as far as one can tell what was meant. A missing or
 * superfluous comma, a name or text without its quotes, a comment and the like are passed over as if they were right, so
 * that the rest is read in its own structure and one slip is told once.
 */
export function parseJsonText(
  file: string,
  text: string,
  diagnostics: Diagnostics,
): { readonly document: JsonObject; readonly positions: Positions } | null {
  const parser = new JsonParser(file, text, diagnostics);
  try {
    const document = parser.document();
    return parser.sound ? { document, positions: parser.builder.positions } : null;
  } catch (thrown) {
    if (thrown === stopped) return null;
    throw thrown;
  }
}

/** What people write as a value or name that JSON does not know: a bare word, or a text in single quotes. */
const unquoted = /'[^'\n]*'?|[^\s,:{}[\]"']+/y;
const quotesHint = "Names and texts stand in double quotes.";

/** Any empty object: none has an attribute whose place could be asked for. */
const nothing: JsonObject = Object.freeze({});

/** Positions as bare numbers: a document has many, and hardly one is ever asked for. */
class JsonEntry implements PositionedEntry {
  readonly #file: string;
  readonly #nameLine: number;
  readonly #nameColumn: number;
  readonly #nameLength: number;
  /** Known once the value is read. */
  #line = 0;
  #column = 0;
  #length = 1;
  json: Json = null;

  constructor(file: string, nameLine: number, nameColumn: number, nameLength: number) {
    this.#file = file;
    this.#nameLine = nameLine;
    this.#nameColumn = nameColumn;
    this.#nameLength = nameLength;
  }
  valueAt(line: number, column: number): void {
    this.#line = line;
    this.#column = column;
  }
  valueIs(json: Json, length: number): void {
    this.json = json;
    this.#length = length;
  }
  get name(): Position {
    return { file: this.#file, line: this.#nameLine, column: this.#nameColumn, length: this.#nameLength };
  }
  get value(): Position {
    return { file: this.#file, line: this.#line, column: this.#column, length: this.#length };
  }
}

class JsonParser {
  readonly builder = new PositionedBuilder();
  sound = true;
  readonly #file: string;
  readonly #text: string;
  readonly #diagnostics: Diagnostics;
  /** What closes each open object and array, with where it was opened. */
  readonly #open: { readonly close: "}" | "]"; readonly position: Position }[] = [];
  #at = 0;
  #line = 1;
  #lineStart = 0;
  #attributes = 0;
  #names = 0;
  #typed = 0;
  /** After a text without its end, which has swallowed the comma or brace behind it. */
  #commaLost = false;

  constructor(file: string, text: string, diagnostics: Diagnostics) {
    this.#file = file;
    this.#text = text;
    this.#diagnostics = diagnostics;
  }

  document(): JsonObject {
    if (this.#text.startsWith("\ufeff")) this.#at = 1;
    this.#space();
    if (this.#text[this.#at] !== "{")
      this.#stop("syntax/expected", `Expected \`{\`, found ${this.#found()}`, "A specification is one JSON object.");
    const document = this.#object();
    this.#space();
    if (this.#at < this.#text.length)
      this.#stop("syntax/expected", `Expected the end of the file, found ${this.#found()}`);
    return document;
  }

  #here(length = 1): Position {
    return { file: this.#file, line: this.#line, column: this.#at - this.#lineStart + 1, length };
  }
  #report(code: string, message: string, hint?: string, position = this.#here()): void {
    this.sound = false;
    this.#diagnostics.add({ code, message, position, ...(hint === undefined ? {} : { hint }) });
    if (this.#diagnostics.full) throw stopped;
  }
  #stop(code: string, message: string, hint?: string): never {
    this.#report(code, message, hint);
    throw stopped;
  }
  #found(): string {
    const character = this.#text[this.#at];
    return character === undefined ? "the end of the file" : `\`${character}\``;
  }
  #space(): void {
    for (; ; this.#at++) {
      const character = this.#text[this.#at];
      if (character === "\n") {
        this.#line++;
        this.#lineStart = this.#at + 1;
      } else if (character === "/") {
        if (!this.#comment()) return;
      } else if (character !== " " && character !== "\t" && character !== "\r") return;
    }
  }
  /** Past a comment, up to its last character. */
  #comment(): boolean {
    const kind = this.#text[this.#at + 1];
    if (kind !== "/" && kind !== "*") return false;
    const end = this.#text.indexOf(kind === "/" ? "\n" : "*/", this.#at + 2);
    this.#report(
      "syntax/expected",
      "JSON has no comments",
      "Remove it, or write the cell in SmartFrog (`.sf`).",
      this.#here(2),
    );
    const last = end < 0 ? this.#text.length - 1 : kind === "/" ? end - 1 : end + 1;
    for (let newline = this.#text.indexOf("\n", this.#at); newline >= 0 && newline <= last; ) {
      this.#line++;
      this.#lineStart = newline + 1;
      newline = this.#text.indexOf("\n", newline + 1);
    }
    this.#at = last;
    return true;
  }
  #unquoted(): string | undefined {
    unquoted.lastIndex = this.#at;
    return unquoted.exec(this.#text)?.[0];
  }

  #value(): Json {
    const character = this.#text[this.#at];
    if (character === "{") return this.#object();
    if (character === "[") return this.#array();
    if (character === '"') return this.#string();
    const pattern = /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![^\s,:{}[\]"'/])/y;
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return this.#noValue();
    const value: unknown = JSON.parse(found);
    if (typeof value === "number" && !Number.isFinite(value))
      this.#report("syntax/number", `${found} is too large a number`, undefined, this.#here(found.length));
    this.#at += found.length;
    return typeof value === "number" || typeof value === "boolean" ? value : null;
  }
  #noValue(): null {
    const found = this.#unquoted();
    if (found === undefined) {
      if (this.#at >= this.#text.length) this.#neverClosed();
      this.#report("syntax/expected", `Expected a value, found ${this.#found()}`, quotesHint);
      return null;
    }
    const digits = /^[-+.]?[0-9]/.test(found);
    const hint = digits
      ? (withoutUnit(found) ?? "Numbers are decimal, without a `+`, leading zeros or a unit.")
      : /^(?:true|false|null)$/i.test(found)
        ? `Write \`${found.toLowerCase()}\`, in lower case.`
        : `A text stands in double quotes: "${found.replace(/'/g, "")}".`;
    const code = digits ? "syntax/number" : "syntax/expected";
    const message = digits ? `\`${found}\` is not a number` : `Expected a value, found \`${found}\``;
    this.#report(code, message, hint, this.#here(found.length));
    this.#at += found.length;
    return null;
  }

  #string(): string {
    let end = this.#at + 1;
    let written = true;
    for (let character = this.#text[end]; character !== '"'; character = this.#text[end]) {
      if (character === undefined || character === "\n") {
        this.#report("syntax/unclosed-string", "This string is not closed on its line", 'Close it with `"`.', {
          ...this.#here(end - this.#at),
        });
        this.#at = Math.min(end, this.#text.length);
        this.#commaLost = true;
        return "";
      }
      // An escape, or a control character, which is a fault.
      if (character === "\\" || character < " ") written = false;
      end += character === "\\" && this.#text[end + 1] !== "\n" ? 2 : 1;
    }
    if (written) {
      const value = this.#text.slice(this.#at + 1, end);
      this.#at = end + 1;
      return value;
    }
    const found = this.#text.slice(this.#at, end + 1);
    try {
      const value: unknown = JSON.parse(found);
      this.#at += found.length;
      return String(value);
    } catch {
      this.#report(
        "syntax/escape",
        "This string holds a wrong escape or a control character",
        "Write control characters as `\\u` and four digits.",
        this.#here(found.length),
      );
      this.#at += found.length;
      return found.slice(1, -1);
    }
  }

  #enter(close: "}" | "]"): void {
    if (this.#open.length >= limits.nesting)
      this.#stop("limit/nesting", `This is nested deeper than ${limits.nesting} levels`);
    this.#open.push({ close, position: this.#here() });
    this.#written();
    this.#at++;
    this.#space();
  }
  /** A name, an object or an array: what is written out takes more memory than its text. */
  #written(): void {
    if (++this.#names > limits.tokens)
      this.#stop(
        "limit/tokens",
        `This text has more than ${limits.tokens} named attributes, objects and arrays`,
        "Split the cell into several, or write it in SmartFrog with templates.",
      );
  }
  #count(): void {
    if (++this.#attributes > limits.attributes)
      this.#stop("limit/attributes", `The document has more than ${limits.attributes} attributes`);
  }
  #neverClosed(): never {
    const opening = this.#open.at(-1);
    if (opening) {
      const [open, { close, position }] = [opening.close === "}" ? "{" : "[", opening];
      this.#report("syntax/unbalanced", `This \`${open}\` is never closed`, `Add the missing \`${close}\`.`, position);
    }
    throw stopped;
  }

  /** At the end of an object or array: whether its closing sign, or what must have been meant as such, stands here. */
  #closes(): boolean {
    this.#space();
    const character = this.#text[this.#at];
    const close = this.#open.at(-1)?.close;
    if (character === undefined) {
      // A text that was not closed has swallowed what closes the object as well.
      if (this.#commaLost) throw stopped;
      this.#neverClosed();
    }
    if (character !== "}" && character !== "]") return false;
    this.#commaLost = false;
    const other = character !== close && this.#open.some((each) => each.close === character);
    if (character !== close) this.#report("syntax/expected", `Expected \`${close}\`, found \`${character}\``);
    this.#open.pop();
    // What closes an outer one is left to it.
    if (!other) this.#at++;
    return true;
  }
  /** True if another item follows. `begins`: what an item can begin with. */
  #more(begins: RegExp): boolean {
    if (this.#closes()) return false;
    const close = this.#open.at(-1)?.close;
    const character = this.#text[this.#at] ?? "";
    const excused = this.#commaLost;
    this.#commaLost = false;
    if (character !== ",") {
      if (!excused) this.#report("syntax/expected", `Expected \`,\` or \`${close}\`, found ${this.#found()}`);
      if (begins.test(character)) return true;
      this.#skip();
      return this.#more(begins);
    }
    const comma = this.#here();
    this.#at++;
    this.#space();
    const next = this.#text[this.#at];
    if (next !== "}" && next !== "]") return true;
    this.#report(
      "syntax/expected",
      `Expected another item after \`,\`, found \`${next}\``,
      "Remove the comma before it.",
      next === close ? this.#here() : comma,
    );
    this.#closes();
    return false;
  }
  /** Past what means nothing here; at least one character, and no sign that structures the text further on. */
  #skip(): void {
    this.#at += this.#unquoted()?.length ?? 1;
    this.#space();
  }

  #array(): Json {
    this.#enter("]");
    const items: Json[] = [];
    if (!this.#closes())
      do {
        this.#count();
        items.push(this.#value());
      } while (this.#more(/["{[0-9A-Za-z'-]/));
    return Object.freeze(items);
  }

  #object(): JsonObject {
    this.#enter("}");
    if (this.#closes()) return nothing;
    const entries = new Map<string, PositionedEntry>();
    do {
      this.#count();
      this.#entry(entries);
    } while (this.#more(/["A-Za-z']/));
    return this.builder.object(entries);
  }
  #entry(entries: Map<string, PositionedEntry>): void {
    this.#written();
    const start = this.#at;
    const nameLine = this.#line;
    const nameColumn = start - this.#lineStart + 1;
    const key = this.#name();
    const nameLength = Math.max(1, this.#at - start);
    // The cell itself has a type as well.
    if (key === "x.type" && ++this.#typed > limits.elements + 1)
      this.#stop(tooManyElements.code, tooManyElements.message, tooManyElements.hint);
    // A missing quote of the name has swallowed the value, too.
    if (key === null || this.#commaLost) return;
    if (entries.has(key))
      this.#report("syntax/duplicate", `\`${key}\` is given twice in this object`, "Keep one of the two.", {
        file: this.#file,
        line: nameLine,
        column: nameColumn,
        length: nameLength,
      });
    this.#space();
    const colon = this.#text[this.#at];
    if (colon === ":") this.#at++;
    else {
      if (colon === undefined) this.#neverClosed();
      this.#report("syntax/expected", `Expected \`:\`, found ${this.#found()}`, 'An attribute reads `"name": value`.');
      if (colon === "=") this.#at++;
      else if (/[,}\]]/.test(colon)) return;
    }
    this.#space();
    const entry = new JsonEntry(this.#file, nameLine, nameColumn, nameLength);
    const line = this.#line;
    const before = this.#at;
    entry.valueAt(line, before - this.#lineStart + 1);
    const json = this.#value();
    if (this.#open.length === 1 && isForEditors(key, json)) return;
    entry.valueIs(json, line === this.#line ? Math.max(1, this.#at - before) : 1);
    entries.set(key, entry);
  }
  /** Null if there is none; what stands in its place is passed over. */
  #name(): string | null {
    if (this.#text[this.#at] === '"') return this.#string();
    const found = this.#unquoted();
    if (found === undefined) {
      const character = this.#text[this.#at];
      this.#report("syntax/expected", `Expected a name in double quotes, found ${this.#found()}`);
      if (character === undefined) throw stopped;
      if (character === "{" || character === "[") this.#value();
      else this.#at++;
      this.#commaLost = true;
      return null;
    }
    const meant = found.replace(/'/g, "");
    this.#report(
      "syntax/expected",
      `Expected a name in double quotes, found \`${found}\``,
      `Write "${meant}".`,
      this.#here(found.length),
    );
    this.#at += found.length;
    return meant;
  }
}
