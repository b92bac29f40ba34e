import type { Position } from "../diagnostic.ts";
import type { Diagnostics } from "../diagnostics.ts";
import { limits } from "../limits.ts";
import type { NumberType, Token } from "./tokens.ts";

/** Longest first, so that `<=` is not taken for `<`. */
const symbols = [
  ...["[|", "|]", "--", "==", "!=", ">=", "<=", "++", "<>", "&&", "||", "->"],
  ...["{", "}", "(", ")", "[", "]", ",", ";", ":", "+", "-", "*", "/", "%", "<", ">", "!"],
];
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

/**
 * Splits SmartFrog text into tokens; the last is `end`. What cannot be a token is reported and skipped, so the parser
 * sees a sound sequence and can go on.
 */
export function tokenize(file: string, text: string, diagnostics: Diagnostics): Token[] {
  return new Lexer(file, text, diagnostics).run();
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

  constructor(file: string, text: string, diagnostics: Diagnostics) {
    this.#file = file;
    this.#text = text;
    this.#diagnostics = diagnostics;
  }

  run(): Token[] {
    while (this.#skipSpace() && !this.#diagnostics.full && this.#tokens.length < limits.tokens) this.#next();
    if (this.#tokens.length >= limits.tokens) {
      this.#tokens.length = 0;
      this.#error(
        "limit/tokens",
        `This text has more than ${limits.tokens} words, signs and values`,
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
    if (character === "x" && this.#text.startsWith("x|", this.#at) && !this.#text.startsWith("x||", this.#at)) {
      this.#symbol("x|");
      return;
    }
    const end = this.#wordEnd();
    if (end > this.#at) {
      this.#push("word", this.#text.slice(this.#at, end), this.#here(end - this.#at));
      this.#advance(end);
      return;
    }
    const digits = this.#match(number);
    if (digits) {
      this.#number(digits[0], digits[1] ?? "");
      return;
    }
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
      "Names start with a letter, `_` or `$`; anything else is written as a string, in double quotes.",
    );
    this.#advance(this.#at + found.length);
  }

  #symbol(text: string): void {
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
        `A name does not start with a digit; a string is written "${text}".`,
      );
      this.#advance(end);
      // Taken as a name from here on, so that the same is not told twice.
      this.#push("word", text, position);
      return;
    }
    const digits = suffix === "" ? whole : whole.slice(0, -1);
    const type = numberType(whole, suffix);
    const value = Number(digits);
    if (type === "int" && (value > 2_147_483_647 || value < -2_147_483_648))
      this.#error("syntax/number", `${whole} does not fit into 32 bits`, position, `Write ${whole}L for a long.`);
    if (type === "long" && (!Number.isSafeInteger(value) || /[.eE]/.test(digits)))
      this.#error("syntax/number", `${whole} is not a whole number of up to 53 bits`, position);
    if (!Number.isFinite(value)) this.#error("syntax/number", `${whole} is too large a number`, position);
    this.#tokens.push({ kind: "number", text: whole, position, number: { type, value } });
  }

  #string(): void {
    const start = this.#at;
    const { text, end, closed } = this.#quoted(start + 1, '"');
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
    let text = "";
    let run = start;
    for (let at = start; ; ) {
      const character = this.#text[at];
      if (character === undefined || (quote === '"' && character === "\n") || this.#diagnostics.full)
        return { text: text + this.#text.slice(run, at), end: at, closed: false };
      if (character === quote) return { text: text + this.#text.slice(run, at), end: at + 1, closed: true };
      if (character === "\\") {
        if (quote === "#") this.#advance(at);
        const meant = this.#escape(at);
        text += this.#text.slice(run, at) + meant.text;
        at += meant.length;
        run = at;
      } else at++;
    }
  }

  /** Java's escapes: \n and its like, \u and four hexadecimal digits, up to three octal digits. */
  #escape(at: number): { text: string; length: number } {
    const unicode = /^\\u+([0-9a-fA-F]{4})/.exec(this.#text.slice(at, at + 12));
    if (unicode) return { text: String.fromCharCode(Number.parseInt(unicode[1] ?? "", 16)), length: unicode[0].length };
    const octal = /^\\([0-3]?[0-7]{1,2})/.exec(this.#text.slice(at, at + 4));
    if (octal) return { text: String.fromCharCode(Number.parseInt(octal[1] ?? "", 8)), length: octal[0].length };
    const character = this.#text[at + 1] ?? "";
    const known = escapes[character];
    if (known !== undefined) return { text: known, length: 2 };
    if (character === "\n" || character === "") return { text: "", length: 1 };
    if (!/["'\\#]/.test(character)) {
      const position = { ...this.#here(2), column: at - this.#lineStart + 1 };
      this.#error(
        "syntax/escape",
        `\`\\${character}\` is no escape`,
        position,
        "A backslash itself is written `\\\\`.",
      );
    }
    return { text: character, length: 2 };
  }

  /** `#include`, a text `##…#`, or bytes `#HEX#…#`. */
  #hash(): void {
    if (this.#text.startsWith("#include", this.#at)) {
      this.#push("include", "#include", this.#here(8));
      this.#advance(this.#at + 8);
      return;
    }
    const opening = /^#([A-Z0-9]*)#/.exec(this.#text.slice(this.#at, this.#at + 10));
    if (!opening) {
      this.#error(
        "syntax/character",
        "`#` means nothing here",
        this.#here(1),
        'Known are `#include "file"`, `##text#` and `#HEX#…#`.',
      );
      this.#advance(this.#at + 1);
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
      this.#error("syntax/unclosed-string", "This text is never closed", position, "Close it with `#`.");
      end = this.#text.length;
    }
    if (encoding === "") this.#push("string", content, position);
    else this.#push("bytes", this.#bytes(encoding, content.replace(/\s+/g, ""), position), position);
    this.#advance(Math.min(end + 1, this.#text.length));
  }

  /** Bytes of any encoding as upper-case hexadecimal digits. */
  #bytes(encoding: string, content: string, position: Position): string {
    if (encoding === "HEX" && content.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(content)) return content.toUpperCase();
    const form = byteForms.get(encoding);
    if (form && content.length % form.digits === 0 && form.whole.test(content)) {
      let bytes = "";
      for (let at = 0, sound = true; sound; at += form.digits) {
        if (at >= content.length) return bytes;
        const byte = Number.parseInt(content.slice(at, at + form.digits), form.base);
        sound = byte <= 255;
        bytes += byte.toString(16).padStart(2, "0").toUpperCase();
      }
    }
    const known = encoding === "HEX" || form !== undefined;
    this.#error(
      "syntax/bytes",
      known ? `These are no whole bytes in ${encoding}` : `The encoding \`#${encoding}#\` is not known`,
      position,
      known && form ? `Each byte takes ${form.digits} digits.` : "Write the bytes as `#HEX#0A1B#`, two digits each.",
    );
    return "";
  }
}
