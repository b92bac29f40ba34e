import { limits } from "../../limits.ts";
import { type DiagnosticPage, filesPage, largePage, requestPage, smartFrogPage } from "../diagnostic-page.ts";

const shop = (inside: string): string => `shop extends Cell {\n${inside}}\n`;
const nested = (depth: number): string => `${"a extends { ".repeat(depth)}b 1; ${"}".repeat(depth)}\n`;
/** Each template holds two of the one before, so 2 to the power of `count` attributes come of it. */
const doubling = (count: number): string => {
  const lines = ["t0 extends { a 1; }\n"];
  for (let at = 1; at <= count; at++) lines.push(`t${at} extends { a extends t${at - 1}; b extends t${at - 1}; }\n`);
  return `${lines.join("")}${shop("")}`;
};
const chain = (count: number): string => {
  const lines: string[] = [];
  for (let at = 0; at < count; at++) lines.push(`a${at} a${at + 1};\n`);
  return shop(`${lines.join("")}a${count} 1;\n`);
};
const includes = (count: number): Readonly<Record<string, string>> => {
  const files: Record<string, string> = { "shop.sf": `#include "f1.sf"\n${shop("")}` };
  for (let at = 1; at <= count; at++) files[`f${at}.sf`] = at === count ? "a 1;\n" : `#include "f${at + 1}.sf"\n`;
  return files;
};
const times = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join("");
const placements = (count: number): string =>
  `t0 extends { in extends { } in:v 1; }\n${times(count, (at) => `t${at + 1} extends { a extends t${at}; b extends t${at}; }\n`)}`;
const joined = (count: number): string => `v0 [1];\n${times(count, (at) => `v${at + 1} (v${at} <> v${at});\n`)}`;
const volumes = (count: number): string => times(count, (at) => `v${at} extends Volume { x.size 1; }\n`);
const rows = (count: number): string =>
  `row extends {\n${volumes(100)}}\n${shop(times(count, (at) => `r${at} extends row;\n`))}`;
const networkRules = (narrow: number, wide: number): string => {
  const rule = (name: string, address: string): string =>
    `${name} extends NetworkRule { x.address1 "${address}"; x.address2 "<ref:/shop/net>"; x.protocol "tcp"; x.port2 80; }\n`;
  const all =
    times(narrow, (at) => rule(`a${at}`, `10.0.${at >> 8}.${at & 255}`)) +
    times(wide, (at) => rule(`w${at}`, "10.0.0.0/8"));
  return shop(`net extends Subnet { x.size 8; }\n${all}`);
};
const comments = (characters: number): string => `// ${"x".repeat(characters)}\n${shop("")}`;

