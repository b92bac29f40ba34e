import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../specification/specification.ts";

/** What an element takes by a path from outside of its cell must have a value; what nobody takes may lack one. */
const read = (text: string): ReturnType<typeof readSpecification> =>
  readSpecification({ main: "a.sf", files: { "a.sf": text } });
const told = (text: string): readonly string[] => {
  const result = read(text);
  return result.ok
    ? ["accepted"]
    : result.error.map(({ code, position }) => `${code} ${position?.line}:${position?.column}`);
};
const cell = (attributes: string, name = "c"): string =>
  `${name} extends Cell { x.name "c"; v extends VM { x.memory 64; ${attributes} } }`;

test("templates beside a cell may lack values", () => {
  const template =
    "Web extends { host TBD; vm extends VM { x.memory memory; } nic extends VirtualInterface { x.vifName host; } }\n";
  assert.deepEqual(told(template + cell("")), ["accepted"]);
  assert.deepEqual(told(`p extends { a TBD; b 1; }\n${cell('x.cpus "<ref:/p/b>";')}`), ["accepted"]);
});

test("an element that takes such a value, in whatever way, is told where it is missing", () => {
  const lacking = "p extends { a TBD; b 1; } q extends { a p:a; r ROOT:p; } s extends { t extends { u nope; } }\n";
  for (const [attributes, ...faults] of [
    ['x.data "<ref:/p/a>";', "link/tbd 1:15"],
    ['x.data "<ref:/p>";', "link/tbd 1:15"],
    ['x.data "<ref:../../p>";', "link/tbd 1:15"],
    ['x.data "<ref:/q>";', "link/tbd 1:15"],
    ['x.data "<ref:/q/r/a>";', "link/tbd 1:15"],
    ['x.data extends { list ["<ref:/s>"]; }', "link/unknown 1:84"],
    ['x.data "<ref:/s/t>"; x.desiredState "<ref:/q/a>";', "link/tbd 1:15", "link/unknown 1:84"],
    ["x.desiredState q:a;", "link/tbd 1:15"],
  ] as const)
    assert.deepEqual(told(lacking + cell(attributes)), faults, attributes);
});

test("a path that leads nowhere is told by the check alone", () => {
  const lacking = "p extends { a TBD; b 1; }\n";
  for (const path of ["/p/none", "/none", "/p/none/a", "/p/b/none", "../../../..", "../none"])
    assert.match(told(lacking + cell(`x.data "<ref:${path}>";`)).join(), /^reference\/[a-z-]+ 2:\d+$/, path);
});

test("a path through a text that is a path itself is followed", () => {
  const chain = 'p extends { a TBD; } q extends { x "<ref:/p/a>"; y "<ref:../p>"; z 1; }\n';
  assert.deepEqual(told(chain + cell('x.data "<ref:/q>";')), ["link/tbd 1:15"]);
  assert.deepEqual(told(chain + cell('x.data "<ref:/q/x>";')), ["link/tbd 1:15"]);
  assert.deepEqual(told(chain + cell('x.data "<ref:/q/z>";')), ["accepted"]);
});

test("beside sfConfig, which alone is linked, what it reaches is linked as well", () => {
  const result = read(`p extends { m 64; n m; o nope; }\n${cell('x.data "<ref:/p/n>";', "sfConfig")}`);
  assert.ok(result.ok, JSON.stringify(result));
  const vm = [...result.value.elements.values()].find(({ type }) => type === "VM");
  assert.ok(vm?.type === "VM");
  assert.equal(vm.data, 64);
  assert.deepEqual(told(`p extends { m 64; n m; o nope; }\n${cell('x.data "<ref:/p>";', "sfConfig")}`), [
    "link/unknown 1:26",
  ]);
});

test("a long that a cell cannot hold is refused, one that is only reckoned with is not", () => {
  assert.deepEqual(told(cell("serial [1, 9007199254740993L];")), ["link/long 1:65"]);
  assert.deepEqual(told(cell("x.cpus (9007199254740993L - 9007199254740991L); small 9007199254740991L;")), [
    "accepted",
  ]);
});

test("a long that a template of ours hands on is refused where it was written", () => {
  const text =
    '#include "/cells/machine.sf"\nshop extends Cell { out extends Egress { image "i"; subnet "s"; front 9007199254740993L; } }';
  const all = told(text).filter((each) => each.startsWith("link/long"));
  assert.deepEqual(all, ["link/long 2:71"]);
});
