import type { Bundle } from "../../cell/cell.ts";
import { closestName, didYouMean } from "../../diagnostics/closest-name.ts";
import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import { abandoned, ExpressionParser, isKeyword, shown } from "./expressions.ts";
import { tokenize } from "./lexer.ts";
import type { AttributeSyntax, Expression, Prototype } from "./syntax.ts";
import type { Token } from "./tokens.ts";

/**
 * Include and syntax phase: parses `bundle.main` with everything that it includes into one attribute list. All faults
 * of a file are reported in one go: a faulty attribute is left out and parsing goes on behind it.
 */
export function parseBundle(bundle: Bundle, diagnostics: Diagnostics): ParsedBundle {
  const parser = new BundleParser(bundle, diagnostics);
  const attributes = parser.file(bundle.main, [], null);
  const { prototypes, extendsAt, standardIncludes } = parser;
  return { attributes, prototypes, extendsAt, standardIncludes };
}

export interface ParsedBundle {
  readonly attributes: readonly AttributeSyntax[];
  /** What the document itself extends: `extends A, { … }` in front of all attributes of the main file. */
  readonly prototypes: readonly Prototype[];
  readonly extendsAt: Position | null;
  /** Paths of standard files that are included, which are no part of the bundle. */
  readonly standardIncludes: ReadonlySet<string>;
}

/** Include files that are known here by their names: HP's own, and one of machines. */
export const isStandardInclude = (path: string): boolean =>
  path === "/org/smartfrog/functions.sf" || path === "/org/smartfrog/predicates.sf" || path === "/cells/machine.sf";

const mostNamed = 8;
const someOf = (names: readonly string[]): string =>
  names.length <= mostNamed ? names.join(", ") : `${names.slice(0, mostNamed).join(", ")} and others`;

class BundleParser {
  readonly #bundle: Bundle;
  readonly #diagnostics: Diagnostics;
  readonly #parsed = new Map<string, readonly AttributeSyntax[]>();
  #tokensLeft: number = limits.tokens;
  /** Attributes that all includes together have brought. */
  #included = 0;
  readonly standardIncludes = new Set<string>();
  prototypes: readonly Prototype[] = [];
  extendsAt: Position | null = null;

  constructor(bundle: Bundle, diagnostics: Diagnostics) {
    this.#bundle = bundle;
    this.#diagnostics = diagnostics;
  }

