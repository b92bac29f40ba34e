import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { parseBundle } from "../../smartfrog/text/parser.ts";
import type { AttributeSyntax } from "../../smartfrog/text/syntax.ts";
import { completionsAt } from "../completions.ts";
import { hoverAt } from "../hover.ts";
import { definitionOf } from "../navigation.ts";
import { symbolsOf } from "../symbols.ts";
import { viewBundle } from "./bundle-tree.ts";
import { jsonSource } from "./json-source.ts";
import { smartFrogSource } from "./smartfrog-source.ts";
import { includedFile, offsetOf, positionAt, type SourceBlock, type SourceFile } from "./source.ts";

const folder = join(import.meta.dirname, "../../cases");
const examples = join(import.meta.dirname, "../../../examples");
const texts = [
  ...readdirSync(folder).map((name) => join(folder, name)),
  ...["figure2.sf", "shop/shop.sf", "shop/tier.sf"].map((name) => join(examples, name)),
]
  .filter((path) => path.endsWith(".sf"))
  .map((path) => readFileSync(path, "utf8").replace(/#include.*/g, ""));

type Shape = readonly (readonly [name: string, place: string, inside: Shape | "value" | "nothing"])[];

function shapeOfSyntax(attributes: readonly AttributeSyntax[]): Shape {
  return attributes.map(({ name, namePosition, value }) => {
    const place = `${namePosition.line}:${namePosition.column}`;
    if (value.kind !== "component")
      return [
        name?.join(":") ?? "--",
        place,
        value.kind === "scalar" && value.position === namePosition ? "nothing" : "value",
      ];
    const inside = value.prototypes.flatMap((part) => (part.kind === "block" ? shapeOfSyntax(part.attributes) : []));
    return [name?.join(":") ?? "--", place, inside];
  });
}
function shapeOfSource(file: SourceFile, { entries }: SourceBlock): Shape {
  return entries.flatMap((entry): Shape => {
    if (entry.kind !== "attribute") return [];
    const first = entry.name[0];
    const at = positionAt(file, first?.start ?? entry.start);
    const name = first ? entry.name.map(({ text }) => text).join(":") : "--";
    const { component, value } = entry;
    const inside = component?.parts.flatMap((part) => (part.kind === "block" ? shapeOfSource(file, part.block) : []));
    return [[name, `${at.line}:${at.column}`, inside ?? (value ? "value" : "nothing")]];
  });
}

test("a text without faults is read as the parser reads it", () => {
  let compared = 0;
  for (const text of texts) {
    const diagnostics = new Diagnostics();
    const { attributes } = parseBundle({ main: "a.sf", files: { "a.sf": text } }, diagnostics);
    if (!diagnostics.none) continue;
    compared++;
    const file = smartFrogSource("a.sf", text);
    assert.deepEqual(shapeOfSource(file, file.top), shapeOfSyntax(attributes), text);
  }
  assert.ok(compared > 60, `${compared} texts`);
});

test("what is missing hides nothing that follows", () => {
  const names = (text: string): unknown =>
    symbolsOf(smartFrogSource("a.sf", text)).map(({ name, children }) => [name, children.map((child) => child.name)]);
  assert.deepEqual(names("a extends { x.mem\n b 1; }\nc extends { d 2; }"), [
    ["a", ["x.mem", "b"]],
    ["c", ["d"]],
  ]);
  assert.deepEqual(names("a extends \nc extends { d 2; }"), [
    ["a", []],
    ["c", ["d"]],
  ]);
  assert.deepEqual(names('a "open\nc extends { d ) 2; e 3 }}\nf 4;'), [
    ["a", []],
    ["c", ["d", "e"]],
    ["f", []],
  ]);
  const json = jsonSource("a.json", '{"a": {"b": , "c" "d": [1, "e"}, // f\n "g": {"h": "i}\n "j": 2');
  assert.deepEqual(
    symbolsOf(json).map(({ name, children }) => [name, children.map((child) => child.name)]),
    [
      ["a", ["b", "c", "d"]],
      ["g", ["h", "j"]],
    ],
  );
});

test("an outline has names, what is extended, and places in the text", () => {
  const text = "/* é😀 */ web extends Tier, { p 1; vm extends VM { x.memory 128; } }\r\nlist [1, 2];\r\n";
  const [web, list] = symbolsOf(smartFrogSource("a.sf", text));
  assert.equal(web?.detail, "Tier");
  assert.equal(text.slice(web?.nameSpan.start, web?.nameSpan.end), "web");
  assert.equal(text.slice(web?.span.start, web?.span.end).startsWith("web extends"), true);
  assert.deepEqual(
    web?.children.map(({ name, detail, kind }) => [name, detail, kind]),
    [
      ["p", "1", "attribute"],
      ["vm", "VM", "component"],
    ],
  );
  assert.deepEqual([list?.name, list?.detail], ["list", "[1, 2]"]);
  const typed = symbolsOf(jsonSource("a.json", '{"vm": {"x.type": "VM"}}'));
  assert.equal(typed[0]?.detail, "VM");
});

test("lines and columns are those of diagnostics", () => {
  const file = smartFrogSource("a.sf", "a 1;\r\nb 😀2;\n\nc");
  for (let offset = 0; offset <= file.text.length; offset++)
    assert.equal(offsetOf(file, positionAt(file, offset)), offset);
  assert.deepEqual([positionAt(file, 6).line, positionAt(file, 6).column], [2, 1]);
  assert.equal(offsetOf(file, { line: 99, column: 99 }), file.text.length);
  assert.equal(includedFile("a/b.sf", "../c.sf"), "c.sf");
  assert.equal(includedFile("b.sf", "../c.sf"), null);
  assert.equal(includedFile("b.sf", "/c.sf"), null);
});

test("no text and no place makes any of it fail", () => {
  const pieces = fc.oneof(
    fc.constantFrom(...texts.filter((text) => text.length < 2000)),
    fc.stringMatching(/^[a-z.:;{}()[\]|" #<>/*,\n-]{0,60}$/),
    fc.constantFrom(
      "extends",
      ' "<ref:/a/../b',
      '#include "a.sf"',
      "x.memory",
      "{",
      "}",
      "##",
      "APPLY {",
      "a:b",
      " ROOT:a:b ",
      "VM ",
    ),
  );
  const seed = Number(process.env.CELLS_SEED ?? Date.now() % 2 ** 31);
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 6 }), fc.nat(), fc.nat(), fc.boolean(), (some, from, to, json) => {
      const whole = some.join(" ");
      const [low, high] = [from % (whole.length + 1), to % (whole.length + 1)].toSorted((a, b) => a - b);
      const text = whole.slice(0, low) + whole.slice(high);
      const main = json ? "a.json" : "a.sf";
      const view = viewBundle({ main, files: { [main]: text } });
      for (const offset of [0, low ?? 0, text.length]) {
        completionsAt(view, main, offset);
        hoverAt(view, main, offset);
        definitionOf(view, main, offset);
      }
    }),
    { seed, numRuns: 300 },
  );
});

test("a value is one text or one reference only where nothing else belongs to it", () => {
  const soleOf = (value: string): string | null | undefined => {
    const [first] = smartFrogSource("a.sf", `a ${value};`).top.entries;
    return first?.kind === "attribute" ? first.sole : undefined;
  };
  for (const value of ['"web"', "##web#"]) assert.equal(soleOf(value), "string", value);
  for (const value of ["b", "b:c", "ATTRIB b"]) assert.equal(soleOf(value), "reference", value);
  for (const value of ["LAZY b", "(b)", '("a" ++ b)', '[|"a"|]', "5"]) assert.equal(soleOf(value), null, value);
});
