import assert from "node:assert/strict";
import { test } from "node:test";
import { base32, codeOf, hashOfRecovery, newRecoveryCodes, newSecret, stepAt, stepOf, uriOf } from "./totp.ts";

const secret = Buffer.from("12345678901234567890");

test("codes are those of RFC 4226, appendix D", () => {
  const codes = "755224 287082 359152 969429 338314 254676 287922 162583 399871 520489".split(" ");
  for (const [counter, code] of codes.entries()) assert.equal(codeOf(secret, counter), code);
});

test("codes by time are those of RFC 6238, appendix B", () => {
  for (const [seconds, code] of [
    [59, "94287082"],
    [1_111_111_109, "07081804"],
    [1_111_111_111, "14050471"],
    [1_234_567_890, "89005924"],
    [2_000_000_000, "69279037"],
    [20_000_000_000, "65353130"],
  ] as const)
    assert.equal(codeOf(secret, stepAt(seconds * 1000), 8), code);
});

test("base 32 is that of RFC 4648, section 10, without padding", () => {
  for (const [text, written] of [
    ["", ""],
    ["f", "MY"],
    ["fo", "MZXQ"],
    ["foo", "MZXW6"],
    ["foob", "MZXW6YQ"],
    ["fooba", "MZXW6YTB"],
    ["foobar", "MZXW6YTBOI"],
  ] as const)
    assert.equal(base32(Buffer.from(text)), written);
  assert.equal(base32(newSecret()).length, 32);
  assert.match(uriOf("ann@ROOT/acme", secret), /^otpauth:\/\/totp\/Cells%3Aann%40ROOT%2Facme\?secret=GEZDGNBVGY3TQOJQ/);
});

test("a code counts in its step, the one before and the one after, and in no other", () => {
  const ms = 1_111_111_111_000;
  const step = stepAt(ms);
  for (const offset of [-1, 0, 1]) assert.equal(stepOf(secret, codeOf(secret, step + offset), ms), step + offset);
  for (const offset of [-2, 2]) assert.equal(stepOf(secret, codeOf(secret, step + offset), ms), null);
  for (const wrong of ["", "000000", "12345", "1234567", "abcdef"]) assert.equal(stepOf(secret, wrong, ms), null);
});

test("recovery codes are read however they are typed, and no two are the same", () => {
  const codes = newRecoveryCodes();
  assert.equal(new Set(codes).size, 10);
  for (const code of codes) {
    assert.match(code, /^[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}$/);
    assert.equal(hashOfRecovery(` ${code.toLowerCase().replaceAll("-", " ")}`), hashOfRecovery(code));
  }
  assert.notEqual(hashOfRecovery(codes[0] ?? ""), hashOfRecovery(codes[1] ?? ""));
});