  /** The attributes of a file that is in the bundle. `open` are the files being parsed, outermost first. */
  file(name: string, open: readonly string[], position: Position | null): readonly AttributeSyntax[] {
    const known = this.#parsed.get(name);
    if (known) return known;
    const refuse = (code: string, message: string, hint: string): readonly AttributeSyntax[] => {
      this.#diagnostics.add({ code, message, hint, ...(position ? { position } : {}) });
      return [];
    };
    if (open.includes(name))
      return refuse(
        "syntax/include-cycle",
        `\`${name}\` includes itself: ${[...open, name].join(" → ")}`,
        "Remove one of these includes.",
      );
    if (open.length > limits.includeDepth)
      return refuse(
        "limit/include",
        `Includes are more than ${limits.includeDepth} deep`,
        "Include the file from one nearer to the first.",
      );
    const text = Object.hasOwn(this.#bundle.files, name) ? this.#bundle.files[name] : undefined;
    if (text === undefined)
      return refuse(
        "syntax/include-missing",
        `There is no file \`${name}\` in the bundle`,
        didYouMean(name, Object.keys(this.#bundle.files)).hint ??
          `Paths count from the file that includes. There are: ${someOf(Object.keys(this.#bundle.files))}.`,
      );
    // Told of the file that has one too many.
    if (this.#diagnostics.has("limit/tokens")) return [];
    const tokens = tokenize(name, text, this.#diagnostics, this.#tokensLeft);
    this.#tokensLeft -= tokens.length - 1;
    const parser = new SmartFrogParser(tokens, this.#diagnostics, (path, at, optional) =>
      this.#include(name, path, at, { open: [...open, name], optional }),
    );
    const attributes = parser.file();
    if (open.length === 0) [this.prototypes, this.extendsAt] = [parser.extended, parser.extendsAt];
    else if (parser.extendsAt)
      this.#diagnostics.add({
        code: "syntax/expected",
        message: "Only the main file can extend a component as a whole",
        hint: "Give the component a name here, as in `name extends Prototype { … }`, and extend that.",
        position: parser.extendsAt,
      });
    this.#parsed.set(name, attributes);
    return attributes;
  }

  #include(
    from: string,
    path: string,
    position: Position,
    { open, optional }: { readonly open: readonly string[]; readonly optional: boolean },
  ): readonly AttributeSyntax[] {
    const refuse = (code: string, message: string): readonly AttributeSyntax[] => {
      const hint = "Only files of the bundle can be included, by a path relative to the including file.";
      this.#diagnostics.add({ code, message, hint, position });
      return [];
    };
    if (isStandardInclude(path)) {
      this.standardIncludes.add(path);
      return [];
    }
    if (path === "" || path.startsWith("/") || /^[A-Za-z]:|\\/.test(path))
      return refuse("syntax/include-absolute", `\`${path}\` is not a relative path`);
    const parts = from.split("/").slice(0, -1);
    for (const part of path.split("/")) {
      if (part === "" || part === ".") continue;
      if (part !== "..") parts.push(part);
      else if (parts.pop() === undefined)
        return refuse("syntax/include-outside", `\`${path}\` leads outside the bundle`);
    }
    const name = parts.join("/");
    if (optional && !Object.hasOwn(this.#bundle.files, name)) return [];
    const included = this.file(name, open, position);
    this.#included += included.length;
    if (this.#included <= limits.attributes) return included;
    this.#diagnostics.add({
      code: "limit/attributes",
      message: `Includes bring more than ${limits.attributes} attributes`,
      hint: "Include each file once, from the file that needs it.",
      position,
    });
    return [];
  }
}

/** The same for every attribute that has none. */
const noTags: readonly string[] = [];
const nothing = { kind: "null" } as const;

/** What a file brings. One that is `optional` brings nothing where the bundle lacks it. */
type Include = (path: string, position: Position, optional: boolean) => readonly AttributeSyntax[];

class SmartFrogParser extends ExpressionParser {
  readonly #include: Include;
  /** What the file as a whole extends, and where it says so. */
  extended: readonly Prototype[] = [];
  extendsAt: Position | null = null;
  /** A missing `}` is told once, for the innermost component. */
  #unclosedTold = false;
  /** Of a component that ends on a line further out than the one it begins on: where a `}` is missing most likely. */
  #suspect: Position | null = null;
  /** The line whose `}` closed it. */
  #suspectEnd: number | null = null;

  constructor(tokens: readonly Token[], diagnostics: Diagnostics, include: Include) {
    super(tokens, diagnostics);
    this.#include = include;
  }

  file(): readonly AttributeSyntax[] {
    const attributes: AttributeSyntax[] = [];
    while (this.accept(";") || this.token.kind === "include")
      if (this.token.kind === "include") this.#includeDirective(attributes);
    if (this.is("extends")) this.#extendsDocument();
    for (;;) {
      this.#attributes(attributes);
      if (this.token.kind === "end") return attributes;
      this.report(
        "syntax/unbalanced",
        "This `}` closes nothing",
        this.token.position,
        "Remove it, or find the `{` that is missing.",
      );
      this.at++;
    }
  }

  /** At the `extends` that stands in front of a file's attributes: the document is a component that extends others. */
  #extendsDocument(): void {
    this.extendsAt = this.token.position;
    try {
      const whole = this.component();
      if (whole.kind === "component") this.extended = whole.prototypes;
      this.accept(";");
    } catch (thrown) {
      if (thrown !== abandoned) throw thrown;
      this.#recover(this.at);
    }
  }

  /** Up to `}` or the end, which is left. */
  #attributes(into: AttributeSyntax[]): void {
    while (this.token.kind !== "end" && !this.is("}") && !this.diagnostics.full) {
      const start = this.at;
      try {
        this.#attribute(into);
      } catch (thrown) {
        if (thrown !== abandoned) throw thrown;
        this.#recover(start);
      }
    }
    if (this.diagnostics.full) this.at = this.tokens.length - 1;
  }

  /** Skips behind the `;` or component that ends the faulty attribute, or up to the `}` that ends its component. */
  #recover(start: number): void {
    // Components that were already left behind between `start` and here are closed; those still open are counted anew.
    let depth = 0;
    for (; this.token.kind !== "end"; this.at++) {
      if (this.is("{")) depth++;
      else if (this.is("}")) {
        if (depth === 0) break;
        depth--;
        if (depth === 0) {
          this.at++;
          break;
        }
      } else if (this.is(";") && depth === 0) {
        this.at++;
        break;
      }
    }
    if (this.at === start && !this.is("}")) this.at++;
    while (this.is(")") || this.is("]") || this.is("|]")) this.at++;
  }

