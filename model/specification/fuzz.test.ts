import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { broken, numbersOf, shrunk, Texts } from "./fuzz.testing.ts";

/*
 * A few seconds of fuzzing with every run of the unit tests, a minute in CI (testbed/run-tests). For a night:
 *   CELLS_FUZZ_SECONDS=28800 ./cells test model/specification/fuzz.test.ts
 * CELLS_SEED repeats a run; a run that failed names its seed and the text, made small.
 */
const program = fileURLToPath(new URL("../testing/fuzz-process.testing.ts", import.meta.url));
const seconds = Number(process.env.CELLS_FUZZ_SECONDS ?? 5);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** Without a sign of progress for so long, a text hangs: a hundred take a fraction of a second. */
const silenceMs = 120_000;

test(`no text of ${seconds} s of mutated and made ones breaks a reader`, async (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  const args = ["--disable-warning=ExperimentalWarning", "--max-old-space-size=512", program, `${seed}`, `${seconds}`];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let [said, hung] = ["", false];
  const hang = (): void => {
    hung = true;
    child.kill("SIGKILL");
  };
  let watchdog = setTimeout(hang, silenceMs);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    clearTimeout(watchdog);
    watchdog = setTimeout(hang, silenceMs);
    said = (said + text).slice(-100_000);
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  clearTimeout(watchdog);
  const last = [...said.matchAll(/^at (\d+)$/gm)].at(-1)?.[1] ?? "0";
  assert.equal(hung, false, `CELLS_SEED=${seed}: one of the hundred texts from number ${last} on does not end`);
  assert.equal(code, 0, `CELLS_SEED=${seed}: ${said.slice(said.indexOf("broken"))}`);
  const done = /^done (.*)$/m.exec(said)?.[1];
  assert.ok(done, "it came to its end");
  const { count, accepted } = JSON.parse(done) as { count: number; accepted: number };
  context.diagnostic(`${count} texts, ${accepted} of them accepted`);
  // Some must get through every phase, or the later ones are never tried.
  assert.ok(count > 0 && accepted > 0, done);
});

test("one seed gives one sequence of texts, another gives another", () => {
  const corpus = [{ main: "a.sf", files: { "a.sf": "shop extends Cell { vm extends VM { x.memory 16; } }" } }];
  const some = (of: number): string => {
    const texts = new Texts(of, corpus);
    return JSON.stringify(Array.from({ length: 20 }, () => texts.next()));
  };
  assert.equal(some(7), some(7));
  assert.notEqual(some(7), some(8));
  const next = numbersOf(1);
  assert.ok(Array.from({ length: 1000 }, next).every((number) => number >= 0 && number < 1));
});

test("a text that breaks a rule is noticed, and made as small as it can be", () => {
  const sound = { main: "a.sf", files: { "a.sf": "shop extends Cell { vm extends VM { x.memory 16; } }" } };
  assert.equal(broken(sound), null);
  const holds = ({ files }: { files: Readonly<Record<string, string>> }): boolean =>
    (files["a.sf"] ?? "").includes("VM") && (files["a.sf"] ?? "").includes("16");
  assert.equal(shrunk(sound, holds).files["a.sf"], "VM16");
  // A file name that is no text: the reader throws, and that is told rather than thrown.
  const impossible = { main: "a.sf", files: { "a.sf": null as unknown as string } };
  assert.match(broken(impossible) ?? "", /throws/);
});
