import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { testsOf } from "./tests-of.ts";

/** What became of a run of tests over a mutant. */
export type Verdict =
  | { readonly kind: "passes" }
  /** Something fails; `what` names it, and `file` the test's, if it is known. */
  | { readonly kind: "fails"; readonly what: string; readonly file: string | null }
  /** It took more processor time than it may, which does not depend on what else the machine does. */
  | { readonly kind: "never ends"; readonly seconds: number }
  /** It had not ended after a long time, and had not used its processor time either: the machine was busy, or it waits. */
  | { readonly kind: "undecided" };

export interface Bounds {
  /** Longest that one run may take, on a machine with other things to do. Nothing is concluded from that. */
  readonly ms: number;
  /** Processor time of one process, in seconds: some six times what the longest of these takes without any change. */
  readonly cpuS: number;
}
const usual: Bounds = { ms: 2_400_000, cpuS: 400 };

const firstFailure = /^\s*not ok \d+ - (.*)$(?:[\s\S]*?^\s*location: '([^']*?):\d+:\d+'$)?[\s\S]*?^\s*\.\.\.$/m;

/** Whatever it has started is ended with it. */
function run(
  copy: string,
  words: readonly string[],
  read: (text: string) => Verdict | null,
  bounds: Bounds = usual,
): Promise<Verdict> {
  return new Promise((resolve) => {
    const given = { CELLS_RUNS: "50", CELLS_SEED: "1", NODE_TEST_CONTEXT: undefined };
    const env = { ...process.env, ...given, NODE_COMPILE_CACHE: join(copy, ".compiled") };
    const limited = [
      "-c",
      `ulimit -c 0; ulimit -H -t ${bounds.cpuS + 10}; ulimit -S -t ${bounds.cpuS}; exec "$0" "$@"`,
      process.execPath,
      ...words,
    ];
    const child: ChildProcess = spawn("/bin/sh", limited, {
      ...{ cwd: copy, env, detached: true, stdio: ["ignore", "pipe", "ignore"] },
    });
    let verdict: Verdict | null = null;
    const end = (found: Verdict): void => {
      verdict ??= found;
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(() => end({ kind: "undecided" }), bounds.ms);
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
      if (verdict !== null) resolve(verdict);
      else if (code === 0) resolve({ kind: "passes" });
      else if (signal === "SIGXCPU") resolve({ kind: "never ends", seconds: bounds.cpuS });
      else resolve({ kind: "fails", what: `ends with ${signal ?? code}`, file: null });
    });
  });
}

/** In one process: all of core/ together is some 50 s. */
export const runTests = (copy: string, files: readonly string[], bounds: Bounds = usual): Promise<Verdict> =>
  run(
    copy,
    [...["--disable-warning=ExperimentalWarning", "--test", "--test-isolation=none", "--test-reporter=tap"], ...files],
    (text) => {
      const found = firstFailure.exec(text);
      if (found === null) return null;
      const [, what = "", location] = found;
      return { kind: "fails", what, file: location === undefined ? null : location.replace(`${copy}/`, "") };
    },
    bounds,
  );

const runSeeds = (copy: string): Promise<Verdict> =>
  run(copy, ["simulator/mutations/play.testing.ts", "seeds", "1-6"], (text) => {
    const found = /^seed.*$/m.exec(text);
    return found === null ? null : { kind: "fails", what: found[0], file: null };
  });

/** Who looks at a mutant, the cheapest first. */
export const judgeNames = ["own", "near", "importing", "elsewhere", "scenarios", "seeds"] as const;
export type JudgeName = (typeof judgeNames)[number];

export interface Judge {
  readonly name: JudgeName;
  /** Runs what looks at it; of no tests it passes. */
  readonly run: (copy: string) => Promise<Verdict>;
}

export function judgesOf(file: string, texts: ReadonlyMap<string, string>): readonly Judge[] {
  const tests = testsOf(file, texts);
  const judge = (name: JudgeName, files: readonly string[]): Judge => ({
    name,
    run: async (copy) => (files.length === 0 ? { kind: "passes" } : await runTests(copy, files)),
  });
  return [
    judge("own", tests.own),
    judge("near", tests.near),
    judge("importing", tests.importing),
    judge("elsewhere", tests.elsewhere),
    judge("scenarios", ["simulator/scenarios.test.ts"]),
    { name: "seeds", run: runSeeds },
  ];
}
