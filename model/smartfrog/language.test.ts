import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../specification/specification.ts";
import { smartFrogTree } from "./tree.ts";

/** The language beyond its recorded cases: what each form means, and that nothing small costs much. */
const library = '#include "/org/smartfrog/functions.sf"\n#include "/org/smartfrog/predicates.sf"\n';
const tree = (text: string, files: Readonly<Record<string, string>> = {}): ReturnType<typeof smartFrogTree> =>
  smartFrogTree({ main: "a.sf", files: { ...files, "a.sf": text } }, []);

/** The attributes of `sfConfig extends { <text> }`. */
function attributes(text: string, before = ""): unknown {
  const outcome = tree(`${before}\nsfConfig extends { ${text} }`);
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return (outcome.sfConfig as { $cd: unknown }).$cd;
}
/** Phase, code and place of the first fault. */
function fault(text: string): readonly unknown[] {
  const outcome = tree(text);
  assert.ok(!outcome.ok, JSON.stringify(outcome));
  const [{ code, position } = { code: "" }] = outcome.errors;
  return [outcome.phase, code, `${position?.line}:${position?.column}`];
}
const lazy = (text: string): unknown => ({ $ref: text, eager: false, data: false });

test("numbers are of the type that they are written as, and of the widest where they meet", () => {
  assert.deepEqual(attributes("a .5; b 5.; c 1e10; d 2f; e 1.0E-5D; f 7L; g (1 + 1.5); h (1L * 2D); i (7 / 2);"), [
    ["a", { $float: "0.5" }],
    ["b", { $float: "5.0" }],
    ["c", { $float: "1.0E10" }],
    ["d", { $float: "2.0" }],
    ["e", { $double: "1.0E-5" }],
    ["f", { $long: 7 }],
    ["g", { $float: "2.5" }],
    ["h", { $double: "2.0" }],
    ["i", 3],
  ]);
  assert.deepEqual(attributes("a (1 == 1); b (1 == 1L); c (1 != 1.0);"), [
    ["a", true],
    ["b", false],
    ["c", true],
  ]);
});

test("texts over several lines have escapes; bytes have four ways of writing", () => {
  assert.deepEqual(attributes('a ##x\\n\\#\ny#; b #DEC#255 001#; c #OCT#377#; d (1.5 ++ "" ++ 2L);'), [
    ["a", "x\n#\ny"],
    ...["FF01", "FF"].map((digits, index) => [
      "bc"[index],
      { $class: "org.smartfrog.sfcore.common.SFByteArray", text: `#HEX#${digits}#` },
    ]),
    ["d", "1.52"],
  ]);
  assert.deepEqual(fault("sfConfig extends { a #DEC#256#; }"), ["raw", "syntax/bytes", "1:22"]);
});

test("a character by its number has three octal digits", () => {
  assert.deepEqual(attributes('a "\\000\\1018\\377";'), [["a", "\u0000A8\u00ff"]]);
  for (const text of ["\\7", "\\10", "\\400", "\\8", "\\18"])
    assert.deepEqual(fault(`sfConfig extends { a "${text}"; }`), ["raw", "syntax/escape", "1:23"]);
});

test("a long is as long as it is, whatever zeros stand before it", () => {
  assert.deepEqual(attributes(`a ${"0".repeat(399)}7L;`), [["a", { $long: 7 }]]);
  assert.equal(fault(`sfConfig extends { a ${"9".repeat(400)}L; }`)[1], "syntax/number");
});

test("DATA and LAZY are left as they stand, and so is what depends on what is lazy", () => {
  assert.deepEqual(attributes('a DATA x:y; b a; c LAZY OPTIONAL("d") x; d c; e (d ++ 1); f d:z; g [LAZY x];'), [
    ["a", { $ref: "DATA x:y", eager: true, data: true }],
    ["b", { $ref: "DATA x:y", eager: true, data: true }],
    ["c", lazy('LAZY OPTIONAL  ("d") x')],
    ["d", lazy("LAZY c")],
    [
      "e",
      lazy('LAZY APPLY {sfFunctionClass "org.smartfrog.sfcore.languages.sf.functions.Concatenate";\n-- d;\n-- 1;\n}'),
    ],
    ["f", lazy("LAZY d:z")],
    ["g", lazy('LAZY APPLY {sfFunctionClass "org.smartfrog.sfcore.languages.sf.functions.Vector";\n-- LAZY x;\n}')],
  ]);
  assert.deepEqual(attributes("a extends DATA { b 1; } c extends LAZY a; d extends; e extends NULL { f 1; }"), [
    ["a", { $cd: [["b", 1]], $data: true }],
    ["c", { $cd: [["b", 1]], $data: true }],
    ["d", { $cd: [] }],
    ["e", { $cd: [["f", 1]] }],
  ]);
});

