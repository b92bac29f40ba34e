import assert from "node:assert/strict";
import { test } from "node:test";
import { firstTyped, leftOut } from "./keysyms.ts";

/** As somebody at the keyboard would say it: Shift is `^`, held until `_`. */
function said(text: string): string {
  let [rest, all] = [text, ""];
  for (let next = firstTyped(rest); next !== null; next = firstTyped(rest)) {
    for (const { keysym, isDown } of next.strokes) {
      if (keysym === 0xffe1) all += isDown ? "^" : "_";
      else if (isDown) all += keysym < 0x80 ? String.fromCharCode(keysym) : `(${keysym.toString(16)})`;
    }
    rest = rest.slice(next.length);
  }
  return all;
}

test("a text becomes the keys that type it, with Shift where the sign stands above another", () => {
  assert.equal(said("aB 1"), "a^B_ 1");
  assert.equal(said('"<:|'), '^"_^<_^:_^|_');
  assert.equal(said("';,.\\/-=[]`0"), "';,.\\/-=[]`0");
  assert.equal(said("a\r\nb\rc\n\td"), "a(ff0d)b(ff0d)c(ff0d)(ff09)d");
  const signs = Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at));
  assert.equal(
    signs.filter((sign) => firstTyped(sign)?.strokes.length === 4).length,
    47,
    "half of the 94 that are seen",
  );
});

test("every key goes down and up again, and no other is held meanwhile", () => {
  for (const sign of ["a", "A", "\n"]) {
    const { strokes } = firstTyped(sign) ?? assert.fail();
    const held: number[] = [];
    for (const { keysym, isDown } of strokes)
      if (isDown) held.push(keysym);
      else assert.equal(held.pop(), keysym);
    assert.deepEqual(held, []);
  }
});

test("what no key types is left out and named, and what stands behind it is typed", () => {
  assert.equal(said("é1€2😀3\u0000\u001b[0m\u007f"), "123[0m");
  assert.deepEqual(leftOut("né né 😀\u001b"), ["é", "😀", "\u001b"]);
  assert.deepEqual(leftOut("a\r\n\tB~ "), []);
  assert.equal(firstTyped(""), null);
});
