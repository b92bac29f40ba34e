import type { Invariant } from "../invariant.ts";

/** A cell that is to be had as a whole or not at all runs, at rest, with all of its machines or with none. */
export const allOrNone: Invariant = {
  number: 21,
  title: "an all-or-none cell is had as a whole or not at all",
  watch: ({ truth, users, installation }, verdict) => {
    return () => {
      installation.cells.forEach((cell, index) => {
        const texts = users.submitted.get(cell) ?? [];
        const [text] = texts;
        if (text === undefined || texts.length > 1 || !text.allOrNone) return;
        const wanted = text.machines.filter(({ off, once }) => !off && !once).map(({ name }) => name);
        const running = new Set(
          [...truth.machines].filter(({ vm }) => vm.startsWith(`cell${index + 1}-`)).map(({ name }) => name),
        );
        const had = wanted.filter((name) => running.has(name)).length;
        verdict.check(had === 0 || had === wanted.length, () => `${cell} has ${had} of its ${wanted.length} machines`);
      });
    };
  },
};
