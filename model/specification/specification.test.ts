import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import type { Bundle, Cell } from "../cell/cell.ts";
import { getAt, removeAt, replaceAt } from "../cell/document.ts";
import { acceptedBefore } from "../check/check-supply.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { renderDiagnostic } from "../diagnostics/render-diagnostic.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { checkDocument, readSpecification } from "./specification.ts";

const example = (name: string): string => readFileSync(new URL(`../../examples/${name}`, import.meta.url), "utf8");
const sf = (text: string): Bundle => ({ main: "a.sf", files: { "a.sf": text } });
function read(bundle: Bundle): Cell {
  const result = readSpecification(bundle);
  assert.deepEqual(result.ok ? [] : result.error, []);
  assert.ok(result.ok);
  return result.value;
}
function faults(bundle: Bundle): readonly Diagnostic[] {
  const result = readSpecification(bundle);
  assert.ok(!result.ok, "the specification is refused");
  return result.error;
}
const codes = (bundle: Bundle): string[] => faults(bundle).map(({ code }) => code);
const inCell = (text: string): Bundle => sf(`params extends { memory 128; }\nc extends Cell {\n${text}\n}`);
/** Elements as plain data without positions. */
const plain = (cell: Cell): unknown =>
  JSON.parse(JSON.stringify({ ...cell, elements: [...cell.elements.values()].map((e) => ({ ...e, position: null })) }));
const figure2: Bundle = { main: "figure2.sf", files: { "figure2.sf": example("figure2.sf") } };
const shop: Bundle = {
  main: "shop.sf",
  files: { "shop.sf": example("shop/shop.sf"), "tier.sf": example("shop/tier.sf") },
};

test("figure 2 of the paper", () => {
  const cell = read(figure2);
  assert.equal(cell.name, "mycell");
  assert.deepEqual(
    [...cell.elements.keys()],
    [
      "mycell/subnet1",
      "mycell/vml",
      "mycell/vml/connection1",
      "mycell/vols/goldenImage",
      "mycell/vols/bootvol",
      "mycell/grant",
      "mycell/interface",
      "mycell/networkRule",
    ],
  );
  const get = (path: string) => [...cell.elements.values()].find((element) => element.path === `mycell/${path}`);
  const [vm, connection, copy] = [get("vml"), get("vml/connection1"), get("vols/bootvol")];
  assert.ok(vm?.type === "VM" && connection?.type === "VolumeConnection" && copy?.type === "VolumeCopy");
  assert.equal(vm.memoryMiB, 2048);
  assert.equal(connection.vm, "mycell/vml");
  assert.equal(connection.volume, "mycell/vols/bootvol");
  assert.equal(copy.image, "mycell/vols/goldenImage");
  assert.equal(getAt(cell.document, "mycell/vml/x.memory").ok, true);
});

test("the shop: three machines from one template, references resolved where each copy is", () => {
  const cell = read(shop);
  const vms = [...cell.elements.values()].filter((element) => element.type === "VM");
  assert.deepEqual(
    vms.map(({ path, memoryMiB }) => [path, memoryMiB]),
    [
      ["shop/web/vm", 128],
      ["shop/app/vm", 128],
      ["shop/db/vm", 128],
    ],
  );
  assert.deepEqual(vms[1]?.data, { role: "app", serve: { tcp: 8080 } });
  const names = [...cell.elements.values()].flatMap((e) =>
    e.type === "VirtualInterface" ? [`${e.path} ${e.vifName}`] : [],
  );
  assert.deepEqual(names, ["shop/web/interface web1", "shop/app/interface app1", "shop/db/interface db1"]);
  const template = vms[0]?.position;
  assert.equal(template?.file, "shop.sf");
});

test("the canonical document of an example gives an equal cell again", () => {
  for (const bundle of [figure2, shop]) {
    const cell = read(bundle);
    const again = checkDocument(JSON.parse(JSON.stringify(cell.document)));
    assert.ok(again.ok);
    assert.deepEqual(plain(again.value), plain(cell));
    assert.ok(Object.isFrozen(cell) && Object.isFrozen(cell.document));
  }
});

test("JSON is the same tree", () => {
  const cell = read(shop);
  const text = JSON.stringify(cell.document, null, 2);
  const fromJson = read({ main: "shop.json", files: { "shop.json": text } });
  assert.deepEqual(plain(fromJson), plain(cell));
  const wrong = text.replaceAll('"x.memory"', '"x.memroy"');
  const [first] = faults({ main: "shop.json", files: { "shop.json": wrong } });
  assert.equal(first?.hint, "Did you mean `x.memory`?");
  assert.ok((first?.position?.line ?? 0) > 1);
});

