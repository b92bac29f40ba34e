import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutants.ts";

/**
 * Which tests come to an expression at all? Only these can notice that it is another. One run of all tests with a call before
 * each expression that was drawn says so of all of them, with how long each test takes; each mutant is then shown to its own few,
 * and what runs for much longer than these did never ends.
 */
export interface Reached {
  /** The first stands for what files do when they are loaded. */
  readonly tests: readonly { readonly file: string; readonly name: string; readonly cpuMs: number }[];
  /** By the number of an expression: the tests that come to it, by their places in `tests`. */
  readonly by: readonly (readonly [number, readonly number[]])[];
}

/** Tests of one mutant. */
export interface Reaching {
  readonly files: readonly string[];
  /** Of the tests in them that come to it; null: all, since it is reached by loading them. */
  readonly names: readonly string[] | null;
  readonly cpuS: number;
}

/** The texts of the mutants' files in which each of their expressions says its number before it is evaluated. */
export function probed(mutants: readonly Mutant[], texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const pieces = new Map<string, { readonly at: number; readonly order: number; readonly text: string }[]>();
  for (const [number, { file, from, to }] of mutants.entries()) {
    const of = pieces.get(file) ?? [];
    pieces.set(file, of);
    // Where several begin together the longest is the outermost; where they end together, the one that began last is the innermost.
    of.push({ at: from, order: 1_000_000_000 - to, text: `(globalThis.cellsReached?.(${number}), ` });
    of.push({ at: to, order: -from - 1, text: ")" });
  }
  return new Map(
    [...pieces].map(([file, of]) => {
      const text = texts.get(file) ?? "";
      let [made, at] = ["", 0];
      for (const piece of of.sort((a, b) => a.at - b.at || a.order - b.order)) {
        made += text.slice(at, piece.at) + piece.text;
        at = piece.at;
      }
      return [file, made + text.slice(at)];
    }),
  );
}

/** Runs `run` with the probed texts in the copy; it is told what to add to the command and to its environment. */
export async function reachIn(
  copy: string,
  mutants: readonly Mutant[],
  texts: ReadonlyMap<string, string>,
  run: (words: readonly string[], env: Readonly<Record<string, string>>) => Promise<void>,
): Promise<Reached> {
  const out = join(copy, ".reached.json");
  const changed = probed(mutants, texts);
  try {
    for (const [file, text] of changed) writeFileSync(join(copy, file), text);
    await run(["--import", join(copy, "simulator/mutants/reaching.testing.ts")], { CELLS_REACHED: out });
    return JSON.parse(readFileSync(out, "utf8")) as Reached;
  } finally {
    for (const file of changed.keys()) writeFileSync(join(copy, file), texts.get(file) ?? "");
    rmSync(out, { force: true });
  }
}

/** Of `files`, in their order, what comes to a mutant; null: nothing does. */
export function reachingOf(reached: Reached, number: number, files: readonly string[], copy: string): Reaching | null {
  const places = reached.by.find(([expression]) => expression === number)?.[1] ?? [];
  const isOf = ({ file }: { readonly file: string }): boolean => files.includes(file.replace(`${copy}/`, ""));
  const isByLoading = places.includes(0);
  const tests = isByLoading
    ? reached.tests.filter(isOf)
    : places.map((place) => reached.tests[place] ?? { file: "", name: "", cpuMs: 0 }).filter(isOf);
  if (tests.length === 0) return null;
  const used = new Set(tests.map(({ file }) => file.replace(`${copy}/`, "")));
  return {
    files: files.filter((file) => used.has(file)),
    names: isByLoading ? null : [...new Set(tests.map(({ name }) => name))],
    cpuS: tests.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / 1000,
  };
}
