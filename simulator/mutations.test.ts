import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { createHash, randomInt } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

/**
 * Each guard of the code has a patch that takes it out, and a scenario, some seeds or a named test that then fails: what no run
 * can miss protects nothing, or is not tried. A patch is applied alone, to a copy of the code which nobody else sees. A run
 * draws 240 of them (decisions/0064); CELLS_MUTATIONS=all, as `./cells test --all` has it, tries all, also those whose
 * cheapest detector takes seconds (`# slow`). A property makes 10 runs, or as many as notice it (`# runs`). Those of the dataplane (`# builds`, what compiles it) are tried where a compiler is.
 */
const run = promisify(execFile);
const compiles = spawnSync("clang", ["--version"]).status === 0;
const root = join(import.meta.dirname, "..");
const patches = join(import.meta.dirname, "mutations");
const isWhole = process.env.CELLS_MUTATIONS === "all";
const seed = process.env.CELLS_SEED ?? String(randomInt(2 ** 31));
/** So many that a run takes as long as before, however many guards there will be. */
const drawnCount = 240;
/** Those with the least hash of seed and name, in their order. */
const drawn = (names: readonly string[]): readonly string[] => {
  const hash = (name: string): string => createHash("sha256").update(`${seed} ${name}`).digest("hex");
  return names
    .map((name) => ({ name, by: hash(name) }))
    .sort((a, b) => (a.by < b.by ? -1 : 1))
    .slice(0, drawnCount)
    .map(({ name }) => name)
    .sort();
};
/** `docs`, `examples`: tests carry out what a page shows, and read what an example says. */
const folders = ["model", "core", "runtime", "host", "gateway", "cli", "web", "simulator", "docs", "examples"];
/** Nothing hangs for so long; beside a testbed (`testbed/run-tests`) a test has little of the processors. */
const longestMs = 600_000;
/** As many at a time as the cores that a test run may count on. */
const copies: string[] = [];
const copyCount = 2;

before(async () => {
  for (let number = 0; number < copyCount; number += 1) {
    const copy = await mkdtemp(join(tmpdir(), "cells-mutations-"));
    copies.push(copy);
    for (const name of [...folders, "package.json"]) await cp(join(root, name), join(copy, name), { recursive: true });
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  }
});
const all = copies;
after(async () => {
  for (const copy of all) await rm(copy, { recursive: true, force: true });
});

const play = async (copy: string, words: readonly string[]): Promise<string> => {
  const file = join(copy, "simulator/mutations/play.testing.ts");
  const { stdout } = await run(process.execPath, [file, ...words], { timeout: longestMs });
  return stdout;
};
/** Runs the tests of that name in a file; what they print if one of them fails, and nothing where none does. */
const tryTest = async (copy: string, file: string, name: string, runs = "10"): Promise<string> => {
  const pattern = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
  const env = { ...process.env, CELLS_RUNS: runs, CELLS_SEED: "1", NODE_TEST_CONTEXT: undefined };
  const options = { cwd: copy, timeout: longestMs, env };
  const oneSeed = `--import=${join(copy, "simulator/mutations/one-seed.testing.ts")}`;
  try {
    await run(process.execPath, [oneSeed, "--test-reporter=spec", `--test-name-pattern=${pattern}`, file], options);
    return "";
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
};
/** `builds`: what makes the objects that are committed out of their source, and lies beside them; empty: none is concerned. */
const patched = async (file: string, builds: string, work: (copy: string) => Promise<void>): Promise<void> => {
  const copy = copies.pop() ?? assert.fail("there are as many copies as tests at a time");
  const apply = () => run("patch", ["-p1", "-s", "--no-backup-if-mismatch", "-i", file], { cwd: copy });
  const beside = dirname(builds);
  try {
    await apply();
    if (builds !== "") await run(process.execPath, [join(copy, builds)]);
    await work(copy);
  } finally {
    // As they were, and not by the patch the other way round: where it fits but roughly, that puts a line elsewhere.
    for (const [, touched = ""] of (await readFile(file, "utf8")).matchAll(/^\+\+\+ b\/(\S+)/gm))
      await cp(join(root, touched), join(copy, touched));
    if (builds !== "") await cp(join(root, beside), join(copy, beside), { recursive: true });
    copies.push(copy);
  }
};
const head = (text: string, name: string): string => new RegExp(`^# ${name}: (.*)$`, "m").exec(text)?.[1] ?? "";

const tryPatch = (file: string, text: string): Promise<void> =>
  patched(file, head(text, "builds"), async (copy) => {
    const [testFile = "", ...name] = head(text, "test").split(" ");
    if (testFile !== "") {
      const told = await tryTest(copy, testFile, name.join(" "), head(text, "runs") || "10");
      assert.match(
        told,
        /ERR_ASSERTION|Property failed|does not come to rest/,
        "it can be taken out, and the test that is named passes",
      );
      return;
    }
    const faults = await play(copy, head(text, "play").split(" "));
    const violated = head(text, "violates").split(",");
    assert.notEqual(faults, "", "it can be taken out, and nothing notices");
    if (violated.includes("any")) return;
    const isNamed = violated.some((number) => new RegExp(`^seed \\d+: ${number}\\. `, "m").test(faults));
    assert.ok(isNamed, `invariant ${violated.join(" or ")} should be violated, and this was: ${faults.slice(0, 500)}`);
  });

const which = isWhole ? "all" : `${drawnCount} of them, CELLS_SEED=${seed}`;
describe(`mutations: ${which}`, { concurrency: copyCount }, async () => {
  const names = (await readdir(patches)).filter((file) => file.endsWith(".patch")).sort();
  for (const name of isWhole ? names : drawn(names)) {
    const file = join(patches, name);
    const text = await readFile(file, "utf8");
    if (!isWhole && /^# slow$/m.test(text)) continue;
    const skip = head(text, "builds") !== "" && !compiles && "clang is not here";
    test(`without ${name.replace(".patch", "")} something fails`, { skip }, () => tryPatch(file, text));
  }
});

test("with all guards in place the same scenarios and seeds pass, and a named test does", async () => {
  const copy = all[0] ?? assert.fail();
  assert.equal(await play(copy, ["scenario", "change-overtakes-document"]), "");
  assert.equal(await play(copy, ["seeds", "1-4"]), "");
  const name = "a declared death withdraws what that life said, and no later one";
  assert.equal(await tryTest(copy, "core/distribution/repair.test.ts", name), "");
});
