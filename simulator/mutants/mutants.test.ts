import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mutantsIn } from "./mutants.ts";

const root = join(import.meta.dirname, "../..");

/** Of a text alone. */
const mutantsOfText = (text: string): ReturnType<typeof mutantsIn> => {
  const folder = mkdtempSync(join(tmpdir(), "cells-mutants-test-"));
  try {
    writeFileSync(join(folder, "a.ts"), text);
    return mutantsIn(folder, ["a.ts"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

test("each operator is exchanged alone, and what is no operator stays", () => {
  const found = mutantsOfText(
    [
      "export type Both<T> = T extends (a: number) => infer R ? R & { b: 1 } : never; // a && b, in a comment",
      'export const text = (name: string): string => "a < b" + name + (name.length > 1);',
      "export const is = (a: number, b: number | null): boolean => !(a <= 1) && b !== null;",
      "export const pick = (a: number): number => (a === 1 ? a + 1 : a % 2);",
      "export const count = (sum: number): number => { sum += 1; return sum; };",
    ].join("\n"),
  );
  assert.deepEqual(
    found.map(({ line, before, after }) => `${line} ${before} => ${after}`),
    [
      "2 name.length > 1 => (name.length >= 1)",
      "3 !(a <= 1) => ((a <= 1))",
      "3 a <= 1 => (a < 1)",
      "3 !(a <= 1) && b !== null => (!(a <= 1) || b !== null)",
      "3 b !== null => (b === null)",
      "4 a === 1 => (a !== 1)",
      "4 a === 1 ? a + 1 : a % 2 => ((a === 1) ? a % 2 : a + 1)",
      "4 a + 1 => (a - 1)",
      "4 a % 2 => (a * 2)",
      "5 sum += 1 => sum -= 1",
    ],
  );
});

test("every mutant is a program, and none is the text itself or another mutant", () => {
  const file = "core/directory/directory.ts";
  const source = readFileSync(join(root, file), "utf8");
  const found = mutantsIn(root, [file]);
  assert.ok(found.length > 50, String(found.length));
  for (const { text } of found) assert.doesNotThrow(() => stripTypeScriptTypes(text));
  assert.equal(new Set([source, ...found.map(({ text }) => text)]).size, found.length + 1);
});

test("a file that is none is named", () => {
  assert.throws(() => mutantsIn(root, ["core/none.ts"]), /core\/none\.ts is no file below /);
});
