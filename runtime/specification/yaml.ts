import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type ParsedNode,
  Parser,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { type Evaluated, type Place, pointerPart } from "../../model/cell/evaluated.ts";
import type { Diagnostic, Position } from "../../model/diagnostics/diagnostic.ts";
import { Diagnostics } from "../../model/diagnostics/diagnostics.ts";
import { isObject, type Json, type JsonObject } from "../../model/json/json.ts";
import { limits } from "../../model/limits.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import {
  collectionName,
  controlCharacter,
  faultOf,
  missingSpace,
  nameWithoutSpace,
  tagFault,
  wrongEscape,
} from "./yaml-faults.ts";

/*
 * YAML 1.2 with its core schema: what JSON can say, written with less. The library reads the text into nodes; what they
 * mean is worked out here, so that each name and value keeps its place, a name given twice is told however many there are
 * (the library compares each with each), and what aliases copy is counted while it is copied.
 *
 * A text costs the library far more than it costs JSON's reader, and nested ones cost it stack. So the tokens are counted,
 * and the nesting is looked at, before any node is made.
 */

/** Thrown where nothing further can be learnt: at a limit, or when enough has been told. */
const stopped = Symbol("stopped");

/** The document of a YAML text with its places, or all of its faults. */
export function readYaml(file: string, text: string): Result<Evaluated, readonly Diagnostic[]> {
  const diagnostics = new Diagnostics();
  // The library makes an error for each slip, of which a text can have a hundred thousand; nobody looks at their stacks.
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    const evaluated = new YamlReader(file, text, diagnostics).read();
    return diagnostics.none ? ok(evaluated) : fail(diagnostics.list);
  } catch (thrown) {
    if (thrown !== stopped) throw thrown;
    return fail(diagnostics.list);
  } finally {
    Error.stackTraceLimit = before;
  }
}

type Node = ParsedNode | null;

class YamlReader {
  readonly #file: string;
  readonly #text: string;
  readonly #diagnostics: Diagnostics;
  readonly #lineStarts: number[] = [0];
  readonly #places: Record<string, Place> = {};
  readonly #anchors = new Map<string, ParsedNode>();
  /** Nodes that are being read: an alias to one of them has no end. */
  readonly #open = new Set<ParsedNode>();
  /** Lines that the library has stumbled over: what else is found there most likely follows from that. */
  readonly #stumbled = new Set<number>();
  #lastQuote = 0;
  #aliased = 0;
  /** Inside of what an alias copies. */
  #copying = 0;

  constructor(file: string, text: string, diagnostics: Diagnostics) {
    this.#file = file;
    this.#text = text;
    this.#diagnostics = diagnostics;
  }

