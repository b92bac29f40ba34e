/**
 * What can be seen in a TypeScript text without understanding it: imports, calls of the builder's functions, and the
 * names in the literals that they are called with. It says where faults are shown and which files belong to a bundle;
 * what the text means is for QuickJS. So a text that fools it costs a caret in the wrong place, or a file that is missed.
 */
export interface ImportSite {
  readonly specifier: string;
  /** Offsets in the text, quotes included. */
  readonly start: number;
  readonly end: number;
}
export interface KeySite {
  readonly start: number;
  readonly end: number;
  readonly valueStart: number;
  valueEnd: number;
}
export interface CallSite {
  readonly name: string;
  readonly start: number;
  end: number;
  /** Names in the object literals of its arguments, by argument and path: `0/liveness/port`. */
  readonly keys: Map<string, KeySite>;
}
export interface Scanned {
  readonly imports: readonly ImportSite[];
  readonly calls: readonly CallSite[];
}

interface Token {
  readonly kind: "word" | "text" | "number" | "sign" | "template";
  readonly value: string;
  readonly start: number;
  readonly end: number;
}
interface Frame {
  readonly open: string;
  /** Set for the parentheses of a call. */
  readonly call?: CallSite;
  argument: number;
  /** Set for an object literal in a call: whose, and under which names. */
  readonly object?: { readonly call: CallSite; readonly path: string };
  expectsKey: boolean;
  key: { readonly site: KeySite; readonly path: string } | null;
}

const wordPattern = /[\p{ID_Start}$_#][\p{ID_Continue}$\u200c\u200d]*/uy;
const numberPattern = /\d[\w.]*/y;
const textPattern = /"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'/y;
const regexPattern = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;
const beforeRegex = /^(?:return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield)$/;

const matchAt = (pattern: RegExp, text: string, at: number): string | null => {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
};

/** A string literal's value, near enough for file names. */
const valueOfText = (literal: string): string => literal.slice(1, -1).replace(/\\(.)/g, "$1");

export function scan(text: string, functions: ReadonlySet<string>): Scanned {
  const scanner = new Scanner(functions);
  // Braces of `${` in templates, innermost last: their closing continues the template.
  const templates: number[] = [];
  let depth = 0;
  let last: Token | null = null;
  let at = 0;
  const token = (kind: Token["kind"], end: number, value = text.slice(at, end)): void => {
    last = { kind, value, start: at, end };
    scanner.take(last);
    at = end;
  };
  const template = (from: number): void => {
    let end = from;
    while (end < text.length && text[end] !== "`" && !(text[end] === "$" && text[end + 1] === "{"))
      end += text[end] === "\\" ? 2 : 1;
    const opens = text[end] === "$";
    if (opens) templates.push(depth++);
    token("template", Math.min(text.length, end + (opens ? 2 : 1)), opens ? "${" : "`");
  };
  const mayBeRegex = (): boolean => {
    const before = last as Token | null;
    if (before === null) return true;
    if (before.kind === "word") return beforeRegex.test(before.value);
    return before.kind === "sign" && !/^[)\]}]$/.test(before.value);
  };
  while (at < text.length) {
    const character = text[at] ?? "";
    if (/\s/.test(character)) at++;
    else if (text.startsWith("//", at)) at = indexOr(text, "\n", at);
    else if (text.startsWith("/*", at)) at = indexOr(text, "*/", at + 2) + 2;
    else if (character === "`") template(at + 1);
    else if (character === "}" && templates.at(-1) === depth - 1) {
      templates.pop();
      depth--;
      template(at + 1);
    } else {
      const word = matchAt(wordPattern, text, at) ?? "";
      const number = word === "" ? (matchAt(numberPattern, text, at) ?? "") : "";
      const literal = character === '"' || character === "'" ? (matchAt(textPattern, text, at) ?? "") : "";
      const regex = character === "/" && mayBeRegex() ? (matchAt(regexPattern, text, at) ?? "") : "";
      if (word !== "") token("word", at + word.length);
      else if (number !== "") token("number", at + number.length);
      else if (literal !== "") token("text", at + literal.length);
      else if (regex !== "") token("number", at + regex.length);
      else {
        if (character === "{") depth++;
        if (character === "}") depth--;
        token("sign", at + (text.startsWith("...", at) ? 3 : text.startsWith("=>", at) ? 2 : 1));
      }
    }
  }
  return scanner.scanned;
}

function indexOr(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found;
}

class Scanner {
  readonly #functions: ReadonlySet<string>;
  readonly #imports: ImportSite[] = [];
  readonly #calls: CallSite[] = [];
  readonly #frames: Frame[] = [];
  #before: Token | null = null;
  #beforeThat: Token | null = null;
  /** An `import` or `export` whose `from` may come. */
  #statement: { readonly depth: number; readonly typeOnly: boolean } | null = null;

