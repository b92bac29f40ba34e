import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import type { Expression, ForeignPart, Operator, Prototype, Reference, ReferencePart, Scalar } from "./syntax.ts";
import type { Token } from "./tokens.ts";

/** Thrown to leave what cannot be parsed; the fault is already reported. Caught where an attribute list goes on. */
export const abandoned = Symbol("abandoned");

const anyNumber: ReadonlySet<string> = new Set(["+", "*", "++", "<>", "&&", "||"]);
const exactlyTwo: ReadonlySet<string> = new Set(["-", "/", "%", "==", "!=", ">=", "<=", "<", ">", "->", "x|"]);
const reserved: ReadonlySet<string> = new Set([
  "extends",
  "ROOT",
  "PARENT",
  "ATTRIB",
  "HERE",
  "THIS",
  "HOST",
  "PROCESS",
  "PROPERTY",
  "IPROPERTY",
  "CONSTANT",
  "ENVPROPERTY",
  "IENVPROPERTY",
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
]);
const foreign: ReadonlySet<string> = new Set<ForeignPart>([
  ...(["HOST", "PROPERTY", "IPROPERTY", "ENVPROPERTY", "IENVPROPERTY", "CONSTANT"] as const),
]);

export const isKeyword = (token: Token): boolean => token.kind === "word" && reserved.has(token.text);
/** The word of the language that a name is but for its case, such as `LAZY` for `lazy`. */
export const wordMeant = (name: string): string | undefined =>
  [...reserved].find((word) => word.toLowerCase() === name.toLowerCase());
/** A token as a message names it. */
export function shown(token: Token): string {
  if (token.kind === "end") return "the end of the file";
  if (token.kind === "string")
    return `the string "${token.text.length > 30 ? `${token.text.slice(0, 30)}…` : token.text}"`;
  return `\`${token.text}\``;
}
const isOperator = ({ kind, text }: Token): boolean =>
  kind === "symbol" && (anyNumber.has(text) || exactlyTwo.has(text));
const scalar = (value: Scalar, position: Position): Expression => ({ kind: "scalar", scalar: value, position });

/** Parses values; `SmartFrogParser` adds components and files. SmartFrog has no operator precedence at all. */
export abstract class ExpressionParser {
  protected readonly tokens: readonly Token[];
  protected readonly diagnostics: Diagnostics;
  protected at = 0;
  #nesting = 0;

  constructor(tokens: readonly Token[], diagnostics: Diagnostics) {
    this.tokens = tokens;
    this.diagnostics = diagnostics;
  }

  protected abstract prototypes(): readonly Prototype[];
  protected abstract block(): Prototype;

