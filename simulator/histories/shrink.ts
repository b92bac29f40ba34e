import { notAtRest, type RunOptions, type RunResult, runHistory } from "../run.ts";
import type { History, HistoryStep } from "../world/history.ts";

/** Whatever has a digit, a path or a name in it: the words between stay. */
const withoutNames = (fault: string): string =>
  fault
    .replace(/\S*[\d/".]\S*/g, "…")
    .replace(/(?:… ?)+/g, "… ")
    .trim();
/**
 * What went wrong first, without what differs from run to run; null: nothing did. An invariant's number says enough. What
 * does not come to rest may do so for any reason, and a shorter history easily has another one: there the words count.
 */
export const failureOf = ({ faults: [first] }: Pick<RunResult, "faults">): string | null => {
  if (first === undefined) return null;
  return first.startsWith(notAtRest) ? withoutNames(first) : (first.split(":")[0] ?? first);
};

export interface Shrunk {
  readonly history: History;
  readonly result: RunResult;
  readonly runs: number;
}
export interface ShrinkOptions {
  /** At most so many runs. */
  readonly mostRuns?: number;
  readonly run?: (history: History, options?: RunOptions) => Promise<RunResult>;
}

/**
 * Shortens a history that fails (delta debugging, Zeller and Hildebrandt 2002): leaves ever smaller parts of it away for as
 * long as it fails in the same way, then ends it as soon after its last step as it still does. Null: it does not fail.
 */
export const shrink = async (history: History, options: ShrinkOptions = {}): Promise<Shrunk | null> => {
  const { mostRuns = 250, run = runHistory } = options;
  let runs = 1;
  let best = { history, result: await run(history) };
  const failure = failureOf(best.result);
  if (failure === null) return null;
  // What fails before healing needs none, and nothing of what would have come later.
  const heals = best.result.endedMs >= history.untilMs;
  const untilMs = Math.min(history.untilMs, Math.ceil(best.result.endedMs));
  const steps = history.steps.filter(({ atMs }) => atMs <= untilMs);
  best = { ...best, history: { ...history, steps, untilMs } };
  /** Keeps a shorter one that fails alike. */
  const attempt = async (candidate: History): Promise<boolean> => {
    if (runs >= mostRuns) return false;
    runs += 1;
    const result = await run(candidate, { heals });
    if (failureOf(result) !== failure) return false;
    best = { history: candidate, result };
    return true;
  };
  for (let parts = 2; best.history.steps.length > 0 && runs < mostRuns; ) {
    const { steps } = best.history;
    const size = Math.ceil(steps.length / parts);
    let isShorter = false;
    for (let from = 0; from < steps.length && !isShorter; from += size) {
      const rest: readonly HistoryStep[] = [...steps.slice(0, from), ...steps.slice(from + size)];
      isShorter = await attempt({ ...best.history, steps: rest });
    }
    if (isShorter) parts = Math.max(2, parts - 1);
    else if (size <= 1) break;
    else parts = Math.min(steps.length, parts * 2);
  }
  const last = best.history.steps.at(-1)?.atMs ?? 0;
  for (const shorterMs of [last + 100, last + 2000, last + 10_000])
    if (shorterMs < best.history.untilMs && (await attempt({ ...best.history, untilMs: shorterMs }))) break;
  for (const key of ["hosts", "servers", "cells"] as const) {
    while (best.history[key] > 1 && (await attempt({ ...best.history, [key]: best.history[key] - 1 })));
  }
  return { ...best, runs };
};
