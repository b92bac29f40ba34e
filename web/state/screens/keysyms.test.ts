import assert from "node:assert/strict";
import { test } from "node:test";
import { keysymsOf } from "./keysyms.ts";

test("a text becomes the keys that type it, and what no keyboard types is left out", () => {
  assert.deepEqual(keysymsOf("aB 1"), [0x61, 0x42, 0x20, 0x31]);
  assert.deepEqual(keysymsOf("é€"), [0xe9, 0x10020ac]);
  assert.deepEqual(keysymsOf("😀"), [0x101f600]);
  assert.deepEqual(keysymsOf("a\r\nb\rc\n\td"), [0x61, 0xff0d, 0x62, 0xff0d, 0x63, 0xff0d, 0xff09, 0x64]);
  assert.deepEqual(keysymsOf("\u0000\u001b[0m\u007f\u0085"), [0x5b, 0x30, 0x6d]);
});
