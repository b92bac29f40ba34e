import assert from "node:assert/strict";
import { test } from "node:test";
import { marked } from "../testing/marked.testing.ts";
import type { Completion } from "./completion.ts";
import { completionsAt } from "./completions.ts";

const items = (files: Readonly<Record<string, string>> | string): readonly Completion[] => {
  const { view, file, offset } = marked(typeof files === "string" ? { "shop.sf": files } : files);
  return completionsAt(view, file, offset).items;
};
const labels = (files: Readonly<Record<string, string>> | string): readonly string[] =>
  items(files).map(({ label }) => label);
const has = (found: readonly string[], wanted: readonly string[], not: readonly string[] = []): void => {
  for (const each of wanted) assert.ok(found.includes(each), `${each} among ${found.join(" ")}`);
  for (const each of not) assert.ok(!found.includes(each), `no ${each} among ${found.join(" ")}`);
};
const applied = (text: string, label: string): string => {
  const { view, file, offset } = marked({ "shop.sf": text });
  const item = completionsAt(view, file, offset).items.find((each) => each.label === label);
  assert.ok(item, label);
  const plain = text.replace("‸", "");
  return plain.slice(0, item.replace.start) + item.insert + plain.slice(item.replace.end);
};

test("attributes of the component's type, without those that are there", () => {
  const found = labels("shop extends Cell { vm extends VM { x.memory 128; x.c‸ } }");
  has(found, ["x.cpus", "x.desiredState", "x.public", "x.placement.*"], ["x.memory", "x.size", "x.type"]);
  has(
    labels("shop extends Cell { disk extends Volume {\n    ‸\n  }\n  other extends VM { x.memory 1; } }"),
    ["x.size", "x.import"],
    ["x.memory"],
  );
  has(labels("T extends VM { role 1; }\nshop extends Cell { vm extends T { ‸"), ["x.memory", "role"]);
  has(labels("shop extends Cell { ‸ }"), ["x.policy.deploy", "x.limits.vms"]);
  assert.deepEqual(labels("shop extends Cell { group extends { ‸ } }"), []);
});
test("an attribute comes with unit, default and what a change does", () => {
  const memory = items("shop extends Cell { vm extends VM { ‸ } }").find(({ label }) => label === "x.memory");
  assert.match(memory?.docs ?? "", /MiB[\s\S]*Required\. A change restarts the VM/);
  assert.match(memory?.snippet ?? "", /^x\.memory \$\{1:16\};$/);
  const state = items("shop extends Cell { vm extends VM { ‸ } }").find(({ label }) => label === "x.desiredState");
  assert.match(state?.snippet ?? "", /^x\.desiredState "\$\{1\|on,off\|\}";$/);
  assert.match(state?.docs ?? "", /Default: `"on"`/);
  assert.match(memory?.docs ?? "", /Required\./);
  assert.doesNotMatch(memory?.docs ?? "", /Default:|Optional\./);
  const snippet = (type: string, name: string): string | undefined =>
    items(`shop extends Cell { it extends ${type} { ‸ } }`).find(({ label }) => label === name)?.snippet;
  // What it is without being written comes second.
  assert.match(snippet("VolumeConnection", "x.requires") ?? "", /\|false,true\|/);
  assert.match(snippet("VM", "x.restartOnFailure") ?? "", /\|true,false\|/);
  assert.equal(
    applied("shop extends Cell { vm extends VM { x.me‸ } }", "x.memory"),
    "shop extends Cell { vm extends VM { x.memory } }",
  );
  assert.equal(
    applied("s extends Cell { vm extends VM { x.me‸ 5; } }", "x.memory"),
    "s extends Cell { vm extends VM { x.memory 5; } }",
  );
});
test("values of choices and booleans", () => {
  has(labels("shop extends Cell { vm extends VM { x.desiredState ‸ } }"), ['"on"', '"off"']);
  has(labels('shop extends Cell { vm extends VM { x.desiredState "‸" } }'), ["on", "off"]);
  has(labels("shop extends Cell { vm extends VM { x.public t‸; } }"), ["true", "false"]);
  has(labels('shop extends Cell { r extends NetworkRule { x.address1 "‸" } }'), ["internet", "controller"]);
  assert.equal(
    applied('s extends Cell { vm extends VM { x.desiredState "o‸"; } }', "off"),
    's extends Cell { vm extends VM { x.desiredState "off"; } }',
  );
});
test("what is placed into a component is completed from there", () => {
  const tier = "tier extends { vm extends VM { x.memory 64; } }";
  const inside = (text: string): readonly string[] => labels(`shop extends Cell { ${tier} ${text} }`);
  has(inside('tier:card extends VirtualInterface { x.vm "<ref:../‸>"; }'), ["vm"], ["tier"]);
  has(inside('card extends VirtualInterface { x.vm "<ref:../‸>"; }'), ["tier"], ["vm"]);
});
test("prototypes: standard ones, and those of the bundle", () => {
  const files = {
    "shop.sf": '#include "lib/t.sf"\nshop extends Cell { vm extends ‸ }',
    "lib/t.sf": "Tier extends { web extends VM {} }",
  };
  has(labels(files), ["VM", "Volume", "Tier"], ["vm"]);
  has(
    labels({ ...files, "shop.sf": '#include "lib/t.sf"\nshop extends Cell { a 1; vm extends Tier:‸ }' }),
    ["web"],
    ["VM"],
  );
  has(labels({ ...files, "shop.sf": '#include "lib/t.sf"\nshop extends Cell { vm extends Tier, V‸ }' }), ["VM"]);
  const vm = items({ ...files, "shop.sf": "shop extends Cell { vm extends V‸\n  b extends VM { x.memory 2; } }" }).find(
    ({ label }) => label === "VM",
  );
  assert.match(vm?.snippet ?? "", /^VM \{\n\tx\.memory \$\{1:16\};\$0\n\}$/);
});
test("paths: elements of the right type, and groups that hold such", () => {
  const text = (path: string): string => `
Tier extends { vm extends VM { x.memory 1; } net extends Subnet { x.size 8; } }
params extends { memory 5; }
shop extends Cell {
  web extends Tier;
  disks extends { golden extends Volume { x.size 64; } }
  link extends VolumeConnection { x.vm "${path}
  later extends VM { x.memory 2; }
}`;
  has(labels(text('<ref:/shop/‸>";}')), ["web", "later"], ["disks", "link"]);
  assert.deepEqual(labels(text('<ref:/shop/web/‸>";}')), ["vm"]);
  has(labels(text('<ref:../‸>";}')), ["web", "..", "later"], ["params"]);
  has(labels(text('<ref:‸>";}')), ["/shop/web/vm", "/shop/later", ".."], ["/Tier/vm"]);
  has(labels(text('‸"; }')), ["<ref:/shop/web/vm>", "<ref:/shop/later>"]);
  has(labels(text("<ref:/shop/web/‸")), ["vm"]);
  assert.match(applied(text('<ref:/shop/we‸b/vm>"; }'), "web"), /<ref:\/shop\/web\/vm>/);
  has(labels('p extends { a 1; }\ns extends Cell { v extends VM { x.memory "<ref:/p/‸>"; } }'), ["a"]);
});
test("of a group with more names than anybody reads those are offered that have the written letters", () => {
  const offered = (count: number, written: string): number => {
    const machines = Array.from({ length: count }, (_, index) => `v${index} extends VM { x.memory 64; }`).join(" ");
    return labels(
      `shop extends Cell { g extends { ${machines} } c extends VolumeConnection { x.vm "<ref:/shop/g/${written}‸>"; } }`,
    ).length;
  };
  assert.equal(offered(500, "v499"), 500, "all of them, and the editor chooses");
  assert.equal(offered(501, "v499"), 1);
  assert.equal(offered(501, "V49"), 23, "whatever their case, and with others between them");
  assert.equal(offered(600, ""), 500, "as many as anybody reads");
});
test("SmartFrog references", () => {
  const text =
    "p extends { memory 5; inner extends { deep 1; } }\nshop extends Cell { size 3; vm extends VM { x.memory ";
  has(labels(`${text}‸ } }`), ["p", "size", "ROOT"], ["extends"]);
  assert.deepEqual(labels(`${text}p:‸; } }`), ["memory", "inner", "PARENT"]);
  has(labels(`${text}ROOT:p:inner:d‸; } }`), ["deep"]);
  has(labels(`${text}(p:me‸ + 2); } }`), ["memory"]);
});
test("files to include", () => {
  const files = { "a/main.sf": '#include "‸"\n', "a/t.sf": "", "lib/u.sf": "" };
  assert.deepEqual(labels(files), ["t.sf", "../lib/u.sf"]);
});
test("nothing in comments and behind values", () => {
  assert.deepEqual(labels("shop extends Cell { vm extends VM { // x.‸\n } }"), []);
  assert.deepEqual(labels("shop extends Cell { vm extends VM { /* x.‸ */ } }"), []);
  assert.deepEqual(labels("shop extends Cell { vm extends VM { x.memory 12 ‸ } }"), []);
});
test("CRLF, and characters of two code units before the cursor", () => {
  has(labels('/* 😀é */\r\nshop extends Cell {\r\n  note "😀";\r\n  vm extends VM {\r\n    x.‸\r\n  }\r\n}\r\n'), [
    "x.memory",
  ]);
  assert.equal(
    applied('a "😀"; s extends Cell { vm extends VM { x.desiredState "‸"; } }', "off"),
    'a "😀"; s extends Cell { vm extends VM { x.desiredState "off"; } }',
  );
});
test("JSON", () => {
  const json = (text: string) => items({ "shop.json": text });
  const name = json('{"shop": {"x.type": "Cell", "vm": {"x.type": "VM", "x.me‸"}}}').find(
    ({ label }) => label === "x.memory",
  );
  assert.deepEqual([name?.insert, name?.filter], ['"x.memory"', '"x.memory"']);
  assert.match(name?.snippet ?? "", /^"x\.memory": \$\{1:16\}$/);
  has(
    json('{"shop": {"x.type": "Cell", "vm": {"x.type": "VM", "x.desiredState": ‸').map(({ label }) => label),
    ['"on"'],
  );
  has(
    json('{"shop": {"x.type": "Cell", "vm": {"x.type": "‸"}}}').map(({ label }) => label),
    ["VM"],
  );
  has(
    json(
      '{"shop": {"x.type": "Cell", "vm": {"x.type": "VM"}, "l": {"x.type": "VolumeConnection", "x.vm": "<ref:../‸>"}}}',
    ).map(({ label }) => label),
    ["vm"],
  );
});
