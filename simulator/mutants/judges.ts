import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutants.ts";
import { type Reached, type Reaching, reachIn, reachingOf } from "./reach.ts";
import { testsOf } from "./tests-of.ts";

/** What became of a run of tests over a mutant. */
export type Verdict =
  | { readonly kind: "passes" }
  /** Something fails; `what` names it, and `file` the test's, if it is known. */
  | { readonly kind: "fails"; readonly what: string; readonly file: string | null }
  /** It took more processor time than it may, or waits for what does not come: neither depends on what else the machine does. */
  | { readonly kind: "never ends"; readonly why: string }
  /** It had not ended after a long time, and neither waited nor had used its processor time: the machine was busy. */
  | { readonly kind: "undecided" };

export interface Bounds {
  /** Longest that one run may take, on a machine with other things to do. Nothing is concluded from that. */
  readonly ms: number;
  /** Processor time of one process, in seconds: some six times what the longest of these takes without any change. */
  readonly cpuS: number;
  /** For so long it may do nothing, and not even ask for a processor. */
  readonly idleMs: number;
}
const usual: Bounds = { ms: 2_400_000, cpuS: 400, idleMs: 60_000 };
/** Of tests that take so long without any change: they may be started on a cold cache, too. */
const boundsOf = (cpuS: number): Bounds => ({ ...usual, cpuS: Math.ceil(20 + 6 * cpuS) });

const firstFailure = /^\s*not ok \d+ - (.*)$(?:[\s\S]*?^\s*location: '([^']*?):\d+:\d+'$)?[\s\S]*?^\s*\.\.\.$/m;

/** Time that the first thread of a process has run or has waited for a processor, in ms; null: the process is gone. */
function askedMs(pid: number): number | null {
  try {
    const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ").map(Number);
    return (ran + waited) / 1_000_000;
  } catch {
    return null;
  }
}

/** Calls `end` once a process has done next to nothing for `idleMs`; returns what stops looking. */
function whenIdle(pid: number, idleMs: number, end: () => void): () => void {
  let [since, before] = [performance.now(), askedMs(pid)];
  const timer = setInterval(() => {
    const [now, asked] = [performance.now(), askedMs(pid)];
    if (asked === null || before === null || asked - before > idleMs / 50) [since, before] = [now, asked];
    else if (now - since >= idleMs) end();
  }, idleMs / 10);
  return () => clearInterval(timer);
}

