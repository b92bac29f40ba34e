import type { History } from "./world/history.ts";
import { Installation } from "./world/installation.ts";
import { unsettled } from "./world/settled.ts";
import { Steps } from "./world/steps.ts";

export interface RunResult {
  readonly history: History;
  /** SHA-256 of the log. */
  readonly digest: string;
  readonly lines: number;
  readonly events: number;
  /** Virtual time from healing until everything was as wanted; null: it never was. */
  readonly settledAfterMs: number | null;
  readonly unsettled: readonly string[];
  /** Empty unless it was to be kept. */
  readonly log: string;
}
export interface RunOptions {
  readonly keepLog?: boolean;
}

/** Everything must be as wanted this long after healing; longer than the longest back-off of any service. */
export const boundMs = 240_000;
/** And stay so. */
const restMs = 5_000;
const lookEveryMs = 500;

/** Plays a history, heals, and waits for rest. The same history and the same code give the same log to the byte. */
export const runHistory = async (history: History, { keepLog = false }: RunOptions = {}): Promise<RunResult> => {
  const installation = new Installation(history, keepLog);
  const { kernel } = installation;
  const steps = new Steps(installation);
  installation.start();
  for (const { atMs, words } of history.steps) kernel.clock.after(atMs, () => steps.perform(words));
  await kernel.runUntil(history.untilMs);
  steps.heal();
  let settledAfterMs: number | null = null;
  let faults: readonly string[] = [];
  for (let ms = lookEveryMs; ms <= boundMs; ms += lookEveryMs) {
    await kernel.runUntil(history.untilMs + ms);
    faults = unsettled(installation, steps.users);
    if (faults.length > 0) settledAfterMs = null;
    else settledAfterMs ??= ms;
    if (settledAfterMs !== null && ms - settledAfterMs >= restMs) break;
  }
  for (const fault of faults) kernel.log("settled", "not", { fault });
  return {
    history,
    digest: kernel.digest(),
    lines: kernel.lines,
    events: kernel.clock.events,
    settledAfterMs,
    unsettled: faults,
    log: kernel.text(),
  };
};