test("all syntax errors of a file are told at once, without cascades", () => {
  const text =
    'c extends Cell {\n  a extends VM { x.memory ; x.cpus (1 + ); }\n  b extends VM { x.memory 1 + 2; x.cpus 1; }\n  1c 3;\n  d "open;\n}\n';
  assert.deepEqual(
    faults(sf(text)).map(({ position }) => position?.line),
    [2, 3, 4, 5],
  );
  assert.equal(faults(sf("a } ".repeat(100))).length, 50);
});

test("faults of the schema carry the place and the nearest name", () => {
  const [unknown, range] = faults(inCell("v extends VM {\n x.memroy 128;\n x.memory 128; x.cpus 0; }"));
  assert.equal(unknown?.code, "schema/unknown-attribute");
  assert.equal(unknown?.hint, "Did you mean `x.memory`?");
  assert.deepEqual(unknown?.position, { file: "a.sf", line: 4, column: 2, length: 8 });
  assert.equal(range?.code, "schema/range");
  assert.deepEqual(codes(inCell("v extends VMM { }")), ["type/unknown"]);
  assert.deepEqual(codes(inCell("v extends VM { }")), ["schema/required"]);
  assert.deepEqual(codes(inCell("v extends { x.memory 5; }")), ["schema/no-type"]);
  assert.deepEqual(codes(sf("a extends VM { x.memory 128; }")), ["schema/no-cell"]);
  assert.deepEqual(codes(sf("a extends Cell {} b extends Cell {}")), ["schema/several-cells"]);
  assert.deepEqual(codes(sf("aB extends Cell {}")), ["schema/cell-name"]);
  assert.equal(read(sf('aB extends Cell { x.name "ab"; }')).name, "ab");
});

const network =
  'n extends Subnet { x.size 8; x.cidr "10.64.0.0/29"; } v extends VM { x.memory "<ref:/params/memory>"; }';
const refusals: readonly (readonly [string, string])[] = [
  ['v extends VM { x.memory "<ref:/params/memori>"; }', "reference/dangling"],
  ['v extends VM { x.memory "<ref:/params/memory"; }', "reference/syntax"],
  ['v extends VM { x.memory "<ref:../v>"; }', "reference/target"],
  ['v extends VM { x.memory "<ref:../p>"; } p "<ref:/c/q>"; q "<ref:p>";', "reference/circular"],
  ['v extends VM { x.memory "<ref:../../../../params>"; }', "reference/dangling"],
  [`${network} i extends VirtualInterface { x.vm "<ref:../n>"; x.subnet "<ref:../n>"; }`, "reference/type"],
  [
    `${network} i extends VirtualInterface { x.vm "<ref:../v>"; x.subnet "<ref:../n>"; x.address "10.64.1.2"; }`,
    "cell/address",
  ],
  [
    `${network} i extends VirtualInterface { x.vm "<ref:../v>"; x.subnet "<ref:../n>"; x.vifName "a"; } j extends i {}`,
    "cell/duplicate",
  ],
  [`${network} r extends NetworkRule { x.address1 "web"; x.address2 "internet"; }`, "schema/value"],
  [`${network} r extends NetworkRule { x.address1 "<ref:../n>"; x.address2 "10.0.0.1/8"; }`, "schema/value"],
  [
    `${network} r extends NetworkRule { x.address1 "<ref:../n>"; x.address2 "internet"; x.protocol "icmp"; x.port2 80; }`,
    "cell/rule",
  ],
  ['a extends VolumeCopy { x.image "<ref:../b>"; } b extends VolumeCopy { x.image "<ref:../a>"; }', "cell/copy-cycle"],
  ['a extends Volume { x.size 9; } b extends VolumeCopy { x.image "<ref:../a>"; x.size 8; }', "cell/shrink"],
  ['g extends VolumeGrant { x.volume "<ref:../a>"; x.grant "copy"; } a extends Volume { x.size 9; }', "cell/grant"],
  ...['x.account "ROOT";', 'x.account "acme/dev";', 'x.domain "acme";', 'x.domain "ROOT"; x.account "ROOT/a/b";'].map(
    (to): [string, string] => [
      `g extends VolumeGrant { x.volume "<ref:../a>"; x.grant "copy"; ${to} } a extends Volume { x.size 9; }`,
      "cell/grant",
    ],
  ),
];
for (const [text, code] of refusals)
  test(`${code}: ${text}`, () => assert.ok(codes(inCell(text)).includes(code), JSON.stringify(codes(inCell(text)))));

