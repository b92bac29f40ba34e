import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";

test("each file of a run has a line that says how it ended, under whichever name it was given", () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-files-reporter-"));
  try {
    const file = (name: string, body: string) =>
      writeFileSync(join(directory, name), `require("node:test").test("one", () => { ${body} });\n`);
    file("sound.test.cjs", "");
    file("broken.test.cjs", 'throw new Error("broken")');
    const reporter = resolve(import.meta.dirname, "files.reporter.ts");
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    for (const prefix of ["", `${directory}/`]) {
      const names = ["sound.test.cjs", "broken.test.cjs"].map((name) => prefix + name);
      const options = [`--test-reporter=${reporter}`, `--test-reporter-destination=${join(directory, "lines")}`];
      spawnSync(process.execPath, ["--test", ...options, ...names], { cwd: directory, env });
      const lines = readFileSync(join(directory, "lines"), "utf8").trimEnd().split("\n").toSorted();
      const withoutTimes = lines.map((line) => line.split("\t").slice(1).join(" ")).toSorted();
      assert.deepEqual(withoutTimes, ["broken.test.cjs failed", "sound.test.cjs passed"], `prefix "${prefix}"`);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
