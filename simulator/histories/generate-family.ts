import type { Random } from "../kernel/random.ts";
import { type CellText, formatCell, parseCell } from "../world/cell-text.ts";
import type { History, HistoryStep } from "../world/history.ts";

/**
 * Gives some histories what goes between cells: rules with ends in each other, copies of each other's images, and child cells
 * with quotas, which their own users change. It only adds words to wishes that are there, and steps of children, so the
 * rest of a seed's history is what it would be without.
 */
export const withOtherCells = (
  steps: HistoryStep[],
  random: Random,
  { cells, services, untilMs }: Pick<History, "cells" | "services" | "untilMs">,
): void => {
  const isForeign = cells > 1 && random.chance(0.5);
  const isFamily = random.chance(0.4);
  // Neighbours have different Storage Managers where there are several, and copies between them would wait for ever.
  const copied = random.chance(0.5) && services === 1;
  steps.forEach((step, index) => {
    const [verb = "", cell = "", ...words] = step.words;
    if (verb !== "apply") return;
    const text = parseCell(words);
    const own = random.fork(`${index}`);
    const foreign = isForeign ? reachingOut(text, cell, cells, copied, own) : text;
    const family = isFamily && own.chance(0.8) ? { ...foreign, children: [childOf(cell, own, 0)] } : foreign;
    if (family !== text) steps[index] = { ...step, words: ["apply", cell, ...formatCell(family).split(" ")] };
  });
  if (!isFamily) return;
  for (let cell = 1; cell <= cells; cell += 1) {
    const own = random.fork(`children of ${cell}`);
    for (let atMs = own.between(4000, 15_000); atMs < untilMs; atMs += own.between(2000, 20_000)) {
      const name = own.chance(0.4) ? `g.k.c${cell}` : `k.c${cell}`;
      const text = formatCell(name.startsWith("g") ? grandchildText(cell, own) : childText(`c${cell}`, own, 0));
      steps.push({ atMs, words: `apply ${name} ${text}`.trim().split(" ") });
    }
  }
};

/** Its first machine and that of another cell are shown to each other, and may talk where both have the rule. */
const reachingOut = (text: CellText, cell: string, cells: number, copied: boolean, random: Random): CellText => {
  const number = Number(cell.slice(1));
  const other = (number % cells) + 1;
  const before = ((number + cells - 2) % cells) + 1;
  const [first, ...rest] = text.machines;
  if (first === undefined || other === number) return text;
  const shown = random.chance(0.85) ? { ...first, shown: true as const } : first;
  // Machines are numbered for each cell; the first one has the lowest number that is left.
  const rules = [
    ...(random.chance(0.8) ? [{ from: first.name, to: `c${other}/m${other}x1`, port: 443 }] : []),
    ...(random.chance(0.8) ? [{ from: `c${before}/m${before}x1`, to: first.name, port: 443 }] : []),
  ];
  return {
    ...text,
    machines: [shown, ...rest],
    rules: [...text.rules, ...rules],
    ...(copied && random.chance(0.7) ? { grants: [`c${before}`] } : {}),
    // What another cell may never grant would keep all of an all-or-none cell waiting.
    ...(copied && !text.allOrNone && random.chance(0.5) ? { copies: [{ name: `from${other}`, of: `c${other}` }] } : {}),
  };
};

const machine = (name: string, random: Random): CellText["machines"][number] => ({
  name,
  memoryMiB: 64,
  off: random.chance(0.6),
  data: false,
  live: false,
  once: false,
  apart: null,
});
const childText = (cell: string, random: Random, depth: number): CellText => {
  const machines = [1, 2, 3].flatMap((each) =>
    random.chance(0.5) ? [machine(`${cell.replace("c", "k")}y${each}`, random)] : [],
  );
  const children =
    depth === 0 && random.chance(0.6) ? [{ name: "g", text: grandchildText(Number(cell.slice(1)), random) }] : [];
  const isLimited = random.chance(0.5);
  return {
    machines,
    rules: [],
    allOrNone: false,
    ...(isLimited ? { limits: { vms: 3 } } : {}),
    ...(children.length > 0 ? { children } : {}),
  };
};
const grandchildText = (cell: number, random: Random): CellText => ({
  machines: [1, 2].flatMap((each) => (random.chance(0.5) ? [machine(`g${cell}z${each}`, random)] : [])),
  rules: [],
  allOrNone: false,
});
const childOf = (cell: string, random: Random, depth: number): NonNullable<CellText["children"]>[number] => ({
  name: "k",
  text: childText(cell, random, depth),
});
