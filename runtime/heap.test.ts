import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { heapOptions } from "./heap.ts";

const run = (...words: string[]): string => {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout;
};
/** Holds some objects, and makes many that live a little longer than most. */
const program = `
  const make = (at) => ({ at, text: String(at), more: [at, at + 1, at + 2] });
  const all = Array.from({ length: 200_000 }, (_, at) => make(at));
  gc();
  const held = process.memoryUsage().heapUsed;
  const lately = Array.from({ length: 50_000 });
  let largest = 0;
  for (let at = 0; at < 4_000_000; at += 1) {
    lately[at % lately.length] = make(at);
    if (at % 10_000 === 0) largest = Math.max(largest, process.memoryUsage().heapTotal);
  }
  console.log(JSON.stringify({ held, largest, count: all.length }));
`;

test("a service's heap stays within four times what it holds, whatever garbage it makes", () => {
  const { held, largest } = JSON.parse(run(...heapOptions, "--expose-gc", "-e", program)) as Record<string, number>;
  assert.ok((largest ?? 0) < (held ?? 0) * 4, `${held} bytes are held, and the heap had ${largest}`);
});

test("what Node keeps compiled holds with these options as without them", () => {
  const tag = (...options: string[]): string => run(...options, "-p", "v8.cachedDataVersionTag()");
  assert.match(tag(), /^\d+\n$/);
  assert.equal(tag(...heapOptions), tag());
});