/** Bounds on what one specification may cost. */
export const limitPages: Readonly<Record<string, DiagnosticPage>> = {
  "limit/nesting": largePage(
    "nested too deeply",
    `Components, vectors and expressions may stand at most ${limits.nesting} inside one another. No sensible cell comes near; a program that writes specifications usually has a loop in it.`,
    [`a extends { a extends { … b 1; … } }   (${limits.nesting + 44} levels)`, () => shop(nested(limits.nesting + 44))],
    ["a extends { a extends { … b 1; … } }   (20 levels)", () => shop(nested(20))],
  ),
  "limit/attributes": largePage(
    "too many attributes",
    `A specification may have ${limits.attributes} attributes, everything that templates copy included. Templates that hold several copies of one another grow exponentially.`,
    [
      "t1 extends { a extends t0; b extends t0; }\nt2 extends { a extends t1; b extends t1; }\n…   (up to t22)",
      () => doubling(22),
    ],
    ["t1 extends { a extends t0; b extends t0; }\nt2 extends { a extends t1; b extends t1; }", () => doubling(2)],
  ),
  "limit/references": largePage(
    "too long a chain of references",
    `At most ${limits.references} references, or components that extend one another, may follow one after another.`,
    [`a0 a1;\na1 a2;\n…   (up to a${limits.references + 200})`, () => chain(limits.references + 200)],
    ["a0 a1;\na1 a2;\na2 1;", () => chain(2)],
  ),
  "limit/text": largePage(
    "too much text",
    `All files of a bundle together may have ${limits.textLength / 1024 / 1024} MiB. Use templates, or make several cells of one.`,
    ["(a file of 17 MiB)", () => comments(limits.textLength)],
    ["(a file of 1 KiB)", () => comments(1000)],
  ),
  "limit/include": ((): DiagnosticPage => {
    const page = filesPage(
      "includes that are too deep",
      `Files may include one another ${limits.includeDepth} deep. Include what is needed from a file nearer to the main one.`,
      includes(limits.includeDepth + 2),
      includes(2),
    );
    const { wrong } = page;
    if (wrong.kind !== "bundle") return page;
    const shown = `shop.sf: #include "f1.sf"\nf1.sf: #include "f2.sf"\n…   (up to f${limits.includeDepth + 2}.sf)`;
    return { ...page, wrong: { kind: "large", shown, bundle: () => wrong.bundle } };
  })(),
  "limit/tokens": largePage(
    "too much written out",
    `A text may have ${limits.tokens} words, signs and values: what is written costs more than what a template repeats. Let templates hold what repeats itself, or make several cells of one.`,
    [`list [1, 1, 1, …];   (${limits.tokens} numbers)`, () => shop(`list [${"1,".repeat(limits.tokens)}1];\n`)],
    ["list [1, 1, 1];", () => shop("list [1, 1, 1];\n")],
  ),
  "limit/elements": largePage(
    "too many elements",
    `A cell may have ${limits.elements} elements, and a JSON document as many together with those of its child cells. A cell is checked and planned as a whole with every change: several cells are changed one by one, and can refer to one another.`,
    [
      `row extends { (100 volumes) }\nshop extends Cell { r0 extends row; r1 extends row; …   (up to r${limits.elements / 100})`,
      () => rows(limits.elements / 100 + 1),
    ],
    ["row extends { (100 volumes) }\nshop extends Cell { r0 extends row; r1 extends row; }", () => rows(2)],
  ),
  "limit/paths": largePage(
    "paths that are too long together",
    `An element is named by its path, so one that stands in many groups inside one another has a long name, and so has every one beside it. All paths of a cell may have ${limits.pathNames} names and ${limits.pathCharacters} characters together.`,
    [
      "shop extends Cell { g extends { g extends { … (6,000 volumes) … } } }   (200 levels)",
      () => shop(`${"g extends { ".repeat(200)}${volumes(6000)}${"}".repeat(200)}\n`),
    ],
    [
      "shop extends Cell { g extends { … (6,000 volumes) … } }   (2 levels)",
      () => shop(`${"g extends { ".repeat(2)}${volumes(6000)}${"}".repeat(2)}\n`),
    ],
  ),
  "limit/rules": largePage(
    "rules that come to too much",
    `The rules of a cell may come to ${limits.compiledRules}, in ${limits.compiledCharacters} characters, which is what a host's maps hold. A rule with a network at an end is repeated for each narrower network that any rule of the cell names, and for each subnet in it: two hundred networks at either end are forty thousand rules. Name fewer and wider networks, name subnets in place of interfaces, or make several cells.`,
    [
      'net extends Subnet { x.size 8; }\na0 extends NetworkRule { x.address1 "10.0.0.0/8"; x.address2 "<ref:/shop/net>"; }\na1 … "10.0.0.1"; a2 … "10.0.0.2";   (up to a1000, and 300 rules as the first one)',
      () => networkRules(1000, 300),
    ],
    [
      'net extends Subnet { x.size 8; }\na0 extends NetworkRule { x.address1 "10.0.0.0/8"; x.address2 "<ref:/shop/net>"; }',
      () => networkRules(1, 1),
    ],
  ),
  "limit/tags": largePage(
    "too many tags",
    `An attribute may have ${limits.tags} tags: each copy of it is looked at for what they say.`,
    [
      `[t0 t1 t2 …] a 1;   (up to t${limits.tags})`,
      () => `[${times(limits.tags + 1, (at) => `t${at} `)}] a 1;\n${shop("")}`,
    ],
    ["[t0 t1 t2] a 1;", () => `[t0 t1 t2] a 1;\n${shop("")}`],
  ),
  "limit/placed": largePage(
    "placements that make too much",
    `Placements (\`a:b value;\`) may make ${limits.placed} attributes. One in a template is done in each copy of it, and copies of copies grow exponentially.`,
    [
      "t0 extends { in extends { } in:v 1; }\nt1 extends { a extends t0; b extends t0; }\n…   (up to t17)",
      () => `${placements(17)}${shop("")}`,
    ],
    [
      "t0 extends { in extends { } in:v 1; }\nt1 extends { a extends t0; b extends t0; }",
      () => `${placements(1)}${shop("")}`,
    ],
  ),
  "limit/evaluation": largePage(
    "expressions that are too much to work out",
    "Vectors and texts that are made of two of the one before grow exponentially, so what expressions make is counted.",
    ["v1 (v0 <> v0);\nv2 (v1 <> v1);\n…   (up to v60)", () => shop(joined(60))],
    ["v1 (v0 <> v0);\nv2 (v1 <> v1);", () => shop(joined(2))],
  ),
  "limit/data": smartFrogPage(
    "data that contains itself, or is too large",
    "References inside `x.data` are replaced by what they lead to, so that the guest sees plain data. A structure that refers to what it stands in would have no end. What a VM is given may have " +
      `${limits.dataEntries} attributes and items and ${limits.dataBytes / 1024} KiB as JSON, since its host holds it in memory: let the guest fetch the rest, or put that on a volume.`,
    'shop extends Cell {\n  settings extends { all "<ref:/shop/settings>"; }\n  vm extends VM { x.memory 128; x.data "<ref:/shop/settings>"; }\n}\n',
    'shop extends Cell {\n  settings extends { port 80; }\n  vm extends VM { x.memory 128; x.data "<ref:/shop/settings>"; }\n}\n',
  ),
  "limit/document": requestPage(
    "a submitted document beyond a limit",
    `A document is one JSON object of at most ${limits.attributes} attributes, nested at most ${limits.nesting} deep.`,
    `PUT /model\n{"document": {"a": {"a": … }}}   (${limits.nesting + 44} levels)`,
    'PUT /model\n{"document": {"shop": {"x.type": "Cell"}}}',
  ),
};
