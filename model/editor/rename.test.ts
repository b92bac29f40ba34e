import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Bundle } from "../cell/cell.ts";
import { planChange } from "../plan/plan.ts";
import { readSpecification } from "../specification/specification.ts";
import { marked } from "../testing/marked.testing.ts";
import { type Rename, renameElement } from "./rename.ts";
import { viewBundle } from "./sources/bundle-tree.ts";
import { attributesIn } from "./sources/source.ts";
import { applyEdits } from "./text-edit.ts";

type Files = Readonly<Record<string, string>>;

function renamed(files: Files, name: string): { readonly files: Files; readonly all: Files; readonly rename: Rename } {
  const { view, file, offset } = marked(files);
  const rename = renameElement(view, file, offset, name);
  assert.ok(rename.ok, rename.ok ? "" : rename.error);
  const { edits, keep } = rename.value;
  return {
    files: applyEdits(view.bundle, edits).files,
    all: applyEdits(view.bundle, [...edits, ...keep]).files,
    rename: rename.value,
  };
}
const refusal = (files: Files, name: string): string => {
  const { view, file, offset } = marked(files);
  const rename = renameElement(view, file, offset, name);
  return rename.ok ? "" : rename.error;
};

const shop: Files = {
  "shop.sf": `#include "tier.sf"
shop extends Cell {
  web extends Tier { role "web"; }
  db extends Tier { role "db"; vm extends Tier:vm { x.memory 256; } }
  group extends {
    w‸eb1 extends VM {
      x.memory ROOT:shop:db:vm:x.memory;
    }
    disk extends Volume { x.size 64; }
  }
  disk extends VolumeConnection { x.vm "<ref:../group/web1>"; x.volume "<ref:/shop/group/disk>"; }
  copy extends VirtualInterface { x.vm "<ref:/shop/group/web1>"; x.subnet "<ref:../web/net>"; }
}
`,
  "tier.sf": `Tier extends {
  vm extends VM { x.memory 128; }
  net extends Subnet { x.size 8; }
  card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }
}
`,
};
const cursor = (text: string, mark: string): Files =>
  Object.fromEntries(Object.entries(shop).map(([name, each]) => [name, each.replace("‸", "").replace(text, mark)]));

