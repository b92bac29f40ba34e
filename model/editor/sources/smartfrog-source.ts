import { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import { isKeyword } from "../../smartfrog/text/expressions.ts";
import { tokenize } from "../../smartfrog/text/lexer.ts";
import type { Token } from "../../smartfrog/text/tokens.ts";
import {
  lineStartsOf,
  type Name,
  type SourceAttribute,
  type SourceBlock,
  type SourceComponent,
  type SourceEntry,
  type SourceFile,
  type SourceInclude,
  type SourcePart,
  type SourceReference,
  type SourceStep,
  type SourceString,
} from "./source.ts";

/** The source tree of a SmartFrog text, whatever is wrong with it. */
export function smartFrogSource(file: string, text: string): SourceFile {
  const parser = new SourceParser(file, text, piecesIn(file, text, 0, new Diagnostics(lexicalFaults)));
  const top = parser.file();
  return { name: file, text, language: "smartfrog", top, lineStarts: lineStartsOf(text), placing: parser.placing };
}

/** The tokens of a text that stands at an offset of a larger one, with their places there. */
export function piecesIn(file: string, text: string, offset: number, diagnostics: Diagnostics): readonly Piece[] {
  const lineStarts = lineStartsOf(text);
  return tokenize(file, text, diagnostics).map((token): Piece => {
    const start = (lineStarts[token.position.line - 1] ?? 0) + token.position.column - 1;
    return { token, start: offset + start, end: offset + endOf(token, text, start) };
  });
}

/** Told by the check; here they would only end the reading after the fiftieth. */
const lexicalFaults = [
  "syntax/character",
  "syntax/number",
  "syntax/unclosed-string",
  "syntax/unclosed-comment",
  "syntax/escape",
];

interface Piece {
  readonly token: Token;
  readonly start: number;
  readonly end: number;
}

function endOf({ kind, text: meaning, position }: Token, text: string, start: number): number {
  const opened = kind === "string" || kind === "bytes" ? /^#[A-Z0-9]*#/.exec(text.slice(start, start + 10)) : null;
  // What is written wrongly is a token that means something else than it says.
  if (!opened) return start + (kind !== "string" && text.startsWith(meaning, start) ? meaning.length : position.length);
  // The lexer marks the opening of a text of several lines only.
  let at = start + opened[0].length;
  while (at < text.length && text[at] !== "#") at += text[at] === "\\" ? 2 : 1;
  return Math.min(at + 1, text.length);
}

/** What is collected while a value is read. */
interface Value {
  readonly references: SourceReference[];
  readonly strings: SourceString[];
  component: SourceComponent | null;
}

const opening: ReadonlyMap<string, string> = new Map([
  ["(", ")"],
  ["[", "]"],
  ["[|", "|]"],
]);
const referenceWord = /^(?:ROOT|PARENT|THIS|ATTRIB|HERE|PROCESS|HOST|I?PROPERTY|I?ENVPROPERTY|CONSTANT)$/;

/** Reads the source tree from pieces of `text`, in which their places are. */
export class SourceParser {
  /** Some attribute is a placement. */
  placing = false;
  /** Some brace closed nothing. */
  stray = false;
  readonly #file: string;
  readonly #text: string;
  readonly #pieces: readonly Piece[];
  #at = 0;
  #depth = 0;

  constructor(file: string, text: string, pieces: readonly Piece[]) {
    this.#file = file;
    this.#text = text;
    this.#pieces = pieces;
  }

  file(): SourceBlock {
    const entries: SourceEntry[] = [];
    while (this.#token.kind !== "end") {
      this.#entries(entries);
      // A brace that closes nothing.
      if (this.#accept("}")) this.stray = true;
    }
    // The whole text is inside, its first and last place included.
    return { start: -1, end: this.#text.length + 1, entries };
  }

  get #piece(): Piece {
    return this.#ahead(0);
  }
  get #token(): Token {
    return this.#piece.token;
  }
  /** The same, where the compiler would still hold it for the token before. */
  #current(): Token {
    return this.#token;
  }
  #ahead(count: number): Piece {
    const piece = this.#pieces[Math.min(this.#at + count, this.#pieces.length - 1)];
    if (!piece) throw new Error("a token sequence always has an end");
    return piece;
  }
  /** End of what was read last. */
  get #end(): number {
    return this.#pieces[this.#at - 1]?.end ?? 0;
  }
  #is(text: string): boolean {
    const { kind, text: found } = this.#token;
    return (kind === "symbol" || kind === "word") && found === text;
  }
  #accept(text: string): boolean {
    const found = this.#is(text);
    if (found) this.#at++;
    return found;
  }

  #entries(into: SourceEntry[]): void {
    while (this.#token.kind !== "end" && !this.#is("}")) {
      if (this.#accept(";")) continue;
      const entry = this.#token.kind === "include" ? this.#include() : this.#attribute();
      if (entry) into.push(entry);
    }
  }

  #include(): SourceInclude | null {
    const { start } = this.#piece;
    this.#at++;
    if (this.#token.kind !== "string") return null;
    const path = this.#string();
    this.#accept(";");
    return { kind: "include", path, start, end: this.#end };
  }

  /** Null if nothing begins here that could be one; at least one token is passed. */
  #attribute(): SourceAttribute | null {
    const { start } = this.#piece;
    if (this.#accept("[")) this.#tags();
    const name = this.#name();
    if (name === null) {
      if (this.#is("{")) this.#block();
      // Behind tags, it closes the block.
      else if (!this.#is("}")) this.#at++;
      return null;
    }
    const value: Value = { references: [], strings: [], component: null };
    const begun = this.#at;
    if (!this.#endsHere() && !this.#missing()) this.#value(value);
    const read = this.#at > begun;
    const span = read ? { start: this.#pieces[begun]?.start ?? 0, end: this.#end } : null;
    const sole = read && value.component === null ? this.#sole(value, span) : null;
    const complete = this.#accept(";");
    if (!complete && read) this.#recover();
    // What is not ended goes on up to what follows it: that is where its author is writing.
    const braced = value.component?.parts.at(-1)?.kind === "block" && this.#pieces[this.#at - 1]?.token.text === "}";
    const terminated = complete || braced;
    const end = terminated ? this.#end : this.#piece.start;
    return {
      kind: "attribute",
      file: this.#file,
      name,
      start,
      end,
      value: span,
      sole,
      terminated,
      ...value,
    };
  }
  #sole({ references, strings }: Value, span: { start: number; end: number } | null): SourceAttribute["sole"] {
    const only = (some: readonly { start: number; end: number }[]): boolean =>
      some.length === 1 && some[0]?.start === span?.start && some[0]?.end === span?.end;
    return only(strings) ? "string" : only(references) ? "reference" : null;
  }

  #tags(): void {
    while (!this.#is("]") && !this.#is("{") && !this.#is("}") && !this.#is(";") && this.#token.kind !== "end")
      this.#at++;
    this.#accept("]");
  }

  #name(): Name[] | null {
    if (this.#accept("--")) return [];
    const names: Name[] = [];
    do {
      const { token, start, end } = this.#piece;
      const fits = token.kind === "string" || (token.kind === "word" && !isKeyword(token));
      if (!fits) return names.length > 0 ? names : null;
      names.push({ text: token.text, start, end, quoted: token.kind === "string" });
      this.#at++;
      if (names.length > 1) this.placing = true;
    } while (this.#accept(":"));
    return names;
  }

  #endsHere(): boolean {
    return this.#token.kind === "end" || this.#token.kind === "include" || this.#is(";") || this.#is("}");
  }

  /**
   * Whether the value is still to be written: what follows on a further line is an attribute with a value of its own,
   * which the parser would refuse behind one that is a value here.
   */
  #missing(): boolean {
    const [first, second] = [this.#piece, this.#ahead(1)];
    if (!this.#newLine(this.#end, first.start)) return false;
    const names = (first.token.kind === "word" && !isKeyword(first.token)) || first.token.kind === "string";
    if (!names) return false;
    const { kind, text } = second.token;
    return (
      kind === "number" ||
      kind === "bytes" ||
      text === "extends" ||
      (kind === "word" && /^(?:true|false|TBD)$/.test(text)) ||
      (kind === "string" && first.token.kind === "word")
    );
  }
  #newLine(from: number, to: number): boolean {
    return this.#text.slice(from, to).includes("\n");
  }

  #value(into: Value): void {
    if (this.#is("extends")) into.component = this.#component();
    else this.#expression(into);
  }

  /** Past what cannot stand behind a value, up to where something new begins. */
  #recover(): void {
    while (!this.#endsHere() && !this.#is("--") && !this.#is("[")) {
      const { kind } = this.#token;
      if ((kind === "word" && !isKeyword(this.#token)) || kind === "string") return;
      if (this.#is("{")) this.#block();
      else this.#at++;
    }
    this.#accept(";");
  }

  #component(): SourceComponent {
    const { start } = this.#piece;
    this.#at++;
    if (!this.#accept("DATA")) this.#accept("LAZY");
    const parts: SourcePart[] = [];
    for (;;) {
      if (this.#is("{")) {
        parts.push({ kind: "block", block: this.#block() });
        if (!this.#accept(",")) break;
      } else if (this.#accept("NULL")) {
        if (!this.#accept(",") && !this.#is("{")) break;
      } else if (this.#startsReference() && !this.#missing()) {
        parts.push({ kind: "reference", reference: this.#reference() });
        if (!this.#accept(",") && !this.#is("{")) break;
      } else break;
    }
    return { parts, start, end: this.#end };
  }

  #block(): SourceBlock {
    const { start } = this.#piece;
    this.#at++;
    const entries: SourceEntry[] = [];
    if (++this.#depth > limits.nesting) this.#at = this.#pieces.length - 1;
    this.#entries(entries);
    this.#depth--;
    const closed = this.#accept("}");
    return { entries, start, end: closed ? this.#end : this.#piece.start + 1 };
  }

  #startsReference(): boolean {
    const { kind, text } = this.#token;
    return kind === "word" && (!isKeyword(this.#token) || referenceWord.test(text));
  }

  #expression(into: Value): void {
    const close = opening.get(this.#token.kind === "symbol" ? this.#token.text : "");
    if (close !== undefined) this.#until(close, into);
    else if (this.#token.kind === "string") into.strings.push(this.#string());
    else if (this.#is("APPLY") || this.#is("ASSERT")) this.#function(into);
    else if (this.#is("IF")) this.#until("FI", into);
    else if (this.#is("SWITCH")) this.#until("ENDSWITCH", into);
    else if (this.#is("LAZY") || this.#is("DATA") || this.#is("OPTIONAL")) this.#qualified(into);
    else if (this.#startsReference()) into.references.push(this.#reference());
    else if (this.#is("{")) this.#block();
    else if (!this.#endsHere()) this.#at++;
  }
  #qualified(into: Value): void {
    while (this.#is("LAZY") || this.#is("DATA") || this.#is("OPTIONAL")) {
      const optional = this.#is("OPTIONAL");
      this.#at++;
      if (optional && this.#is("(")) this.#until(")", into);
    }
    if (!this.#endsHere()) this.#expression(into);
  }
  /** From an opening token up to the one that closes it, or to where the attribute ends without it. */
  #until(close: string, into: Value): void {
    this.#at++;
    if (++this.#depth <= limits.nesting)
      while (!this.#endsHere() && !this.#is(close)) {
        // Operators and what else stands between operands.
        const before = this.#at;
        this.#expression(into);
        if (this.#at === before) this.#at++;
      }
    this.#depth--;
    this.#accept(close);
  }
  /** What is inside has a scope of its own, which sees that of the attribute. */
  #function(into: Value): void {
    this.#at++;
    if (this.#current().text !== "{") return;
    const open: SourceBlock[] = [this.#block()];
    for (let block = open.pop(); block; block = open.pop())
      for (const entry of block.entries) {
        if (entry.kind !== "attribute") continue;
        into.references.push(...entry.references);
        into.strings.push(...entry.strings);
        for (const part of entry.component?.parts ?? []) if (part.kind === "block") open.push(part.block);
      }
  }

  #reference(): SourceReference {
    const { start } = this.#piece;
    const steps: SourceStep[] = [];
    do {
      const step = this.#step(steps.length === 0);
      if (step === null) break;
      steps.push(step);
    } while (this.#accept(":"));
    return { steps, start, end: this.#end };
  }
  #step(first: boolean): SourceStep | null {
    const { token, start, end } = this.#piece;
    if (token.kind === "word" && /^(?:ROOT|PARENT|THIS|PROCESS)$/.test(token.text)) {
      this.#at++;
      const kind = token.text === "PROCESS" ? "foreign" : (token.text as "ROOT" | "PARENT" | "THIS");
      return { kind, text: token.text, quoted: false, start, end };
    }
    let kind: SourceStep["kind"] = first ? "ATTRIB" : "HERE";
    const explicit = token.kind === "word" && referenceWord.test(token.text);
    if (explicit) {
      kind = token.text === "ATTRIB" || token.text === "HERE" ? token.text : "foreign";
      this.#at++;
    }
    const name = this.#piece;
    const quoted = name.token.kind === "string";
    const fits = quoted ? explicit || !first : name.token.kind === "word" && !isKeyword(name.token);
    if (!fits) return null;
    this.#at++;
    return { kind, text: name.token.text, quoted, start: name.start, end: name.end };
  }

  #string(): SourceString {
    const { token, start, end } = this.#piece;
    this.#at++;
    const raw = this.#text.slice(start, end);
    const opened = raw.startsWith('"') ? 1 : (/^#[A-Z0-9]*#/.exec(raw)?.[0].length ?? 0);
    const closed = raw.length > opened && /["#]$/.test(raw) ? 1 : 0;
    const inner = { start: start + opened, end: end - closed };
    return { value: token.text, inner, plain: this.#text.slice(inner.start, inner.end) === token.text, start, end };
  }
}
