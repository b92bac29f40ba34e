import { limits } from "../../limits.ts";
import {
  lineStartsOf,
  type Name,
  type SourceAttribute,
  type SourceBlock,
  type SourceComponent,
  type SourceEntry,
  type SourceFile,
  type SourceString,
} from "./source.ts";

/** The source tree of a JSON text, whatever is wrong with it: each object is a component of one block. */
export function jsonSource(file: string, text: string): SourceFile {
  const parser = new JsonSourceParser(file, text);
  return { name: file, text, language: "json", top: parser.file(), lineStarts: lineStartsOf(text), placing: false };
}

const space = /(?:[\s\ufeff]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const string = /"[^"\\\n]*(?:\\.[^"\\\n]*)*"?/y;
const bare = /[^\s,:{}[\]"]+/y;

class JsonSourceParser {
  readonly #file: string;
  readonly #text: string;
  #at = 0;
  #depth = 0;
  /** Strings of arrays and objects inside arrays, which belong to the attribute around them. */
  #strings: SourceString[] = [];

  constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
  }

  file(): SourceBlock {
    this.#space();
    if (this.#text[this.#at] !== "{") return { start: -1, end: this.#text.length + 1, entries: [] };
    return this.#block();
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? "";
  }
  #space(): void {
    this.#at += this.#match(space).length;
  }
  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  /** At `{`. */
  #block(): SourceBlock {
    const start = this.#at;
    const entries: SourceEntry[] = [];
    this.#at++;
    if (++this.#depth > limits.nesting) this.#at = this.#text.length;
    for (this.#space(); this.#peek() !== "" && this.#peek() !== "}"; this.#space()) {
      const before = this.#at;
      const attribute = this.#attribute();
      if (attribute) entries.push(attribute);
      else if (this.#at === before) this.#at++;
    }
    this.#depth--;
    const closed = this.#peek() === "}";
    if (closed) this.#at++;
    return { entries, start, end: closed ? this.#at : this.#text.length + 1 };
  }

  #attribute(): SourceAttribute | null {
    const start = this.#at;
    const name = this.#name();
    if (name === null) return null;
    this.#space();
    const colon = this.#peek() === ":";
    if (colon) this.#at++;
    this.#space();
    const outer = this.#strings;
    this.#strings = [];
    const begun = this.#at;
    const component = colon && !this.#isName() ? this.#value() : null;
    const strings = this.#strings;
    this.#strings = outer;
    const read = this.#at > begun;
    const value = read ? { start: begun, end: this.#at } : null;
    const sole = strings.length === 1 && strings[0]?.start === begun && strings[0].end === value?.end ? "string" : null;
    this.#space();
    const comma = this.#peek() === ",";
    if (comma) this.#at++;
    const terminated = comma || (component !== null && this.#text[component.end - 1] === "}");
    return {
      kind: "attribute",
      file: this.#file,
      name: [name],
      component,
      references: [],
      strings,
      value,
      sole,
      start,
      end: this.#at,
      terminated,
    };
  }
  #name(): Name | null {
    const start = this.#at;
    const quoted = this.#peek() === '"';
    if (quoted) return { text: this.#string().value, start, end: this.#at, quoted };
    const text = this.#match(bare);
    this.#at += text.length;
    return text === "" ? null : { text, start, end: this.#at, quoted };
  }
  /** A string with a colon behind it is the name of the next attribute: a value is missing before it. */
  #isName(): boolean {
    if (this.#peek() !== '"') return false;
    const before = this.#at;
    this.#at += this.#match(string).length;
    this.#space();
    const found = this.#peek() === ":";
    this.#at = before;
    return found;
  }

  #value(): SourceComponent | null {
    const start = this.#at;
    if (this.#peek() === "{") {
      const block = this.#block();
      return { parts: [{ kind: "block", block }], start, end: this.#at };
    }
    if (this.#peek() === "[") this.#array();
    else if (this.#peek() === '"') this.#strings.push(this.#string());
    else this.#at += this.#match(bare).length;
    return null;
  }
  #array(): void {
    this.#at++;
    if (++this.#depth > limits.nesting) this.#at = this.#text.length;
    for (this.#space(); this.#peek() !== "" && this.#peek() !== "]" && this.#peek() !== "}"; this.#space()) {
      const before = this.#at;
      const component = this.#value();
      if (component) this.#collect(component);
      this.#space();
      if (this.#peek() === "," || this.#peek() === ":" || this.#at === before) this.#at++;
    }
    this.#depth--;
    if (this.#peek() === "]") this.#at++;
  }
  #collect({ parts }: SourceComponent): void {
    for (const part of parts)
      if (part.kind === "block")
        for (const entry of part.block.entries) {
          if (entry.kind !== "attribute") continue;
          this.#strings.push(...entry.strings);
          if (entry.component) this.#collect(entry.component);
        }
  }

  #string(): SourceString {
    const start = this.#at;
    const raw = this.#match(string);
    this.#at += raw.length;
    const closed = raw.length > 1 && raw.endsWith('"') ? 1 : 0;
    const inner = { start: start + 1, end: this.#at - closed };
    const written = this.#text.slice(inner.start, inner.end);
    return { value: meaning(raw, written), inner, plain: !written.includes("\\"), start, end: this.#at };
  }
}

function meaning(raw: string, written: string): string {
  if (!written.includes("\\")) return written;
  try {
    return String(JSON.parse(raw));
  } catch {
    return written;
  }
}