test("tags: sfFinal and sfOverride speak of other parts, not of the same block", () => {
  assert.deepEqual(attributes('[b "a c", b] x 1; [sfTemp] t 2; y t; [sfFinal] z 1; z 2;'), [
    ["x", 1, ["a c", "b"]],
    ["y", 2],
    ["z", 2, ["sfFinal"]],
  ]);
  const base = "a extends { [sfFinal] x 1; }\n";
  assert.deepEqual(fault(`${base}sfConfig extends a { x 2; }`), ["type", "type/final", "2:22"]);
  assert.deepEqual(fault(`${base}b extends a { y 1; }\nsfConfig extends b, { x 2; }`), ["type", "type/final", "3:23"]);
  assert.deepEqual(fault(`${base}b extends { x 1; }\nsfConfig extends a, b;`), ["type", "type/final", "3:10"]);
  assert.deepEqual(tree("a extends { x 1; } sfConfig extends a { [sfOverride] x 2; }"), {
    ok: true,
    sfConfig: { $cd: [["x", 2, ["sfOverride"]]] },
  });
  assert.deepEqual(fault("sfConfig extends { [sfOverride] x 2; }"), ["type", "type/override", "1:33"]);
});

test("sfLocal is seen from inside its component only", () => {
  assert.deepEqual(attributes("a extends { [sfLocal] l 1; m l; n extends { o l; } } p a:m; q OPTIONAL(9) a:l;"), [
    [
      "a",
      {
        $cd: [
          ["l", 1, ["sfLocal"]],
          ["m", 1],
          ["n", { $cd: [["o", 1]] }],
        ],
      },
    ],
    ["p", 1],
    ["q", 9],
  ]);
});

test("schemas check what stands beside them, where it was written", () => {
  const schema = "T extends { s extends Schema { port extends Long; name extends OptionalString; c extends CD; } }\n";
  const good = tree(`${library}${schema}sfConfig extends T { port 1; c extends {} }`);
  assert.ok(good.ok && JSON.stringify(good).includes("LAZY ASSERT {port APPLY"), JSON.stringify(good));
  assert.deepEqual(fault(`${library}${schema}sfConfig extends T { port 1.5; c extends {} }`), [
    "link",
    "link/operand",
    "4:27",
  ]);
  assert.deepEqual(fault(`${library}${schema}sfConfig extends T { port 1; }`), ["link", "link/operand", "4:10"]);
  const bound = (when: string): unknown =>
    fault(`${library}sfConfig extends { s extends Schema { port extends Long { binding ${when}; } } port 1; }`);
  assert.deepEqual(bound('"soon"'), ["link", "link/operand", "3:84"]);
  assert.deepEqual(bound("5"), ["link", "link/operand", "3:79"]);
  assert.deepEqual(fault(`${library}sfConfig extends { s extends Schema { port 5; } }`), [
    "function",
    "function/schema",
    "3:39",
  ]);
  assert.deepEqual(fault("sfConfig extends { s extends Schema {} }"), ["type", "type/unknown", "1:30"]);
});

test("assertions hold or are faults; static ones are gone afterwards", () => {
  const asserting = (phase: string, x: string): string =>
    `${library}sfConfig extends { x ${x}; v extends Assertions { ${phase} ok (x > 3); } }`;
  assert.deepEqual(tree(asserting('sfAssertionPhase "static";', "5")), { ok: true, sfConfig: { $cd: [["x", 5]] } });
  assert.deepEqual(fault(asserting("", "2")).slice(0, 2), ["link", "link/operand"]);
  assert.deepEqual(fault(asserting('sfAssertionPhase "static";', "LAZY y")).slice(0, 2), ["link", "link/assertion"]);
  assert.ok(tree(asserting("", "LAZY y")).ok);
});