test("an element is renamed wherever it is named, and keeps running", () => {
  const { files, all, rename } = renamed(shop, "front");
  assert.match(files["shop.sf"] ?? "", /front extends VM \{\n {6}x\.memory/);
  assert.match(files["shop.sf"] ?? "", /"<ref:\.\.\/group\/front>"[\s\S]*"<ref:\/shop\/group\/front>"/);
  assert.doesNotMatch(files["shop.sf"] ?? "", /web1/);
  assert.match(all["shop.sf"] ?? "", /front extends VM \{\n {6}x\.movedFrom "shop\/group\/web1";\n {6}x\.memory/);
  assert.deepEqual(rename.moved, [["shop/group/web1", "shop/group/front"]]);
  assert.equal(rename.verified, true);
});
test("in a template, with what overrides it and every reference to it", () => {
  const { all, rename } = renamed(cursor("  vm extends VM {", "  v‸m extends VM {"), "machine");
  const text = all["shop.sf"] ?? "";
  assert.match(text, /web extends Tier \{ machine:x\.movedFrom "shop\/web\/vm"; role "web"; \}/);
  assert.match(text, /machine extends Tier:machine \{ x\.movedFrom "shop\/db\/vm"; x\.memory 256; \}/);
  assert.match(text, /ROOT:shop:db:machine:x\.memory/);
  assert.match(all["tier.sf"] ?? "", /machine extends VM[\s\S]*<ref:\.\.\/machine>/);
  assert.equal(rename.moved.length, 2);
});
test("a group moves all elements in it, a cell keeps its name", () => {
  const group = renamed(cursor("  group extends", "  gr‸oup extends"), "machines");
  assert.match(group.all["shop.sf"] ?? "", /x\.movedFrom "shop\/group\/web1";[\s\S]*x\.movedFrom "shop\/group\/disk";/);
  const cell = renamed(cursor("shop extends Cell", "sh‸op extends Cell"), "store");
  assert.match(cell.all["shop.sf"] ?? "", /store extends Cell \{\n {2}x\.name "shop";/);
  assert.match(
    cell.all["shop.sf"] ?? "",
    /web extends Tier \{ vm:x\.movedFrom "shop\/web\/vm"; net:x\.movedFrom "shop\/web\/net";/,
  );
});
test("a parameter is renamed without a word about elements", () => {
  const { rename, all } = renamed(
    {
      "a.sf":
        'p extends { mem‸ory 5; }\ns extends Cell { v extends Volume { x.size p:memory; } w extends Volume { x.size "<ref:/p/memory>"; } }',
    },
    "size",
  );
  assert.deepEqual(rename.keep, []);
  assert.match(all["a.sf"] ?? "", /size 5; [\s\S]*x\.size p:size; [\s\S]*<ref:\/p\/size>/);
});
test("renamed twice before it is deployed, and back", () => {
  const once = renamed({ "a.sf": "s extends Cell { ‸a extends Volume { x.size 8; } }" }, "b").all["a.sf"] ?? "";
  assert.match(once, /b extends Volume \{ x\.movedFrom "s\/a"; x\.size 8; \}/);
  const twice = renamed({ "a.sf": once.replace("b extends", "b‸ extends") }, "c").all["a.sf"] ?? "";
  assert.match(twice, /c extends Volume \{ x\.movedFrom "s\/a"; x\.size 8; \}/);
  const back = renamed({ "a.sf": twice.replace("c extends", "c‸ extends") }, "a").all["a.sf"] ?? "";
  assert.match(back, /a extends Volume \{ +x\.size 8; \}/);
});
test("CRLF, quotes, characters before it, JSON", () => {
  const crlf = renamed(
    {
      "a.sf":
        '/* 😀 */ s extends Cell {\r\n  ‸a extends Volume {\r\n    x.size 8; // é\r\n  }\r\n  c extends VolumeCopy { x.image "<ref:../a>"; }\r\n}\r\n',
    },
    "b",
  );
  assert.match(crlf.all["a.sf"] ?? "", /b extends Volume \{\r\n {4}x\.movedFrom "s\/a";\r\n {4}x\.size 8;/);
  assert.doesNotMatch(crlf.all["a.sf"] ?? "", /[^\r]\n/);
  const json =
    '{"s": {"x.type": "Cell", "a‸": {"x.type": "Volume", "x.size": 8}, "c": {"x.type": "VolumeCopy", "x.image": "<ref:/s/a>"}}}';
  assert.equal(
    renamed({ "a.json": json }, "b").all["a.json"],
    '{"s": {"x.type": "Cell", "b": { "x.movedFrom": "s/a","x.type": "Volume", "x.size": 8}, "c": {"x.type": "VolumeCopy", "x.image": "<ref:/s/b>"}}}',
  );
});
test("what cannot be renamed is refused with a sentence", () => {
  assert.match(refusal(shop, "a b"), /cannot be a name/);
  assert.match(refusal(shop, "x.new"), /attributes of the schema/);
  assert.match(refusal(shop, "extends"), /word of the language/);
  assert.match(refusal(shop, "disk"), /There is a `disk` in `\/shop\/group` already/);
  assert.match(refusal({ "a.sf": "a extends VM { x.mem‸ory 5; }" }, "b"), /name of the language/);
  assert.match(refusal({ "a.sf": "a‸ 5;\nb (1 + );" }, "c"), /syntax errors \(a\.sf:2\)/);
  assert.match(refusal({ "a.sf": "a 5 ‸;" }, "c"), /Nothing at this place/);
  // `b` inside would be found before the one that is meant.
  const captured = "a‸ 8;\ns extends Cell { g extends { b 9; v extends Volume { x.size a; } } }";
  assert.match(refusal({ "a.sf": captured }, "b"), /would change more than a name|would be wrong/);
});
test("a specification with errors is renamed without a promise", () => {
  const { rename } = renamed(
    { "a.sf": "s extends Cell { a‸ extends VM { } c extends VM { x.memory nowhere; } }" },
    "b",
  );
  assert.deepEqual([rename.verified, rename.keep.length, rename.edits.length], [false, 0, 1]);
});

/** Cells of templates, groups, links and parameters, in which any name can be renamed. */
const bundles = fc
  .record({
    tiers: fc.integer({ min: 1, max: 3 }),
    override: fc.boolean(),
    include: fc.boolean(),
    relative: fc.boolean(),
    placed: fc.boolean(),
    deep: fc.boolean(),
    optional: fc.boolean(),
  })
  .map(({ tiers, override, include, relative, placed, deep, optional }): Bundle => {
    const tier = `Tier extends {
  size 8;
  vm extends VM { x.memory ${optional ? "OPTIONAL(64) ROOT:params:memory" : '"<ref:/params/memory>"'}; }
  net extends Subnet { x.size size; }
  card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }
  disk extends VolumeCopy { x.image "<ref:/shop/images/golden>"; }
}
`;
    const instances = Array.from({ length: tiers }, (_, index) => {
      const body = index === 0 && override ? "vm extends Tier:vm { x.cpus (ROOT:params:memory / 64); }" : "size 16;";
      return `  t${index} extends Tier { ${body} }`;
    }).join("\n");
    const link = relative ? "<ref:../t0/vm>" : "<ref:/shop/t0/vm>";
    const main = `${include ? '#include "lib/tier.sf"\n' : tier}params extends { memory 128; disks extends { size 64; } }
shop extends Cell {
  images extends { golden extends Volume { x.size ATTRIB params:disks:size; } }
${instances}
${placed ? "  t0:vm:x.priority 3;\n" : ""}  link extends VolumeConnection { x.vm "${link}"; x.volume "<ref:${deep ? "../t0/disk" : "/shop/images/golden"}>"; }
}
`;
    return { main: "shop.sf", files: { "shop.sf": main, ...(include ? { "lib/tier.sf": tier } : {}) } };
  });

test("after any rename the cell is the same but for the path", () => {
  const seed = Number(process.env.CELLS_SEED ?? Date.now() % 2 ** 31);
  let done = 0;
  fc.assert(
    fc.property(bundles, fc.nat(), (bundle, choice) => {
      const view = viewBundle(bundle);
      const before = readSpecification(bundle);
      assert.ok(before.ok);
      const names = [...view.tree.files.values()].flatMap((file) =>
        [...attributesIn(file.top)].flatMap(({ attribute }) =>
          attribute.name.filter(({ text }) => !text.startsWith("x.")).map(({ start }) => ({ file: file.name, start })),
        ),
      );
      const at = names[choice % names.length];
      assert.ok(at);
      const rename = renameElement(view, at.file, at.start, "renamed");
      assert.ok(rename.ok, rename.ok ? "" : rename.error);
      assert.equal(rename.value.verified, true);
      const edited = applyEdits(bundle, [...rename.value.edits, ...rename.value.keep]);
      const after = readSpecification(edited);
      assert.ok(after.ok, JSON.stringify(edited));
      assert.deepEqual(
        planChange(before.value, after.value).steps.filter(({ action }) => action !== "none"),
        [],
      );
      const paths = [...before.value.elements.keys()];
      const now = [...after.value.elements.keys()];
      const moved = paths.flatMap((path, index) => (path === now[index] ? [] : [[path, now[index]]]));
      assert.deepEqual(rename.value.moved, moved);
      for (const [from = "", to = ""] of moved) assert.equal(from.split("/").length, to.split("/").length);
      done++;
    }),
    { seed, numRuns: 150 },
  );
  assert.equal(done, 150);
});
