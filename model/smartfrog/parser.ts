import type { Bundle } from "../cell.ts";
import { didYouMean } from "../closest-name.ts";
import type { Position } from "../diagnostic.ts";
import type { Diagnostics } from "../diagnostics.ts";
import { limits } from "../limits.ts";
import { abandoned, ExpressionParser, isKeyword, shown } from "./expressions.ts";
import { tokenize } from "./lexer.ts";
import type { AttributeSyntax, Prototype } from "./syntax.ts";
import type { Token } from "./tokens.ts";

/**
 * Include and syntax phase: parses `bundle.main` with everything that it includes into one attribute list. All faults
 * of a file are reported in one go: a faulty attribute is left out and parsing goes on behind it.
 */
export function parseBundle(bundle: Bundle, diagnostics: Diagnostics): ParsedBundle {
  const parser = new BundleParser(bundle, diagnostics);
  const attributes = parser.file(bundle.main, [], null);
  return { attributes, standardIncludes: parser.standardIncludes };
}

export interface ParsedBundle {
  readonly attributes: readonly AttributeSyntax[];
  /** Paths of HP's own files that are included, which are no part of the bundle. */
  readonly standardIncludes: ReadonlySet<string>;
}

/** HP's own include files that are known here. */
export const isStandardInclude = (path: string): boolean =>
  path === "/org/smartfrog/functions.sf" || path === "/org/smartfrog/predicates.sf";

class BundleParser {
  readonly #bundle: Bundle;
  readonly #diagnostics: Diagnostics;
  readonly #parsed = new Map<string, readonly AttributeSyntax[]>();
  /** Attributes that all includes together have brought. */
  #included = 0;
  readonly standardIncludes = new Set<string>();

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
          `It holds ${Object.keys(this.#bundle.files).join(", ")}.`,
      );
    const tokens = tokenize(name, text, this.#diagnostics);
    const parser = new SmartFrogParser(tokens, this.#diagnostics, (path, at) =>
      this.#include(name, path, at, [...open, name]),
    );
    const attributes = parser.file();
    this.#parsed.set(name, attributes);
    return attributes;
  }

  #include(from: string, path: string, position: Position, open: readonly string[]): readonly AttributeSyntax[] {
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
    const included = this.file(parts.join("/"), open, position);
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

type Include = (path: string, position: Position) => readonly AttributeSyntax[];

class SmartFrogParser extends ExpressionParser {
  readonly #include: Include;
  /** A missing `}` is told once, for the innermost component. */
  #unclosedTold = false;

  constructor(tokens: readonly Token[], diagnostics: Diagnostics, include: Include) {
    super(tokens, diagnostics);
    this.#include = include;
  }

  file(): readonly AttributeSyntax[] {
    const attributes: AttributeSyntax[] = [];
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
  }

  #attribute(into: AttributeSyntax[]): void {
    if (this.accept(";")) return;
    if (this.token.kind === "include") {
      this.#includeDirective(into);
      return;
    }
    const tags = this.accept("[") ? this.#tags() : [];
    const namePosition = this.token.position;
    const name = this.#name();
    if (this.is("}") || this.token.kind === "end")
      this.fail("syntax/expected", `\`${name?.join(":") ?? "--"}\` has no value`, "Write a value, or `;` for none.");
    if (this.accept(";")) {
      into.push({
        ...{ name, namePosition, tags },
        value: { kind: "scalar", scalar: { kind: "null" }, position: namePosition },
      });
      return;
    }
    const value = this.is("extends") ? this.component() : this.expression();
    into.push({ name, namePosition, tags, value });
    const { kind }: Token = this.next;
    if (this.accept(";") || this.is("}") || this.is("--") || this.is("[") || kind === "include" || kind === "end")
      return;
    if ((kind === "word" && !isKeyword(this.token)) || (kind === "string" && value.kind === "component")) return;
    this.fail(
      "syntax/expected",
      `Expected \`;\` after the value of \`${name?.join(":") ?? "--"}\`, found ${shown(this.token)}`,
      "An expression of several parts stands in parentheses: `(1 + 2)`.",
    );
  }

  #includeDirective(into: AttributeSyntax[]): void {
    this.at++;
    const { kind, text, position } = this.token;
    if (kind !== "string")
      this.fail(
        "syntax/expected",
        `Expected a file name after \`#include\`, found ${shown(this.token)}`,
        'It reads `#include "file.sf"`.',
      );
    this.at++;
    for (const attribute of this.#include(text, position)) into.push(attribute);
  }

  /** Behind `[`. Words or strings, with or without commas. */
  #tags(): readonly string[] {
    const tags = new Set<string>();
    while (!this.accept("]")) {
      if (this.token.kind !== "string" && (this.token.kind !== "word" || isKeyword(this.token)))
        this.fail("syntax/expected", `Expected a tag or \`]\`, found ${shown(this.token)}`);
      tags.add(this.token.text);
      this.at++;
      this.accept(",");
    }
    return [...tags];
  }

  #name(): readonly string[] | null {
    if (this.accept("--")) return null;
    const name: string[] = [];
    do {
      const { kind, text } = this.token;
      if ((kind !== "word" && kind !== "string") || isKeyword(this.token))
        this.fail(
          "syntax/expected",
          isKeyword(this.token)
            ? `\`${text}\` is a word of the language and cannot be a name`
            : `Expected the name of an attribute, found ${shown(this.token)}`,
          isKeyword(this.token) ? `Write it as a string: "${text}".` : "An attribute is written `name value;`.",
        );
      name.push(text);
      this.at++;
    } while (this.accept(":"));
    return name;
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
    const opening = this.token.position;
    this.at++;
    const attributes: AttributeSyntax[] = [];
    this.#attributes(attributes);
    if (!this.accept("}") && !this.#unclosedTold && !this.diagnostics.full) {
      this.#unclosedTold = true;
      // An open string has swallowed what closes the block: one fault, not two.
      if (this.diagnostics.has("syntax/unclosed-string")) return { kind: "block", attributes };
      this.report("syntax/unbalanced", "This `{` is never closed", opening, "Add the missing `}`.");
    }
    return { kind: "block", attributes };
  }
}
