import type { Random } from "../kernel/random.ts";
import { type CellText, formatCell, parseCell } from "../world/cell-text.ts";
import type { History, HistoryStep } from "../world/history.ts";

/** Of the cell, of the subnet by its range, and of the subnet by its use. */
const groups = ["239.192.0.7", "239.1.2.3", "239.255.0.7", "224.0.0.251"] as const;

/**
 * Gives some histories guests that join multicast groups, and leave them, with rules by which copies pass between some of their
 * cells' machines. The others are to the byte what they would be without.
 */
export const withGroups = (
  steps: HistoryStep[],
  random: Random,
  { cells, untilMs }: Pick<History, "cells" | "untilMs">,
): void => {
  if (!random.chance(0.4)) return;
  steps.forEach((step, index) => {
    const [verb = "", cell = "", ...words] = step.words;
    // Children have names with a dot, and machines that others name.
    if (verb !== "apply" || cell.includes(".")) return;
    const text = withCopies(parseCell(words), random.fork(cell), random.fork(`${index}`));
    steps[index] = { ...step, words: `apply ${cell} ${formatCell(text)}`.trim().split(" ") };
  });
  for (let cell = 1; cell <= cells; cell += 1) {
    const own = random.fork(`members of ${cell}`);
    for (let atMs = own.between(2000, 6000); atMs < untilMs; atMs += own.between(300, 5000)) {
      const verb = own.chance(0.75) ? "join" : "leave";
      steps.push({ atMs, words: [verb, `c${cell}/m${cell}x${own.between(1, 6)}`, own.pick(groups)] });
    }
  }
};

/** Most rules of two machines come back with each version, so that copies pass for a while. */
const withCopies = (text: CellText, cell: Random, version: Random): CellText => {
  const rules = text.machines.flatMap((from) =>
    text.machines.flatMap((to) =>
      from === to || !cell.fork(`${from.name} ${to.name}`).chance(0.4) || version.chance(0.15)
        ? []
        : [{ from: from.name, to: to.name, port: 80, protocol: "udp" as const }],
    ),
  );
  return { ...text, rules: [...text.rules, ...rules] };
};