  protected get token(): Token {
    const token = this.tokens[Math.min(this.at, this.tokens.length - 1)];
    if (!token) throw new Error("a token sequence always has an end");
    return token;
  }
  /** The same, where the compiler would still hold it for the token before. */
  protected get next(): Token {
    return this.token;
  }
  protected is(text: string): boolean {
    const { kind } = this.token;
    return (kind === "symbol" || kind === "word") && this.token.text === text;
  }
  protected accept(text: string): boolean {
    const found = this.is(text);
    if (found) this.at++;
    return found;
  }
  protected expect(text: string, where: string, hint?: string): void {
    if (!this.accept(text))
      this.fail("syntax/expected", `Expected \`${text}\` ${where}, found ${shown(this.token)}`, hint);
  }
  protected report(code: string, message: string, position: Position, hint?: string): void {
    this.diagnostics.add({ code, message, position, ...(hint === undefined ? {} : { hint }) });
  }
  protected fail(code: string, message: string, hint?: string): never {
    // What is open has swallowed the rest of the file: one fault, not two.
    const swallowed = this.token.kind === "end" && this.diagnostics.has("syntax/unclosed-string");
    if (!swallowed) this.report(code, message, this.token.position, hint);
    throw abandoned;
  }
  /** Runs `parse` one level deeper. */
  protected nested<T>(parse: () => T): T {
    if (this.#nesting >= limits.nesting)
      this.fail(
        "limit/nesting",
        `This is nested deeper than ${limits.nesting} levels`,
        "Use fewer levels of components.",
      );
    this.#nesting++;
    try {
      return parse();
    } finally {
      this.#nesting--;
    }
  }

  protected expression(): Expression {
    const { position, kind, text, number } = this.token;
    if (kind === "string" || kind === "bytes") {
      this.at++;
      return scalar({ kind, value: text }, position);
    }
    if (number) {
      this.at++;
      return scalar({ kind: "number", ...number }, position);
    }
    if (this.is("[")) return this.nested(() => this.#vector("]", () => this.expression()));
    if (this.is("[|")) return this.nested(() => this.#literalVector());
    if (this.is("(")) return this.nested(() => this.#parenthesis());
    if (kind === "word") return this.#wordExpression();
    return this.fail(
      "syntax/expected",
      `Expected a value, found ${shown(this.token)}`,
      "A value is a string, number, `true`, `false`, reference, vector `[…]`, or an expression in parentheses.",
    );
  }

  #wordExpression(): Expression {
    const { position, text } = this.token;
    if (text === "true" || text === "false") {
      this.at++;
      return scalar({ kind: "boolean", value: text === "true" }, position);
    }
    if (text === "NULL") {
      this.at++;
      return scalar({ kind: "null" }, position);
    }
    if (text === "TBD") {
      this.at++;
      return { kind: "tbd", position };
    }
    if (text === "IF") return this.nested(() => this.#if());
    if (text === "SWITCH") return this.nested(() => this.#switch());
    if (text === "extends")
      return this.fail(
        "syntax/expected",
        "A component cannot stand inside an expression",
        "Give it a name of its own, and refer to that.",
      );
    if (text === "APPLY" || text === "ASSERT") return this.nested(() => this.#apply("eager"));
    return this.#reference();
  }

  /** At `extends`. */
  protected component(): Expression {
    const { position } = this.token;
    this.at++;
    if (this.is(":")) {
      const where = this.token.position;
      this.at++;
      const { text } = this.token;
      this.at++;
      const message = `\`extends:${text}\` names a Java class that is to hold the component, and there is no Java here`;
      this.report("syntax/needs-java", message, where, `Write \`extends\` without \`:${text}\`.`);
    }
    const data = this.accept("DATA") || this.accept("LAZY");
    return { kind: "component", prototypes: this.nested(() => this.prototypes()), data, position };
  }

  /** At `APPLY` or `ASSERT`. */
  #apply(when: "eager" | "LAZY" | "DATA"): Expression {
    const { position, text } = this.token;
    const form = text === "ASSERT" ? "ASSERT" : "APPLY";
    this.at++;
    if (!this.is("{"))
      this.fail(
        "syntax/expected",
        `Expected \`{\` after \`${form}\`, found ${shown(this.token)}`,
        `It reads \`${form} { sfFunctionClass "…"; … }\`.`,
      );
    return { kind: "apply", form, when, prototypes: [this.block()], position };
  }

  #vector(close: "]" | "|]", item: () => Expression): Expression {
    const { position } = this.token;
    this.at++;
    const items: Expression[] = [];
    const literal = close === "|]";
    if (this.accept(close)) return { kind: "vector", items, literal, position };
    do items.push(item());
    while (this.accept(","));
    this.expect(close, "after an item of a vector", "Items are separated by `,`, with none after the last.");
    return { kind: "vector", items, literal, position };
  }
  #literalVector(): Expression {
    return this.#vector("|]", () => {
      const { position } = this.token;
      const value = this.expression();
      if (!isLiteral(value))
        this.report("syntax/literal", "`[|…|]` holds literals only", position, "Use `[…]` for expressions.");
      return value;
    });
  }

  #parenthesis(): Expression {
    const { position } = this.token;
    this.at++;
    if (this.accept("!")) {
      const operand = this.expression();
      this.expect(")", "after the operand of `!`", "`!` has parentheses of its own: `((!a) && b)`.");
      return { kind: "operation", operator: "!", operands: [operand], position };
    }
    const first = this.expression();
    if (this.accept(")")) return first;
    const operator = this.token;
    if (!isOperator(operator))
      this.fail(
        "syntax/expected",
        `Expected an operator or \`)\`, found ${shown(operator)}`,
        operator.kind === "number" ? "Put spaces around `-`: `(a - 1)`." : "Each `(` has its `)`.",
      );
    const operands = [first];
    while (this.accept(operator.text)) {
      operands.push(this.expression());
      if (exactlyTwo.has(operator.text)) break;
    }
    this.expect(
      ")",
      "after the expression",
      isOperator(this.token)
        ? "There is no precedence: put parentheses around each operation, as in `((a + b) - c)`."
        : "Each `(` has its `)`.",
    );
    return { kind: "operation", operator: operator.text as Operator, operands, position };
  }

