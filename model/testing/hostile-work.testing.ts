import {
  cell,
  each,
  groups,
  type HostileText,
  json,
  jsonCell,
  mebi,
  range,
  smartFrog,
} from "./hostile-builders.testing.ts";

/*
 * Texts that are within the limits, or hardly beyond one, and make some stage do the most that it can for their length:
 * where it did more than it should, or all of it at once, one of these was the text that showed it.
 */
const elements: Readonly<Record<string, HostileText>> = {
  "20,000 elements in 240 groups": {
    text: () =>
      smartFrog(
        cell(
          groups(
            240,
            each(20_000, (i) => `v${i} extends Volume { x.size 1; }`),
          ),
        ),
      ),
    code: "limit/paths",
  },
  "120,000 elements in JSON": {
    text: () => jsonCell(range(120_000).map((i) => `"v${i}":{"x.type":"Volume","x.size":1}`)),
    code: "limit/elements",
  },
  "200,000 elements of templates": {
    text: () =>
      smartFrog(
        `t extends { ${each(100, (i) => `v${i} extends Volume { x.size 1; }`)} }\n${cell(each(2000, (i) => `g${i} extends t;`))}`,
      ),
    code: "limit/elements",
  },
  "49,000 networks that overlap": {
    text: () => jsonCell(range(49_000).map((i) => `"v${i}":{"x.type":"Subnet","x.cidr":"10.0.0.0/${8 + (i % 20)}"}`)),
    code: "cell/overlap",
  },
  "6,000 rules of one machine": {
    text: () =>
      jsonCell([
        '"vm":{"x.type":"VM","x.memory":16}',
        ...range(6_000).map(
          (i) => `"r${i}":{"x.type":"NetworkRule","x.address1":"<ref:../vm>","x.address2":"internet"}`,
        ),
      ]),
    code: null,
    work: "change",
  },
  "30,000 rules with networks inside one another": {
    text: () =>
      jsonCell([
        '"vm":{"x.type":"VM","x.memory":16}',
        ...range(30_000).map(
          (i) =>
            `"r${i}":{"x.type":"NetworkRule","x.address1":"<ref:../vm>","x.address2":"${i % 2 === 0 ? "10.0.0.0/8" : `10.0.${i >> 8}.${i & 255}`}"}`,
        ),
      ]),
    code: "limit/rules",
  },
  "30,000 cards and disks of one machine": {
    text: () =>
      jsonCell([
        '"vm":{"x.type":"VM","x.memory":16},"n":{"x.type":"Subnet","x.size":8}',
        ...range(10_000).map(
          (i) =>
            `"c${i}":{"x.type":"VirtualInterface","x.vm":"<ref:../vm>","x.subnet":"<ref:../n>"},"d${i}":{"x.type":"Volume","x.size":1,"x.movedFrom":"w${i}"},"k${i}":{"x.type":"VolumeConnection","x.vm":"<ref:../vm>","x.volume":"<ref:../d${i}>"}`,
        ),
      ]),
    code: null,
    work: "change",
  },
  "child cells 100 deep with 400 volumes in each": {
    text: () => {
      const volumes = range(400).map((k) => `"v${k}":{"x.type":"Volume","x.size":1}`);
      const child = range(100).reduce(
        (inner) => `{"x.type":"Cell","c":{"x.type":"CellController","x.cell":${inner}},${volumes.join(",")}}`,
        '{"x.type":"Cell"}',
      );
      return jsonCell([`"x.limits.vms":1,"c":{"x.type":"CellController","x.cell":${child}}`]);
    },
    code: null,
  },
};

const data: Readonly<Record<string, HostileText>> = {
  "400,000 empty objects": {
    text: () =>
      jsonCell([
        `"vm":{"x.type":"VM","x.memory":16,"x.data":[${range(400_000)
          .map(() => "{}")
          .join(",")}]}`,
      ]),
    code: "limit/data",
  },
  "a text of 10 MiB taken 100,000 times": {
    text: () =>
      jsonCell(
        [
          `"vm":{"x.type":"VM","x.memory":16,"x.data":[${range(100_000)
            .map(() => '"<ref:/p>"')
            .join(",")}]}`,
        ],
        [`"p":"${"x".repeat(10 * mebi)}"`],
      ),
    code: "limit/data",
  },
  "50 references that are nearly one of 100,000 names": {
    text: () =>
      jsonCell(
        range(50).map((i) => `"v${i}":{"x.type":"VM","x.memory":"<ref:/some${i}x>"}`),
        range(100_000).map((i) => `"some${i}":1`),
      ),
    code: "reference/dangling",
  },
  "200,000 references in 200 groups with long names": {
    text: () => {
      const names = range(200).map((i) => `"${"g".repeat(2000)}${i}":{`);
      const list = range(200_000).map(() => '"<ref:../../a>"');
      return jsonCell([
        `${names.join("")}"a":1,"vm":{"x.type":"VM","x.memory":16,"x.data":{"l":[${list.join(",")}]}}${"}".repeat(200)}`,
      ]);
    },
    code: "limit/data",
  },
};

