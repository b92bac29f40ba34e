import type { Random } from "../kernel/random.ts";
import { type CellText, formatCell, type HeldText, parseCell } from "../world/cell-text.ts";
import type { History, HistoryStep } from "../world/history.ts";

/**
 * Gives some histories a harvest: what is on a disk of one cell is to be had in another, the disk is held for that, and its cell
 * is deleted as soon as it has taken that in, for good. Only where one Storage Manager has both. The others are to the byte what
 * they would be without.
 */
export const withHarvest = (
  steps: HistoryStep[],
  random: Random,
  { cells, services, untilMs }: Pick<History, "cells" | "services" | "untilMs">,
): void => {
  if (services !== 1 || cells < 2 || !random.chance(0.4)) return;
  const [from, to] = [`c${cells}`, "c1"];
  const until = untilMs - 8000;
  const source = steps.filter((step) => isApply(step, from) && step.atMs < until && diskOf(step) !== null).at(-1);
  const disk = source === undefined ? null : diskOf(source);
  const before = steps.filter((step) => isApply(step, to) && step.atMs < until).at(-1);
  if (source === undefined || disk === null || before === undefined) return;
  const atMs = Math.max(source.atMs, before.atMs) + random.between(500, 3000);
  const keep: HeldText = { own: "kept", other: `${from}/${disk}` };
  const hold: HeldText = { own: disk, other: `${to}/kept` };
  const left = steps.filter(({ atMs: at, words: [verb, cell] }) => {
    const isOfThem = verb === "apply" || verb === "delete" ? cell === from || cell === to : false;
    return !isOfThem || at < atMs;
  });
  const firstMs = atMs + random.between(0, 1000);
  const secondMs = firstMs + random.between(1, 1500);
  steps.splice(0, steps.length, ...left);
  steps.push(
    { atMs: firstMs, words: `apply ${to} ${written(before, { keeps: [keep] })}`.split(" ") },
    { atMs: secondMs, words: `apply ${from} ${written(source, { holds: [hold] })}`.split(" ") },
    { atMs: secondMs + random.between(1, 1500), words: ["finish", from] },
  );
};

/** One that is never refused: child cells may ask for more than there is. */
const isApply = (step: HistoryStep, of: string): boolean => {
  const [verb, cell] = step.words;
  return verb === "apply" && cell === of && textOf(step).children === undefined;
};
const textOf = ({ words }: HistoryStep): CellText => parseCell(words.slice(2));
/** A disk that its machine writes; null: there is none. */
const diskOf = (step: HistoryStep): string | null => {
  const machine = textOf(step).machines.find(({ data, off, scratch }) => data && !off && scratch !== true);
  return machine === undefined ? null : `${machine.name}Data`;
};
const written = (step: HistoryStep, more: Pick<CellText, "holds" | "keeps">): string =>
  formatCell({ ...textOf(step), allOrNone: false, ...more });
