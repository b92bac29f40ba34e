import type { Position } from "./diagnostic.ts";
import type { Diagnostics } from "./diagnostics.ts";
import type { Json, JsonObject } from "./json.ts";
import { limits } from "./limits.ts";
import { PositionedBuilder, type PositionedEntry, type Positions } from "./positions.ts";

/** Thrown at the first fault: JSON has no `;` to go on behind, so later ones would be guesses. */
const stopped = Symbol("stopped");

/**
 * Parses JSON (RFC 8259) and keeps where everything was written. A name that is given twice in one object is a fault.
 * Answers null with the fault in `diagnostics`.
 */
export function parseJsonText(
  file: string,
  text: string,
  diagnostics: Diagnostics,
): { readonly document: JsonObject; readonly positions: Positions } | null {
  const parser = new JsonParser(file, text, diagnostics);
  try {
    return { document: parser.document(), positions: parser.builder.positions };
  } catch (thrown) {
    if (thrown === stopped) return null;
    throw thrown;
  }
}

/** Positions as bare numbers: a document has many, and hardly one is ever asked for. */
class JsonEntry implements PositionedEntry {
  readonly json: Json;
  readonly source: string;
  readonly numbers: JsonPlaces;

  constructor(source: string, numbers: JsonPlaces, json: Json) {
    this.source = source;
    this.numbers = numbers;
    this.json = json;
  }
  get name(): Position {
    const { nameLine: line, nameColumn: column, nameLength: length } = this.numbers;
    return { file: this.source, line, column, length };
  }
  get value(): Position {
    const { line, column, length } = this.numbers;
    return { file: this.source, line, column, length };
  }
}
interface JsonPlaces {
  readonly nameLine: number;
  readonly nameColumn: number;
  readonly nameLength: number;
  readonly line: number;
  readonly column: number;
  readonly length: number;
}

class JsonParser {
  readonly builder = new PositionedBuilder();
  readonly #file: string;
  readonly #text: string;
  readonly #diagnostics: Diagnostics;
  #at = 0;
  #line = 1;
  #lineStart = 0;
  #nesting = 0;
  #attributes = 0;
  #names = 0;

  constructor(file: string, text: string, diagnostics: Diagnostics) {
    this.#file = file;
    this.#text = text;
    this.#diagnostics = diagnostics;
  }

  document(): JsonObject {
    if (this.#text.startsWith("\ufeff")) this.#at = 1;
    this.#space();
    if (this.#text[this.#at] !== "{")
      this.#fail("syntax/expected", `Expected \`{\`, found ${this.#found()}`, "A specification is one JSON object.");
    const document = this.#object();
    this.#space();
    if (this.#at < this.#text.length)
      this.#fail("syntax/expected", `Expected the end of the file, found ${this.#found()}`);
    return document;
  }

  #here(length = 1): Position {
    return { file: this.#file, line: this.#line, column: this.#at - this.#lineStart + 1, length };
  }
  #fail(code: string, message: string, hint?: string, position = this.#here()): never {
    this.#diagnostics.add({ code, message, position, ...(hint === undefined ? {} : { hint }) });
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
      } else if (character !== " " && character !== "\t" && character !== "\r") return;
    }
  }

  #value(): Json {
    const character = this.#text[this.#at];
    if (character === "{") return this.#object();
    if (character === "[") return this.#array();
    if (character === '"') return this.#string();
    const pattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined)
      this.#fail(
        "syntax/expected",
        `Expected a value, found ${this.#found()}`,
        "Names and texts stand in double quotes.",
      );
    const value: unknown = JSON.parse(found);
    if (typeof value === "number" && !Number.isFinite(value))
      this.#fail("syntax/number", `${found} is too large a number`);
    this.#at += found.length;
    return typeof value === "number" || typeof value === "boolean" ? value : null;
  }

  #string(): string {
    let end = this.#at + 1;
    for (let character = this.#text[end]; character !== '"'; character = this.#text[end]) {
      if (character === undefined || character === "\n")
        this.#fail("syntax/unclosed-string", "This string is not closed on its line", 'Close it with `"`.');
      end += character === "\\" ? 2 : 1;
    }
    const found = this.#text.slice(this.#at, end + 1);
    try {
      const value: unknown = JSON.parse(found);
      this.#at += found.length;
      return String(value);
    } catch {
      return this.#fail(
        "syntax/escape",
        "This string holds a wrong escape or a control character",
        "Write control characters as `\\u` and four digits.",
        this.#here(found.length),
      );
    }
  }

  #enter(): void {
    if (++this.#nesting > limits.nesting)
      this.#fail("limit/nesting", `This is nested deeper than ${limits.nesting} levels`);
    this.#at++;
    this.#space();
  }
  #count(): void {
    if (++this.#attributes > limits.attributes)
      this.#fail("limit/attributes", `The document has more than ${limits.attributes} attributes`);
  }
  /** True if another item follows. */
  #more(close: string): boolean {
    this.#space();
    const character = this.#text[this.#at];
    if (character !== "," && character !== close)
      this.#fail("syntax/expected", `Expected \`,\` or \`${close}\`, found ${this.#found()}`);
    this.#at++;
    this.#space();
    if (character === "," && this.#text[this.#at] === close)
      this.#fail(
        "syntax/expected",
        `Expected another item after \`,\`, found \`${close}\``,
        "Remove the comma before it.",
      );
    return character === ",";
  }

  #array(): Json {
    this.#enter();
    const items: Json[] = [];
    if (this.#text[this.#at] === "]") this.#at++;
    else
      do {
        this.#count();
        items.push(this.#value());
      } while (this.#more("]"));
    this.#nesting--;
    return Object.freeze(items);
  }

  #object(): JsonObject {
    this.#enter();
    const entries = new Map<string, PositionedEntry>();
    if (this.#text[this.#at] === "}") this.#at++;
    else
      do {
        this.#count();
        if (++this.#names > limits.tokens)
          this.#fail(
            "limit/tokens",
            `This text has more than ${limits.tokens} named attributes`,
            "Split the cell into several, or write it in SmartFrog with templates.",
          );
        const start = this.#at;
        const [nameLine, nameColumn] = [this.#line, start - this.#lineStart + 1];
        if (this.#text[start] !== '"')
          this.#fail("syntax/expected", `Expected a name in double quotes, found ${this.#found()}`);
        const key = this.#string();
        const nameLength = this.#at - start;
        if (entries.has(key))
          this.#fail("syntax/duplicate", `\`${key}\` is given twice in this object`, "Keep one of the two.", {
            file: this.#file,
            line: nameLine,
            column: nameColumn,
            length: nameLength,
          });
        this.#space();
        if (this.#text[this.#at] !== ":") this.#fail("syntax/expected", `Expected \`:\`, found ${this.#found()}`);
        this.#at++;
        this.#space();
        const [line, column, before] = [this.#line, this.#at - this.#lineStart + 1, this.#at];
        const json = this.#value();
        const length = line === this.#line ? this.#at - before : 1;
        entries.set(key, new JsonEntry(this.#file, { nameLine, nameColumn, nameLength, line, column, length }, json));
      } while (this.#more("}"));
    this.#nesting--;
    return this.builder.object(entries);
  }
}
