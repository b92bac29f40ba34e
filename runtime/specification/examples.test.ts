import assert from "node:assert/strict";
import { test } from "node:test";
import { diagnosticPages } from "../../model/diagnostics/diagnostic-codes.ts";
import type { Example } from "../../model/diagnostics/diagnostic-page.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { evaluate } from "./evaluate.ts";

/** The pages' examples in languages that the model does not read itself; the others are run in `model/`. */
const isHere = (example: Example): example is Extract<Example, { kind: "bundle" }> =>
  example.kind === "bundle" && !/\.(sf|json)$/.test(example.bundle.main);

const codesOf = async (example: Extract<Example, { kind: "bundle" }>): Promise<readonly string[]> => {
  const evaluated = await evaluate(example.bundle);
  const read = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
  return read.ok ? [] : [...new Set(read.error.map(({ code }) => code))];
};

let count = 0;
for (const [code, { wrong, right }] of diagnosticPages) {
  if (!isHere(wrong) || !isHere(right)) continue;
  count++;
  test(`the examples of ${code}`, async () => {
    assert.deepEqual(await codesOf(wrong), [code]);
    assert.deepEqual(await codesOf(right), []);
  });
}

test("there are such pages", () => assert.ok(count >= 15));