test("functions of templates and of APPLY", () => {
  const functions = "org.smartfrog.sfcore.languages.sf.functions.";
  const text = `a extends formatString { format "$1-$0"; s1 "p"; s0 "q"; } b extends not { data true; }
    c extends minus { left 5; right 2L; } d extends ifThenElse { if (1 == 1); then "y"; else "n"; }
    e APPLY { sfFunctionClass "${functions}Sum"; l x; r y; y 5; }; x 3;
    f [APPLY { sfFunctionClass "${functions}Product"; l 2; r x; }, 4]; g extends next { base 7; } h extends append { -- [1]; -- [2]; }
    i LAZY APPLY { sfFunctionClass "${functions}Sum"; l 1; };`;
  assert.deepEqual(attributes(text, library), [
    ["a", "p-q"],
    ["b", false],
    ["c", { $long: 3 }],
    ["d", "y"],
    ["e", 8 + 5],
    ["x", 3],
    ["f", [6, 4]],
    ["g", 7],
    ["h", [1, 2]],
    ["i", lazy(`LAZY APPLY {sfFunctionClass "${functions}Sum";\nl 1;\n}`)],
  ]);
});

test("what needs Java is refused with a sentence", () => {
  const outcome = tree(
    `${library}sfConfig extends { a APPLY { sfFunctionClass "com.acme.Foo"; }; b PROPERTY user.home; c HOST "x":y; d CONSTANT a.b.C; e PROCESS:x; f extends random; g ENVPROPERTY HOME; h extends System; i extends LazyConstraint; }`,
  );
  assert.ok(!outcome.ok);
  assert.deepEqual(
    outcome.errors.map(({ code }) => code),
    Array(9).fill("link/needs-java"),
  );
  for (const { message, hint } of outcome.errors) assert.match(`${message} ${hint}`, /Java|the same text/);
});

test("longs are exact over 64 bits, in expressions as well", () => {
  const outcome = tree(
    'sfConfig extends { a 9007199254740993L; b (9223372036854775806L + 1); c -9223372036854775808L; d (a == 9007199254740992L); e (a ++ ""); f (a % 10); g (3L / 2); h (a > 9007199254740992L); i [7L]; }',
  );
  assert.equal(
    JSON.stringify(outcome),
    '{"ok":true,"sfConfig":{"$cd":[["a",{"$long":9007199254740993}],["b",{"$long":9223372036854775807}],["c",{"$long":-9223372036854775808}],["d",false],["e","9007199254740993"],["f",{"$long":3}],["g",{"$long":1}],["h",true],["i",[{"$long":7}]]]}}',
  );
  assert.deepEqual(fault("sfConfig extends { a 9223372036854775808L; }"), ["raw", "syntax/number", "1:22"]);
  assert.deepEqual(fault("sfConfig extends { a 1.5L; }"), ["raw", "syntax/number", "1:22"]);
  assert.deepEqual(fault("sfConfig extends { a (9223372036854775807L + 1); }"), ["link", "link/operand", "1:22"]);
  assert.deepEqual(fault("sfConfig extends { a (5L / 0); }"), ["link", "link/operand", "1:22"]);
});

test("what is placed under `--` has a name of its own, wherever it comes from", () => {
  const [a, b] = attributes("a extends { -- 1; } a:-- 2; a:-- 3; b extends a;") as [
    string,
    { $cd: [string, number][] },
  ][];
  const inside = (each: typeof a): readonly [string, number][] => each?.[1].$cd ?? [];
  assert.deepEqual(
    inside(a).map(([, value]) => value),
    [1, 2, 3],
  );
  assert.equal(new Set(inside(a).map(([name]) => name)).size, 3);
  assert.deepEqual(
    inside(b).map(([, value]) => value),
    [1],
  );
  assert.deepEqual(attributes('a extends {} a:"b c" 5;'), [["a", { $cd: [["b c", 5]] }]]);
  assert.deepEqual(fault('sfConfig extends { a extends {} "a":b 5; }'), ["raw", "syntax/expected", "1:36"]);
  assert.deepEqual(fault("sfConfig extends { a extends {} PARENT:b 5; }"), ["raw", "syntax/expected", "1:33"]);
});