  read(): Evaluated {
    if (this.#text.length > limits.yamlLength)
      this.#stop(
        "limit/text",
        `A YAML text may have ${limits.yamlLength / 1024 / 1024} MiB`,
        "Write the cell in SmartFrog with templates, or as JSON.",
      );
    for (let at = this.#text.indexOf("\n"); at >= 0; at = this.#text.indexOf("\n", at + 1))
      this.#lineStarts.push(at + 1);
    const control = controlCharacter.exec(this.#text);
    if (control)
      this.#stop(
        "yaml/character",
        `This is the control character U+${control[0].charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`,
        "Remove it; within a text in double quotes it is written `\\x` and two digits.",
        this.#position(control.index, control.index + 1),
      );
    const document = this.#compose();
    this.#libraryFaults(document);
    const root = document.contents;
    if (!isMap(root)) {
      if (this.#diagnostics.none) this.#noMapping(root);
      throw stopped;
    }
    const read = this.#value(root, "", 0);
    return { document: isObject(read) ? read : {}, files: [this.#file], places: this.#places };
  }

  /** The text's one document. */
  #compose(): Document.Parsed {
    const parser = new Parser();
    const tokens = [];
    let count = 0;
    let before = "";
    for (const lexeme of new Lexer().lex(this.#text)) {
      // An alias, and a colon without a name, cost the library half as much again as what else is made of two signs.
      count += lexeme[0] === "*" || (lexeme === ":" && before === "\n") ? 2 : 1;
      before = lexeme;
      if (count > limits.yamlTokens)
        this.#stop(
          "limit/tokens",
          `This text has more than ${limits.yamlTokens} names, values, signs and line ends`,
          "Split the cell into several, or write it in SmartFrog with templates, or as JSON.",
        );
      if (lexeme[0] === '"' || lexeme[0] === "'") this.#quoted(lexeme, parser.offset);
      for (const token of parser.next(lexeme)) tokens.push(token);
      // A document, its collections, and a scalar that is being built.
      if (parser.stack.length > limits.nesting + 2)
        this.#stop(
          "limit/nesting",
          `This is nested deeper than ${limits.nesting} levels`,
          "Refer to things by their paths instead of nesting them.",
          this.#position(parser.offset, parser.offset + 1),
        );
    }
    for (const token of parser.end()) tokens.push(token);
    const composer = new Composer({
      version: "1.2",
      schema: "core",
      merge: false,
      resolveKnownTags: false,
      uniqueKeys: false,
      logLevel: "silent",
    });
    // What stands in none of the documents is told as an error of the one before; of many, the first say enough.
    let left = limits.diagnostics;
    const some = tokens.filter(({ type }) => type !== "error" || --left >= 0);
    const first: Document.Parsed[] = [];
    for (const document of composer.compose(some, true, this.#text.length)) {
      first.push(document as Document.Parsed);
      if (first.length === 2) break;
    }
    const [only, second] = first;
    if (second) {
      const [, token] = tokens.filter(({ type }) => type === "document");
      const at = token && "offset" in token ? token.offset : second.range[0];
      this.#stop(
        "yaml/documents",
        "A second document begins here",
        "A specification is one document: remove the `---`, or make a file of each.",
        this.#position(at, at + 3),
      );
    }
    if (only === undefined) throw new Error("the composer was told to give an empty document where there is none");
    return only;
  }

  /** A text in quotes at `offset`. The library makes an error of each wrong escape, so those of a hostile text are told here. */
  #quoted(lexeme: string, offset: number): void {
    this.#lastQuote = offset;
    if (lexeme[0] !== '"') return;
    let count = 0;
    for (const { index } of lexeme.matchAll(/\\([\s\S])/g)) {
      if (/[0abtnvfre "/\\N_LPxuU\t\r\n]/.test(lexeme[index + 1] ?? "") || ++count < limits.diagnostics) continue;
      const fault = wrongEscape(lexeme.slice(index, index + 2));
      this.#stop(fault.code, fault.message, fault.hint, this.#position(offset + index, offset + index + 2));
    }
  }

  #libraryFaults({ errors, warnings, directives }: Document.Parsed): void {
    for (const error of [...errors, ...warnings].sort((a, b) => a.pos[0] - b.pos[0])) {
      const fault = faultOf(error, this.#text, this.#lastQuote);
      const from = fault.at ?? error.pos[0];
      const position = this.#position(from, fault.at === undefined ? error.pos[1] : from + 1);
      this.#report(fault.code, fault.message, fault.hint, position);
      this.#stumbled.add(position.line);
    }
    if (directives.yaml.explicit && directives.yaml.version !== "1.2")
      this.#report(
        "yaml/directive",
        `This text says that it is YAML ${directives.yaml.version}, in which \`yes\` and \`on\` are no texts`,
        "Leave the line out: YAML 1.2 is read.",
        this.#position(0, 1),
      );
  }
  #noMapping(root: Node): never {
    const empty = root === null || (isScalar(root) && root.source === "");
    const [from] = root?.range ?? [0];
    const name = isScalar(root) ? nameWithoutSpace(String(root.source)) : undefined;
    if (name !== undefined) {
      const { code, message, hint } = missingSpace(name);
      this.#stop(code, message, hint, this.#position(from, from + name.length));
    }
    this.#stop(
      "yaml/mapping",
      empty ? "There is nothing in this text" : "A specification is a mapping of names to values",
      "It begins like `shop:`, with `x.type: Cell` indented on the next line.",
      this.#position(from, from + 1),
    );
  }

