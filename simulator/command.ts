import { execFileSync } from "node:child_process";
import { type FaultKind, faultKinds, namedFaultKinds } from "./histories/fault-kinds.ts";
import { generateHistory } from "./histories/generate.ts";
import { shrink } from "./histories/shrink.ts";
import { addPremises, failureText, type Premises, premiseLines, vacuous } from "./report.ts";
import { type RunResult, runHistory } from "./run.ts";
import { type History, parseHistory } from "./world/history.ts";

export interface SimulateOptions {
  readonly hosts: number;
  readonly cells: number;
  /** Placers, and Storage Managers; absent: the seed says it. */
  readonly services?: number;
  /** There is an HA Manager; absent: with every third seed. */
  readonly ha?: boolean;
  readonly seed: number;
  readonly minutes: number;
  readonly faults: readonly FaultKind[];
  /** Print the whole log. */
  readonly log: boolean;
}
const historyOf = (wanted: Parameters<typeof generateHistory>[0]): History =>
  generateHistory({ ...wanted, ha: wanted.ha ?? wanted.seed % 3 === 0 });
export type Print = (line: string) => void;

/** Reads `partition,crash,…`; throws a sentence for a kind that there is not. "none" is none. */
export const parseFaults = (text: string): readonly FaultKind[] =>
  text === "none"
    ? []
    : text.split(",").map((word) => {
        const kind = [...faultKinds, ...namedFaultKinds].find((each) => each === word.trim());
        if (kind === undefined)
          throw new Error(
            `"${word}" is no kind of fault; there are ${[...faultKinds, ...namedFaultKinds].join(", ")}, or none`,
          );
        return kind;
      });

/** Of the code that runs; "unknown" outside of a checkout. */
const commit = (): string => {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
};

/** What went wrong is said at once: looking for the shortest history takes minutes. */
const printFailure = async (history: History, { faults }: RunResult, print: Print): Promise<void> => {
  for (const fault of faults) print(fault);
  print(`seed ${history.seed} fails; looking for the shortest history that shows it …`);
  const shrunk = await shrink(history);
  const result = await runHistory(shrunk?.history ?? history, { keepLog: true });
  print(failureText(result, commit()));
};

/** One run; true: all invariants held. */
const simulate = async (history: History, log: boolean, print: Print): Promise<boolean> => {
  const result: RunResult = await runHistory(history, { keepLog: log });
  if (log) print(result.log.trimEnd());
  const premises: Premises = new Map();
  addPremises(premises, result);
  print("premises  invariant");
  for (const line of premiseLines(premises)) print(line);
  const rest = result.settledAfterMs === null ? "never" : `${result.settledAfterMs} ms after healing`;
  print(`${result.events} events, ${result.lines} lines of log, at rest ${rest}, digest ${result.digest}`);
  if (result.faults.length === 0) return true;
  await printFailure(history, result, print);
  return false;
};

/** One run from a seed; true: all invariants held. */
export const simulateSeed = ({ log, ...wanted }: SimulateOptions, print: Print): Promise<boolean> =>
  simulate(historyOf(wanted), log, print);

/** A history from a file; throws a sentence where it is none. */
export const simulateText = (text: string, log: boolean, print: Print): Promise<boolean> =>
  simulate(parseHistory(text), log, print);

export interface ManyOptions extends Omit<SimulateOptions, "log"> {
  /** So many seeds, from `seed` on; null: until `isOver`. */
  readonly until: number | null;
  readonly isOver: () => boolean;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** Runs seed after seed and says how fast; stops at the first that fails. True: none did, and no premise stayed unmet. */
export const simulateMany = async (options: ManyOptions, print: Print): Promise<boolean> => {
  const { until, isOver, nowMs } = options;
  const premises: Premises = new Map();
  const startedMs = nowMs();
  let seeds = 0;
  const rate = (): string =>
    `${seeds} seeds, ${Math.round((seeds * 3_600_000) / Math.max(1, nowMs() - startedMs))} per hour`;
  for (let seed = options.seed; (until === null || seeds < until) && !isOver(); seed += 1) {
    const history = historyOf({ ...options, seed });
    const result = await runHistory(history);
    addPremises(premises, result);
    seeds += 1;
    if (result.faults.length > 0) {
      print(rate());
      await printFailure(history, result, print);
      return false;
    }
    if (seeds % 50 === 0) print(rate());
  }
  print("premises  invariant");
  for (const line of premiseLines(premises)) print(line);
  print(rate());
  // A few seeds may well miss what is rare; of many this would say that the generator does.
  const missed = seeds < 50 ? [] : vacuous(premises);
  if (missed.length > 0) print(`no seed ever met the premise of ${missed.join("; ")}`);
  return missed.length === 0;
};
