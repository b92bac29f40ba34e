import assert from "node:assert/strict";
import { test } from "node:test";
import { type ElementChange, inDocument } from "../../../../model/editor/patches/patches.ts";
import type { Json } from "../../../../model/json/json.ts";
import { patched, readPatch } from "../../../../model/json/patch.ts";
import { allowedFor, besideFields, operationsOf, whereSays, whyBeside } from "./change.ts";

const model = { shop: { "x.type": "Cell", racks: { "x.type": "Pool", "x.cpuRatio": 4 } } };
test("a change beside the text does to the model what it would do to the text", () => {
  const all: readonly ElementChange[] = [
    { kind: "set", path: "shop/racks", attributes: { "x.cpuRatio": null, "x.fill": "pack", "x.memoryPercent": null } },
    { kind: "add", path: "shop/nets/a~b/one", type: "Subnet", attributes: { "x.size": 16 } },
    { kind: "add", path: "shop/two", type: "Subnet", attributes: {} },
    { kind: "remove", path: "shop/racks" },
  ];
  for (const change of all) {
    const after = inDocument(model, change, change.path.split("/"));
    const operations = operationsOf(model, [change]);
    assert.ok(after.ok && operations.ok);
    const patch = readPatch(operations.value as unknown as Json);
    assert.ok(patch.ok);
    const made = patched(model, patch.value);
    assert.ok(made.ok);
    assert.deepEqual(made.value, after.value, JSON.stringify(change));
  }
});

test("an element more never overwrites one that is there, nor what was added a moment before", () => {
  const add = (path: string): ElementChange => ({ kind: "add", path, type: "Subnet", attributes: { "x.size": 16 } });
  const why = operationsOf(model, [add("shop/racks")]);
  assert.ok(!why.ok);
  assert.match(why.error, /shop\/racks is there already: change it instead/);
  assert.ok(!operationsOf(model, [add("shop/net"), add("shop/net")]).ok);
  assert.ok(operationsOf(model, [{ kind: "remove", path: "shop/racks" }, add("shop/racks")]).ok);
  const both = operationsOf(model, [add("shop/nets/one"), add("shop/nets/two")]);
  assert.ok(both.ok);
  const patch = readPatch(both.value as unknown as Json);
  const made = patch.ok ? patched(model, patch.value) : patch;
  const net = { "x.type": "Subnet", "x.size": 16 };
  assert.deepEqual(made, { ok: true, value: { shop: { ...model.shop, nets: { one: net, two: net } } } });
});

test("only a text that the model is of is changed", () => {
  const source = { version: 7, main: "shop.sf", files: {}, time: "", who: "", since: [], unknown: 0 };
  assert.equal(whyBeside(source, 7), null);
  assert.match(whyBeside(source, 8) ?? "", /of before/);
  assert.match(whyBeside({ ...source, unknown: 1 }, 7) ?? "", /of before/);
  assert.match(whyBeside(null, 7) ?? "", /no text of it is kept/);
});

test("data is lost only as it was said for the plan that is shown", () => {
  const [plan, next] = [{}, {}];
  const allowance = { plan, paths: ["shop/disk", "shop/other"] };
  assert.deepEqual(allowedFor(plan, ["shop/disk", "shop/more"], allowance), ["shop/disk"]);
  assert.deepEqual(allowedFor(next, ["shop/disk"], allowance), []);
});

test("comments are said to stay where there are any", () => {
  assert.equal(
    whereSays({ main: "shop.sf", beside: null }),
    "It is written into shop.sf, whose comments and everything else stay.",
  );
  assert.equal(
    whereSays({ main: "shop.json", beside: null }),
    "It is written into shop.json, whose lines are laid out anew.",
  );
  assert.equal(whereSays({ main: null, beside: "it is old" }), "It changes the model beside the text: it is old.");
});

test("what was refused stands beside the field that it is about", () => {
  const said = (message: string) => ({ code: "c", message, hint: "so" });
  const found = besideFields(
    [said("x.memoryPercent is 1 to 100"), said("`x.memory` is too little"), said("it is refused")],
    ["x.memory", "x.memoryPercent"],
  );
  assert.deepEqual(
    [...found],
    [
      ["x.memoryPercent", ["x.memoryPercent is 1 to 100. so"]],
      ["x.memory", ["`x.memory` is too little. so"]],
      ["", ["it is refused. so"]],
    ],
  );
});
