import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { canRun } from "../testing/namespaces.testing.ts";
import { compileWithout, mutations } from "./mutations.testing.ts";
import { fuzz } from "./run.testing.ts";

/** Each check that the list knows, taken out: the fuzz notices within a hundred thousand frames. */
const seed = Number(process.env.CELLS_SEED ?? Date.now() % 1_000_000_000);
const frames = 100_000;

describe("the program without one of its checks", { skip: !canRun() }, () => {
  for (const mutation of mutations)
    test(`"${mutation.name}" is missed (CELLS_SEED=${seed})`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), "diverter-mutation-"));
      try {
        const report = await fuzz({ seed, frames, object: compileWithout(mutation, directory), whole: true });
        assert.notEqual(report.story, null, `nothing differs in ${report.frames} frames`);
        t.diagnostic(`after ${report.frames} frames`);
      } finally {
        rmSync(directory, { recursive: true });
      }
    });
});
