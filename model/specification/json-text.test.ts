import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Json } from "../json/json.ts";
import { limits } from "../limits.ts";
import { parseJsonText } from "./json-text.ts";

const seed = process.env.CELLS_SEED === undefined ? {} : { seed: Number(process.env.CELLS_SEED) };

/** `line:column code` of each fault. */
const faults = (text: string): readonly string[] => {
  const diagnostics = new Diagnostics();
  const parsed = parseJsonText("a.json", text, diagnostics);
  assert.equal(parsed === null, !diagnostics.none);
  return diagnostics.list.map(({ code, position }) => `${position?.line}:${position?.column} ${code.split("/")[1]}`);
};

test("all slips of a text are told at once, each once", () => {
  const text = [
    "{",
    "  // a comment",
    '  "a": 1',
    "  \"b\": 'one',",
    "  c: on,",
    '  "d": "open,',
    '  "e": "\\q",',
    '  "e": 1.5.2,',
    '  "f" = [1, 2 3, ],',
    '  "g": ,',
    '  "h": { "i": 007, "j": True },',
    '  "k": [1, 2}',
  ].join("\n");
  assert.deepEqual(faults(text), [
    "2:3 expected",
    "4:3 expected",
    "4:8 expected",
    "5:3 expected",
    "5:6 expected",
    "6:8 unclosed-string",
    "7:8 escape",
    "8:3 duplicate",
    "8:8 number",
    "9:7 expected",
    "9:15 expected",
    "9:18 expected",
    "10:8 expected",
    "11:15 number",
    "11:25 expected",
    "12:13 expected",
  ]);
});

test("one slip is one fault", () => {
  for (const [text, expected] of [
    ['{"a": {"b": 1, "c": [1, 2]}', "1:1 unbalanced"],
    ['{"a": {"b": 1]}', "1:14 expected"],
    ['{"a": 1}}', "1:9 expected"],
    ['{"a": "b\n}', "1:7 unclosed-string"],
    ['{"a: 1,\n"b": 2}', "1:2 unclosed-string"],
    ['{"a": 1,}', "1:9 expected"],
    ["{,}", "1:2 expected"],
    ['{"a"}', "1:5 expected"],
    ['{"a": 1 /* b\n */, "b": 2}', "1:9 expected"],
    ["[1]", "1:1 expected"],
    ["", "1:1 expected"],
    ['{"a": 1e999}', "1:7 number"],
    [`${'{"a":'.repeat(limits.nesting + 1)}`, `1:${limits.nesting * 5 + 1} nesting`],
  ] as const)
    assert.deepEqual(faults(text), [expected], text);
});

test("what JSON.parse takes is taken alike, and nothing else is", () => {
  const part = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"b"',
    '"',
    "'",
    "1",
    "-0.5e3",
    "01",
    "true",
    "nul",
    " ",
    "\n",
    "//",
    "/*",
    "*/",
  );
  const texts = fc.oneof(
    fc.array(part, { maxLength: 25 }).map((parts) => `{${parts.join("")}`),
    fc.object({ maxDepth: 3 }).map((value) => JSON.stringify(value, null, 1)),
    // One character of a sound text is gone.
    fc
      .tuple(fc.object({ maxDepth: 3 }), fc.nat())
      .map(([value, at]) => [JSON.stringify(value), at] as const)
      .map(([text, at]) => text.slice(0, at % text.length) + text.slice((at % text.length) + 1)),
  );
  let taken = 0;
  fc.assert(
    fc.property(texts, (text) => {
      let value: Json | undefined;
      try {
        value = JSON.parse(text);
      } catch {
        value = undefined;
      }
      const diagnostics = new Diagnostics();
      const parsed = parseJsonText("a.json", text, diagnostics);
      if (parsed) {
        // JSON has no -0.
        assert.deepEqual(JSON.parse(JSON.stringify(parsed.document)), JSON.parse(JSON.stringify(value)));
        taken++;
      } else
        assert.ok(
          value === undefined ||
            !text.trim().startsWith("{") ||
            diagnostics.has("syntax/duplicate") ||
            / too large /.test(JSON.stringify(diagnostics.list)),
          text,
        );
      for (const { position } of diagnostics.list) {
        const line = text.split("\n")[(position?.line ?? 0) - 1];
        assert.ok(line !== undefined && position && position.column <= line.length + 1, text);
      }
    }),
    { numRuns: 3000, ...seed },
  );
  assert.ok(taken > 300, `${taken} were sound`);
});
