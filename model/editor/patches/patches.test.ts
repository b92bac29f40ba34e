import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Bundle, Cell } from "../../cell/cell.ts";
import { describedAttributes, describedCell } from "../../cell/described.ts";
import type { Json } from "../../json/json.ts";
import { readSpecification } from "../../specification/specification.ts";
import { type ElementChange, patchTexts } from "./patches.ts";

const cellOf = (bundle: Bundle): Cell => {
  const read = readSpecification(bundle);
  return read.ok ? read.value : assert.fail(JSON.stringify(read.error));
};
const shop = `// Of the shop.
shop extends Cell {
  /* whole hosts */
  racks extends Pool {
    x.cpuRatio 4; // promised
    x.authorised ["ROOT/acme/dev"];
  }
  store extends { disk extends Volume { x.size 64; } }
  Web extends VM { x.memory 64; }
  web extends Web;
  other extends Web { x.cpus 2; }
  Row extends { data extends Volume { x.size 8; } }
  row extends Row { }
}
`;
const bundle = (text: string, main = "shop.sf"): Bundle => ({ main, files: { [main]: text } });
const changed = (text: string, ...changes: readonly ElementChange[]): string => {
  const after = patchTexts(bundle(text), changes);
  assert.ok(after.ok, after.ok ? "" : after.error);
  cellOf(after.value);
  return after.value.files["shop.sf"] ?? "";
};
const set = (path: string, attributes: Extract<ElementChange, { kind: "set" }>["attributes"]): ElementChange => ({
  kind: "set",
  path,
  attributes,
});

test("one attribute is another, is added or goes, and all else is as it was written", () => {
  assert.equal(changed(shop, set("shop/racks", { "x.cpuRatio": 8 })), shop.replace("x.cpuRatio 4;", "x.cpuRatio 8;"));
  assert.equal(
    changed(shop, set("shop/racks", { "x.cpuRatio": null })),
    shop.replace("x.cpuRatio 4; // promised", "// promised"),
  );
  assert.equal(
    changed(shop, set("shop/racks", { "x.authorised": null, "x.fill": "pack" })),
    shop.replace('x.authorised ["ROOT/acme/dev"];', 'x.fill "pack";'),
  );
  assert.equal(
    changed(shop, set("shop/racks", { "x.authorised": ["ROOT/a", "ROOT/b"] })),
    shop.replace('["ROOT/acme/dev"]', '["ROOT/a", "ROOT/b"]'),
  );
  assert.equal(
    changed(shop, set("shop/other", { "x.memory": 128 })),
    shop.replace("x.cpus 2; }", "x.cpus 2; x.memory 128; }"),
    "what a template has is another one here alone",
  );
});

test("an element more, with what is around it where that is not there, and one less", () => {
  const add = (path: string): ElementChange => ({ kind: "add", path, type: "Subnet", attributes: { "x.size": 16 } });
  assert.equal(changed(shop, add("shop/net")), shop.replace(/}\n$/, "  net extends Subnet { x.size 16; }\n}\n"));
  assert.equal(
    changed(shop, add("shop/store/net")),
    shop.replace("x.size 64; } }", "x.size 64; } net extends Subnet { x.size 16; } }"),
  );
  assert.equal(
    changed(shop, add("shop/nets/inner/net")),
    shop.replace(/}\n$/, "  nets extends { inner extends { net extends Subnet { x.size 16; } } }\n}\n"),
  );
  const remove = (path: string): ElementChange => ({ kind: "remove", path });
  assert.equal(changed(shop, remove("shop/other")), shop.replace("  other extends Web { x.cpus 2; }\n", ""));
  assert.equal(changed(shop, remove("shop/store/disk")), shop.replace(" disk extends Volume { x.size 64; }", ""));
  assert.equal(changed(shop, add("shop/net"), remove("shop/net")), shop);
});

test("what has no place of its own in the text is refused with a sentence", () => {
  const why = (change: ElementChange, text = shop, main = "shop.sf"): string => {
    const after = patchTexts(bundle(text, main), [change]);
    return after.ok ? "" : after.error;
  };
  assert.match(why(set("shop/web", { "x.memory": 1 })), /shop\/web has no braces of its own/);
  assert.match(why(set("shop/row/data", { "x.size": 9 })), /shop\/row\/data has no braces of its own/);
  assert.match(why(set("shop/nothing", { "x.memory": 1 })), /does not stand in the text/);
  assert.match(why(set("shop/other", { "x.memory": null })), /comes from a template/);
  assert.match(why({ kind: "remove", path: "shop/nothing" }), /does not stand/);
  assert.match(why({ kind: "add", path: "shop/web", type: "VM", attributes: {} }), /stands in the text already/);
  assert.match(why({ kind: "add", path: "bank/web", type: "VM", attributes: {} }), /no component bank/);
  assert.match(why(set("shop/web", {}), "shop:\n", "shop.yaml"), /neither SmartFrog nor JSON/);
  assert.match(why(set("shop/web", {}), "{", "shop.json"), /is no JSON/);
  assert.match(why(set("shop/web", {}), '{"shop":{}}', "shop.json"), /does not stand/);
});

