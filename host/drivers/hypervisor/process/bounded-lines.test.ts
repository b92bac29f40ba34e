import assert from "node:assert/strict";
import { test } from "node:test";
import { BoundedLines, type LineLimits } from "./bounded-lines.ts";

const limits: LineLimits = { depth: 4, values: 32, stringBytes: 64, lineBytes: 256, lines: 1000 };
/** What is read of a text that comes in pieces of that size. */
const read = (text: string, piece = text.length, within: Partial<LineLimits> = {}): readonly unknown[] => {
  const found: unknown[] = [];
  const lines = new BoundedLines({ ...limits, ...within }, (message) => found.push(message));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += Math.max(1, piece)) lines.push(bytes.subarray(at, at + Math.max(1, piece)));
  return found;
};
const sizes = [1, 2, 3, 7, 1000];

test("objects pass whole, however they are cut into pieces, and what is no object is dropped", () => {
  const objects = [
    { return: 7 },
    { return: { pid: 3, list: [1, "two", null] } },
    { error: { desc: 'say "no" \\ ü \u0000' } },
  ];
  const text = objects.map((each) => `${JSON.stringify(each)}\n`).join('\r\n\xff\n[1]\n17\n{\n"x"\n');
  for (const size of sizes) assert.deepEqual(read(text, size), objects, `${size}`);
});

test("what nests too deeply, has too many values or is too long is dropped, and the next line is read", () => {
  const right = '{"return":1}\n';
  for (const bad of [
    "[".repeat(1000),
    `${"[".repeat(1000)}${"]".repeat(1000)}`,
    `{"a":${"[".repeat(4)}${"]".repeat(4)}}`,
    `{"a":[${"1,".repeat(40)}1]}`,
    `{"a":[${"{},".repeat(40)}1]}`,
    `{"a":1${" ".repeat(300)}}`,
    `{"a":${JSON.stringify("x\\n".repeat(40))}}`,
    ...["x", "y", "z", "u", "v"].map((key) => `{${`"${key}${"k".repeat(60)}":1,`.repeat(5)}"a":1}`),
    "\\".repeat(1000),
    `{"${"x".repeat(500)}`,
  ])
    for (const size of sizes)
      assert.deepEqual(read(`${bad}\n${right}`, size), [{ return: 1 }], `${bad.slice(0, 40)} ${size}`);
});

test("a long string is cut, and what comes behind it is read", () => {
  const text = `{"first":"${"a".repeat(5000)}","second":"${"b".repeat(64)}","exited":true}\n`;
  for (const size of sizes) {
    const [object] = read(text, size) as [{ first: string; second: string; exited: boolean }];
    assert.deepEqual(object, { first: "a".repeat(64), second: "b".repeat(64), exited: true });
  }
});

test("only so many lines are looked into", () => {
  assert.equal(read('{"a":1}\n'.repeat(50), 7, { lines: 10 }).length, 10);
});
