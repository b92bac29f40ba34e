import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createRandom } from "../kernel/random.ts";
import { type Mutant, mutantsIn } from "./mutants.ts";

/**
 * What would the tests not notice? Of all operators of a folder some are drawn by a seed, and each is exchanged for another,
 * alone and in a copy of the code. The unit tests of its folder are run, and where these pass the scenarios and some
 * seeds. What lives is printed: it is a line that no test holds, or one that says the same in both ways. Which of the two,
 * a reader has to judge.
 *
 * The guards of `mutations/` are chosen, and each is run with every test; this draws from all that there is, and takes hours.
 */
const usage = `Usage: node simulator/mutants/sample.ts [FOLDER | FILE…] [--minutes N] [--count N] [--skip N] [--seed N] [--units]

Exchanges operators of these files one at a time, and says of each who notices it; core and model without FOLDER. --minutes: for
as long, 10 without. --count: so many at most. --skip: without so many of the first, which another run has. --units: unit tests
alone, without scenarios and seeds.`;

const root = join(import.meta.dirname, "../..");
/** Tests of core and model read what other folders log and show, too. */
const notCopied = ["node_modules", ".git"];
const isTest = (name: string): boolean => /\.(test|testing)\.ts$|\/testing\//.test(name);

const filesBelow = (folder: string): readonly string[] =>
  folder.endsWith(".ts")
    ? [folder]
    : readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .map((name) => join(folder, name))
        .filter((name) => name.endsWith(".ts"))
        .sort();

const testsBelow = (folder: string): readonly string[] =>
  filesBelow(folder).filter((name) => name.endsWith(".test.ts"));

/**
 * The tests of a file, those first that are the likeliest to notice something: its own, those of its folder or of the next above
 * that has some, and all of its service or subject.
 */
function stagesOf(file: string): readonly (readonly string[])[] {
  let folder = dirname(file);
  while (testsBelow(folder).length === 0) folder = dirname(folder);
  const whole = file.split("/").slice(0, 2).join("/");
  const own = testsBelow(folder).filter((name) => name === file.replace(/\.ts$/, ".test.ts"));
  const near = testsBelow(folder).filter((name) => !own.includes(name));
  const rest = testsBelow(whole).filter((name) => !own.includes(name) && !near.includes(name));
  return [own, near, rest].filter((stage) => stage.length > 0);
}

/** Longest that tests of one stage may take, on a machine with other things to do. A mutant that waits for ever is killed by that. */
const longestMs = 1_200_000;
/** CPU time that one process may take, in seconds, whatever else the machine does. A mutant that never ends is killed by that. */
const longestCpuS = 300;

/** True: it ends well. Whatever it has started is ended with it. */
const passes = (copy: string, words: readonly string[], isFailure: RegExp): Promise<boolean> =>
  new Promise((resolve) => {
    const given = { CELLS_RUNS: "50", CELLS_SEED: "1", NODE_TEST_CONTEXT: undefined };
    const env = { ...process.env, ...given, NODE_COMPILE_CACHE: join(copy, ".compiled") };
    const limited = ["-c", `ulimit -t ${longestCpuS}; exec "$0" "$@"`, process.execPath, ...words];
    const child: ChildProcess = spawn("/bin/sh", limited, {
      ...{ cwd: copy, env, detached: true, stdio: ["ignore", "pipe", "ignore"] },
    });
    let isWell = true;
    const fail = (): void => {
      isWell = false;
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(fail, longestMs);
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      if (isWell && isFailure.test(text)) fail();
      text = text.slice(text.lastIndexOf("\n") + 1);
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve(isWell && code === 0);
    });
  });

const runTests = (copy: string, files: readonly string[]): Promise<boolean> =>
  passes(copy, ["--disable-warning=ExperimentalWarning", "--test", "--test-reporter=tap", ...files], /^\s*not ok/m);

interface Judge {
  readonly name: string;
  /** What is run. */
  readonly key: string;
  /** True: it notices nothing. */
  readonly passes: (copy: string) => Promise<boolean>;
}
const unitTests = (file: string): readonly Judge[] =>
  stagesOf(file).map((tests) => ({
    ...{ name: "unit tests", key: tests.join(), passes: (copy: string) => runTests(copy, tests) },
  }));
