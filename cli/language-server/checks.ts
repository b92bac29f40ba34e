import { dirname, join } from "node:path";
import { type Connection, DiagnosticSeverity, type Diagnostic as LspDiagnostic } from "vscode-languageserver/node";
import type { Diagnostic, Position } from "../../model/diagnostics/diagnostic.ts";
import { lineStartsOf, offsetOf } from "../../model/editor/sources/source.ts";
import { Checker } from "./checker.ts";
import type { Documents } from "./documents.ts";
import { languageOf } from "./languages.ts";

/** Quiet time after a change before the texts are checked. */
const quietMs = 150;

/**
 * Checks bundles as `cells spec check` does, a moment after the last change, and tells the client what is wrong in each
 * of their files. What has changed since a check began is checked again, and the older outcome dropped.
 */
export class Checks {
  readonly #documents: Documents;
  readonly #connection: Connection;
  readonly #checker = new Checker();
  /** Main files that are being checked. */
  readonly #running = new Set<string>();
  /** Those of them that have changed since. */
  readonly #again = new Set<string>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #stopped = false;
  readonly #generations = new Map<string, number>();
  /** What each main file's check found, by path of the file at fault. */
  readonly #found = new Map<string, ReadonlyMap<string, readonly LspDiagnostic[]>>();
  /** Of the last check of each main file, for hovers. */
  readonly #faults = new Map<string, readonly Diagnostic[]>();

  constructor(documents: Documents, connection: Connection) {
    this.#documents = documents;
    this.#connection = connection;
  }

  faultsOf(main: string): readonly Diagnostic[] {
    return this.#faults.get(main) ?? [];
  }

  /** All that an open text is part of is checked soon, and what no open text is part of any more is forgotten. */
  schedule(): void {
    const wanted = new Set<string>();
    for (const [path, document] of this.#documents.opened)
      if (languageOf(path, document.getText()))
        for (const main of this.#documents.sources.mains(path)) wanted.add(main);
    for (const main of new Set([...this.#found.keys(), ...this.#timers.keys()]))
      if (!wanted.has(main)) this.#forget(main);
    for (const main of wanted) {
      this.#generations.set(main, (this.#generations.get(main) ?? 0) + 1);
      clearTimeout(this.#timers.get(main));
      this.#start(main);
    }
  }
  #start(main: string): void {
    const timer = setTimeout(() => {
      // One at a time of each: what comes faster than it can be checked does not pile up.
      this.#timers.delete(main);
      if (this.#running.has(main)) {
        this.#again.add(main);
        return;
      }
      this.#check(main).catch((error: unknown) => {
        if (!this.#stopped) this.#connection.console.error(String(error));
      });
    }, quietMs);
    this.#timers.set(main, timer);
  }
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#stopped = true;
    this.#checker.stop();
  }

  #forget(main: string): void {
    clearTimeout(this.#timers.get(main));
    this.#timers.delete(main);
    this.#generations.delete(main);
    this.#faults.delete(main);
    const files = this.#found.get(main)?.keys() ?? [];
    this.#found.delete(main);
    for (const path of files) this.#publish(path);
  }

  async #check(main: string): Promise<void> {
    const generation = this.#generations.get(main);
    const bundle = this.#documents.sources.bundle(main);
    this.#running.add(main);
    const faults = await this.#checker.check(bundle).finally(() => {
      this.#running.delete(main);
      if (this.#again.delete(main) && this.#generations.has(main)) this.#start(main);
    });
    // What was changed meanwhile is checked again.
    if (this.#generations.get(main) !== generation) return;
    this.#faults.set(main, faults);
    const directory = dirname(main);
    const found = new Map<string, LspDiagnostic[]>();
    for (const name of Object.keys(bundle.files)) found.set(join(directory, name), []);
    for (const fault of faults) {
      const inBundle = fault.position && Object.hasOwn(bundle.files, fault.position.file);
      const path = fault.position && inBundle ? join(directory, fault.position.file) : main;
      found.get(path)?.push(this.#shown(fault, inBundle ? fault.position : undefined, { path, directory }));
    }
    const before = this.#found.get(main)?.keys() ?? [];
    this.#found.set(main, found);
    for (const path of new Set([...before, ...found.keys()])) this.#publish(path);
  }

  #shown(
    { code, message, hint, related = [] }: Diagnostic,
    position: Position | undefined,
    { path, directory }: { readonly path: string; readonly directory: string },
  ): LspDiagnostic {
    // A library of templates has no cell, and is no mistake.
    const severity = code === "schema/no-cell" ? DiagnosticSeverity.Information : DiagnosticSeverity.Error;
    const relatedInformation = related.map((each) => {
      const at = join(directory, each.position.file);
      return {
        message: each.message,
        location: { uri: this.#documents.uriOf(at), range: this.#range(at, each.position) },
      };
    });
    return {
      code,
      severity,
      source: "cells",
      message: hint === undefined ? message : `${message}\n${hint}`,
      range: this.#range(path, position),
      ...(relatedInformation.length > 0 ? { relatedInformation } : {}),
    };
  }
  #range(path: string, position: Position | undefined) {
    const document = this.#documents.textDocument(path);
    const text = document.getText();
    const start = position ? offsetOf({ text, lineStarts: lineStartsOf(text) }, position) : 0;
    const end = Math.min(start + (position?.length ?? 0), text.length);
    return { start: document.positionAt(start), end: document.positionAt(end) };
  }

  /** What all checks together have found in a file, each fault once. */
  #publish(path: string): void {
    const all = [...this.#found.values()].flatMap((found) => found.get(path) ?? []);
    const diagnostics = [
      ...new Map(all.map((each) => [JSON.stringify([each.code, each.range, each.message]), each])).values(),
    ];
    const version = this.#documents.versionOf(path);
    const uri = this.#documents.uriOf(path);
    void this.#connection.sendDiagnostics({ uri, diagnostics, ...(version === null ? {} : { version }) });
  }
}