test("placement: beside the target only, with the types that are seen where it is written", () => {
  const inside = (text: string): unknown => {
    const outcome = tree(text);
    assert.ok(outcome.ok, JSON.stringify(outcome));
    return outcome.sfConfig;
  };
  // What is placed may place something itself; a template places in each of its copies.
  assert.deepEqual(
    inside("sfConfig extends { a extends {} a:b extends { c extends {} c:d 1; } a:b:c:e 2; }"),
    inside("sfConfig extends { a extends { b extends { c extends { e 2; d 1; } } } }"),
  );
  assert.deepEqual(
    inside("t extends { a extends { v 1; } a:w u; u 5; } sfConfig extends { x extends t { u 6; } y extends t; }"),
    inside(
      "sfConfig extends { x extends { a extends { v 1; w 6; } u 6; } y extends { a extends { v 1; w 5; } u 5; } }",
    ),
  );
  // What is placed into a template is not inherited: types are settled before.
  assert.deepEqual(
    inside("t extends { a 1; } t:b 2; sfConfig extends { x extends t; }"),
    inside("sfConfig extends { x extends { a 1; } }"),
  );
  assert.deepEqual(
    inside("T extends { a 1; } f extends { T extends { a 2; } } f:b extends T; sfConfig extends { x f:b; }"),
    inside("sfConfig extends { x extends { a 1; } }"),
  );
  assert.deepEqual(fault("f extends {} f:b extends Nope; sfConfig extends { x f; }"), ["type", "type/unknown", "1:26"]);
  assert.deepEqual(fault("a extends {} sfConfig extends { a:x 1; }"), ["place", "place/unresolved", "1:33"]);
});

test("supertypes: PARENT is what the component stands in", () => {
  assert.deepEqual(attributes("b extends PARENT:A; c extends { d extends PARENT:PARENT:A; } A extends { x 1; }"), [
    ["b", { $cd: [["x", 1]] }],
    ["c", { $cd: [["d", { $cd: [["x", 1]] }]] }],
    ["A", { $cd: [["x", 1]] }],
  ]);
  assert.deepEqual(fault("sfConfig extends PARENT:PARENT:A; A extends {}").slice(0, 2), ["type", "type/unknown"]);
});

test("a tree needs a component sfConfig", () => {
  assert.deepEqual(fault("a extends { b 1; }"), ["sfConfig", "tree/no-component", "1:1"]);
  assert.deepEqual(fault("sfConfig 5;"), ["sfConfig", "tree/no-component", "1:10"]);
});

test("a float beyond 32 bits is refused, and says what to write", () => {
  assert.deepEqual(fault("sfConfig extends { a 1e39; }"), ["raw", "syntax/number", "1:22"]);
  assert.deepEqual(attributes("a 1e39D;"), [["a", { $double: "1.0E39" }]]);
});

test("sfIgnoreLink keeps a reference as it was written, for others it is followed", () => {
  assert.deepEqual(attributes("[sfIgnoreLink] a b; b 1; c a; [sfIgnoreLink] d nowhere; [sfIgnoreLink] e 2;"), [
    ["a", { $ref: "b", eager: true, data: false }, ["sfIgnoreLink"]],
    ["b", 1],
    ["c", 1],
    ["d", { $ref: "nowhere", eager: true, data: false }, ["sfIgnoreLink"]],
    ["e", 2, ["sfIgnoreLink"]],
  ]);
});

test("phaseList may name the phases that there are, and is no part of the document", () => {
  const listed = (phases: string): string => `phaseList [|${phases}|];\nsfConfig extends { a ROOT:b; }\nb 1;`;
  const all = '"type", "place", "function", "sfConfig", "link"';
  for (const phases of [all, '"type", "place", "sfConfig", "link"'])
    assert.deepEqual(tree(listed(phases)), { ok: true, sfConfig: { $cd: [["a", 1]] } });
  for (const phases of ['"type", "com.example.Check", "place", "link"', '"link", "type", "place"', '"type"', ""])
    assert.deepEqual(fault(listed(phases)), ["type", "type/phases", "1:11"]);
  assert.deepEqual(attributes("phaseList 1; a phaseList;"), [
    ["phaseList", 1],
    ["a", 1],
  ]);
});

