import { invariants } from "./invariants/all.ts";
import type { RunResult } from "./run.ts";
import { formatHistory } from "./world/history.ts";

/** Premises of many runs together: number of the invariant → how often. */
export type Premises = Map<number, number>;

export const addPremises = (premises: Premises, { checked }: RunResult): void => {
  for (const { number, held } of checked) premises.set(number, (premises.get(number) ?? 0) + held);
};

/** One line per invariant. `mustHold`: one whose premise never held is named as a failure. */
export const premiseLines = (premises: Premises): readonly string[] =>
  invariants.map(({ number, title }) => {
    const held = premises.get(number) ?? 0;
    return `${String(held).padStart(9)}  ${String(number).padStart(2)}. ${title}${held === 0 ? "  (premise never held)" : ""}`;
  });

/** Invariants whose premise never held. */
export const vacuous = (premises: Premises): readonly string[] =>
  invariants.flatMap(({ number, title }) => ((premises.get(number) ?? 0) === 0 ? [`${number}. ${title}`] : []));

/** What a failing run shows: what went wrong, and all that is needed to see it again. */
export const failureText = (result: RunResult, commit: string, tail = 40): string =>
  [
    `seed ${result.history.seed} fails at commit ${commit}:`,
    ...result.faults.map((fault) => `  ${fault}`),
    "",
    "the shortest history that shows it (a file for `cells simulate --history FILE`):",
    formatHistory(result.history),
    ...(result.log === "" ? [] : ["the end of its log:", ...result.log.trimEnd().split("\n").slice(-tail), ""]),
  ].join("\n");
