import { limits } from "../limits.ts";
import type { Diagnostic, Position } from "./diagnostic.ts";

/** Longest sentence, in characters: names in it are as long as their author made them. */
const longestSentence = 4000;
const shortened = (text: string): string =>
  text.length <= longestSentence ? text : `${text.slice(0, longestSentence / 2)} … ${text.slice(-longestSentence / 4)}`;
const placeKey = (code: string, { file, line, column }: Position): string => `${code} ${file}:${line}:${column}`;

/**
 * Collects what is wrong with one specification. The same fault at the same place is kept once: a fault in a template
 * would otherwise be told again for each of its copies.
 */
export class Diagnostics {
  readonly #list: Diagnostic[] = [];
  readonly #seen = new Set<string>();
  readonly #ignored: readonly string[];
  #passedOver = false;

  /** Faults with one of the codes `ignored` are not kept. */
  constructor(ignored: readonly string[] = []) {
    this.#ignored = ignored;
  }

  /** Whether a fault of that code would be kept: if not, its hint need not be found. */
  wants(code: string): boolean {
    return !this.full && !this.#ignored.includes(code);
  }

  /** Whether that fault was told of that place: if so, it need not be worked out again. */
  told(code: string, position: Position): boolean {
    return this.#seen.has(placeKey(code, position));
  }

  /** Whether a fault was not kept because of its code. */
  get passedOver(): boolean {
    return this.#passedOver;
  }

  add(diagnostic: Diagnostic): void {
    if (this.#ignored.includes(diagnostic.code)) this.#passedOver = true;
    if (!this.wants(diagnostic.code)) return;
    const { code, message, hint, path, position } = diagnostic;
    const key = position ? placeKey(code, position) : `${code} ${path} ${message}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#list.push({
      ...diagnostic,
      message: shortened(message),
      ...(hint === undefined ? {} : { hint: shortened(hint) }),
      ...(path === undefined ? {} : { path: shortened(path) }),
    });
  }
  has(code: string): boolean {
    return this.#list.some((diagnostic) => diagnostic.code === code);
  }
  get full(): boolean {
    return this.#list.length >= limits.diagnostics;
  }
  /** How many faults there are. */
  get size(): number {
    return this.#list.length;
  }
  get none(): boolean {
    return this.#list.length === 0;
  }
  /** File by file in the order in which faults met them, each from its top; what has no position comes last. */
  get list(): readonly Diagnostic[] {
    const files = new Map<string, number>();
    for (const { position } of this.#list)
      if (position && !files.has(position.file)) files.set(position.file, files.size);
    const key = ({ position }: Diagnostic): [number, number, number] =>
      position ? [files.get(position.file) ?? 0, position.line, position.column] : [files.size, 0, 0];
    return this.#list
      .map((diagnostic) => ({ diagnostic, key: key(diagnostic) }))
      .sort((a, b) => a.key[0] - b.key[0] || a.key[1] - b.key[1] || a.key[2] - b.key[2])
      .map(({ diagnostic }) => diagnostic);
  }
}