test("a model that was accepted before is read, also where a bound has come since", () => {
  const copies = Array.from({ length: 20 }, (_, at) => `v${at + 1} extends VolumeCopy { x.image "<ref:../v${at}>"; }`);
  const data = `m extends VM { x.memory 64; x.data extends { list [${"1,".repeat(2000)}1]; } }`;
  const text = inCell(`v0 extends Volume { x.size 1; } ${copies.join(" ")} ${data}`);
  assert.deepEqual(new Set(codes(text)), new Set(["cell/copy-depth", "limit/data"]));
  assert.equal(readSpecification(text, acceptedBefore).ok, true);
});

test("rule ends, ports and foreign references", () => {
  const cell = read(
    inCell(`${network}
    r extends NetworkRule { x.address1 "<ref:../n>"; x.address2 "10.0.0.5"; x.protocol "tcp"; x.port1 "80-90"; x.port2 "80"; }
    s extends NetworkRule { x.address1 "ref:../v"; x.address2 "<ref://Other.example/a/b>"; }
    t extends NetworkRule { x.address1 "controller"; x.address2 "internet"; }
    k extends VolumeCopy { x.image "<ref://other/golden>"; }
    link extends NetworkRule { x.address1 PARENT:n; x.address2 "internet"; }`),
  );
  const rules = [...cell.elements.values()].flatMap((e) => (e.type === "NetworkRule" ? [e] : []));
  assert.deepEqual(rules[0]?.address2, { kind: "cidr", cidr: "10.0.0.5/32" });
  assert.deepEqual(
    [rules[0]?.port1, rules[0]?.port2],
    [
      { from: 80, to: 90 },
      { from: 80, to: 80 },
    ],
  );
  assert.deepEqual(rules[1]?.address2, { kind: "foreign", domain: "other.example", path: "a/b" });
  assert.deepEqual(rules[2]?.address1, { kind: "controller" });
  assert.deepEqual(rules[3]?.address1, { kind: "element", path: "c/n", type: "Subnet" });
});

test("includes stay inside the bundle", () => {
  const files = (main: string, more: Record<string, string> = {}): Bundle => ({
    main: "d/a.sf",
    files: { "d/a.sf": main, ...more },
  });
  assert.deepEqual(codes(files('#include "/etc/passwd"')), ["syntax/include-absolute"]);
  assert.deepEqual(codes(files('#include "../../x.sf"')), ["syntax/include-outside"]);
  assert.deepEqual(codes(files('#include "a.sf"')), ["syntax/include-cycle"]);
  assert.deepEqual(codes(files('#include "b.sf"')), ["syntax/include-missing"]);
  assert.equal(read(files('#include "../b.sf"', { "b.sf": "c extends Cell {}" })).name, "c");
});

test("limits refuse what would cost too much", () => {
  const doubling = Array.from(
    { length: 40 },
    (_, n) => `t${n + 1} extends { a extends t${n} {} b extends t${n} {} }`,
  ).join("\n");
  assert.ok(codes(sf(`t0 extends { x 1; y 2; }\n${doubling}`)).some((code) => code.startsWith("limit/")));
  assert.deepEqual(codes(sf(`a ${"extends { a ".repeat(100_000)}`)).includes("limit/nesting"), true);
  const chain = Array.from({ length: 5000 }, (_, n) => `t${n} extends t${n + 1} {}`).join("\n");
  assert.deepEqual(codes(sf(`${chain}\nt5000 extends {}`)), ["limit/references"]);
  const links = Array.from({ length: 5000 }, (_, n) => `t${n} t${n + 1};`).join("\n");
  assert.ok(codes(sf(`c extends Cell {}\n${links}\nt5000 1;`)).includes("limit/references"));
  assert.ok(codes({ main: "a.json", files: { "a.json": '{"a":'.repeat(100_000) } }).includes("limit/nesting"));
});

test("a diagnostic shows the line, the place and the hint", () => {
  const bundle = inCell("v extends VM { x.memroy 128; }");
  const [first] = faults(bundle);
  assert.ok(first);
  assert.equal(
    renderDiagnostic(first, bundle.files, false),
    "a.sf:3:16: error: `x.memroy` is not an attribute of VM [schema/unknown-attribute]\n  |\n3 | v extends VM { x.memroy 128; }\n  |                ^^^^^^^^\n  = hint: Did you mean `x.memory`?",
  );
});