  constructor(functions: ReadonlySet<string>) {
    this.#functions = functions;
  }

  get scanned(): Scanned {
    return { imports: this.#imports, calls: this.#calls };
  }

  take(token: Token): void {
    this.#import(token);
    const frame = this.#frames.at(-1);
    if (frame?.object) this.#inObject(frame, frame.object, token);
    if (token.kind === "sign" && /^[([{]$/.test(token.value)) this.#open(token, frame);
    else if (token.kind === "template" && token.value === "${") this.#push(token, {});
    else if (
      (token.kind === "sign" && /^[)\]}]$/.test(token.value)) ||
      (token.kind === "template" && frame?.open === "${")
    )
      this.#close(token);
    else if (token.kind === "sign" && token.value === "," && frame?.call) frame.argument++;
    this.#beforeThat = this.#before;
    this.#before = token;
  }

  #push(token: Token, more: Partial<Frame>): void {
    this.#frames.push({ open: token.value, argument: 0, expectsKey: more.object !== undefined, key: null, ...more });
  }

  #open(token: Token, frame: Frame | undefined): void {
    const before = this.#before;
    if (token.value === "(" && before?.kind === "word" && this.#functions.has(before.value)) {
      const call = { name: before.value, start: before.start, end: token.end, keys: new Map<string, KeySite>() };
      this.#calls.push(call);
      this.#push(token, { call });
      return;
    }
    const firstOfArgument = frame?.call && before?.kind === "sign" && (before.value === "(" || before.value === ",");
    if (token.value === "{" && frame?.call && firstOfArgument)
      this.#push(token, { object: { call: frame.call, path: String(frame.argument) } });
    else if (token.value === "{" && frame?.object && frame.key && before?.value === ":")
      this.#push(token, { object: { call: frame.object.call, path: frame.key.path } });
    else this.#push(token, {});
  }

  #close(token: Token): void {
    const frame = this.#frames.pop();
    if (frame?.call) frame.call.end = token.end;
  }

  #inObject(frame: Frame, { call, path }: NonNullable<Frame["object"]>, token: Token): void {
    const before = this.#before;
    const ends = token.kind === "sign" && (token.value === "," || token.value === "}");
    if (ends) {
      if (frame.key && before) frame.key.site.valueEnd = before.end;
      // A name alone stands for the variable of that name.
      else if (!frame.key && before?.kind === "word" && this.#beforeThat && /^[{,]$/.test(this.#beforeThat.value))
        this.#key(frame, call, path, before, before.start).site.valueEnd = before.end;
      frame.key = null;
      frame.expectsKey = true;
    } else if (frame.expectsKey && token.value === ":" && before && before.kind !== "sign") {
      frame.key = this.#key(frame, call, path, before, token.end);
    }
  }

  #key(frame: Frame, call: CallSite, path: string, { kind, value, start, end }: Token, valueStart: number) {
    frame.expectsKey = false;
    const name = kind === "text" ? valueOfText(value) : value;
    const site: KeySite = { start, end, valueStart, valueEnd: valueStart };
    const key = { site, path: `${path}/${name}` };
    call.keys.set(key.path, site);
    return key;
  }

  #import(token: Token): void {
    const before = this.#before;
    const depth = this.#frames.length;
    if (token.kind === "word" && (token.value === "import" || token.value === "export") && before?.value !== ".")
      this.#statement = { depth, typeOnly: false };
    else if (token.value === "type" && (before?.value === "import" || before?.value === "export"))
      this.#statement = { depth, typeOnly: true };
    else if (token.kind === "text" && this.#leadsIn(before, depth)) {
      if (!this.#statement?.typeOnly)
        this.#imports.push({ specifier: valueOfText(token.value), start: token.start, end: token.end });
      this.#statement = null;
    } else if (token.value === ";" && depth === this.#statement?.depth) this.#statement = null;
  }

  /** Whether a string after `before` names what is imported. */
  #leadsIn(before: Token | null, depth: number): boolean {
    if (before === null) return false;
    if (before.value === "(") return this.#beforeThat?.value === "import";
    return (
      this.#statement !== null &&
      depth === this.#statement.depth &&
      (before.value === "import" || before.value === "from")
    );
  }
}

/** Line and column, both from 1, of an offset. */
export function lineAndColumn(text: string, offset: number): { readonly line: number; readonly column: number } {
  let line = 1;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0 && end < offset; end = text.indexOf("\n", start)) {
    line++;
    start = end + 1;
  }
  return { line, column: offset - start + 1 };
}