  #line(offset: number): number {
    let [low, high] = [0, this.#lineStarts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  /** Line, column and length; what spans lines is shown by its first sign. */
  #span(from: number, to: number): readonly [line: number, column: number, length: number] {
    const line = this.#line(from);
    const next = this.#lineStarts[line + 1] ?? Number.POSITIVE_INFINITY;
    return [line + 1, from - (this.#lineStarts[line] ?? 0) + 1, to < next ? Math.max(1, to - from) : 1];
  }
  #position(from: number, to: number): Position {
    const [line, column, length] = this.#span(from, to);
    return { file: this.#file, line, column, length };
  }
  #of(node: ParsedNode): Position {
    return this.#position(node.range[0], node.range[1]);
  }
  #report(code: string, message: string, hint?: string, position?: Position): void {
    if (position && this.#stumbled.has(position.line)) return;
    this.#diagnostics.add({
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      ...(position === undefined ? {} : { position }),
    });
    if (this.#diagnostics.full) throw stopped;
  }
  #stop(code: string, message: string, hint?: string, position?: Position): never {
    this.#report(code, message, hint, position);
    throw stopped;
  }

  #value(node: Node, pointer: string, depth: number): Json {
    if (node === null) return null;
    if (!isMap(node)) this.#count(node);
    if (isAlias(node)) return this.#alias(node.source, node, (target) => this.#value(target, pointer, depth), null);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (node.tag !== undefined) this.#tag(node.tag, node);
    if (isScalar(node)) return this.#scalar(node);
    if (depth >= limits.nesting)
      this.#stop("limit/nesting", `This is nested deeper than ${limits.nesting} levels`, undefined, this.#of(node));
    this.#open.add(node);
    const read = isMap(node)
      ? this.#map(node, pointer, depth + 1)
      : node.items.map((item, index) => this.#value(item as Node, `${pointer}/${index}`, depth + 1));
    this.#open.delete(node);
    return read;
  }
  /** What is copied costs as much as what is written, and costs its author nothing. */
  #count(node: ParsedNode): void {
    if (this.#copying > 0 && ++this.#aliased > limits.aliased)
      this.#stop(
        "limit/attributes",
        `Aliases and merge keys copy more than ${limits.aliased} attributes`,
        "Refer to values with `<ref:/path>`, which copies nothing, or write the cell in SmartFrog with templates.",
        this.#of(node),
      );
  }

  /** What an alias stands for, read again with `read`: each copy has its own path, and the places of what it copies. */
  #alias<T>(name: string, node: ParsedNode, read: (target: ParsedNode) => T, otherwise: T): T {
    const target = this.#anchors.get(name);
    if (target === undefined || this.#open.has(target)) {
      const circular = target !== undefined;
      this.#report(
        "yaml/alias",
        circular
          ? `\`*${name}\` stands inside of what it repeats`
          : `There is no anchor \`&${name}\` before this place`,
        circular ? "A value cannot contain itself." : `Write \`&${name}\` before the value that is to be repeated.`,
        this.#of(node),
      );
      return otherwise;
    }
    this.#copying++;
    const value = read(target);
    this.#copying--;
    return value;
  }

  #tag(tag: string, node: ParsedNode): void {
    if (tag === "!" || /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/.test(tag)) return;
    const fault = tagFault(tag);
    this.#report(fault.code, fault.message, fault.hint, this.#of(node));
  }

  #scalar(node: Scalar.Parsed): Json {
    const { value, source } = node;
    if (typeof value === "string") {
      const name = node.type === "PLAIN" && value.startsWith("x.") ? nameWithoutSpace(value) : undefined;
      const missing = name === undefined ? undefined : missingSpace(name);
      if (missing) this.#report(missing.code, missing.message, missing.hint, this.#of(node));
      return value;
    }
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value !== "number") return null;
    if (!Number.isFinite(value)) {
      const digits = /[0-9]/.test(source);
      const shown = source.slice(0, 40);
      this.#report(
        "yaml/number",
        digits ? `${shown} is too large a number` : `\`${shown}\` is no number that a cell can hold`,
        "Put it into double quotes if it is a text.",
        this.#of(node),
      );
    } else if (!Number.isSafeInteger(value) && /^(?:[-+]?[0-9]+|0[ox][0-9a-fA-F]+)$/.test(source))
      this.#report(
        "yaml/number",
        `${source.length > 40 ? `${source.slice(0, 40)}…` : source} is beyond 2^53, where whole numbers are no longer exact`,
        "Put it into double quotes if it is a text, such as an identifier.",
        this.#of(node),
      );
    return value;
  }

  #map(node: YAMLMap.Parsed, pointer: string, depth: number): JsonObject {
    const read = new Map<string, Json>();
    this.#entries(node, read, pointer, depth, true);
    // Names such as `__proto__` become plain own ones.
    return Object.fromEntries(read);
  }

  /** Reads the attributes of a mapping into `into`; those that it has already are faults if they are its `own`. */
  #entries(node: YAMLMap.Parsed, into: Map<string, Json>, pointer: string, depth: number, own: boolean): void {
    const merges: ParsedNode[] = [];
    for (const { key, value } of node.items) {
      this.#count(key);
      if (isScalar(key) && key.type === "PLAIN" && key.source === "<<" && value !== null) {
        merges.push(value);
        continue;
      }
      const name = this.#name(key, value);
      if (name === null) {
        this.#value(value, pointer, depth);
        continue;
      }
      const known = into.has(name);
      if (known && !own) continue;
      if (known)
        this.#report(
          "yaml/duplicate",
          `\`${name}\` is given twice in this mapping`,
          "Keep one of the two.",
          this.#of(key),
        );
      const here = `${pointer}${pointerPart(name)}`;
      const [from, to] = value?.range ?? key.range;
      this.#places[here] = [0, ...this.#span(key.range[0], key.range[1]), ...this.#span(from, to)];
      into.set(name, this.#value(value, here, depth));
    }
    for (const value of merges) this.#merge(into, value, pointer, depth);
  }

  /** What `<<` brings: the mapping's own names win, then the mappings in their order. */
  #merge(into: Map<string, Json>, value: ParsedNode, pointer: string, depth: number): void {
    this.#count(value);
    if (isAlias(value))
      this.#alias(value.source, value, (target) => this.#merge(into, target, pointer, depth), undefined);
    else if (isMap(value)) {
      this.#open.add(value);
      this.#entries(value, into, pointer, depth, false);
      this.#open.delete(value);
    } else if (isSeq(value) && !value.items.some((item) => isSeq(item)))
      for (const item of value.items) this.#merge(into, item as ParsedNode, pointer, depth);
    else
      this.#report(
        "yaml/alias",
        "`<<` merges mappings, and this is none",
        "Write `<<: *name`, or `<<: [*one, *two]`; a name `<<` stands in quotes.",
        this.#of(value),
      );
  }

  /** The name that a key says, as it is written: `on`, `yes` and `1` are names like any other. Null if it is none. */
  #name(key: ParsedNode, value: Node): string | null {
    const position = this.#of(key);
    if (!isScalar(key)) {
      const { code, message, hint } = collectionName;
      this.#report(code, isAlias(key) ? "A name cannot be repeated by an alias" : message, hint, position);
      return null;
    }
    if (key.tag !== undefined) this.#tag(key.tag, key);
    if (key.anchor !== undefined) this.#anchors.set(key.anchor, key);
    const plain = key.type === "PLAIN";
    const name = plain ? (key.source ?? "") : String(key.value);
    if (plain && name === "") {
      this.#report("yaml/key", "There is no name before this colon", "An attribute reads `name: value`.", position);
      return null;
    }
    const missing = plain && value === null ? nameWithoutSpace(name) : undefined;
    if (missing !== undefined) {
      const { code, message, hint } = missingSpace(missing);
      this.#report(code, message, hint, position);
    }
    return name;
  }
}
