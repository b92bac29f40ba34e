import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { sha256 } from "./sha256.ts";

test("the vectors of FIPS 180-4 come out", () => {
  for (const [text, digest] of [
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ],
    ["a".repeat(1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"],
  ] as const)
    assert.equal(sha256(text), digest);
});

test("it is what the platform says of every length around a block, and of every kind of character", () => {
  const platform = (text: string): string => createHash("sha256").update(text).digest("hex");
  for (let length = 0; length < 200; length += 1)
    assert.equal(sha256("x".repeat(length)), platform("x".repeat(length)));
  for (const text of ["ä", "€", "😀", "\ud800", "\udfff", "\ud7ff", "\ue000", "a\ud83d", "é漢字😀\u0000"])
    assert.equal(sha256(text), platform(text));
});
