import { cell, each, files, type HostileText, json, mebi, range, smartFrog } from "./hostile-builders.testing.ts";
import { hostileWork } from "./hostile-work.testing.ts";

const nesting: Readonly<Record<string, HostileText>> = {
  "components nested 100,000 deep": { text: () => smartFrog("a extends { ".repeat(100_000)), code: "limit/nesting" },
  "components nested 250 deep, copied into one another": {
    text: () =>
      smartFrog(
        each(40, (i) => `t${i} extends ${"{ a extends ".repeat(50)}${i === 0 ? "{" : `t${i - 1} {`}${"}".repeat(51)}`),
      ),
    code: "limit/",
  },
  "vectors nested 8 million deep": { text: () => smartFrog(`a ${"[".repeat(8 * mebi)}`), code: "limit/" },
  "parentheses nested a million deep": { text: () => smartFrog(`a ${"(".repeat(mebi)}`), code: "limit/" },
  "negations nested 100,000 deep": { text: () => smartFrog(`a ${"(! ".repeat(100_000)}`), code: "limit/nesting" },
  "choices nested 100,000 deep": { text: () => smartFrog(`a ${"IF ".repeat(100_000)}`), code: "limit/nesting" },
  "defaults nested 100,000 deep": { text: () => smartFrog(`a ${"OPTIONAL(".repeat(100_000)}`), code: "limit/nesting" },
  "literals nested 100,000 deep": { text: () => smartFrog(`a ${"[| ".repeat(100_000)}`), code: "limit/nesting" },
  "JSON objects nested a million deep": { text: () => json('{"a":'.repeat(mebi)), code: "limit/nesting" },
  "JSON arrays nested a million deep": { text: () => json(`{"a":${"[".repeat(mebi)}`), code: "limit/nesting" },
};

const growth: Readonly<Record<string, HostileText>> = {
  "templates that double": {
    text: () =>
      smartFrog(`t0 extends { v 1; }\n${each(60, (i) => `t${i + 1} extends { a extends t${i}; b extends t${i}; }`)}`),
    code: "limit/attributes",
  },
  "templates of functions that double": {
    text: () =>
      smartFrog(
        `#include "/org/smartfrog/functions.sf"\nt0 extends { f extends sum { l 1; r 2; } }\n${each(14, (i) => `t${i + 1} extends { a extends t${i}; b extends t${i}; }`)}`,
      ),
    code: "limit/attributes",
  },
  "templates that grow tenfold": {
    text: () =>
      smartFrog(
        `t0 extends { v 1; }\n${each(20, (i) => `t${i + 1} extends { ${each(10, (k) => `a${k} extends t${i};`)} }`)}`,
      ),
    code: "limit/attributes",
  },
  "a template of 1,000 attributes 50,000 times": {
    text: () =>
      smartFrog(`t extends { ${each(1000, (i) => `a${i} ${i};`)} }\n${each(50_000, (i) => `c${i} extends t;`)}`),
    code: "limit/attributes",
  },
  "one component that extends a template a million times": {
    text: () =>
      smartFrog(
        `t extends { ${each(1000, (i) => `a${i} ${i};`)} }\nc extends ${range(100_000)
          .map(() => "t")
          .join(", ")};`,
      ),
    code: "limit/attributes",
  },
  "placements that double": {
    text: () =>
      smartFrog(
        `t0 extends { in extends { } in:v 1; }\n${each(17, (i) => `t${i + 1} extends { a extends t${i}; b extends t${i}; }`)}\nz extends t17;`,
      ),
    code: "limit/placed",
  },
  "vectors that double": {
    text: () =>
      smartFrog(
        cell(
          `vm extends VM { x.memory 16; x.data v60; }\nv0 [1, 2];\n${each(60, (i) => `v${i + 1} (v${i} <> v${i});`)}`,
        ),
      ),
    code: "limit/",
  },
  "vectors of vectors that double": {
    text: () => smartFrog(cell(`v0 [1, 2];\n${each(60, (i) => `v${i + 1} [v${i}, v${i}];`)}`)),
    code: "limit/",
  },
  "texts that double": {
    text: () => smartFrog(cell(`s0 "0123456789";\n${each(60, (i) => `s${i + 1} (s${i} ++ s${i});`)}`)),
    code: "limit/",
  },
  "texts of doubled vectors": {
    text: () => smartFrog(cell(`v0 [1, 2];\n${each(60, (i) => `v${i + 1} [v${i}, v${i}];`)}\ns ("" ++ v60);`)),
    code: "limit/",
  },
  "doubled vectors compared": {
    text: () =>
      smartFrog(
        cell(
          `v0 [1, 2]; w0 [1, 2];\n${each(60, (i) => `v${i + 1} [v${i}, v${i}]; w${i + 1} [w${i}, w${i}];`)}\ns (v60 == w60);`,
        ),
      ),
    code: "limit/",
  },
  "links that double": {
    text: () =>
      smartFrog(
        `${cell("")}\nt0 extends { v 1; }\n${each(60, (i) => `t${i + 1} extends { a PARENT:t${i}; b PARENT:t${i}; }`)}`,
      ),
    code: "limit/",
  },
  "data that doubles through references": {
    text: () =>
      json(
        JSON.stringify({
          shop: { "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 16, "x.data": { a: "<ref:/t60>" } } },
          t0: { v: {} },
          ...Object.fromEntries(range(60).map((i) => [`t${i + 1}`, { a: `<ref:/t${i}>`, b: `<ref:/t${i}>` }])),
        }),
      ),
    code: "limit/",
  },
  "data of empty objects referred to again and again": {
    text: () =>
      json(
        JSON.stringify({
          shop: {
            "x.type": "Cell",
            vm: { "x.type": "VM", "x.memory": 16, "x.data": range(2000).map(() => "<ref:/t>") },
          },
          t: Object.fromEntries(range(20_000).map((i) => [`o${i}`, {}])),
        }),
      ),
    code: "limit/",
  },
};

const references: Readonly<Record<string, HostileText>> = {
  "a loop of references": {
    text: () => smartFrog(cell(each(900, (i) => `a${i} a${(i + 1) % 900};`))),
    code: "link/cycle",
  },
  "a chain of 100,000 references": {
    text: () => smartFrog(cell(`${each(100_000, (i) => `a${i} a${i + 1};`)}\na100000 1;`)),
    code: "limit/references",
  },
  "a chain of 10,000 templates": {
    text: () => smartFrog(`${each(10_000, (i) => `t${i} extends t${i + 1};`)}\nt10000 extends { }`),
    code: "limit/references",
  },
  "a loop of templates": {
    text: () => smartFrog(each(900, (i) => `t${i} extends t${(i + 1) % 900};`)),
    code: "type/cycle",
  },
  "a loop of <ref:…>": {
    text: () =>
      json(
        `{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":"<ref:/a0>"}},${range(900)
          .map((i) => `"a${i}":"<ref:/a${(i + 1) % 900}>"`)
          .join(",")}}`,
      ),
    code: "reference/circular",
  },
  "a chain of 100,000 <ref:…>": {
    text: () =>
      json(
        `{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":"<ref:/a0>"}},${range(100_000)
          .map((i) => `"a${i}":"<ref:/a${i + 1}>"`)
          .join(",")},"a100000":64}`,
      ),
    code: "limit/references",
  },
  "100,000 ways into a chain of 900 <ref:…>": {
    text: () =>
      json(
        `{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":16,"x.data":{"list":[${range(100_000)
          .map(() => '"<ref:/a0>"')
          .join(",")}]}}},${range(900)
          .map((i) => `"a${i}":"<ref:/a${i + 1}>"`)
          .join(",")},"a900":64}`,
      ),
    code: "limit/data",
  },
  "a reference of 100,000 parts": {
    text: () =>
      json(`{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":"<ref:${"/shop/..".repeat(100_000)}/a>"}},"b":1}`),
    code: "reference/",
  },
  "a circle of 10,000 copies": {
    text: () =>
      smartFrog(cell(each(10_000, (i) => `c${i} extends VolumeCopy { x.image "<ref:../c${(i + 1) % 10_000}>"; }`))),
    code: "cell/copy-cycle",
  },
  "20,000 references of 200 parts": {
    text: () =>
      json(
        `{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":16,"x.data":{"list":[${range(20_000)
          .map(() => `"<ref:${"/a".repeat(200)}/v>"`)
          .join(",")}]}}},${'"a":{'.repeat(200)}"v":1${"}".repeat(200)}}`,
      ),
    code: "limit/data",
  },
  "data that contains itself": {
    text: () =>
      json(
        '{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":16,"x.data":{"a":"<ref:/shop>","b":"<ref:/t>"}}},"t":{"a":"<ref:/t>","b":"<ref:/t>"}}',
      ),
    code: "limit/data",
  },
};

const size: Readonly<Record<string, HostileText>> = {
  "more text than is read": { text: () => smartFrog(`a "${"x".repeat(16 * mebi)}";`), code: "limit/text" },
  "a vector of 8 million numbers": { text: () => smartFrog(`a [${"1,".repeat(8 * mebi - 10)}1];`), code: "limit/" },
  "16 MiB of attributes": { text: () => smartFrog("a;".repeat(8 * mebi)), code: "limit/" },
  "16 MiB of opened blocks": { text: () => smartFrog("a extends {} ".repeat(mebi)), code: "limit/" },
  "16 MiB of what means nothing": { text: () => smartFrog("?".repeat(16 * mebi)), code: "syntax/character" },
  "16 MiB of an open comment": {
    text: () => smartFrog(`/*${" *".repeat(8 * mebi - 10)}`),
    code: "syntax/unclosed-comment",
  },
  "16 MiB of wrong escapes": { text: () => smartFrog(`a "${"\\q".repeat(8 * mebi - 10)}";`), code: "syntax/escape" },
  "16 MiB of line ends": { text: () => smartFrog("\n".repeat(16 * mebi)), code: "schema/no-cell" },
  "a name of 16 MiB": { text: () => smartFrog(`${"a".repeat(16 * mebi - 10)} ;`), code: "schema/no-cell" },
  "an unknown attribute with a name of 8 MiB": {
    text: () => smartFrog(cell(`vm extends VM { x.memory 16; x.${"a".repeat(8 * mebi)} 1; }`)),
    code: "schema/unknown-attribute",
  },
  "an unknown type with a name of 8 MiB": {
    text: () => smartFrog(`a extends ${"b".repeat(8 * mebi)};`),
    code: "type/unknown",
  },
  "a number of a million digits": { text: () => smartFrog(`a ${"9".repeat(mebi)};`), code: "syntax/number" },
  "a long of a million digits": { text: () => smartFrog(`a ${"9".repeat(mebi)}L;`), code: "syntax/number" },
  "a number too large": { text: () => smartFrog("a 1e999;"), code: "syntax/number" },
  "bytes of 16 MiB": { text: () => smartFrog(`a #BIN#${"01".repeat(7 * mebi)}1#;`), code: "syntax/bytes" },
  "a JSON array of 8 million numbers": {
    text: () => json(`{"a":[${"1,".repeat(8 * mebi - 10)}1]}`),
    code: "limit/attributes",
  },
  "a JSON object of a million names": {
    text: () =>
      json(
        `{${range(1_000_000)
          .map((i) => `"${i}a":1`)
          .join(",")}}`,
      ),
    code: "limit/tokens",
  },
  "a JSON number too large": { text: () => json('{"a":1e999}'), code: "syntax/number" },
  "a JSON number of a million digits": { text: () => json(`{"a":${"9".repeat(mebi)}}`), code: "syntax/number" },
  "a JSON text that is never closed": {
    text: () => json(`{"a":"${"x".repeat(15 * mebi)}`),
    code: "syntax/unclosed-string",
  },
  "100,000 unknown attributes": {
    text: () => smartFrog(cell(`vm extends VM { x.memory 16; ${each(100_000, (i) => `x.m${i} 1;`)} }`)),
    code: "schema/unknown-attribute",
  },
  "the same fault in 20,000 copies": {
    text: () => smartFrog(`t extends VM { x.memory 1; }\n${cell(each(20_000, (i) => `vm${i} extends t;`))}`),
    code: "schema/range",
  },
  "50 names that are nearly one of 50,000": {
    text: () =>
      smartFrog(
        `${cell("")}\n${each(50_000, (i) => `some${i}thing extends { }`)}\n${each(50, (i) => `c${i} extends somx${i}thing;`)}`,
      ),
    code: "type/unknown",
  },
  "links of 5,000 copies to what is not there": {
    text: () => smartFrog(`t extends VM { x.memory nothing; }\n${cell(each(5000, (i) => `vm${i} extends t;`))}`),
    code: "link/",
  },
};

const includes: Readonly<Record<string, HostileText>> = {
  "includes 1,000 deep": {
    text: () =>
      smartFrog(
        '#include "f0.sf"',
        files(1000, (i) => `#include "f${i + 1}.sf"`),
      ),
    code: "limit/include",
  },
  "includes in a circle": {
    text: () =>
      smartFrog(
        '#include "f0.sf"',
        files(9, (i) => `#include "f${(i + 1) % 9}.sf"`),
      ),
    code: "syntax/include-cycle",
  },
  "includes that double": {
    text: () =>
      smartFrog(
        '#include "f0.sf"',
        files(60, (i) => (i === 59 ? "a 1; b 2;" : `#include "f${i + 1}.sf"\n#include "f${i + 1}.sf"`)),
      ),
    code: "limit/attributes",
  },
  "an empty file included 100,000 times": {
    text: () =>
      smartFrog(
        each(100_000, () => '#include "f0.sf"'),
        { "f0.sf": "" },
      ),
    code: "schema/no-cell",
  },
  "an include outside the bundle": {
    text: () => smartFrog('#include "../../etc/passwd"'),
    code: "syntax/include-outside",
  },
  "an absolute include": { text: () => smartFrog('#include "/etc/passwd"'), code: "syntax/include-absolute" },
  "an include of a property of every object": {
    text: () => smartFrog('#include "__proto__"\n#include "constructor"'),
    code: "syntax/include-missing",
  },
};

const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"];
const polluting: Readonly<Record<string, HostileText>> = {
  "names of what every object has": {
    text: () =>
      smartFrog(
        `${cell(names.map((name) => `${name} extends VM { x.memory 16; x.data extends { ${name} extends { polluted true; } } }`).join("\n"))}`,
      ),
    code: null,
  },
  "the same in JSON": {
    text: () =>
      json(
        `{"shop":{"x.type":"Cell",${names.map((name) => `"${name}":{"x.type":"VM","x.memory":16,"x.data":{"${name}":{"polluted":true}}}`).join(",")}}}`,
      ),
    code: null,
  },
  "types named like what every object has": {
    text: () => json('{"shop":{"x.type":"Cell","a":{"x.type":"__proto__"},"b":{"x.type":"constructor"}}}'),
    code: "schema/unknown-type",
  },
  "attributes named like what every object has": {
    text: () => smartFrog(cell("vm extends VM { x.memory 16; x.constructor 1; x.__proto__ 1; }")),
    code: "schema/unknown-attribute",
  },
  "references to what every object has": {
    text: () =>
      json(
        '{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":"<ref:/constructor/name>","x.cpus":"<ref:/__proto__>"}}}',
      ),
    code: "reference/dangling",
  },
  "links to what every object has": {
    text: () => smartFrog(cell("a constructor; b __proto__; c HERE toString;")),
    code: "link/unknown",
  },
  "supertypes named like what every object has": {
    text: () => smartFrog("a extends constructor; b extends __proto__;"),
    code: "type/unknown",
  },
};

export const hostileTexts: Readonly<Record<string, HostileText>> = {
  ...nesting,
  ...growth,
  ...references,
  ...size,
  ...includes,
  ...polluting,
  ...hostileWork,
};
