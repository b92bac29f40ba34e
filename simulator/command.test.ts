import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFaults, simulateMany, simulateSeed, simulateText } from "./command.ts";
import { faultKinds } from "./histories/fault-kinds.ts";
import { invariants } from "./invariants/all.ts";

const gather = () => {
  const lines: string[] = [];
  return { lines, print: (line: string) => void lines.push(line) };
};
const wanted = { hosts: 3, cells: 2, seed: 2, minutes: 0.3, faults: faultKinds };

test("a seed prints every invariant with how often its premise held, and the digest", async () => {
  const { lines, print } = gather();
  assert.equal(await simulateSeed({ ...wanted, log: false }, print), true, lines.join("\n"));
  for (const { title } of invariants)
    assert.equal(lines.filter((line) => line.includes(`. ${title}`)).length, 1, title);
  assert.match(lines.at(-1) ?? "", /at rest \d+ ms after healing, digest [0-9a-f]{64}$/);
});

test("many seeds stop when told to, and say how fast they were", async () => {
  const { lines, print } = gather();
  let asked = 0;
  const isOver = (): boolean => {
    asked += 1;
    return asked > 2;
  };
  const options = { ...wanted, until: null, isOver, nowMs: () => 0 };
  assert.equal(await simulateMany(options, print), true, lines.join("\n"));
  assert.match(lines.at(-1) ?? "", /^2 seeds, \d+ per hour$/);
});

test("a history that fails shows its seed, its faults, the shortest history and the end of its log", async () => {
  const { lines, print } = gather();
  const text =
    "hosts 1\nmemory 512\nat 100 apply c1 vm:a1:256\nat 150 apply c1 vm:a1:256 vm:a2:256\nat 900 clock placer 5\n";
  assert.equal(await simulateText(text, false, print), false);
  const output = lines.join("\n");
  assert.match(output, /seed 1 fails at commit \w+:\n {2}not at rest: /);
  assert.match(output, /at 150 apply c1/);
  assert.doesNotMatch(output, /clock placer/, "what has nothing to do with it was left away");
  assert.match(output, /the end of its log:\n[\d.]+ /);
});

test("a kind of fault that there is not is refused with those that there are", () => {
  assert.deepEqual(parseFaults("crash,pause"), ["crash", "pause"]);
  assert.deepEqual(parseFaults("none"), []);
  assert.throws(() => parseFaults("crash,earthquake"), /"earthquake" is no kind of fault; there are partition, crash/);
});