test("forms that name Java classes are refused with a sentence, and nothing else is told about them", () => {
  const files = { "b.sf": "b 1;" };
  const outcome = tree('#codebase "http://x/a.jar" #include "b.sf"\nsfConfig extends:Node { a b; }', files);
  assert.ok(!outcome.ok);
  assert.deepEqual(
    outcome.errors.map(({ code, position }) => [code, position?.line, position?.column]),
    [
      ["syntax/needs-java", 1, 1],
      ["syntax/needs-java", 2, 17],
    ],
  );
});

test("each word of a reference's binding is said once", () => {
  for (const text of ["LAZY LAZY b", "DATA LAZY b", "OPTIONAL(1) OPTIONAL(2) b"])
    assert.equal(fault(`sfConfig extends { a ${text}; b 1; }`)[1], "syntax/expected");
});

test("bytes in base 64", () => {
  assert.deepEqual(attributes("a #B64#AAEC/w==#; b #B64##;"), [
    ["a", { $class: "org.smartfrog.sfcore.common.SFByteArray", text: "#HEX#000102FF#" }],
    ["b", { $class: "org.smartfrog.sfcore.common.SFByteArray", text: "#HEX##" }],
  ]);
  assert.deepEqual(fault("sfConfig extends { a #B64#AAE#; }"), ["raw", "syntax/bytes", "1:22"]);
});

test("includes stand in for what they hold, and overriding goes on from there", () => {
  const files = { "d/b.sf": '#include "c.sf"\nb c;', "d/c.sf": "c 1;" };
  assert.deepEqual(tree('#include "d/b.sf"\nc 2;\nsfConfig extends { x b; }', files), {
    ok: true,
    sfConfig: { $cd: [["x", 2]] },
  });
});

const chain = (count: number, link: (next: string) => string): string =>
  `${library}sfConfig extends { ${Array.from({ length: count }, (_, n) => `a${n} ${link(`a${n + 1}`)}`).join(" ")} a${count} 1; }`;
const deep = (inner: string): string => "(".repeat(120) + inner + " + 1)".repeat(120);

test("nine hundred references in a row are followed, however deep in expressions they stand", () => {
  for (const text of [
    chain(900, (next) => `${next};`),
    chain(900, (next) => `${deep(next)};`),
    chain(400, (next) => `extends sum { -- ${next}; -- 1; }`),
  ])
    assert.ok(tree(text).ok);
});

test("what would grow without end is a fault, told a few times at most", () => {
  const grown = (first: string, link: (last: string) => string): string =>
    `sfConfig extends { a0 ${first} ${Array.from({ length: 60 }, (_, n) => `a${n + 1} ${link(`a${n}`)}`).join(" ")} }`;
  const hostile: readonly (readonly [string, string])[] = [
    [chain(5000, (next) => `${next};`), "limit/references"],
    [chain(5000, (next) => `extends sum { -- ${next}; }`), "limit/references"],
    [grown("[1];", (last) => `[${last}, ${last}];`), "limit/attributes"],
    [grown("[1];", (last) => `(${last} <> ${last});`), "limit/evaluation"],
    [grown('"x";', (last) => `(${last} ++ ${last});`), "limit/evaluation"],
    [grown("extends { x 1; }", (last) => `extends { p ${last}; q ${last}; }`), "limit/attributes"],
    [`sfConfig extends { a ${"OPTIONAL ( ".repeat(100_000)}`, "limit/nesting"],
    [`sfConfig extends { a ${"APPLY { x ".repeat(100_000)}`, "limit/nesting"],
    ["sfConfig extends { a PARENT:sfConfig; }\n", "link/cycle"],
    [
      `sfConfig extends { a0 extends {} ${Array.from({ length: 5000 }, (_, n) => `a${n + 1} extends { p a${n}; }`).join(" ")} }`,
      "limit/nesting",
    ],
  ];
  for (const [text, code] of hostile) {
    const outcome = tree(text);
    assert.ok(!outcome.ok, text.slice(0, 80));
    assert.ok(
      outcome.errors.some((error) => error.code === code),
      `${text.slice(0, 80)}: ${JSON.stringify(outcome.errors[0])}`,
    );
    assert.ok(outcome.errors.length <= 20, "not once for each of 5000");
  }
});

