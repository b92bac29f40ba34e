import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { changeNothing, whyNothing } from "./changes-nothing.ts";
import { runTests } from "./judges.ts";
import { mutantsIn } from "./mutants.ts";
import { probed, reachIn, reachingOf } from "./reach.ts";
import { addToRecord, readRecord } from "./record.ts";
import { drawn, idOf } from "./sample.ts";
import { testsOf } from "./tests-of.ts";

const root = join(import.meta.dirname, "../..");

async function withFolder<T>(use: (folder: string) => T | Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "cells-mutants-test-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
/** Of a text alone. */
const mutantsOfText = (text: string): Promise<ReturnType<typeof mutantsIn>> =>
  withFolder((folder) => {
    writeFileSync(join(folder, "a.ts"), text);
    return mutantsIn(folder, ["a.ts"]);
  });

test("each operator is exchanged alone, and what is no operator stays", async () => {
  const found = await mutantsOfText(
    [
      "export type Both<T> = T extends (a: number) => infer R ? R & { b: 1 } : never; // a && b, in a comment",
      'export const text = (name: string): string => "a < b" + name + (name.length > 1);',
      "export const is = (a: number, b: number | null): boolean => !(a <= 1) && b !== null;",
      "export const pick = (a: number): number => (a === 1 ? a + 1 : a % 2);",
      "export const count = (sum: number): number => { sum += 1; return sum; };",
    ].join("\n"),
  );
  assert.deepEqual(
    found.map(({ line, before, after }) => `${line} ${before} => ${after}`),
    [
      "2 name.length > 1 => (name.length >= 1)",
      "3 !(a <= 1) => ((a <= 1))",
      "3 a <= 1 => (a < 1)",
      "3 !(a <= 1) && b !== null => (!(a <= 1) || b !== null)",
      "3 b !== null => (b === null)",
      "4 a === 1 => (a !== 1)",
      "4 a === 1 ? a + 1 : a % 2 => ((a === 1) ? a % 2 : a + 1)",
      "4 a + 1 => (a - 1)",
      "4 a % 2 => (a * 2)",
      "5 sum += 1 => sum -= 1",
    ],
  );
});

test("every mutant is a program, and none is the text itself or another mutant", () => {
  const file = "core/directory/directory.ts";
  const source = readFileSync(join(root, file), "utf8");
  const found = mutantsIn(root, [file]);
  assert.ok(found.length > 50, String(found.length));
  for (const { text } of found) assert.doesNotThrow(() => stripTypeScriptTypes(text));
  assert.equal(new Set([source, ...found.map(({ text }) => text)]).size, found.length + 1);
});

test("a file that is none is named", () => {
  assert.throws(() => mutantsIn(root, ["core/none.ts"]), /core\/none\.ts is no file below /);
});

test("what is added to a text moves nothing of the order that a seed gives", async () => {
  const text = "export const a = (b: number, c: number): boolean => b < c && b === 1 && c - b > 2;\n";
  const [few, more] = [await mutantsOfText(text), await mutantsOfText(`export const d = 1 + 2;\n${text}`)];
  const added = more.filter(({ before }) => before === "1 + 2").map(idOf);
  assert.equal(added.length, 1);
  for (const seed of [1, 2, 3]) {
    const order = drawn(more, seed).map(idOf);
    assert.deepEqual(
      order.filter((id) => !added.includes(id)),
      drawn(few, seed).map(idOf),
    );
  }
  assert.notDeepEqual(drawn(more, 1).map(idOf), drawn(more, 2).map(idOf));
});

test("two operators that read the same are two", async () => {
  const found = await mutantsOfText("export const a = (b: number): number => (b > 1 ? (b > 1 ? 1 : 2) : 3);");
  assert.equal(new Set(found.map(idOf)).size, found.length);
  assert.deepEqual(
    found.filter(({ before }) => before === "b > 1").map(({ nth }) => nth),
    [1, 2],
  );
});

test("a choice of the lesser of two changes nothing where they are equal; one of others does", async () => {
  const whys = async (text: string): Promise<readonly boolean[]> =>
    (await mutantsOfText(`export const a = (b: number, c: number): number => ${text};`))
      .filter(({ before }) => before === "b < c")
      .map((mutant) => whyNothing(mutant) !== null);
  assert.deepEqual(await whys("(b < c ? b : c)"), [true]);
  assert.deepEqual(await whys("(b < c ? 0 - b : c)"), [false]);
  assert.deepEqual(await whys("(b < c ? -1 : 1)"), [false]);
});

test("what is said to change nothing is of files that are there, once, with a reason", () => {
  const keys = changeNothing.map(({ file, before, after, nth }) => JSON.stringify([file, before, after, nth ?? 1]));
  assert.equal(new Set(keys).size, keys.length);
  for (const { file, why } of changeNothing) {
    assert.ok(readFileSync(join(root, file), "utf8").length > 0);
    assert.ok(why.length > 10, file);
  }
});

test("tests of a file: its own first, then the nearest that use it, and elsewhere those that need no root", () => {
  const texts = new Map([
    ["core/a/part.ts", ""],
    ["core/a/part.test.ts", 'import { part } from "./part.ts";'],
    ["core/a/aa.test.ts", ""],
    ["core/b/uses.ts", 'import {\n  part,\n} from "../a/part.ts";'],
    ["core/b/uses.test.ts", 'import { uses } from "./uses.ts";'],
    ["core/b/direct.test.ts", 'const it = await import("../a/part.ts");'],
    ["core/c/typed.test.ts", 'import type { Part } from "../a/part.ts";'],
    ["runtime/edge.test.ts", 'import { uses } from "../core/b/uses.ts";'],
    ["host/root.test.ts", 'import { part } from "../core/a/part.ts"; process.getuid();'],
    ["simulator/world.test.ts", 'import { part } from "../core/a/part.ts";'],
    ["core/a/deep/below/it.ts", ""],
  ]);
  assert.deepEqual(testsOf("core/a/part.ts", texts), {
    own: ["core/a/part.test.ts"],
    near: ["core/a/aa.test.ts"],
    importing: ["core/b/direct.test.ts", "core/b/uses.test.ts"],
    elsewhere: ["runtime/edge.test.ts"],
  });
  assert.deepEqual(testsOf("core/a/deep/below/it.ts", texts).near, ["core/a/part.test.ts", "core/a/aa.test.ts"]);
});

test("a test that fails kills; one that takes its processor time, or does nothing at all, never ends; of one that only takes long nothing is said", () =>
  withFolder(async (folder) => {
    const bodies: Readonly<Record<string, string>> = {
      passes: "",
      fails: "throw new Error();",
      turns: "for (;;);",
      waits: "return new Promise((resolve) => setTimeout(resolve, 1e8));",
      exits: "process.exit(3);",
    };
    for (const [name, body] of Object.entries(bodies))
      writeFileSync(
        join(folder, `${name}.test.mjs`),
        `import { test } from "node:test"; test("of it", () => { ${body} });`,
      );
    const verdict = (name: string, ms = 600_000, idleMs = 60_000): ReturnType<typeof runTests> =>
      runTests(folder, [`${name}.test.mjs`], { ms, cpuS: 2, idleMs });
    assert.deepEqual(await verdict("passes"), { kind: "passes" });
    assert.deepEqual(await verdict("fails"), { kind: "fails", what: "of it", file: "fails.test.mjs" });
    assert.deepEqual(await verdict("turns"), {
      kind: "never ends",
      why: "not ended after 2 s of processor time",
    });
    assert.deepEqual(await verdict("waits", 600_000, 1_500), { kind: "never ends", why: "waited for 1.5 s" });
    assert.deepEqual(await verdict("waits", 3_000), { kind: "undecided" });
    assert.equal((await verdict("exits")).kind, "fails");
  }));

test("each expression that was drawn says which tests come to it, and only these are run", () =>
  withFolder(async (folder) => {
    const source = [
      "export const least = 1 + 1;",
      "export const of = (a, b) => (a < b && !(b > 9) ? a : b);",
      "export const sum = (all) => { let all2 = 0; for (const one of all) all2 += one; return all2; };",
    ].join("\n");
    const tests = [
      'import { test } from "node:test"; import assert from "node:assert"; import { of, sum } from "./a.ts";',
      'test("less (or not)?", () => assert.equal(of(1, 2), 1));',
      'test("more", () => assert.equal(of(2, 1), 1));',
      'test("many", async (t) => { await t.test("parts", () => assert.equal(sum([1, 2]), 3)); });',
      'test("nothing", () => assert.fail("is not run"));',
    ].join("\n");
    writeFileSync(join(folder, "a.ts"), source);
    writeFileSync(join(folder, "a.test.ts"), tests);
    mkdirSync(join(folder, "simulator/mutants"), { recursive: true });
    for (const name of ["reaching.testing.ts", "reach.ts"])
      cpSync(join(root, "simulator/mutants", name), join(folder, "simulator/mutants", name));
    const found = mutantsIn(folder, ["a.ts"]);
    const texts = new Map([["a.ts", source]]);
    for (const text of probed(found, texts).values()) assert.doesNotThrow(() => stripTypeScriptTypes(text));
    const reached = await reachIn(folder, found, texts, async (words, more) => {
      const env = { ...process.env, ...more, NODE_TEST_CONTEXT: undefined };
      spawnSync(process.execPath, [...words, "--test", "--test-isolation=none", "a.test.ts"], { cwd: folder, env });
    });
    assert.equal(readFileSync(join(folder, "a.ts"), "utf8"), source, "the text is as it was");
    const namesOf = (before: string): readonly string[] | null | undefined =>
      reachingOf(
        reached,
        found.findIndex((each) => each.before === before),
        ["a.test.ts"],
        folder,
      )?.names;
    assert.equal(namesOf("1 + 1"), null, "by loading the file: whatever loads it");
    assert.deepEqual(namesOf("a < b"), ["less (or not)?", "more"]);
    assert.deepEqual(namesOf("b > 9"), ["less (or not)?"]);
    assert.deepEqual(namesOf("all2 += one"), ["many"]);
    const run = (names: readonly string[] | null): ReturnType<typeof runTests> =>
      runTests(folder, ["a.test.ts"], { ms: 600_000, cpuS: 60, idleMs: 60_000 }, names);
    assert.equal((await run(["less (or not)?", "many"])).kind, "passes");
    assert.equal((await run(null)).kind, "fails");
  }));

test("a record goes on where its process ended, in the midst of a line, too", () =>
  withFolder((folder) => {
    const file = join(folder, "record");
    const finding = { id: "a", outcome: "lives", passed: ["near"], by: "", commit: "c" } as const;
    assert.equal(readRecord(file).size, 0);
    addToRecord(file, finding);
    addToRecord(file, { ...finding, id: "b" });
    addToRecord(file, { ...finding, outcome: "killed", passed: [], by: "near: x" });
    const whole = readFileSync(file, "utf8");
    writeFileSync(file, `${whole}\n${JSON.stringify(finding).slice(0, 20)}`);
    addToRecord(file, { ...finding, id: "c" });
    assert.deepEqual(
      [...readRecord(file).values()].map(({ id, outcome }) => `${id} ${outcome}`),
      ["a killed", "b lives", "c lives"],
    );
  }));