const expressions: Readonly<Record<string, HostileText>> = {
  "texts of 4 MiB compared 30,000 times": {
    text: () => {
      const long = "x".repeat(4 * mebi);
      return smartFrog(cell(`a "${long}y"; b "${long}z"; ${each(30_000, (i) => `s${i} (a == b);`)}`));
    },
    code: "limit/evaluation",
  },
  "a product of 200,000 numbers": {
    text: () => smartFrog(cell(`s (${each(200_000, () => "9223372036854775807L").replaceAll("\n", " * ")});`)),
    code: "link/operand",
  },
  "a text of 1 MiB formatted 20,000 times": {
    text: () =>
      smartFrog(
        `#include "/org/smartfrog/functions.sf"\n${cell(`p "${"x".repeat(mebi)}";\n${each(20_000, (i) => `f${i} extends formatString { format p; }`)}`)}`,
      ),
    code: "limit/",
  },
  "a choice of 40,000 cases": {
    text: () => smartFrog(cell(`s SWITCH ${each(40_000, (i) => `IF (false) THEN ${i}`)} IF (true) THEN 1 ENDSWITCH;`)),
    code: null,
  },
  "an attribute of 400,000 tags": {
    text: () => smartFrog(`[${each(400_000, (i) => `t${i}`)}] a 1;`),
    code: "limit/tags",
  },
  "20,000 placements into what was placed": {
    text: () =>
      smartFrog(`${each(20_000, (i) => `a${19_999 - i}:a${20_000 - i} extends { }`)}\n${cell("a0 extends { }")}`),
    code: "place/unresolved",
  },
};

const lexical: Readonly<Record<string, HostileText>> = {
  "base 64 of 12 MiB": { text: () => smartFrog(`a #B64#${"QUJD".repeat(3 * mebi)}#;`), code: "schema/no-cell" },
  "decimal bytes of 15 MiB": { text: () => smartFrog(`a #DEC#${"255".repeat(5 * mebi)}#;`), code: "schema/no-cell" },
  "bytes with 5 million spaces": {
    text: () => smartFrog(`a #HEX#${"01 ".repeat(5 * mebi)}#;`),
    code: "schema/no-cell",
  },
  "7 million escapes": { text: () => smartFrog(`a ##${"\\n".repeat(7 * mebi)}#;`), code: "schema/no-cell" },
  "15 MiB of quotes of print": { text: () => smartFrog("„".repeat(15 * mebi)), code: "syntax/character" },
  "a word of 15 MiB in another script": { text: () => smartFrog("ж".repeat(15 * mebi)), code: "syntax/character" },
  "40 files of 60,000 attributes": {
    text: () =>
      smartFrog(
        each(40, (i) => `#include "f${i}.sf"`),
        Object.fromEntries(range(40).map((i) => [`f${i}.sf`, "a;".repeat(60_000)])),
      ),
    code: "limit/tokens",
  },
  "4 million comments in JSON": { text: () => json("/**/".repeat(4 * mebi)), code: "syntax/expected" },
};

const formatted: Readonly<Record<string, HostileText>> = {
  "100,000 attributes on one line, formatted": {
    text: () => smartFrog("a 1; ".repeat(100_000)),
    code: null,
    work: "format",
  },
  "a string of 15 MiB, formatted": {
    text: () => smartFrog(`a "${"x".repeat(15 * mebi)}";`),
    code: null,
    work: "format",
  },
  "a text of 7 million lines, formatted": {
    text: () => smartFrog(`a ##${"x\n".repeat(7 * mebi)}#;`),
    code: null,
    work: "format",
  },
  "a word of 15 MiB, formatted": { text: () => smartFrog(`${"a".repeat(15 * mebi)} 1;`), code: null, work: "format" },
  "a million comments, formatted": {
    text: () => smartFrog("/* a */ ".repeat(mebi)),
    code: "limit/tokens",
    work: "format",
  },
  "more text than is read, formatted": {
    text: () => smartFrog(`// ${"x".repeat(16 * mebi)}`),
    code: "limit/text",
    work: "format",
  },
  "a tree of 80,000 components": {
    text: () => smartFrog(`sfConfig extends {\n${each(80_000, (i) => `a${i} extends { }`)}\n}`),
    code: null,
    work: "tree",
  },
  "a tree that doubles through links": {
    text: () =>
      smartFrog(
        `sfConfig extends { t0 extends { v 1; }\n${each(60, (i) => `t${i + 1} extends { a PARENT:t${i}; b PARENT:t${i}; }`)} }`,
      ),
    code: "limit/",
    work: "tree",
  },
};

export const hostileWork: Readonly<Record<string, HostileText>> = {
  ...elements,
  ...data,
  ...expressions,
  ...lexical,
  ...formatted,
};
