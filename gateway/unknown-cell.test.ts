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
