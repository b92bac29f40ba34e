import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type RunResult, runHistory } from "../run.ts";
import { parseHistory } from "../world/history.ts";

/**
 * A scenario is a folder: `why.md` says what it is there for, `steps.txt` is a history, and `expect.log` what its log must show.
 * A line of `expect.log` is the words of a line of the log, in their order and with others in between, and the lines come in
 * the order in which they stand; `! words` must not come at all. `seeds N` plays it with N seeds, `waits` allows it to end
 * without everything being as wanted, as where there is no room. All invariants hold besides.
 */
export interface Scenario {
  readonly name: string;
  readonly why: string;
  readonly steps: string;
  readonly expect: string;
}

const directory = join(import.meta.dirname, "../scenarios");

export const scenarioNames = (): readonly string[] => readdirSync(directory).sort();

/** Throws where a file is missing. */
export const readScenario = (name: string): Scenario => {
  const read = (file: string): string => readFileSync(join(directory, name, file), "utf8");
  return { name, why: read("why.md"), steps: read("steps.txt"), expect: read("expect.log") };
};

/** What is wrong with a scenario's run, in sentences; empty: nothing. */
export const playScenario = async (
  { steps, expect }: Scenario,
  /** Without its expectations it ends at the first seed in which an invariant is violated. */
  { expects = true }: { readonly expects?: boolean } = {},
): Promise<readonly string[]> => {
  const lines = expect
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const seeds = Number(lines.find((line) => line.startsWith("seeds "))?.split(" ")[1] ?? 1);
  const mustSettle = !lines.includes("waits");
  const expected = lines.filter((line) => line !== "waits" && !line.startsWith("seeds "));
  const history = parseHistory(steps);
  const faults: string[] = [];
  for (let seed = history.seed; seed < history.seed + seeds && (expects || faults.length === 0); seed += 1) {
    const result = await runHistory({ ...history, seed }, { keepLog: true, mustSettle });
    for (const fault of [...result.faults, ...(expects ? missing(result, expected) : [])])
      faults.push(`seed ${seed}: ${fault}`);
  }
  return faults;
};

const missing = ({ log }: RunResult, expected: readonly string[]): readonly string[] => {
  const lines = log.split("\n");
  const shows = (line: string, words: readonly string[]): boolean => {
    let from = 0;
    return words.every((word) => {
      const at = line.indexOf(word, from);
      from = at + word.length;
      return at >= 0;
    });
  };
  const faults: string[] = [];
  let from = 0;
  for (const text of expected) {
    const words = text.replace(/^! */, "").split(/\s+/);
    if (text.startsWith("!")) {
      const found = lines.find((line) => shows(line, words));
      if (found !== undefined) faults.push(`the log shows "${found}", which should not come`);
      continue;
    }
    const at = lines.findIndex((line, index) => index >= from && shows(line, words));
    if (at < 0) faults.push(`the log does not show "${text}"${from === 0 ? "" : ` behind line ${from}`}`);
    else from = at + 1;
  }
  return faults;
};
