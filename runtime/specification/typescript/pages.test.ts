import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bundle } from "../../../model/cell/cell.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { typescriptPages } from "../../../model/diagnostics/pages/typescript.ts";
import { readSpecification } from "../../../model/specification/specification.ts";
import { evaluate } from "../evaluate.ts";

const faults = async (bundle: Bundle): Promise<readonly Diagnostic[]> => {
  const evaluated = await evaluate(bundle);
  const read = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
  return read.ok ? [] : read.error;
};

for (const [code, { wrong, right }] of Object.entries(typescriptPages)) {
  if (wrong.kind !== "bundle" || right.kind !== "bundle") continue;
  test(`the examples of ${code}`, async () => {
    const told = await faults(wrong.bundle);
    assert.deepEqual(
      told.map((each) => each.code),
      [code],
      JSON.stringify(told),
    );
    // Each is shown in the author's text.
    assert.equal(told[0]?.position?.file, "shop.ts");
    assert.deepEqual(await faults(right.bundle), []);
  });
}