test("the file that has it is the one that is changed", () => {
  const files = {
    "shop.sf": '// main\nshop extends Cell {\n  #include "pools.sf"\n}\n',
    "pools.sf": "racks extends Pool {\n} // of a file\n",
  };
  const after = patchTexts({ main: "shop.sf", files }, [set("shop/racks", { "x.cpuRatio": 2 })]);
  assert.ok(after.ok);
  assert.deepEqual(after.value.files, {
    ...files,
    "pools.sf": "racks extends Pool {\n  x.cpuRatio 2;\n} // of a file\n",
  });
});

test("in a JSON text nothing is another than what was meant, or it is refused", () => {
  const after = (text: string) => patchTexts(bundle(text, "shop.json"), [set("shop/vm", { "x.cpus": null })]);
  const written = after('{"shop":{"vm":{"x.cpus":2,"x.none":null,"x.text":"\\u0041 \\" 1.0"}}}');
  assert.ok(written.ok);
  assert.deepEqual(JSON.parse(written.value.files["shop.json"] ?? ""), {
    shop: { vm: { "x.none": null, "x.text": 'A " 1.0' } },
  });
  for (const other of ['"x.big":9007199254740993', '"x.twice":1,"x.twice":2']) {
    const why = after(`{"shop":{"vm":{"x.cpus":2},"else":{${other}}}}`);
    assert.match(why.ok ? "" : why.error, /would not stay as they are written/, other);
  }
});

test("what a value is worked out of, a comment in it and a file of several places are left as they are", () => {
  const why = (value: string, to: Json | null) => {
    const text = `shop extends Cell {\n  ratio 4;\n  racks extends Pool { x.it ${value}; }\n}\n`;
    const after = patchTexts(bundle(text), [set("shop/racks", { "x.it": to })]);
    return after.ok ? null : after.error;
  };
  for (const each of ['"a // b"', "4", "-1.5e3", "true", "[]", '[ "a", "b" ]']) assert.equal(why(each, 8), null, each);
  for (const each of ["ratio", "PARENT:ratio", "(ratio * 2)", "[ratio]"])
    assert.match(why(each, 8) ?? "", /x\.it with a value that is worked out or stands elsewhere/, each);
  assert.equal(why("ratio", null), null);
  for (const to of [8, null]) assert.match(why('["a", /* ours */ "b"]', to) ?? "", /x\.it with a comment in its value/);
  const files = {
    "shop.sf": 'shop extends Cell { a extends { #include "disk.sf" } b extends { #include "disk.sf" } }',
    "disk.sf": "disk extends Volume { x.size 8; }",
  };
  const changes: readonly ElementChange[] = [
    set("shop/a/disk", { "x.size": 9 }),
    set("shop/a/disk", { "x.persistent": true }),
    { kind: "remove", path: "shop/a/disk" },
  ];
  for (const each of changes) {
    const after = patchTexts({ main: "shop.sf", files }, [each]);
    assert.match(after.ok ? "" : after.error, /disk\.sf is included in several places/);
  }
});

/** What a cell says, by paths. */
const saidOf = (cell: Cell): object => ({
  cell: [...describedCell(cell)],
  elements: [...cell.elements.values()]
    .map((each) => [each.path, [...describedAttributes(each, (path) => path)]] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1)),
});
const words = ["n0", "n1", "n2", "n3"] as const;
const name = fc.constantFrom(...words);
const change = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), name, size: fc.integer({ min: 1, max: 999 }) }),
  fc.record({ kind: fc.constant("add" as const), name, size: fc.integer({ min: 1, max: 999 }) }),
  fc.record({ kind: fc.constant("remove" as const), name, size: fc.constant(0) }),
);
test("what is read after a change is what was read before with that change, in both languages, and comments stay", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), fc.boolean(), (changes, isJson) => {
      const there = new Map<string, number>([["n0", 64]]);
      const text = isJson
        ? JSON.stringify({ shop: { "x.type": "Cell", n0: { "x.type": "Volume", "x.size": 64 } } })
        : "// one\nshop extends Cell { /* two */\n  n0 extends Volume { x.size 64; } // three\n}\n// four\n";
      let now = bundle(text, isJson ? "shop.json" : "shop.sf");
      for (const { kind, name, size } of changes) {
        const path = `shop/${name}`;
        const attributes = { "x.size": size };
        const after = patchTexts(now, [
          kind === "remove"
            ? { kind, path }
            : kind === "add"
              ? { kind, path, type: "Volume", attributes }
              : { kind, path, attributes },
        ]);
        assert.equal(after.ok, there.has(name) === (kind !== "add"), `${kind} ${path}`);
        if (!after.ok) continue;
        if (kind === "remove") there.delete(name);
        else there.set(name, size);
        now = after.value;
      }
      const wanted = [...there].map(([each, size]) => `${each} extends Volume { x.size ${size}; }`);
      assert.deepEqual(saidOf(cellOf(now)), saidOf(cellOf(bundle(`shop extends Cell { ${wanted.join(" ")} }`))));
      if (isJson) return;
      for (const comment of ["// one", "/* two */", "// three", "// four"])
        assert.ok(now.files["shop.sf"]?.includes(comment), comment);
    }),
  );
});
