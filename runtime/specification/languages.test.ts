import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Cell } from "../../model/cell/cell.ts";
import type { Place } from "../../model/cell/evaluated.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { cells } from "../../model/testing/cells.testing.ts";
import { smartFrogText } from "../../model/testing/smartfrog-text.testing.ts";
import { evaluate } from "./evaluate.ts";
import { readYaml } from "./yaml.ts";
import { printYaml } from "./yaml-print.ts";

const seed = process.env.CELLS_SEED === undefined ? {} : { seed: Number(process.env.CELLS_SEED) };

const plain = (json: unknown): unknown => JSON.parse(JSON.stringify(json));
/** A cell without the places that it was read from. */
const meaning = (cell: Cell): unknown =>
  plain({
    ...cell,
    elements: [...cell.elements.values()].map(({ position: _, ...element }) => element),
  });

const read = async (main: string, text: string): Promise<Cell> => {
  const evaluated = await evaluate({ main, files: { [main]: text } });
  const cell = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
  assert.deepEqual(cell.ok ? [] : cell.error, [], text);
  assert.ok(cell.ok);
  return cell.value;
};

test("one cell in JSON, YAML and SmartFrog is the same cell", async () => {
  await fc.assert(
    fc.asyncProperty(cells, async (document) => {
      const json = await read("a.json", JSON.stringify(document));
      const texts: readonly (readonly [string, string])[] = [
        ["a.yaml", printYaml(document)],
        // Every JSON text is a YAML text.
        ["a.yml", JSON.stringify(document, null, 1)],
        ["a.sf", smartFrogText(document)],
      ];
      for (const [main, text] of texts) assert.deepEqual(meaning(await read(main, text)), meaning(json), text);
    }),
    { numRuns: 100, ...seed },
  );
});

test("what is printed as YAML reads back as the same", () => {
  const back = (json: Json): Json => {
    const text = printYaml({ json });
    const evaluated = readYaml("a.yaml", text);
    assert.deepEqual(evaluated.ok ? [] : evaluated.error, [], text);
    return evaluated.ok ? (evaluated.value.document.json ?? null) : null;
  };
  const strings = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom(..." \t\n\r#:-?[]{},&*!|>'\"%@`\\x.a1~<=\u0000\u007f\u0085\u2028\ufeff") }),
    fc.constantFrom(
      "yes",
      "null",
      "1",
      "0x1",
      "1e3",
      ".inf",
      "<<",
      "x.memory:128",
      "2001-01-01",
      "---",
      "...",
      "~",
      "true",
    ),
  );
  const { json } = fc.letrec<{ json: Json }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.constant(null),
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
      fc.maxSafeInteger(),
      fc.constantFrom(2 ** 53, 2 ** 60, -(2 ** 70), 1e300, 1e21, 5e-324),
      strings,
      fc.array(tie("json"), { maxLength: 4 }),
      fc.dictionary(strings, tie("json"), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(json, (value) => assert.deepEqual(plain(back(value)), plain(value))),
    { numRuns: 1000, ...seed },
  );
});

test("places are those of the text, whatever it holds", () => {
  fc.assert(
    fc.property(cells, (document) => {
      const text = printYaml(document);
      const evaluated = readYaml("a.yaml", text);
      assert.ok(evaluated.ok);
      const lines = text.split("\n");
      const { places } = evaluated.value;
      let count = 0;
      const visit = (object: JsonObject, pointer: string): void => {
        for (const [name, value] of Object.entries(object)) {
          const here = `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
          const place: Place | undefined = places[here];
          assert.ok(place, here);
          const written: string = (lines[place[1] - 1] ?? "").slice(place[2] - 1, place[2] - 1 + place[3]);
          if (!/^["']/.test(written)) assert.equal(written, name);
          count++;
          if (typeof value === "object" && value !== null && !Array.isArray(value)) visit(value as JsonObject, here);
        }
      };
      visit(evaluated.value.document, "");
      assert.ok(count > 5);
    }),
    { numRuns: 50, ...seed },
  );
});
