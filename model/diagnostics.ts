import type { Diagnostic } from "./diagnostic.ts";
import { limits } from "./limits.ts";

/**
 * Collects what is wrong with one specification. The same fault at the same place is kept once: a fault in a template
 * would otherwise be told again for each of its copies.
 */
export class Diagnostics {
  readonly #list: Diagnostic[] = [];
  readonly #seen = new Set<string>();

  add(diagnostic: Diagnostic): void {
    if (this.full) return;
    const { position } = diagnostic;
    const key = position
      ? `${diagnostic.code} ${position.file}:${position.line}:${position.column}`
      : `${diagnostic.code} ${diagnostic.path} ${diagnostic.message}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#list.push(diagnostic);
  }
  get full(): boolean {
    return this.#list.length >= limits.diagnostics;
  }
  get none(): boolean {
    return this.#list.length === 0;
  }
  get list(): readonly Diagnostic[] {
    return this.#list;
  }
}