/** Whatever it has started is ended with it. */
function run(
  copy: string,
  words: readonly string[],
  read: (text: string) => Verdict | null,
  bounds: Bounds = usual,
  more: Readonly<Record<string, string>> = {},
): Promise<Verdict> {
  return new Promise((resolve) => {
    const given = { CELLS_SEED: "1", NODE_TEST_CONTEXT: undefined, ...more };
    const env = { ...process.env, ...given, NODE_COMPILE_CACHE: join(copy, ".compiled") };
    const limited = [
      "-c",
      `ulimit -c 0; ulimit -H -t ${bounds.cpuS + 10}; ulimit -S -t ${bounds.cpuS}; exec "$0" "$@"`,
      process.execPath,
      ...words,
    ];
    const child: ChildProcess = spawn("/bin/sh", limited, {
      cwd: copy,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    let verdict: Verdict | null = null;
    const end = (found: Verdict): void => {
      verdict ??= found;
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(() => end({ kind: "undecided" }), bounds.ms);
    const waits: Verdict = { kind: "never ends", why: `waited for ${bounds.idleMs / 1000} s` };
    const look = child.pid === undefined ? () => {} : whenIdle(child.pid, bounds.idleMs, () => end(waits));
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const found = verdict === null ? read(text) : null;
      if (found !== null) end(found);
      // What is not read yet is not longer than one failure.
      if (text.length > 1_000_000) text = text.slice(-200_000);
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      look();
      if (verdict !== null) resolve(verdict);
      else if (code === 0) resolve({ kind: "passes" });
      else if (signal === "SIGXCPU")
        resolve({ kind: "never ends", why: `not ended after ${bounds.cpuS} s of processor time` });
      else resolve({ kind: "fails", what: `ends with ${signal ?? code}`, file: null });
    });
  });
}

const testWords = ["--disable-warning=ExperimentalWarning", "--test", "--test-isolation=none", "--test-reporter=tap"];
const readFailure =
  (copy: string) =>
  (text: string): Verdict | null => {
    const found = firstFailure.exec(text);
    if (found === null) return null;
    const [, what = "", location] = found;
    return { kind: "fails", what, file: location === undefined ? null : location.replace(`${copy}/`, "") };
  };

const escaped = (name: string): string => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

/** In one process, up to the first that fails: all of core/ together is some 60 s. Of `names` only these, and what begins so. */
export function runTests(
  copy: string,
  files: readonly string[],
  bounds: Bounds = usual,
  names: readonly string[] | null = null,
  env: Readonly<Record<string, string>> = {},
): Promise<Verdict> {
  const patterns = (names ?? []).map((name) => `--test-name-pattern=/^${escaped(name)}/`);
  return run(copy, [...testWords, ...patterns, ...files], readFailure(copy), bounds, env);
}

const runSeeds = (copy: string): Promise<Verdict> =>
  run(copy, ["simulator/mutations/play.testing.ts", "seeds", "1-6"], (text) => {
    const found = /^seed.*$/m.exec(text);
    return found === null ? null : { kind: "fails", what: found[0], file: null };
  });

/**
 * Who looks at a mutant, the cheapest first: the tests of its file, of its folder, of all that use it, the scenarios, tests of
 * other folders; the tests of core and model again with more runs of each property; and seeds.
 */
export const judgeNames = ["own", "near", "importing", "scenarios", "elsewhere", "longer", "seeds"] as const;
export type JudgeName = (typeof judgeNames)[number];

export interface Judge {
  readonly name: JudgeName;
  /** Runs what looks at it; of no tests it passes. */
  readonly run: (copy: string) => Promise<Verdict>;
}

const scenarioFile = "simulator/scenarios.test.ts";

/** What tests come to each of these mutants; asked the first time that one has to know. */
export class Reach {
  readonly #mutants: readonly Mutant[];
  readonly #texts: ReadonlyMap<string, string>;
  #units: Promise<Reached> | null = null;
  #scenarios: Promise<Reached> | null = null;
  constructor(mutants: readonly Mutant[], texts: ReadonlyMap<string, string>) {
    this.#mutants = mutants;
    this.#texts = texts;
  }
  async of(copy: string, mutant: Mutant, files: readonly string[]): Promise<Reaching | null> {
    const isOfScenarios = files.includes(scenarioFile);
    const pure = [...this.#texts.keys()].filter((name) => /^(core|model)\/.*\.test\.ts$/.test(name));
    if (isOfScenarios) this.#scenarios ??= this.#ask(copy, [scenarioFile]);
    else this.#units ??= this.#ask(copy, pure);
    const reached = await (isOfScenarios ? this.#scenarios : this.#units);
    return reached === null ? null : reachingOf(reached, this.#mutants.indexOf(mutant), files, copy);
  }
  #ask(copy: string, files: readonly string[]): Promise<Reached> {
    return reachIn(copy, this.#mutants, this.#texts, async (words, env) => {
      // Tests that read the code's own text may fail over the calls in it: they have come where they come all the same.
      await run(copy, [...words, ...testWords, ...files], () => null, { ...usual, cpuS: 2_400 }, env);
    });
  }
}

export function judgesOf(mutant: Mutant, texts: ReadonlyMap<string, string>, reach: Reach): readonly Judge[] {
  const tests = testsOf(mutant.file, texts);
  const reaching = (
    name: JudgeName,
    files: readonly string[],
    env: Readonly<Record<string, string>> = {},
    times = 1,
  ): Judge => ({
    name,
    run: async (copy) => {
      const found = files.length === 0 ? null : await reach.of(copy, mutant, files);
      if (found === null) return { kind: "passes" };
      return runTests(copy, found.files, boundsOf(found.cpuS * times), found.names, env);
    },
  });
  const all = (name: JudgeName, files: readonly string[]): Judge => ({
    name,
    run: async (copy) => (files.length === 0 ? { kind: "passes" } : runTests(copy, files)),
  });
  const { own, near, importing, elsewhere } = tests;
  return [
    // A few files are sooner run than asked about.
    all("own", own),
    all("near", near),
    reaching("importing", importing),
    reaching("scenarios", [scenarioFile]),
    all("elsewhere", elsewhere),
    reaching("longer", [...own, ...near, ...importing], { CELLS_RUNS: "50" }, 10),
    { name: "seeds", run: runSeeds },
  ];
}
