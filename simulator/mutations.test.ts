import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

/**
 * Each guard of the code has a patch that takes it out, and a scenario or some seeds that then fail: what no run can miss
 * protects nothing, or is not tried. A patch is applied to a copy of the code, which nobody else sees.
 */
const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const patches = join(import.meta.dirname, "mutations");
const folders = ["model", "core", "runtime", "host", "simulator"];
const longestMs = 120_000;
let copy = "";

before(async () => {
  copy = await mkdtemp(join(tmpdir(), "cells-mutations-"));
  for (const name of [...folders, "package.json"]) await cp(join(root, name), join(copy, name), { recursive: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
});
after(() => rm(copy, { recursive: true, force: true }));

const play = async (words: readonly string[]): Promise<string> => {
  const file = join(copy, "simulator/mutations/play.testing.ts");
  const { stdout } = await run(process.execPath, [file, ...words], { timeout: longestMs });
  return stdout;
};
const patched = async (file: string, work: () => Promise<void>): Promise<void> => {
  const apply = (...more: string[]) => run("patch", ["-p1", "-s", "-i", file, ...more], { cwd: copy });
  await apply();
  try {
    await work();
  } finally {
    await apply("-R");
  }
};
const head = (text: string, name: string): string => new RegExp(`^# ${name}: (.*)$`, "m").exec(text)?.[1] ?? "";

for (const name of (await readdir(patches)).filter((file) => file.endsWith(".patch")).sort()) {
  test(`without ${name.replace(".patch", "")} something fails`, async () => {
    const file = join(patches, name);
    const text = await readFile(file, "utf8");
    const words = head(text, "play").split(" ");
    const violated = head(text, "violates").split(",");
    await patched(file, async () => {
      const faults = await play(words);
      assert.notEqual(faults, "", "it can be taken out, and nothing notices");
      if (violated.includes("any")) return;
      const isNamed = violated.some((number) => new RegExp(`^seed \\d+: ${number}\\. `, "m").test(faults));
      assert.ok(
        isNamed,
        `invariant ${violated.join(" or ")} should be violated, and this was: ${faults.slice(0, 500)}`,
      );
    });
  });
}

test("with all guards in place the same scenarios and seeds pass", async () => {
  assert.equal(await play(["scenario", "change-overtakes-document"]), "");
  assert.equal(await play(["seeds", "1-4"]), "");
});
