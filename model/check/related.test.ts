import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { renderDiagnostic } from "../diagnostics/render-diagnostic.ts";
import { readSpecification } from "../specification/specification.ts";

/** `file:line:column message` of the places that belong to the only fault, and the fault itself. */
function only(files: Readonly<Record<string, string>>): { fault: Diagnostic; related: readonly string[] } {
  const read = readSpecification({ main: "shop.sf", files });
  assert.ok(!read.ok);
  assert.equal(read.error.length, 1, JSON.stringify(read.error));
  const [fault] = read.error;
  assert.ok(fault);
  const related = (fault.related ?? []).map(
    ({ message, position: { file, line, column } }) => `${file}:${line}:${column} ${message}`,
  );
  return { fault, related };
}

test("a fault in a template says where it was written, where it was used and where its file was included", () => {
  const files = {
    "shop.sf": '#include "lib/all.sf"\nshop extends Cell {\n  web extends Tier {\n    x 1;\n  }\n}\n',
    "lib/all.sf": '// templates\n#include "tier.sf"\n',
    "lib/tier.sf": "Tier extends {\n  vm extends VM { x.memory 0; }\n}\n",
  };
  const { fault, related } = only(files);
  assert.deepEqual([fault.code, fault.position?.file, fault.position?.line], ["schema/range", "lib/tier.sf", 2]);
  assert.deepEqual(related, [
    "shop.sf:3:3 used here, for `shop/web`",
    "lib/all.sf:2:10 `lib/tier.sf` is included here",
    "shop.sf:1:10 `lib/all.sf` is included here",
  ]);
  assert.equal(
    renderDiagnostic(fault, files, false),
    [
      `lib/tier.sf:2:28: error: ${fault.message} [schema/range]`,
      "  |",
      "2 |   vm extends VM { x.memory 0; }",
      "  |                            ^",
      "shop.sf:3:3: note: used here, for `shop/web`",
      "  |",
      "3 |   web extends Tier {",
      "  |   ^^^",
      "lib/all.sf:2:10: note: `lib/tier.sf` is included here",
      "  |",
      '2 | #include "tier.sf"',
      "  |          ^^^^^^^^^",
      "shop.sf:1:10: note: `lib/all.sf` is included here",
      "  |",
      '1 | #include "lib/all.sf"',
      "  |          ^^^^^^^^^^^^",
    ].join("\n"),
  );
});

test("templates in the same file, before and behind the cell, nested and partly overridden", () => {
  const template = "Tier extends { inner extends { vm extends VM { x.memory 0; } } other 1; }\n";
  const cell = "shop extends Cell {\n  web extends Tier { other 2; }\n}\n";
  assert.deepEqual(only({ "shop.sf": template + cell }).related, ["shop.sf:3:3 used here, for `shop/web`"]);
  assert.deepEqual(only({ "shop.sf": cell + template }).related, ["shop.sf:2:3 used here, for `shop/web`"]);
  const twice = "Machine extends { vm extends VM { x.memory 0; } }\nTier extends Machine { other 1; }\n";
  assert.deepEqual(only({ "shop.sf": twice + cell }).related, ["shop.sf:4:3 used here, for `shop/web`"]);
  const override = "Tier extends { vm extends VM { x.memory 0; } }\n";
  const cellOver = "shop extends Cell {\n  web extends Tier {\n    vm extends Tier:vm { x.cpus 2; }\n  }\n}\n";
  assert.deepEqual(only({ "shop.sf": override + cellOver }).related, ["shop.sf:4:5 used here, for `shop/web/vm`"]);
  const two = "A extends { vm extends VM { x.memory 0; } }\nB extends { a extends A { } }\n";
  assert.deepEqual(only({ "shop.sf": `${two}shop extends Cell {\n  web extends B { }\n}\n` }).related, [
    "shop.sf:2:13 used here, for `shop/web/a`",
    "shop.sf:4:3 used here, for `shop/web`",
  ]);
});

test("what is written out has one place, and so have faults in the main file", () => {
  const files = (text: string) => ({ "shop.sf": `#include "a.sf"\n${text}`, "a.sf": "a 1;\n" });
  assert.deepEqual(
    only(files("shop extends Cell {\n  g extends { vm extends VM { x.memory 0; } }\n  z 1;\n}\n")).related,
    [],
  );
  assert.deepEqual(only(files("shop extends Cell {\n  vm extends VM { }\n}\n")).related, []);
  assert.deepEqual(only(files("shop extends Cell { a 12ab; }\n")).related, []);
  const missing = only({ "shop.sf": '#include "a.sf"\nshop extends Cell { }\n', "a.sf": "a extends {\n" });
  assert.deepEqual(missing.related, ["shop.sf:1:10 `a.sf` is included here"]);
});

test("a fault of the link phase says which use of the template lacks what", () => {
  const tier = "Tier extends {\n  memory TBD;\n  vm extends VM { x.memory memory; }\n}\n";
  const cell = "shop extends Cell {\n  web extends Tier { memory 128; }\n  app extends Tier { }\n  z 1;\n}\n";
  const { fault, related } = only({ "shop.sf": `#include "tier.sf"\n${cell}`, "tier.sf": tier });
  assert.deepEqual([fault.code, fault.position?.line], ["link/tbd", 2]);
  assert.deepEqual(related, ["shop.sf:4:3 used here, for `shop/app`", "shop.sf:1:10 `tier.sf` is included here"]);
  assert.deepEqual(only({ "shop.sf": "shop extends Cell {\n  a b;\n}\n" }).related, []);
});

test("a fault in a template with many copies is told once, without looking through all of them each time", () => {
  const copies = Array.from({ length: 5000 }, (_, at) => `  web${at} extends Tier { }\n`).join("");
  const { related } = only({ "shop.sf": `Tier extends { memory TBD; }\nshop extends Cell {\n${copies}}\n` });
  assert.deepEqual(related, ["shop.sf:3:3 used here, for `shop/web0`"]);
});

test("a fault of what a standard prototype gives is told where the prototype is used", () => {
  const { fault, related } = only({ "shop.sf": "shop extends Cell {\n  g extends { inner extends Cell { } }\n}\n" });
  assert.deepEqual([fault.code, fault.path], ["schema/unknown-type", "shop/g/inner"]);
  assert.deepEqual(fault.position, { file: "shop.sf", line: 2, column: 15, length: 5 });
  assert.deepEqual(related, []);
});
