import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { clangVersion, readRecord } from "../program/build.ts";
import { canRun } from "../testing/namespaces.testing.ts";
import { compileWithout, mutations, sourceWithout } from "./mutations.testing.ts";
import { Random } from "./random.testing.ts";
import { fuzz } from "./run.testing.ts";

/**
 * A hundred thousand frames of a seed that is another one each time, and some checks that are taken out of the program, also
 * others each time. All of them: `fuzz-mutations.long.test.ts`; ten million frames: `./cells bench fuzz-network`.
 */
const seed = Number(process.env.CELLS_SEED ?? Date.now() % 1_000_000_000);
const frames = 100_000;
const sample = 2;

test("each check that the list knows is in the program, once", () => {
  for (const mutation of mutations) assert.doesNotThrow(() => sourceWithout(mutation));
});

describe("frames by a grammar, judged by an oracle", { skip: !canRun() }, () => {
  test(`${frames} frames do what the oracle says, and none reaches a cell that never agreed (CELLS_SEED=${seed})`, async () => {
    const report = await fuzz({ seed, frames });
    assert.equal(report.story, null);
    assert.deepEqual([report.differences, report.crossings], [0, 0]);
    // What never gets anywhere proves nothing.
    assert.ok(
      report.frames >= frames && report.delivered > frames / 20 && report.between > 100 && report.outside > 100,
    );
  });

  const random = new Random(seed);
  const drawn = new Set<number>();
  while (drawn.size < sample) drawn.add(random.below(mutations.length));
  for (const at of drawn) {
    const mutation = mutations[at]!;
    test(`without "${mutation.name}" they do not`, { skip: !compiles() && "clang is not here" }, async () => {
      const directory = mkdtempSync(join(tmpdir(), "diverter-mutation-"));
      try {
        const object = compileWithout(mutation, directory);
        // The long test holds each to one seed; here some seed that misses it must not fail a run of everything.
        let isFound = false;
        for (let more = 0; more < 3 && !isFound; more += 1)
          isFound = (await fuzz({ seed: seed + more, frames, object, whole: true })).story !== null;
        assert.ok(isFound, `nothing differs in ${frames} frames of each of three seeds (CELLS_SEED=${seed})`);
      } finally {
        rmSync(directory, { recursive: true });
      }
    });
  }
});

function compiles(): boolean {
  try {
    return clangVersion() !== "" && readRecord().clang !== "";
  } catch {
    return false;
  }
}
