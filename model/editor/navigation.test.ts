import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../specification/specification.ts";
import { marked } from "../testing/marked.testing.ts";
import { hoverAt } from "./hover.ts";
import { definitionOf, referencesOf } from "./navigation.ts";

type Files = Readonly<Record<string, string>>;

/** What stands at each place, with the line that it is in. */
const shown = (files: Files, some: readonly { file: string; start: number; end: number }[]): readonly string[] =>
  some.map(({ file, start, end }) => {
    const text = (files[file] ?? "").replace("‸", "");
    return `${file}:${text.slice(0, start).split("\n").length} ${text.slice(start, end)}`;
  });
const definition = (files: Files): readonly string[] => {
  const { view, file, offset } = marked(files);
  return shown(files, definitionOf(view, file, offset));
};
const references = (files: Files): readonly string[] => {
  const { view, file, offset } = marked(files);
  return shown(files, referencesOf(view, file, offset, { declarations: true }));
};
const hover = (files: Files): string => {
  const { view, file, offset } = marked(files);
  const read = readSpecification(view.bundle);
  return hoverAt(view, file, offset, read.ok ? [] : read.error)?.text ?? "";
};

const library = {
  "lib/all.sf": '// é😀\r\n#include "tier.sf"\r\n',
  "lib/tier.sf": `Tier extends {
  role "none";
  vm extends VM { x.memory "<ref:/params/memory>"; x.cpus count; }
  net extends Subnet { x.size 8; }
  card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.vifName "<ref:../role>"; }
  disk extends VolumeCopy { x.image "<ref:../../golden>"; }
}
`,
};
const main = `#include "lib/all.sf"
params extends { memory 128; }
count 2;
shop extends Cell {
  golden extends Volume { x.size 64; }
  web extends Tier { role "web"; }
  db extends Tier { role "db"; vm extends Tier:vm { x.memory 256; } }
  rule extends NetworkRule { x.address1 "<ref:/shop/web/vm>"; x.address2 "<ref:../db/net>"; }
}
`;
const at = (text: string, mark: string): Files => {
  const cursor = (whole: string): string => whole.replace(text, mark);
  const files: Files = {
    "shop.sf": cursor(main),
    "lib/all.sf": cursor(library["lib/all.sf"]),
    "lib/tier.sf": cursor(library["lib/tier.sf"]),
  };
  assert.ok(
    Object.values(files).some((each) => each.includes("‸")),
    text,
  );
  return files;
};

test("definitions through includes of includes, templates and every form of reference", () => {
  assert.deepEqual(definition(at("web extends Tier", "web extends Ti‸er")), ["lib/tier.sf:1 Tier"]);
  assert.deepEqual(definition(at("extends Tier:vm", "extends Tier:v‸m")), ["lib/tier.sf:3 vm"]);
  assert.deepEqual(definition(at("/shop/web/vm>", "/shop/web/v‸m>")), ["lib/tier.sf:3 vm"]);
  assert.deepEqual(definition(at("/shop/web/vm>", "/shop/w‸eb/vm>")), ["shop.sf:6 web"]);
  assert.deepEqual(definition(at("<ref:../db/net>", "<ref:../db/ne‸t>")), ["lib/tier.sf:4 net"]);
  assert.deepEqual(definition(at("<ref:/params/memory>", "<ref:/params/mem‸ory>")), ["shop.sf:2 memory"]);
  assert.deepEqual(definition(at("x.cpus count", "x.cpus co‸unt")), ["shop.sf:3 count"]);
  assert.deepEqual(definition(at('#include "lib/all.sf"', '#include "lib/a‸ll.sf"')), ["lib/all.sf:1 "]);
  assert.deepEqual(definition(at('#include "tier.sf"', '#include "ti‸er.sf"')), ["lib/tier.sf:1 "]);
  assert.deepEqual(definition(at('role "web"', 'ro‸le "web"')), ["lib/tier.sf:2 role"], "what it overrides");
});
test("a reference of a template leads somewhere from where the template is used", () => {
  assert.deepEqual(definition(at("<ref:../../golden>", "<ref:../../gol‸den>")), ["shop.sf:5 golden"]);
});
test("definitions in a broken text", () => {
  const files = {
    "a.sf":
      'T extends { x 1; }\nshop extends Cell {\n  b extends\n  c extends VM { x.mem }\n  d extends VolumeConnection { x.vm "<ref:../‸c',
  };
  assert.deepEqual(definition(files), ["a.sf:4 c"]);
  assert.deepEqual(definition({ "a.sf": "a 1;\nb (c + ROOT:‸a" }), ["a.sf:1 a"]);
  assert.deepEqual(definition({ "a.sf": "b nowhere‸;" }), []);
  assert.deepEqual(definition({ "a.json": '{"a": {"b": 1}, "c": "<ref:/a/‸b>",,' }), ['a.json:1 "b"']);
});
test("all references, wherever they are", () => {
  assert.deepEqual(references(at("  vm extends VM {", "  v‸m extends VM {")), [
    "lib/tier.sf:3 vm",
    "lib/tier.sf:5 vm",
    "shop.sf:7 vm",
    "shop.sf:7 vm",
    "shop.sf:8 vm",
  ]);
  assert.deepEqual(references(at("params extends", "par‸ams extends")), ["lib/tier.sf:3 params", "shop.sf:2 params"]);
  assert.deepEqual(references(at("  golden extends", "  gol‸den extends")), [
    "lib/tier.sf:6 golden",
    "shop.sf:5 golden",
  ]);
});
test("placements name what they lead through", () => {
  const files = { "a.sf": "a extends { b extends {} }\na:b:c 5;\nd a:b:c‸;\n" };
  assert.deepEqual(definition(files), ["a.sf:2 c"]);
  assert.deepEqual(references({ "a.sf": "a extends { b‸ extends {} }\na:b:c 5;\nd a:b:c;\n" }), [
    "a.sf:1 b",
    "a.sf:2 b",
    "a.sf:3 b",
  ]);
});

test("hover: an attribute, what a reference comes to, a type", () => {
  assert.match(
    hover(at("x.memory 256", "x.mem‸ory 256")),
    /MiB[\s\S]*Main memory[\s\S]*restarts the VM[\s\S]*Here: `256`/,
  );
  assert.match(hover(at("<ref:/params/memory>", "<ref:/params/mem‸ory>")), /`\/params\/memory` = `128`/);
  assert.match(hover(at("/shop/web/vm>", "/shop/web/v‸m>")), /`\/shop\/web\/vm`: VM/);
  assert.match(hover(at("x.cpus count", "x.cpus co‸unt")), /`\/count` = `2`/);
  assert.match(hover(at("golden extends Volume", "golden extends Vol‸ume")), /\*\*Volume\*\*[\s\S]*`x\.size`/);
  assert.match(hover({ "a.sf": "p extends { a 1; b (a + 2); }\nc (p:b‸ * 2);\ns extends Cell {}" }), /`\/p\/b` = `3`/);
});
test("hover: an error has its page", () => {
  const text = hover({ "a.sf": "shop extends Cell { vm extends VM { x.memroy‸ 128; } }" });
  assert.match(text, /\*\*schema\/unknown-attribute\*\*[\s\S]*Wrong:[\s\S]*Right:/);
});
test("hover while the text is broken: what was written", () => {
  assert.match(hover({ "a.sf": "p 5;\nb extends { c p‸ }\nd extends {" }), /`\/p`, written `5`/);
});