  #if(): Expression {
    const { position } = this.token;
    this.at++;
    const condition = this.expression();
    const whole = "The whole reads `IF (condition) THEN value ELSE value FI`.";
    this.expect("THEN", "after the condition of `IF`", whole);
    const value = this.expression();
    this.expect("ELSE", "after the value of `THEN`", whole);
    const otherwise = this.expression();
    this.expect("FI", "at the end of `IF … THEN … ELSE …`", whole);
    return { kind: "choice", cases: [{ condition, value }], otherwise, position };
  }
  #switch(): Expression {
    const { position } = this.token;
    this.at++;
    const cases: { condition: Expression; value: Expression }[] = [];
    while (this.accept("IF")) {
      const condition = this.expression();
      this.expect("THEN", "after the condition of `IF`");
      cases.push({ condition, value: this.expression() });
    }
    this.expect("ENDSWITCH", "at the end of `SWITCH`", "A case is written `IF (condition) THEN value`.");
    return { kind: "choice", cases, otherwise: null, position };
  }

  #reference(): Expression {
    const { position } = this.token;
    let when: "eager" | "LAZY" | "DATA" = "eager";
    let otherwise: Expression | null = null;
    for (;;) {
      if (this.is("LAZY") || this.is("DATA")) {
        if (when !== "eager")
          this.fail("syntax/expected", `\`${when}\` stands there already`, "Write one of `LAZY` and `DATA`, once.");
        when = this.is("LAZY") ? "LAZY" : "DATA";
        this.at++;
        if (this.is("extends"))
          this.fail("syntax/expected", `\`${when}\` stands behind \`extends\``, `Write \`extends ${when} …\`.`);
        if (this.is("APPLY") || this.is("ASSERT")) return this.nested(() => this.#apply(when));
      } else if (this.is("OPTIONAL")) {
        if (otherwise) this.fail("syntax/expected", "`OPTIONAL` stands there already", "Write it once.");
        this.at++;
        otherwise = scalar({ kind: "null" }, position);
        if (this.accept("(")) {
          const at = this.token.position;
          otherwise = this.nested(() => this.expression());
          if (!isLiteral(otherwise))
            this.report(
              "syntax/literal",
              "The default of `OPTIONAL` must be a literal",
              at,
              'Write it as in `OPTIONAL("none") a`.',
            );
          this.expect(")", "after the default of `OPTIONAL`");
        }
      } else return { kind: "reference", reference: this.reference(), when, otherwise, position };
    }
  }

  protected reference(): Reference {
    const start = this.token.position;
    const parts: ReferencePart[] = [];
    do parts.push(this.#part(parts.length === 0));
    while (this.accept(":"));
    const end = this.tokens[this.at - 1]?.position ?? start;
    const length = end.line === start.line ? end.column + end.length - start.column : start.length;
    return { parts, position: { ...start, length } };
  }

  #part(first: boolean): ReferencePart {
    const token = this.token;
    if (token.kind === "string" && !first) {
      this.at++;
      return { kind: "HERE", name: token.text };
    }
    if (token.kind === "word") {
      if (foreign.has(token.text)) return this.#foreignPart(token.text as ForeignPart);
      if (token.text === "ROOT" || token.text === "PARENT" || token.text === "THIS" || token.text === "PROCESS") {
        this.at++;
        return { kind: token.text };
      }
      const explicit = token.text === "ATTRIB" || token.text === "HERE" ? token.text : null;
      if (explicit) this.at++;
      const name = this.token;
      if ((name.kind === "word" && !isKeyword(name)) || (name.kind === "string" && explicit)) {
        this.at++;
        return { kind: explicit ?? (first ? "ATTRIB" : "HERE"), name: name.text };
      }
    }
    return this.fail(
      "syntax/expected",
      `Expected a name, found ${shown(this.token)}`,
      "References read like `a`, `a:b` or `PARENT:a`.",
    );
  }

  #foreignPart(kind: ForeignPart): ReferencePart {
    this.at++;
    const { kind: token, text } = this.token;
    if (token !== "string" && (token !== "word" || isKeyword(this.token)))
      this.fail("syntax/expected", `Expected a name after \`${kind}\`, found ${shown(this.token)}`);
    this.at++;
    return { kind, name: text };
  }
}

/** What may stand in `[|…|]` and as a default. */
function isLiteral(expression: Expression): boolean {
  if (expression.kind === "vector") return expression.literal;
  if (expression.kind === "reference" || expression.kind === "apply") return expression.when === "DATA";
  return expression.kind === "scalar" || expression.kind === "tbd";
}