  #attribute(into: AttributeSyntax[]): void {
    if (this.accept(";")) return;
    if (this.token.kind === "include") {
      this.#includeDirective(into);
      return;
    }
    const tags = this.accept("[") ? this.#tags() : noTags;
    const namePosition = this.token.position;
    const name = this.#name();
    const placed = this.tokens[this.at - 1];
    const unique = name && placed?.kind === "symbol" && this.accept("--") ? ({ unique: true } as const) : {};
    if (this.is("}") || this.token.kind === "end")
      this.fail("syntax/expected", `\`${name?.join(":") ?? "--"}\` has no value`, "Write a value, or `;` for none.");
    if (this.accept(";")) {
      into.push({
        name,
        ...unique,
        namePosition,
        tags,
        value: { kind: "scalar", scalar: nothing, position: namePosition },
      });
      return;
    }
    const value = this.#componentValue(name) ?? this.expression();
    into.push({ name, ...unique, namePosition, tags, value });
    const { kind }: Token = this.next;
    if (this.accept(";") || this.is("}") || this.is("--") || this.is("[") || kind === "include" || kind === "end")
      return;
    if ((kind === "word" && !isKeyword(this.token)) || (kind === "string" && value.kind === "component")) return;
    this.fail(
      "syntax/expected",
      `Expected \`;\` after the value of \`${name?.join(":") ?? "--"}\`, found ${shown(this.token)}`,
      value.kind === "component"
        ? "What a component holds stands in braces: `name extends Prototype { … }`."
        : "An expression of several parts stands in parentheses: `(1 + 2)`.",
    );
  }

  /** `extends …`, also in parentheses; null: what stands here is no component. */
  #componentValue(name: readonly string[] | null): Expression | null {
    const second = this.tokens[this.at + 1];
    if (!(this.is("(") && second?.kind === "word" && second.text === "extends"))
      return this.is("extends") || this.#mistakenComponent(name) ? this.component() : null;
    this.at++;
    const component = this.component();
    this.expect(")", "after a component in parentheses", "Each `(` has its `)`.");
    return component;
  }

  /**
   * At what lacks its `extends`, or has it misspelt: no other text reads `name word {` or `name {`. It is told, and read
   * as the component that it is meant to be.
   */
  #mistakenComponent(name: readonly string[] | null): boolean {
    const [{ kind, text, position }, second, third] = [this.token, this.tokens[this.at + 1], this.tokens[this.at + 2]];
    const opens = (token: Token | undefined): boolean => token?.kind === "symbol" && token.text === "{";
    const plain = kind === "word" && !isKeyword(this.token);
    // Nearly every value is plain, and hardly one stands before a brace.
    const braced = opens(second) || (second?.kind === "word" && opens(third));
    const misspelt = plain && braced && closestName(text, ["extends"]) !== undefined;
    const named = (misspelt && second?.kind === "word" && opens(third)) || (misspelt && opens(second));
    if (!named && !(plain && opens(second)) && !opens(this.token)) return false;
    const written = name?.join(":") ?? "--";
    const prototype = named ? (second?.kind === "word" ? `${second.text} ` : "") : plain ? `${text} ` : "";
    this.report(
      "syntax/expected",
      `Expected \`extends\` after \`${written}\`, found ${shown(this.token)}`,
      position,
      named || plain
        ? `A component is written \`${written} extends ${prototype}{ … }\`.`
        : `An element is written \`${written} extends VM { … }\`, a group \`${written} extends { … }\`, and what changes the one of a template \`${written} extends Template:${written} { … }\`.`,
    );
    // `component` passes over one token, which is `extends` where it is not missing.
    if (!named) this.at--;
    return true;
  }

  #includeDirective(into: AttributeSyntax[]): void {
    const { line } = this.token.position;
    const optional = this.token.text.endsWith("?");
    this.at++;
    const { kind, text, position } = this.token;
    if (kind !== "string") {
      this.report(
        "syntax/expected",
        `Expected a file name after \`#include\`, found ${shown(this.token)}`,
        position,
        'It reads `#include "file.sf"`.',
      );
      while (this.token.kind !== "end" && this.token.position.line === line) this.at++;
      return;
    }
    this.at++;
    for (const attribute of this.#include(text, position, optional)) into.push(attribute);
  }

  /** Behind `[`. Words or strings, with or without commas. */
  #tags(): readonly string[] {
    const tags = new Set<string>();
    while (!this.accept("]")) {
      if (this.token.kind !== "string" && (this.token.kind !== "word" || isKeyword(this.token)))
        this.fail("syntax/expected", `Expected a tag or \`]\`, found ${shown(this.token)}`);
      tags.add(this.token.text);
      if (tags.size > limits.tags)
        this.fail("limit/tags", `An attribute has more than ${limits.tags} tags here`, "Use fewer tags.");
      this.at++;
      this.accept(",");
    }
    return [...tags];
  }

  /** Words, of which all but the last are where it is placed; the last may be a string, or `--` for one of its own. */
  #name(): readonly string[] | null {
    if (this.accept("--")) return null;
    const name: string[] = [];
    for (;;) {
      const { kind, text } = this.token;
      if (name.length > 0 && this.is("--")) return name;
      if ((kind !== "word" && kind !== "string") || isKeyword(this.token)) this.#noName(name);
      name.push(text);
      this.at++;
      if (!this.is(":")) return name;
      if (kind === "string")
        this.fail(
          "syntax/expected",
          `Expected a value behind the string "${text}", found \`:\``,
          "An attribute is written `name value;`; where it is placed, as in `a:b value;`, is named by words.",
        );
      this.at++;
    }
  }
  #noName(before: readonly string[]): never {
    const { text } = this.token;
    if (before.length > 0)
      this.fail(
        "syntax/expected",
        `Expected a name after \`${before.join(":")}:\`, found ${shown(this.token)}`,
        text === "extends"
          ? `A component is written \`${before.join(":")} extends …\`, without \`:\` before it.`
          : "An attribute is written `name value;`, without `:` between both.",
      );
    if (text === "extends" && isKeyword(this.token))
      this.fail(
        "syntax/expected",
        "Expected the name of a component before `extends`",
        "It reads `name extends Prototype { … }`.",
      );
    if (isKeyword(this.token))
      this.fail(
        "syntax/expected",
        `\`${text}\` is a word of the language and cannot be a name`,
        `Write it as a string: "${text}".`,
      );
    this.fail(
      "syntax/expected",
      `Expected the name of an attribute, found ${shown(this.token)}`,
      text === "{" && this.token.kind === "symbol"
        ? "A component is written `name extends Prototype { … }`, with no `;` before the `{`."
        : "An attribute is written `name value;`.",
    );
  }

  /** What follows `extends`. */
  protected override prototypes(): readonly Prototype[] {
    const parts: Prototype[] = [];
    if (this.is(";")) return parts;
    for (;;) {
      if (this.accept("NULL")) {
        if (!this.accept(",") && !this.is("{")) return parts;
      } else if (this.is("{")) {
        parts.push(this.block());
        if (!this.accept(",")) return parts;
      } else if (
        this.token.kind === "word" &&
        !(isKeyword(this.token) && !/^(ROOT|PARENT|ATTRIB|HERE|THIS)$/.test(this.token.text))
      ) {
        parts.push({ kind: "reference", reference: this.reference() });
        if (!this.accept(",") && !this.is("{")) return parts;
      } else
        this.fail(
          "syntax/expected",
          `Expected the name of a component or \`{\` after \`extends\`, found ${shown(this.token)}`,
          "It reads `name extends Prototype { … }`.",
        );
    }
  }

  protected override block(): Prototype {
    const begin = this.at;
    const opening = this.token.position;
    this.at++;
    const attributes: AttributeSyntax[] = [];
    this.#attributes(attributes);
    if (this.is("}")) this.#compareIndents(begin);
    if (!this.accept("}") && !this.#unclosedTold && !this.diagnostics.full) {
      this.#unclosedTold = true;
      // What is open has swallowed what closes the block: one fault, not two.
      if (["syntax/unclosed-string", "syntax/unclosed-comment"].some((code) => this.diagnostics.has(code)))
        return { kind: "block", attributes };
      this.report("syntax/unbalanced", "This `{` is never closed", this.#suspect ?? opening, this.#closing());
    }
    return { kind: "block", attributes };
  }

  #closing(): string {
    const known = this.#suspectEnd;
    return known === null
      ? "Add the missing `}`."
      : `Add the missing \`}\`: that of line ${known} would close it, and stands too far to the left.`;
  }

  /** At the `}` of a component whose `{` is token `begin`. */
  #compareIndents(begin: number): void {
    const { line, column } = this.token.position;
    if (this.#suspect || this.tokens[this.at - 1]?.position.line === line) return;
    let first = begin;
    while (this.tokens[first - 1]?.position.line === this.tokens[begin]?.position.line) first--;
    const opened = this.tokens[first]?.position;
    if (!opened || column >= opened.column) return;
    this.#suspect = this.tokens[begin]?.position ?? null;
    this.#suspectEnd = line;
  }
}
