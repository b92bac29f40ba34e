import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { attributeNames, elementTypes } from "../cell/schema.ts";
import { formatSmartFrog } from "../smartfrog-format/format.ts";
import { readSpecification } from "../specification/specification.ts";
import { referenceExamples } from "./reference-examples.ts";
import { referencePage } from "./reference-page.ts";

const page = referencePage();

test("docs/reference.md is what `cells spec reference` prints", () => {
  const committed = readFileSync(new URL("../../docs/reference.md", import.meta.url), "utf8");
  assert.equal(committed, page, "write it anew: `cells spec reference docs/reference.md`");
});

test("every type and attribute is on the page, in a table whose rows are whole", () => {
  for (const type of ["Cell", ...elementTypes] as const) {
    assert.ok(page.includes(`\n## ${type}\n`), type);
    for (const name of attributeNames(type)) assert.ok(page.includes(`| \`${name}\` |`), name);
  }
  const widths = page.split(/\n(?!\|)/).flatMap((block) => {
    const rows = block.split("\n").filter((line) => line.startsWith("|"));
    return rows.length === 0 ? [] : [new Set(rows.map((line) => line.split(/(?<!\\)\|/).length)).size];
  });
  assert.ok(widths.length > 10 && widths.every((width) => width === 1));
});

for (const type of ["Cell", ...elementTypes] as const)
  test(`the example of ${type} is right, formatted, and has one`, () => {
    const text = referenceExamples[type];
    const read = readSpecification({ main: "shop.sf", files: { "shop.sf": text } });
    assert.deepEqual(read.ok ? [] : read.error, []);
    assert.ok(read.ok);
    assert.ok(type === "Cell" || [...read.value.elements.values()].some((element) => element.type === type));
    assert.deepEqual(formatSmartFrog("shop.sf", text), { ok: true, value: text });
  });
