import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { hasTimeToSpare, type Ticks, ticksOf } from "./turn.ts";

test("time to spare is what is idle, waits for a disk, or is nice", () => {
  assert.deepEqual(ticksOf("cpu  10 20 5 100 7 1 2 30 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"), { all: 175, spare: 127 });
});

test("a second file begins when there was time to spare for twenty seconds, and not after a short rest", () => {
  const samples = (...shares: readonly number[]): readonly Ticks[] => {
    let [all, spare] = [1000, 500];
    return [
      { all, spare },
      ...shares.map((share) => {
        all += 1000;
        spare += 1000 * share;
        return { all, spare };
      }),
    ];
  };
  assert.equal(hasTimeToSpare(samples(0.5, 0.5, 0.5)), false, "it has not looked long enough");
  assert.equal(hasTimeToSpare(samples(0.5, 0.5, 0.5, 0.5)), true);
  assert.equal(hasTimeToSpare(samples(0.1, 0.1, 0.1, 0.9)), false);
  assert.equal(hasTimeToSpare(samples(0, 0, 0, 0.4, 0.4, 0.4, 0.4)), true, "what was before counts no more");
});

test("of two files one runs, and the other one when that has ended or been killed", async (context) => {
  const directory = mkdtempSync(join(tmpdir(), "cells-turns-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "turns");
  const file = join(directory, "some.test.mjs");
  writeFileSync(
    file,
    `import { writeSync } from "node:fs"; const say = (word) => writeSync(1, word + " " + Date.now() + "\\n");
     say("begins"); setTimeout(() => say("ends"), 300);`,
  );
  const run = () =>
    promisify(execFile)(process.execPath, ["--import", join(import.meta.dirname, "turn.ts"), file], {
      env: { ...process.env, NODE_TEST_CONTEXT: "child", CELLS_TEST_TURNS: path, NODE_NO_WARNINGS: "1" },
    });
  const [one, other] = await Promise.all([run(), run()]);
  const times = [one, other].map(({ stdout }) => [...stdout.matchAll(/\d+/g)].map(([time]) => Number(time)));
  const [first, second] = times.sort(([a = 0], [b = 0]) => a - b);
  assert.ok((second?.[0] ?? 0) >= (first?.[1] ?? Number.POSITIVE_INFINITY), JSON.stringify(times));
  const waited = readFileSync(join(path, "waited"), "utf8").trim().split("\n");
  assert.equal(waited.length, 2);
  // Nobody has this number: what a file that was killed left behind holds nobody up.
  writeFileSync(join(path, "4194303"), "");
  await run();
});