const simulated: readonly Judge[] = [
  {
    ...{ name: "scenarios", key: "scenarios" },
    passes: (copy) => runTests(copy, ["simulator/scenarios.test.ts"]),
  },
  {
    ...{ name: "seeds", key: "seeds" },
    passes: (copy) => passes(copy, ["simulator/mutations/play.testing.ts", "seeds", "1-6"], /^seed/m),
  },
];

/** Who notices it; null: nobody does. */
async function noticedBy(copy: string, judges: readonly Judge[]): Promise<Judge | null> {
  for (const judge of judges) if (!(await judge.passes(copy))) return judge;
  return null;
}

const makeCopy = (): string => {
  const copy = mkdtempSync(join(tmpdir(), "cells-mutants-"));
  for (const name of readdirSync(root))
    if (!notCopied.includes(name)) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
};

const lineOf = ({ file, line, column, before, after }: Mutant): string =>
  `${file}:${line}:${column}\n    ${before}\n    ${after}`;

interface Wanted {
  readonly folders: readonly string[];
  readonly minutes: number;
  readonly count: number;
  readonly skip: number;
  readonly seed: number;
  readonly units: boolean;
}

/** Draws without putting back. */
function shuffled<T>(values: readonly T[], seed: number): readonly T[] {
  const random = createRandom(seed, "mutants");
  return values
    .map((value) => ({ value, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

async function sample(wanted: Wanted, print: (line: string) => void): Promise<void> {
  const { folders, minutes, count, skip, seed, units } = wanted;
  const files = folders.flatMap(filesBelow).filter((name) => !isTest(name));
  const mutants = shuffled(mutantsIn(root, files), seed);
  const copy = makeCopy();
  const kills = new Map<string, number>();
  const green = new Set<string>();
  let tried = 0;
  /** Tests that fail without any change would kill all. Of each that kills it is looked at once. */
  const assertGreen = async ({ name, key, passes }: Judge, file: string): Promise<void> => {
    if (green.has(key)) return;
    if (!(await passes(copy))) throw new Error(`the ${name} of ${file} fail without any change`);
    green.add(key);
  };
  try {
    // The time is what drawing takes; each that was begun is ended.
    const endMs = performance.now() + minutes * 60_000;
    for (const mutant of mutants.slice(skip, skip + count)) {
      if (performance.now() > endMs) break;
      const path = join(copy, mutant.file);
      writeFileSync(path, mutant.text);
      const by = await noticedBy(copy, [...unitTests(mutant.file), ...(units ? [] : simulated)]);
      cpSync(join(root, mutant.file), path);
      if (by !== null) await assertGreen(by, mutant.file);
      tried += 1;
      print(`${skip + tried}. ${by === null ? "lives" : `killed by ${by.name}`}: ${lineOf(mutant)}`);
      if (by !== null) kills.set(by.name, (kills.get(by.name) ?? 0) + 1);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  const killed = [...kills.values()].reduce((sum, count) => sum + count, 0);
  const each = [...kills].map(([name, count]) => `${name} ${count}`).join(", ");
  const from = skip === 0 ? "" : `, without the first ${skip}`;
  print(
    `seed ${seed}${from}: ${killed} of ${tried} killed (${each}), ${tried - killed} live; there are ${mutants.length}`,
  );
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: "10" },
      count: { type: "string", default: "Infinity" },
      skip: { type: "string", default: "0" },
      seed: { type: "string", default: "1" },
      units: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const print = (line: string): void => console.log(line);
  if (values.help) return print(usage);
  const folders = (positionals.length === 0 ? ["core", "model"] : positionals).map((name) =>
    relative(root, resolve(name)),
  );
  const [minutes, count] = [Number(values.minutes), Number(values.count)];
  const [skip, seed] = [Number(values.skip), Number(values.seed)];
  await sample({ folders, minutes, count, skip, seed, units: values.units }, print);
}

if (import.meta.main) await main();