const key = fc.oneof(
  fc.constantFrom("x.type", "__proto__", "a", "b"),
  fc.string({ maxLength: 8 }).filter((name) => !name.startsWith("x.")),
);
const anyJson: fc.Arbitrary<Json> = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    fc.string({ maxLength: 8 }).filter((text) => !text.includes("ref:")),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie("json")), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs)),
  ),
})).json;

test("any structure in x.data survives text, document and check", () => {
  fc.assert(
    fc.property(anyJson, (data) => {
      const document: JsonObject = {
        c: { "x.type": "Cell", v: { "x.type": "VM", "x.memory": 128, "x.data": data } },
      };
      const cell = read({ main: "a.json", files: { "a.json": JSON.stringify(document) } });
      assert.deepEqual(JSON.parse(JSON.stringify(cell.document)), JSON.parse(JSON.stringify(document)));
      const again = checkDocument(cell.document);
      assert.ok(again.ok);
      assert.deepEqual(plain(again.value), plain(cell));
    }),
    { numRuns: 300 },
  );
});

test("no text makes the reader throw", () => {
  const piece = fc.constantFrom(
    "extends",
    "Cell",
    "VM",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "[|",
    "|]",
    ";",
    ":",
    ",",
    "a",
    "b",
    "x.memory",
    "1",
    "2L",

    '"s"',
    '"<ref:../a>"',
    "ROOT",
    "PARENT",
    "LAZY",
    "IF",
    "THEN",
    "#include",
    "##",
    "#HEX#",
    "--",
    "+",
    "-",
    '"',
    "/*",
    "\n",
    "TBD",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const text = pieces.join(" ");
      for (const main of ["a.sf", "a.json"]) readSpecification({ main, files: { [main]: text } });
    }),
    { numRuns: 2000 },
  );
});

test("parts of a document are read, replaced and removed", () => {
  const document: JsonObject = { a: { b: { c: 1 }, d: 2 } };
  assert.deepEqual(getAt(document, "/a/b"), { ok: true, value: { c: 1 } });
  assert.deepEqual(replaceAt(document, "a/b", 5), { ok: true, value: { a: { b: 5, d: 2 } } });
  assert.deepEqual(replaceAt(document, "a/e", 5), { ok: true, value: { a: { b: { c: 1 }, d: 2, e: 5 } } });
  assert.deepEqual(removeAt(document, "a/b"), { ok: true, value: { a: { d: 2 } } });
  assert.equal(getAt(document, "a/x/c").ok, false);
  assert.equal(replaceAt(document, "a/x/c", 1).ok, false);
  assert.equal(removeAt(document, "a/x").ok, false);
});

test("an editor's `$schema` beside the cell is no part of the document", () => {
  const text = (more: string): string => `{${more} "shop": {"x.type": "Cell", "$schema": "kept"}}`;
  const [plain, edited] = ["", '"$schema": "cells.schema.json",'].map((more) =>
    readSpecification({ main: "a.json", files: { "a.json": text(more) } }),
  );
  assert.ok(plain?.ok && edited?.ok);
  assert.deepEqual(edited.value.document, { shop: { "x.type": "Cell", $schema: "kept" } });
  assert.deepEqual(edited.value.document, plain.value.document);
  const submitted = checkDocument({ $schema: "cells.schema.json", shop: { "x.type": "Cell" } });
  assert.deepEqual(submitted.ok && submitted.value.document, { shop: { "x.type": "Cell" } });
});

