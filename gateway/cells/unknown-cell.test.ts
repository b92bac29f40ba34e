import assert from "node:assert/strict";
import { test } from "node:test";
import { readFirstModel } from "./unknown-cell.ts";

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
