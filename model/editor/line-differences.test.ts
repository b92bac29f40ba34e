import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { lineDifferences, unifiedDifferences } from "./line-differences.ts";

const side = (lines: ReturnType<typeof lineDifferences>, without: string): readonly string[] =>
  lines.filter(({ sign }) => sign !== without).map(({ text }) => text);
const written = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

test("taking out and putting in what differs makes one text of the other, and no text takes fewer lines", () => {
  const line = fc.constantFrom("a", "b", "c", "d", "");
  const lines = fc.array(line, { maxLength: 12 });
  fc.assert(
    fc.property(lines, lines, (left, right) => {
      const found = lineDifferences(written(left), written(right));
      assert.deepEqual([side(found, "+"), side(found, "-")], [left, right]);
      assert.equal(found.filter(({ sign }) => sign === " ").length, longestCommon(left, right));
    }),
    { numRuns: 2000 },
  );
});

/** By the table that every textbook has. */
function longestCommon(left: readonly string[], right: readonly string[]): number {
  let row = right.map(() => 0);
  for (const one of left) {
    const next: number[] = [];
    for (const [at, other] of right.entries())
      next.push(one === other ? (row[at - 1] ?? 0) + 1 : Math.max(row[at] ?? 0, next[at - 1] ?? 0));
    row = next;
  }
  return row.at(-1) ?? 0;
}

test("differences are shown in the unified format, with three lines around them", () => {
  const from = written(Array.from({ length: 20 }, (_, at) => `line ${at + 1}`));
  const to = from.replace("line 4\n", "line four\n").replace("line 17\n", "").replace("line 18\n", "line 18\nmore\n");
  assert.deepEqual(unifiedDifferences({ name: "a", text: from }, { name: "b", text: to }), [
    "--- a",
    "+++ b",
    "@@ -1,7 +1,7 @@",
    " line 1",
    " line 2",
    " line 3",
    "-line 4",
    "+line four",
    " line 5",
    " line 6",
    " line 7",
    "@@ -14,7 +14,7 @@",
    " line 14",
    " line 15",
    " line 16",
    "-line 17",
    " line 18",
    "+more",
    " line 19",
    " line 20",
  ]);
  assert.deepEqual(unifiedDifferences({ name: "a", text: "x" }, { name: "b", text: "x\n" }), [
    "--- a",
    "+++ b",
    "@@ -1,1 +1,1 @@",
    "-x",
    "\\ No newline at end of file",
    "+x",
  ]);
  assert.deepEqual(unifiedDifferences({ name: "a", text: "" }, { name: "b", text: "x\n" }), [
    "--- a",
    "+++ b",
    "@@ -0,0 +1,1 @@",
    "+x",
  ]);
  assert.deepEqual(unifiedDifferences({ name: "a", text: from }, { name: "b", text: from }), []);
});

test("texts that have little in common are one replaced by the other", () => {
  const text = (word: string): string => written(Array.from({ length: 3000 }, (_, at) => `${word} ${at}`));
  const found = lineDifferences(`same\n${text("one")}`, `same\n${text("two")}`);
  assert.deepEqual([found.length, found[0]?.sign, found[1]?.sign, found.at(-1)?.sign], [6001, " ", "-", "+"]);
});
