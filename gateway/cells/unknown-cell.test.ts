import assert from "node:assert/strict";
import { test } from "node:test";
import { type Supply, unknownSupply } from "../../model/check/check-supply.ts";
import { smallInstallation } from "../../model/testing/small-installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { Way } from "../requests/forward.ts";
import { createCells } from "./cells.ts";
import type { Registry } from "./registry.ts";
import { firstPlan, readFirstModel } from "./unknown-cell.ts";

const json = "application/json";
const text = '{"shop":{"x.type":"Cell","vm":{"x.type":"VM","x.memory":16,"x.data":{"a":"?"}}}}';

test("a first model whose bytes are no UTF-8 is refused, not mended", async () => {
  assert.equal((await readFirstModel("shop", json, Buffer.from(text))).ok, true);
  const bytes = Buffer.from(text);
  bytes[bytes.indexOf("?")] = 0xff;
  const read = await readFirstModel("shop", json, bytes);
  assert.equal(read.ok, false);
  assert.match(read.ok ? "" : read.error.message, /UTF-8/);
});

test("a first model may be YAML, and its faults say where they are", async () => {
  const yaml = (type: string, memory: string) =>
    readFirstModel("shop", type, Buffer.from(`shop:\n  x.type: Cell\n  vm: {x.type: VM, x.memory: ${memory}}\n`));
  for (const type of ["application/yaml", "application/yaml; charset=utf-8", "text/x-yaml"])
    assert.equal((await yaml(type, "16")).ok, true, type);
  const refused = await yaml("application/yaml", "yes");
  assert.equal(refused.ok, false);
  assert.match(JSON.stringify(refused), /"file":"model.yaml","line":3/);
  const unread = await yaml("application/yaml", "[");
  assert.match(JSON.stringify(unread), /yaml\/unclosed/);
  assert.equal((await yaml("application/json", "16")).ok, false);
});

test("the plan of a first model says what will not become ready, as that of any other does", async () => {
  const { storage } = smallInstallation;
  assert.ok(storage !== null);
  const offering: Supply = { ...smallInstallation, storage: { ...storage, images: [{ name: "tiny", sizeMiB: 64 }] } };
  const foreseen = async (image: string, supply = offering): Promise<readonly string[]> => {
    const golden = { "x.type": "Volume", "x.size": 64, "x.access": "ro", "x.import": image };
    const model = { shop: { "x.type": "Cell", golden, vm: { "x.type": "VM", "x.memory": 64 } } };
    const read = await readFirstModel("shop", json, Buffer.from(JSON.stringify(model)));
    assert.ok(read.ok);
    return firstPlan(read.value, supply).foreseen?.map(({ path, says }) => `${path}: ${says}`) ?? [];
  };
  const boots = /^shop\/vm: .*boot/;
  const known = await foreseen("tiny");
  assert.equal(known.length, 1, known.join("\n"));
  assert.match(known[0] ?? "", boots);
  const [image, vm] = await foreseen("tny");
  assert.match(image ?? "", /^shop\/golden: it will wait: there is no image "tny"; did you mean "tiny"\?/);
  assert.match(vm ?? "", boots);
  assert.equal((await foreseen("tny", unknownSupply)).length, 1, "of images nothing is known");
});

/** Controllers that answer so; null: not at all. */
function cellsWith(answers: Readonly<Record<string, number | null>>) {
  const names = Object.keys(answers);
  const present = async (cell: string): Promise<unknown> => {
    const status = answers[cell];
    if (status == null) throw new Error("nobody answers");
    return { status, text: async () => "{}" };
  };
  const way = { configuration: {} as ProcessConfiguration, present } as unknown as Way;
  const registry = { names: async () => names, has: async (cell: string) => names.includes(cell) };
  return createCells(
    way,
    registry as unknown as Registry,
    () => undefined,
    async () => undefined,
  );
}
const silent = (cell: string) => ({ cell, version: 0, phases: { unreachable: 1 }, elements: 0 });

test("a user's cell whose controller does not answer is named, and one that does not know him is not", async () => {
  const cells = cellsWith({ shop: null, bank: 503, other: 401, gone: 404, barred: 403 });
  const all = ["shop", "bank", "other", "gone", "barred", "never"];
  assert.deepEqual(await cells.summaries("Bearer session", all, true), [silent("shop"), silent("bank")]);
  assert.deepEqual(
    await cells.summaries("Bearer cell", all),
    [],
    "who names a cell himself does not learn whether there is one",
  );
  assert.equal((await cells.summaries("Bearer operator", null)).length, 5);
});

test("the first plan of a cell names what it takes from the cell above", async () => {
  const read = await readFirstModel("shop", json, Buffer.from(JSON.stringify({ shop: { "x.type": "Cell" } })));
  assert.ok(read.ok);
  const own = { attribute: "x.policy.internet", from: "none", to: "out", of: "own", cells: ["shop"] };
  assert.deepEqual(firstPlan(read.value, unknownSupply, { internet: "out" }).opened, [own]);
  assert.equal(firstPlan(read.value, unknownSupply, null).opened, undefined, "that is not known");
});
