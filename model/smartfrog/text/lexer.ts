import { withoutUnit } from "../../cell/units.ts";
import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import type { NumberType, Token } from "./tokens.ts";

/** Longest first, so that `<=` is not taken for `<`. */
const symbols = "[| |] -- == != >= <= ++ <> && || -> { } ( ) [ ] , ; : + - * / % < > !".split(" ");
/** HP's parser takes the letters of Latin-1 as well. */
const wordStart = /[A-Za-z_$\u00a2-\u00a5\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff]/;
const wordPart = /[A-Za-z0-9._\-+@#~$%^&\u00a2-\u00a5\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff]/;
/** What each character of Latin-1 can be: most of a text is words, signs and space, told apart by one look. */
const sorts = { wordStart: 1, wordPart: 2, space: 4, sign: 8 } as const;
const sortOf = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code);
  return (
    (wordStart.test(character) ? sorts.wordStart : 0) |
    (wordPart.test(character) ? sorts.wordPart : 0) |
    (/[ \t\r\n\f]/.test(character) ? sorts.space : 0) |
    // Signs that nothing longer begins with.
    (/[{}();,:]/.test(character) ? sorts.sign : 0)
  );
});
const signs: readonly string[] = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));
const isSort = (code: number, sort: number): boolean => ((sortOf[code] ?? 0) & sort) !== 0;
const number = /-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?([LlFfDd]?)/y;
const byteOrderMark = 0xfeff;
/** A reference to an element without its quotes, and texts in quotes that are not the language's. */
const bareReference = /<\s?ref:[^\s>;"{}]*>?/y;
const otherQuotes = /'([^'\n\r]{0,1000})'|[“”„]([^“”\n\r]{0,1000})[“”]/y;
/** Letters of any script: surely meant as a name. */
const foreignWord = /[\p{L}_$][\p{L}\p{M}\p{N}._\-+@#~$%^&]{0,1000}/uy;
/** With `?`, the file may be missing. */
const includeDirective = /#include(?:[ \t]*\?)?/y;
const codebaseDirective = /#codebase(?:[ \t]*"[^"\n\r]*")?/y;
/** What is a comment in most other languages: the whole line. */
const hashComment = /#+[ !][^\n]*/y;
const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/** Bytes are written with a fixed number of digits each. */
const byteForms: ReadonlyMap<string, { readonly base: number; readonly digits: number; readonly whole: RegExp }> =
  new Map([
    ["BIN", { base: 2, digits: 8, whole: /^[01]*$/ }],
    ["OCT", { base: 8, digits: 3, whole: /^[0-7]*$/ }],
    ["DEC", { base: 10, digits: 3, whole: /^[0-9]*$/ }],
  ]);

function numberType(whole: string, suffix: string): NumberType {
  if (suffix === "" && !/[.eE]/.test(whole)) return "int";
  if (suffix === "l" || suffix === "L") return "long";
  return suffix === "d" || suffix === "D" ? "double" : "float";
}

/** A text of many short ones: millions of these are never kept at once. */
class TextBuilder {
  #last: string[] = [];
  readonly #before: string[] = [];

  add(text: string): void {
    if (this.#last.push(text) < 4096) return;
    this.#before.push(this.#last.join(""));
    this.#last = [];
  }
  /** The whole, with `text` behind it. */
  end(text: string): string {
    return this.#before.length + this.#last.length === 0 ? text : [...this.#before, ...this.#last, text].join("");
  }
}
function withoutSpace(text: string): string {
  if (!/\s/.test(text)) return text;
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += 4096)
    pieces.push(
      text
        .slice(at, at + 4096)
        .split(/\s+/)
        .join(""),
    );
  return pieces.join("");
}

const hexDigits = Uint8Array.from("0123456789ABCDEF", (digit) => digit.charCodeAt(0));
/** Upper-case hexadecimal digits of so many bytes, put together in pieces: millions of short texts are not kept. */
function hexOf(bytes: number, byteAt: (index: number) => number): string {
  const pieces: string[] = [];
  for (let start = 0; start < bytes; start += 4096) {
    const codes: number[] = [];
    for (let index = start; index < Math.min(start + 4096, bytes); index++) {
      const byte = byteAt(index);
      codes.push(hexDigits[(byte >> 4) & 15] ?? 0, hexDigits[byte & 15] ?? 0);
    }
    pieces.push(String.fromCharCode(...codes));
  }
  return pieces.join("");
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const base64Values = Uint8Array.from({ length: 128 }, (_, code) =>
  Math.max(0, base64Digits.indexOf(String.fromCharCode(code))),
);
const isBase64 = (content: string): boolean => content.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(content);
/** Base 64 (RFC 4648, section 4) as upper-case hexadecimal digits. */
function base64Bytes(content: string): string {
  const padding = content.endsWith("==") ? 2 : content.endsWith("=") ? 1 : 0;
  const digit = (index: number): number => base64Values[content.charCodeAt(index)] ?? 0;
  return hexOf((content.length / 4) * 3 - padding, (index) => {
    const first = Math.floor((index * 4) / 3);
    const shift = (index % 3) * 2 + 2;
    return ((digit(first) << shift) | (digit(first + 1) >> (6 - shift))) & 0xff;
  });
}

/**
 * Splits SmartFrog text into tokens; the last is `end`. What cannot be a token is reported and skipped, so the parser
 * sees a sound sequence and can go on. `most` tokens are left of those that a bundle may have.
 */
export function tokenize(file: string, text: string, diagnostics: Diagnostics, most: number = limits.tokens): Token[] {
  return new Lexer(file, text, diagnostics).run(most);
}

class Lexer {
  readonly #file: string;
  readonly #text: string;
  readonly #diagnostics: Diagnostics;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #lineStart = 0;
  /** Kept, so that a text of one long line is not searched again for each token. */
  #nextLineEnd = -1;
  /** Whether the string before this place was not closed. */
  #open = false;

  constructor(file: string, text: string, diagnostics: Diagnostics) {
    this.#file = file;
    this.#text = text;
    this.#diagnostics = diagnostics;
  }

  run(most: number): Token[] {
    while (this.#skipSpace() && !this.#diagnostics.full && this.#tokens.length < most) this.#next();
    if (this.#tokens.length >= most) {
      this.#tokens.length = 0;
      this.#error(
        "limit/tokens",
        `${most < limits.tokens ? "The texts have" : "This text has"} more than ${limits.tokens} words, signs and values`,
        this.#here(1),
        "Let templates hold what repeats itself, or split the cell into several.",
      );
    }
    this.#push("end", "", this.#here(1));
    return this.#tokens;
  }

  #here(length: number): Position {
    return { file: this.#file, line: this.#line, column: this.#at - this.#lineStart + 1, length };
  }
  #push(kind: Token["kind"], text: string, position: Position): void {
    this.#tokens.push({ kind, text, position, number: undefined });
  }
  #error(code: string, message: string, position: Position, hint?: string): void {
    this.#diagnostics.add({ code, message, position, ...(hint === undefined ? {} : { hint }) });
  }
  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text);
  }
  /** Moves on and keeps count of lines. */
  #advance(to: number): void {
    while (this.#nextLineEnd < to) {
      if (this.#nextLineEnd >= this.#at) {
        this.#line++;
        this.#lineStart = this.#nextLineEnd + 1;
      }
      const next = this.#text.indexOf("\n", Math.max(this.#nextLineEnd + 1, this.#at));
      this.#nextLineEnd = next < 0 ? Number.POSITIVE_INFINITY : next;
    }
    this.#at = to;
  }

  /** Past white space and comments; false at the end of the text. */
  #skipSpace(): boolean {
    for (;;) {
      let at = this.#at;
      for (let code = this.#text.charCodeAt(at); isSort(code, sorts.space) || code === byteOrderMark; )
        code = this.#text.charCodeAt(++at);
      if (at > this.#at) this.#advance(at);
      if (this.#text[at] !== "/") return at < this.#text.length;
      if (this.#text[at + 1] === "/") {
        const end = this.#text.indexOf("\n", at);
        this.#advance(end < 0 ? this.#text.length : end);
      } else if (this.#text[at + 1] === "*") {
        const end = this.#text.indexOf("*/", at + 2);
        if (end < 0)
          this.#error("syntax/unclosed-comment", "This comment is never closed", this.#here(2), "Close it with `*/`.");
        this.#advance(end < 0 ? this.#text.length : end + 2);
      } else return true;
    }
  }

  /** The end of the word that begins here; where none does, here. */
  #wordEnd(): number {
    let at = this.#at;
    if (!isSort(this.#text.charCodeAt(at), sorts.wordStart)) return at;
    do at++;
    while (isSort(this.#text.charCodeAt(at), sorts.wordPart));
    return at;
  }

  #next(): void {
    const character = this.#text[this.#at] ?? "";
    if (character === '"') {
      this.#string();
      return;
    }
    if (character === "#") {
      this.#hash();
      return;
    }
    const code = this.#text.charCodeAt(this.#at);
    if (isSort(code, sorts.sign)) {
      this.#symbol(signs[code] ?? character);
      return;
    }
    if (character === "x" && this.#text[this.#at + 1] === "|" && !/[|\]]/.test(this.#text[this.#at + 2] ?? "")) {
      this.#symbol("x|");
      return;
    }
    const end = this.#wordEnd();
    if (end > this.#at) {
      // One that goes on with letters of another script is told as a whole.
      if (this.#text.charCodeAt(end) > 0xff && this.#mistaken()) return;
      this.#push("word", this.#text.slice(this.#at, end), this.#here(end - this.#at));
      this.#advance(end);
      return;
    }
    const digits = this.#match(number);
    if (digits) {
      this.#number(digits[0], digits[1] ?? "");
      return;
    }
    if (this.#mistaken()) return;
    const symbol = symbols.find((candidate) => this.#text.startsWith(candidate, this.#at));
    if (symbol) {
      this.#symbol(symbol);
      return;
    }
    const found = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    const shown = /[\p{C}\p{Z}]/u.test(found)
      ? `U+${(found.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`
      : found;
    this.#error(
      "syntax/character",
      `The character \`${shown}\` means nothing here`,
      this.#here(1),
      found === "="
        ? "A value stands right behind its name, as in `name value;`; values are compared with `==`."
        : "Names start with a letter, `_` or `$`; anything else is written as a string, in double quotes.",
    );
    this.#advance(this.#at + found.length);
  }

  /** What another notation would have here is told once and taken for what it surely means. */
  #mistaken(): boolean {
    const reference = this.#match(bareReference);
    if (reference) {
      const [text] = reference;
      this.#take("string", text, text, "A reference to an element is a text", `Write it in double quotes: "${text}".`);
      return true;
    }
    const quotes = this.#match(otherQuotes);
    if (quotes) {
      const text = quotes[1] ?? quotes[2] ?? "";
      const message = `\`${quotes[0]}\` is not how a text is quoted`;
      this.#take("string", quotes[0], text, message, `Write it in double quotes: "${text}".`);
      return true;
    }
    const letters = this.#match(foreignWord);
    if (letters) {
      const [text] = letters;
      const message = `\`${text}\` has letters that a name cannot have`;
      this.#take("word", text, text, message, `Write it as a string: "${text}".`);
      return true;
    }
    return false;
  }
  #take(kind: "word" | "string", source: string, meaning: string, message: string, hint: string): void {
    const position = this.#here(source.length);
    this.#error("syntax/character", message, position, hint);
    this.#push(kind, meaning, position);
    this.#advance(this.#at + source.length);
  }

  #symbol(text: string): void {
    // So what is inside a block means the same whatever stands around it (`model/editor/reparse.ts` rests on that).
    if (text === "{" || text === "}") this.#open = false;
    this.#push("symbol", text, this.#here(text.length));
    this.#advance(this.#at + text.length);
  }

  #number(whole: string, suffix: string): void {
    const position = this.#here(whole.length);
    this.#advance(this.#at + whole.length);
    const end = this.#wordEnd();
    if (end > this.#at) {
      const text = whole + this.#text.slice(this.#at, end);
      this.#error(
        "syntax/number",
        `\`${text}\` is neither a number nor a name`,
        { ...position, length: text.length },
        withoutUnit(text) ?? `A name does not start with a digit; a string is written "${text}".`,
      );
      this.#advance(end);
      // Taken as a name from here on, so that the same is not told twice.
      this.#push("word", text, position);
      return;
    }
    const digits = suffix === "" ? whole : whole.slice(0, -1);
    const type = numberType(whole, suffix);
    if (type === "long") {
      const value = this.#long(whole, digits, position);
      this.#tokens.push({ kind: "number", text: whole, position, number: { type, value } });
      return;
    }
    const parsed = Number(digits);
    // One without a suffix keeps its digits for the cell's numbers, which are doubles.
    const single = type === "float" && suffix !== "" && Number.isFinite(Math.fround(parsed));
    const value = single ? Math.fround(parsed) : parsed;
    if (type === "int" && (value > 2_147_483_647 || value < -2_147_483_648))
      this.#error("syntax/number", `${whole} does not fit into 32 bits`, position, `Write ${whole}L for a long.`);
    if (!Number.isFinite(value) || (type === "float" && !Number.isFinite(Math.fround(value)))) {
      const hint = Number.isFinite(value) ? `Write ${digits}D for a double.` : "Doubles go up to 1.79E308.";
      this.#error("syntax/number", `${whole} is too large a number`, position, hint);
    }
    this.#tokens.push({
      kind: "number",
      text: whole,
      position,
      number: { type, value, ...(single ? { single } : {}) },
    });
  }

  #long(whole: string, digits: string, position: Position): bigint {
    if (/[.eE]/.test(digits)) {
      const hint = `Write ${digits} alone, or ${digits}F or ${digits}D.`;
      this.#error("syntax/number", `${whole} is not a whole number, so it cannot be a long`, position, hint);
      return 0n;
    }
    const value = digits.length > 400 ? 2n ** 64n : BigInt(digits);
    if (BigInt.asIntN(64, value) !== value)
      this.#error("syntax/number", `${whole} does not fit into 64 bits`, position, `Write ${digits}D for a double.`);
    return value;
  }

  #string(): void {
    const start = this.#at;
    const { text, end, closed } = this.#quoted(start + 1, '"');
    // A quote that nothing follows ends what was open already.
    const ends = this.#open && /^[;,)\]}\s]?$/.test(this.#text[start + 1] ?? "");
    this.#open = !closed && !ends;
    if (ends) {
      this.#advance(start + 1);
      return;
    }
    if (!closed)
      this.#error(
        "syntax/unclosed-string",
        "This string is not closed on its line",
        this.#here(end - start),
        'Close it with `"`; a text of several lines is written `##…#`.',
      );
    this.#push("string", text, this.#here(end - start));
    this.#advance(end);
  }

  /** The text from `start` up to the closing quote, escapes done. `end` is behind the quote. Only `#` spans lines. */
  #quoted(start: number, quote: '"' | "#"): { text: string; end: number; closed: boolean } {
    const text = new TextBuilder();
    let run = start;
    for (let at = start; ; ) {
      const character = this.#text[at];
      if (
        character === undefined ||
        (quote === '"' && (character === "\n" || character === "\r")) ||
        this.#diagnostics.full
      )
        return { text: text.end(this.#text.slice(run, at)), end: at, closed: false };
      if (character === quote) return { text: text.end(this.#text.slice(run, at)), end: at + 1, closed: true };
      if (character === "\\") {
        if (quote === "#") this.#advance(at);
        const meant = this.#escape(at);
        if (run < at) text.add(this.#text.slice(run, at));
        text.add(meant.text);
        at += meant.length;
        run = at;
      } else at++;
    }
  }

  /** Java's escapes: \n and its like, \u and four hexadecimal digits; three octal digits, and no fewer. */
  #escape(at: number): { text: string; length: number } {
    const character = this.#text[at + 1] ?? "";
    const known = escapes[character];
    if (known !== undefined) return { text: known, length: 2 };
    const unicode = /^\\u+([0-9a-fA-F]{4})/.exec(this.#text.slice(at, at + 12));
    if (unicode) return { text: String.fromCharCode(Number.parseInt(unicode[1] ?? "", 16)), length: unicode[0].length };
    const octal = /^\\([0-3][0-7]{2})/.exec(this.#text.slice(at, at + 4));
    if (octal) return { text: String.fromCharCode(Number.parseInt(octal[1] ?? "", 8)), length: octal[0].length };
    if (character === "\n" || character === "") return { text: "", length: 1 };
    if (!/["'\\#]/.test(character)) {
      const position = { ...this.#here(2), column: at - this.#lineStart + 1 };
      this.#error(
        "syntax/escape",
        `\`\\${character}\` is no escape`,
        position,
        character === "u"
          ? "`\\u` takes four hexadecimal digits."
          : /\d/.test(character)
            ? "A character by its number has three octal digits, `\\000` to `\\377`."
            : "A backslash itself is written `\\\\`.",
      );
    }
    return { text: character, length: 2 };
  }

  /** `#include`, `#include ?`, a text `##…#`, or bytes `#HEX#…#`. */
  #hash(): void {
    const include = this.#match(includeDirective);
    if (include) {
      const [text] = include;
      this.#push("include", text, this.#here(text.length));
      this.#advance(this.#at + text.length);
      return;
    }
    const codebase = this.#match(codebaseDirective);
    if (codebase) {
      this.#error(
        "syntax/needs-java",
        "`#codebase` says where HP's runtime loads Java classes from, and there is no Java here",
        this.#here(9),
        "Remove it, with the text behind it.",
      );
      this.#advance(this.#at + codebase[0].length);
      return;
    }
    const opening = /^#([A-Z0-9]*)#/.exec(this.#text.slice(this.#at, this.#at + 10));
    if (!opening) {
      const remark = this.#match(hashComment);
      this.#error(
        "syntax/character",
        "`#` means nothing here",
        this.#here(1),
        remark
          ? "A comment begins with `//`, or stands between `/*` and `*/`."
          : 'Known are `#include "file"`, `##text#` and `#HEX#…#`.',
      );
      this.#advance(this.#at + (remark ?? "#")[0].length);
      return;
    }
    const start = this.#at + opening[0].length;
    const position = this.#here(opening[0].length);
    const encoding = opening[1] ?? "";
    let end = this.#text.indexOf("#", start);
    let content = "";
    if (encoding === "") {
      const { text, end: behind, closed } = this.#quoted(start, "#");
      content = text;
      end = closed ? behind - 1 : -1;
    } else content = this.#text.slice(start, end < 0 ? this.#text.length : end);
    if (end < 0) {
      this.#error(
        "syntax/unclosed-string",
        "This text is never closed",
        position,
        "Close it with `#`; a comment begins with `//`.",
      );
      end = this.#text.length;
    }
    if (encoding === "") this.#push("string", content, position);
    else this.#push("bytes", this.#bytes(encoding, withoutSpace(content), position), position);
    this.#advance(Math.min(end + 1, this.#text.length));
  }

  /** Bytes of any encoding as upper-case hexadecimal digits. */
  #bytes(encoding: string, content: string, position: Position): string {
    if (encoding === "HEX" && content.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(content)) return content.toUpperCase();
    if (encoding === "B64" && isBase64(content)) return base64Bytes(content);
    const form = byteForms.get(encoding);
    if (form && content.length % form.digits === 0 && form.whole.test(content)) {
      const { base, digits } = form;
      let sound = true;
      const bytes = hexOf(content.length / digits, (index) => {
        let byte = 0;
        for (let at = index * digits; at < (index + 1) * digits; at++) byte = byte * base + content.charCodeAt(at) - 48;
        sound &&= byte <= 255;
        return byte;
      });
      if (sound) return bytes;
    }
    const known = encoding === "HEX" || encoding === "B64" || form !== undefined;
    this.#error(
      "syntax/bytes",
      known ? `These are no whole bytes in ${encoding}` : `The encoding \`#${encoding}#\` is not known`,
      position,
      known && form ? `Each byte takes ${form.digits} digits.` : "Write the bytes as `#HEX#0A1B#`, two digits each.",
    );
    return "";
  }
}