test("the faults of all phases are told in one go, and nothing twice over", () => {
  const text = `Tier extends { vm extends VM { x.memory big; } net extends Subnet { x.size size; } size 8; }
shop extends Cell {
  sub extends Subnet { x.size 8; x.colour 5; }
  vm extends VM { x.memory 64; x.desiredState on; x.cpus 0; }
  lost extends Volum { x.size 5; x.access "rww"; }
  here extends Volume { x.size 64; }
  c extends VolumeConnection { x.vm "<ref:/shop/gone>"; x.volume "<ref:/shop/lost>"; }
  d extends VolumeConnection { x.vm "<ref:/shop/vm>"; x.volume "<ref:/shop/here>"; x.busType "virtioo"; }
  t extends Tier { size oops; }
  i extends VirtualInterface { x.vm "<ref:/shop/t/vm>"; x.subnet "<ref:/shop/t/net>"; }
  r extends NetworkRule { x.address1 "<ref:/shop/t/vn>"; x.address2 "<ref:/shop/q/vn>"; }
  q extends Nothing { }
}
`;
  const read = readSpecification({ main: "a.sf", files: { "a.sf": text } });
  assert.ok(!read.ok);
  assert.deepEqual(
    read.error.map(({ code, position }) => `${position?.line} ${code}`),
    [
      "1 link/unknown",
      "3 schema/unknown-attribute",
      "4 link/unknown",
      "4 schema/range",
      "5 type/unknown",
      "7 reference/dangling",
      "8 schema/value",
      "9 link/unknown",
      "11 reference/dangling",
      "12 type/unknown",
    ],
  );
});

test("what a syntax fault has left is checked for wrong values, and not for what the fault may have lost", () => {
  const text = `shop extends Cell {
  w extends Volume { x.size ((1 + ); }
  vm extends VM { x.memory memory; x.cpus 0; }
  t extends Tier { }
  c extends VolumeConnection { x.vm "<ref:/shop/gone>"; x.volume "<ref:/shop/w>"; }
}
`;
  const read = readSpecification({ main: "a.sf", files: { "a.sf": text } });
  assert.ok(!read.ok);
  assert.deepEqual(
    read.error.map(({ code, position }) => `${position?.line} ${code}`),
    ["2 syntax/expected", "3 schema/range"],
  );
});

test("a machine that leads others outside is one line, too, and what its template places is in it", () => {
  const { elements } = read(
    sf(`#include "/cells/machine.sf"
      c extends Cell {
        golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
        net extends Subnet { x.size 8; x.router "<ref:/c/out/card>"; }
        front extends Subnet { x.size 8; x.addressRange "external"; }
        out extends Egress { image "<ref:/c/golden>"; subnet "<ref:/c/net>"; front "<ref:/c/front>"; }
      }`),
  );
  const cards = [...elements.values()].filter((element) => element.type === "VirtualInterface");
  assert.deepEqual(
    cards.map(({ path, subnet, forwards }) => [path, subnet, forwards]),
    [
      ["c/out/card", "c/net", ["internet"]],
      ["c/out/outside", "c/front", undefined],
    ],
  );
  const vm = [...elements.values()].find((element) => element.type === "VM");
  assert.deepEqual([vm?.data, vm?.memoryMiB], [{ serve: { masquerade: "eth1" } }, 128]);
  assert.deepEqual(
    [...elements.values()].filter(({ type }) => type === "NetworkRule"),
    [],
    "it opens nothing by itself",
  );
});

test("a machine is one line with the standard file of machines", () => {
  const machines = (lines: string): Bundle =>
    sf(`#include "/cells/machine.sf"
      c extends Cell {
        golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
        net extends Subnet { x.size 8; }
        ${lines}
      }`);
  const { elements } = read(
    machines('one extends Machine { image "<ref:/c/golden>"; subnet "<ref:/c/net>"; memory 96; vm:x.cpus 2; }'),
  );
  assert.deepEqual([...elements.values()].map(({ path, type }) => [path, type]).slice(-4), [
    ["c/one/boot", "VolumeCopy"],
    ["c/one/vm", "VM"],
    ["c/one/disk", "VolumeConnection"],
    ["c/one/card", "VirtualInterface"],
  ]);
  const vm = [...elements.values()].find(({ type }) => type === "VM") as { readonly memoryMiB?: number } | undefined;
  assert.equal(vm?.memoryMiB, 96);
  // What it leaves open and nobody says is named, and where it is missing who wrote `Machine` is told of the file.
  assert.deepEqual(codes(machines('one extends Machine { subnet "<ref:/c/net>"; }')), ["link/tbd"]);
  // A fault of what was filled in stands in the template; the writer is told where it is used.
  const [wrong] = faults(machines('one extends Machine { image ""; subnet "<ref:/c/net>"; }'));
  assert.equal(wrong?.position?.file, "/cells/machine.sf");
  assert.deepEqual(
    wrong?.related?.map(({ position }) => `${position.file}:${position.line}`),
    ["a.sf:5"],
  );
  const [unknown] = faults(inCell("one extends Machine { }"));
  assert.match(unknown?.hint ?? "", /#include "\/cells\/machine\.sf"/);
});
