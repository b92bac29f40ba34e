import assert from "node:assert/strict";
import { test } from "node:test";
import { wordsOf } from "./words.ts";

test("of what was said to a terminal the words stay, and nothing that moves one", () => {
  const said = (text: string): string => wordsOf(new TextEncoder().encode(text));
  assert.equal(said("login: root\r\nid\ttty\n"), "login: root\nid\ttty\n");
  assert.equal(said("\u001b[1;31mKernel\u001b[0m panic\u001b[2K\u001b[?25l"), "Kernel panic");
  assert.equal(said("\u001b]0;a title\u0007one\u001b]52;c;aGk=\u001b\\two\u001b(Bthree\u001bc"), "onetwothree");
  assert.equal(said("a\u0008\u0000\u009bb\u001b"), "ab");
  assert.equal(said("cut off \u001b]0;without an end"), "cut off ");
  assert.equal(said("<b>no markup is made of it</b>"), "<b>no markup is made of it</b>");
});
