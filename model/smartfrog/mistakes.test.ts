import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { limits } from "../limits.ts";
import { readSpecification } from "../specification/specification.ts";

/*
 * Typical mistakes: each is told where it is, with what would be right, and nothing is told that only follows from it.
 * `^` stands before each place that must be told, in order; it is taken out.
 */
const vm = "x.memory 64;";
interface Mistake {
  readonly what: string;
  readonly text: string;
  /** Of each fault: what the message or the hint says. */
  readonly told: readonly RegExp[];
}

const brackets: readonly Mistake[] = [
  {
    what: "a missing brace, where the indentation shows it",
    text: `shop extends Cell {\n  web extends VM ^{ ${vm}\n  db extends VM { ${vm} }\n}\n`,
    told: [/never closed/],
  },
  {
    what: "a missing brace at the end",
    text: `shop extends Cell ^{\n  web extends VM { ${vm} }\n`,
    told: [/never closed/],
  },
  {
    what: "a brace too many",
    text: `shop extends Cell {\n  web extends VM { ${vm} } }\n^}\n`,
    told: [/closes nothing/],
  },
  {
    what: "parentheses for braces",
    text: `shop extends Cell { web extends VM ^( ${vm} ) db extends VM { ${vm} } }`,
    told: [/stands in braces/],
  },
  {
    what: "parentheses that are not closed",
    text: "a (1 + 2^; b ((1 + 2)^; c (! true ^&& false); d (1 + 2 ^- 3); e (5 ^-3);",
    told: [/Each `\(` has its/, /Each `\(` has its/, /parentheses of its own/, /no precedence/, /spaces around `-`/],
  },
  {
    what: "an IF without its end",
    text: "a IF true THEN 1 ELSE 2^; b IF true ^1;",
    told: [/IF \(condition\) THEN/, /THEN/],
  },
];
const words: readonly Mistake[] = [
  {
    what: "extends misspelt, and a fault inside",
    text: `shop extends Cell { web ^extnds VM { x.memory ^,; } db ^Extends VM { } }`,
    told: [/web extends VM/, /Expected a value/, /db extends VM/],
  },
  {
    what: "extends left out",
    text: `shop extends Cell { web ^VM { ${vm} x.data ^{ a 1; } } }`,
    told: [/web extends VM/, /x\.data extends/],
  },
  {
    what: "a component without a name",
    text: `shop extends Cell { ^extends VM { ${vm} } }`,
    told: [/name of a component before/],
  },
  {
    what: "words of the language as names",
    text: 'shop extends Cell { ^TBD 5; "TBD" 6; ^LAZY 7; }',
    told: [/write it as a string: "TBD"/i, /"LAZY"/],
  },
  {
    what: "words of the language in the wrong case",
    text: "c extends Cell { a ^True; b ^null; d ^Parent:e; f ^root:c; g ^lazy; }",
    told: [/`true`/, /`NULL`/, /`PARENT`/, /`ROOT`/, /`LAZY`/],
  },
  {
    what: "a text without quotes",
    text: `c extends Cell { v extends VM { ${vm} x.desiredState ^running; } }`,
    told: [/double quotes: "running"/],
  },
  {
    what: "a semicolon before the brace",
    text: `c extends Cell { v extends VM; ^{ ${vm} } }`,
    told: [/no `;` before/],
  },
  { what: "a prototype twice announced", text: "a extends ^extends b;", told: [/after `extends`/] },
  {
    what: "misspelt names of all kinds",
    text: `params extends { m 64; }\nc extends Cell {\n  v extends ^Vm { ${vm} }\n  w extends ^Volme { x.size 1; }\n  ^params:m 5;\n}\n`,
    told: [/mean `VM`/, /mean `Volume`/, /stands further out/],
  },
];
const otherNotations: readonly Mistake[] = [
  {
    what: "an equals sign",
    text: `c extends Cell { v extends VM { x.memory ^= 64; } }`,
    told: [/without|behind its name/],
  },
  {
    what: "colons as in JSON",
    text: "c extends Cell { v extends VM { x.memory: ^64; x.cpus: ^2 } } ",
    told: [/without `:`/, /without `:`/],
  },
  {
    what: "JSON's quoted names and commas",
    text: 'c extends Cell { v extends VM { "x.memory"^: 64; } }',
    told: [/`name value;`/],
  },
  { what: "a colon before extends", text: `c: ^extends Cell { v extends VM { ${vm} } }`, told: [/without `:`/] },
  {
    what: "a reference without quotes",
    text: "c extends Cell { k extends VolumeConnection { x.vm ^<ref:../v>; x.volume ^<ref:/c/d>; } }",
    told: [/"<ref:\.\.\/v>"/, /"<ref:\/c\/d>"/],
  },
  {
    what: "quotes of other notations",
    text: "a ^'x y'; b ^“z”; c ^„w“; d 1;",
    told: [/double quotes: "x y"/, /double quotes: "z"/, /double quotes: "w"/],
  },
  {
    what: "a comment of other languages",
    text: "^# the shop: all of it\na 1;\n^## more\nb 2;",
    told: [/`\/\/`/, /`\/\/`/],
  },
  {
    what: "letters of other scripts",
    text: "wéb extends {} ^云 extends {} ^a云b extends {} ^имя 5;",
    told: [/"云"/, /letters/, /"имя"/],
  },
  {
    what: "includes that are none",
    text: '#include ^common.sf\n#include ^"no.sf"\n#include ^<common.sf>\na ^,;',
    told: [/file "?|reads/, /no file/, /reads/, /Expected a value/],
  },
  { what: "units", text: `c extends Cell { v extends VM { x.memory ^64MB; } }`, told: [/neither a number nor a name/] },
];
const lexical: readonly Mistake[] = [
  {
    what: "a string where there is none, whole up to thirty characters",
    text: `a 1 ^"${"x".repeat(30)}"; b 2 ^"${"y".repeat(31)}";`,
    told: [/"x{30}"/, /"y{30}…"/],
  },
  { what: "an open string", text: 'a ^"b;\nc 1;\nd ^,;', told: [/not closed on its line/, /Expected a value/] },
  { what: "a text over several lines", text: 'a ^"b\nc"; d "e"; f ^"g;\n', told: [/`##…#`/, /not closed/] },
  {
    what: "signs that belong to a name",
    text: "c extends Cell { a 1; b ^a-1; d (^a++b); }",
    told: [/spaces/, /spaces/],
  },
  { what: "an open text", text: "c extends Cell {\n  a ^##b;\n}\n", told: [/never closed/] },
  { what: "an open comment", text: `c extends Cell {\n  ^/* a\n  v extends VM { ${vm} }\n}\n`, told: [/never closed/] },
  {
    what: "tabs, and a byte order mark",
    text: "\ufeffc extends Cell {\n\tv extends VM {\tx.memory 64; ^x.cpsu 2;\t}\n}\n",
    told: [/`x\.cpus`/],
  },
  {
    what: "lines that end in CR LF",
    text: `c extends Cell {\r\n  v extends VM { x.memory ^"64;\r\n  }\r\n  a ^,;\r\n}\r\n`,
    told: [/not closed on its line/, /Expected a value/],
  },
];

/** The text without its marks, and where they were. */
function marked(text: string): { readonly text: string; readonly places: readonly string[] } {
  const places: string[] = [];
  let plain = "";
  for (const character of text)
    if (character !== "^") plain += character;
    else places.push(`${plain.split("\n").length}:${plain.length - plain.lastIndexOf("\n")}`);
  return { text: plain, places };
}

for (const { what, text, told } of [...brackets, ...words, ...otherNotations, ...lexical])
  test(`a mistake: ${what}`, () => {
    const { text: plain, places } = marked(text);
    const result = readSpecification({ main: "a.sf", files: { "a.sf": plain } });
    const faults: readonly Diagnostic[] = result.ok ? [] : result.error;
    const shown = faults.map(
      ({ position, message, hint }) => `${position?.line}:${position?.column} ${message} ${hint}`,
    );
    assert.deepEqual(
      faults.map(({ position }) => `${position?.line}:${position?.column}`),
      places,
      shown.join("\n"),
    );
    for (const [index, wanted] of told.entries()) assert.match(shown[index] ?? "", wanted);
  });

test("what is linked into one another too deep is told where it gets too deep", () => {
  const lines = Array.from({ length: 700 }, (_, n) => `a${n + 1} extends { p a${n}; }`);
  const text = `sfConfig extends { a0 extends {}\n${lines.join("\n")} }`;
  const read = readSpecification({ main: "main.sf", files: { "main.sf": text } });
  assert.deepEqual(read.ok ? [] : read.error.map(({ code, position }) => [code, position?.line]), [
    ["limit/nesting", 2 * limits.nesting - 1],
  ]);
});
