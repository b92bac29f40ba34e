import { invariants } from "./invariants/all.ts";
import { type Invariant, Verdict } from "./invariants/invariant.ts";
import type { History } from "./world/history.ts";
import { Installation } from "./world/installation.ts";
import { unsettled } from "./world/settled.ts";
import { Steps } from "./world/steps.ts";
import { beginTraffic, deafRules } from "./world/traffic.ts";

export interface Checked {
  readonly number: number;
  readonly title: string;
  /** How often its premise held. */
  readonly held: number;
  readonly violations: readonly string[];
}
export interface RunResult {
  readonly history: History;
  /** SHA-256 of the log. */
  readonly digest: string;
  readonly lines: number;
  readonly events: number;
  /** Virtual time at its end. */
  readonly endedMs: number;
  /** Virtual time from healing until everything was as wanted; null: it never was. */
  readonly settledAfterMs: number | null;
  readonly checked: readonly Checked[];
  /** Every way in which it went wrong, in sentences; empty: it went well. */
  readonly faults: readonly string[];
  /** Empty unless it was to be kept. */
  readonly log: string;
}
export interface RunOptions {
  readonly keepLog?: boolean;
  /** False: an installation that does not come to rest is as it should be, as where there is no room. */
  readonly mustSettle?: boolean;
  /** False: it ends without healing. */
  readonly heals?: boolean;
}

/** Before each fault of what did not come to rest in time. */
export const notAtRest = "not at rest: ";
/** Everything must be as wanted this long after healing; longer than the longest back-off of any service. */
export const boundMs = 240_000;
/** While a machine waits its turn by a cell's `x.limits.vmStartsPerMinute`, the time is not counted, up to so much. */
const turnsMs = 1_200_000;
const waitsItsTurn = "waits its turn to start";
/** And stay so: longer than it takes to notice a connection that broke before. */
const restMs = 20_000;
const lookEveryMs = 500;

/**
 * Plays a history, heals, and waits for rest; the invariants look on, and the first violation ends it. The same history and
 * the same code give the same log to the byte. A service that throws is a fault like any other.
 */
export const runHistory = async (
  history: History,
  { keepLog = false, mustSettle = true, heals = true }: RunOptions = {},
): Promise<RunResult> => {
  const run = new Run(history, keepLog);
  await run.play(heals).catch((error: Error) => run.thrown(error));
  return run.result(mustSettle && heals);
};

class Run {
  readonly #history: History;
  readonly #installation: Installation;
  readonly #steps: Steps;
  readonly #verdicts: readonly { readonly invariant: Invariant; readonly verdict: Verdict }[];
  readonly #atRest: (() => void)[] = [];
  #settledAfterMs: number | null = null;
  #unsettled: readonly string[] = [];
  #turnsMs = 0;
  readonly #thrown: string[] = [];

  constructor(history: History, keepLog: boolean) {
    this.#history = history;
    this.#installation = new Installation(history, keepLog);
    this.#steps = new Steps(this.#installation);
    const { kernel, truth } = this.#installation;
    const view = { kernel, truth, installation: this.#installation, users: this.#steps.wishes.users };
    this.#verdicts = invariants.map((invariant) => {
      const verdict = new Verdict(kernel, `${invariant.number}`);
      const atRest = invariant.watch(view, verdict);
      if (atRest !== undefined) this.#atRest.push(atRest);
      return { invariant, verdict };
    });
  }

  get #isViolated(): boolean {
    return this.#verdicts.some(({ verdict }) => verdict.violations.length > 0);
  }

  async play(heals: boolean): Promise<void> {
    const { kernel } = this.#installation;
    const { steps, untilMs } = this.#history;
    this.#installation.start();
    beginTraffic(this.#installation);
    for (const { atMs, words } of steps) kernel.clock.after(atMs, () => this.#steps.perform(words));
    await kernel.runUntil(untilMs);
    if (kernel.isOver || !heals) return;
    this.#steps.heal();
    for (let ms = lookEveryMs; ms <= boundMs + this.#turnsMs && !kernel.isOver; ms += lookEveryMs) {
      await kernel.runUntil(untilMs + ms);
      this.#look(ms);
      if (this.#settledAfterMs !== null && ms - this.#settledAfterMs >= restMs) break;
    }
    if (!kernel.isOver) for (const look of this.#atRest) look();
  }

  #look(ms: number): void {
    const { users } = this.#steps.wishes;
    this.#unsettled = [...unsettled(this.#installation, users), ...deafRules(this.#installation, users.accepted)];
    if (this.#unsettled.length > 0) this.#settledAfterMs = null;
    else this.#settledAfterMs ??= ms;
    if (this.#turnsMs < turnsMs && this.#unsettled.some((fault) => fault.includes(waitsItsTurn)))
      this.#turnsMs += lookEveryMs;
  }

  thrown(error: Error): void {
    this.#installation.kernel.log("simulator", "thrown", { why: error.message });
    this.#thrown.push(`a step threw: ${error.stack ?? error.message}`);
  }

  result(mustSettle: boolean): RunResult {
    const { kernel } = this.#installation;
    const isOver = this.#thrown.length > 0 || this.#isViolated;
    const unsettledFaults = mustSettle && !isOver && this.#settledAfterMs === null ? this.#unsettled : [];
    for (const fault of unsettledFaults) kernel.log("settled", "not", { fault });
    const checked = this.#verdicts.map(({ invariant: { number, title }, verdict: { held, violations } }) => ({
      number,
      title,
      held,
      violations,
    }));
    const violations = checked.flatMap((each) =>
      each.violations.map((sentence) => `${each.number}. ${each.title}: ${sentence}`),
    );
    return {
      history: this.#history,
      digest: kernel.digest(),
      lines: kernel.lines,
      events: kernel.clock.events,
      endedMs: kernel.clock.nowMs,
      settledAfterMs: this.#settledAfterMs,
      checked,
      faults: [...this.#thrown, ...violations, ...unsettledFaults.map((fault) => `${notAtRest}${fault}`)],
      log: kernel.text(),
    };
  }
}
