import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { readBody } from "./http.ts";

const body = (...chunks: readonly (readonly number[])[]): Readable =>
  Readable.from(chunks.map((chunk) => Buffer.from(chunk)));

test("a body is UTF-8, or is refused", async () => {
  // The character may be cut in two by the chunks.
  assert.deepEqual(await readBody(body([0x22, 0xe2], [0x82, 0xac, 0x22])), { ok: true, value: '"€"' });
  for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0x22, 0xe2, 0x82]])
    assert.deepEqual(await readBody(body(bytes)), { ok: false, error: "not-utf8" });
});

test("a body beyond its limit is refused, whatever is in it", async () => {
  assert.deepEqual(await readBody(body([0x61, 0x61], [0x61]), 2), { ok: false, error: "too-large" });
  assert.deepEqual(await readBody(body([0x61], [0x61]), 2), { ok: true, value: "aa" });
});