test("an include with ? brings nothing where there is no such file, and its file where there is one", () => {
  const empty = { ok: true, sfConfig: { $cd: [["a", 1]] } };
  assert.deepEqual(tree('#include ? "b.sf"\nsfConfig extends { a 1; }'), empty);
  assert.deepEqual(tree('#include? "b.sf"\nsfConfig extends { a 1; }'), empty);
  assert.deepEqual(tree('#include ? "b.sf"\nsfConfig extends b;', { "b.sf": "b extends { a 1; }" }), empty);
  const outside = tree('#include ? "../b.sf"\nsfConfig extends { a 1; }') as { errors: readonly { code: string }[] };
  assert.deepEqual(
    outside.errors.map(({ code }) => code),
    ["syntax/include-outside"],
  );
});

test("what is no vector adds nothing to <>", () => {
  const outcome = smartFrogTree(
    { main: "a.sf", files: { "a.sf": 'sfConfig extends { a ([1] <> 2 <> "x" <> [3]); b (1 <> 2); }' } },
    [],
  );
  assert.deepEqual(outcome, {
    ok: true,
    sfConfig: {
      $cd: [
        ["a", [1, 3]],
        ["b", []],
      ],
    },
  });
});

test("floats have 32 bits: sums, comparisons and what a cell's number becomes", () => {
  const text = "sfConfig extends { a (0.1F + 0.2F); b (0.1F == 0.1); c (16777216.0F + 1.0F); d 1.0E-45F; }";
  assert.deepEqual(smartFrogTree({ main: "a.sf", files: { "a.sf": text } }, []), {
    ok: true,
    sfConfig: {
      $cd: [
        ["a", { $float: "0.3" }],
        ["b", true],
        ["c", { $float: "1.6777216E7" }],
        ["d", { $float: "1.4E-45" }],
      ],
    },
  });
});

test("a file may be one component that extends another, which stands in it or is included", () => {
  const whole = {
    ok: true,
    sfConfig: {
      $cd: [
        ["a", 1],
        ["b", 3],
      ],
    },
  };
  const base = "A extends { sfConfig extends { a 1; b c; } c 2; }";
  assert.deepEqual(tree('#include "b.sf"\nextends A { c 3; }', { "b.sf": base }), whole);
  assert.deepEqual(tree(`extends A;\n${base}\nc 3;`), whole);
  assert.deepEqual(tree(`extends A, { c 3; }\n${base}`), whole);
  assert.deepEqual(fault("extends B;\nsfConfig extends { a 1; }").slice(0, 2), ["type", "type/unknown"]);
  assert.deepEqual(fault("a 1;\nextends B;").slice(0, 2), ["raw", "syntax/expected"]);
  const included = tree('#include "b.sf"\nsfConfig extends { }', { "b.sf": "extends A; A extends { }" });
  assert.match(JSON.stringify(included), /Only the main file can extend/);
});

test("a component may stand in parentheses", () => {
  assert.deepEqual(attributes("a (extends { b 1; });"), [["a", { $cd: [["b", 1]] }]]);
  assert.deepEqual(attributes("a extends B; c (extends B, { d 2; })", "B extends { b 1; }"), [
    ["a", { $cd: [["b", 1]] }],
    [
      "c",
      {
        $cd: [
          ["b", 1],
          ["d", 2],
        ],
      },
    ],
  ]);
});

test("a cell's number keeps the digits that were written; a float of 32 bits is shown with those that it has", () => {
  const text = "shop extends Cell { a 174237.625; b 0.1F; c (0.1F + 0.2F); d 174237.64F; e 0.1; }";
  const read = readSpecification({ main: "a.sf", files: { "a.sf": text } });
  assert.ok(read.ok);
  const { a, b, c, d, e } = read.value.document.shop as { readonly [name: string]: unknown };
  assert.deepEqual([a, b, c, d, e], [174_237.625, 0.1, 0.3, 174_237.64, 0.1]);
});
