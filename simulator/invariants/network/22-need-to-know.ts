import type { Invariant } from "../invariant.ts";

/** What crosses the network for one client goes to that one alone, and a location only to hosts that its cell's
 * controller has given its rules. */
export const needToKnow: Invariant = {
  number: 22,
  title: "a subscriber receives only what its name is entitled to",
  watch: ({ kernel, installation, users }, verdict) => {
    /** Each has, in some version, a rule with an end in the other. */
    const meet = (a: string, b: string): boolean =>
      [
        [a, b],
        [b, a],
      ].every(([one = "", two = ""]) =>
        (users.submitted.get(one) ?? []).some(({ rules }) =>
          rules.some(({ from, to }) => from.startsWith(`${two}/`) || to.startsWith(`${two}/`)),
        ),
      );
    const cellsAt = new Map<string, Set<number>>();
    kernel.watchers.push({
      stepped: (_who, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind !== "desire" || !effect.key.startsWith("policy/") || effect.value === null) continue;
          const { cellNumber } = effect.value as { readonly cellNumber: number };
          cellsAt.set(effect.to, (cellsAt.get(effect.to) ?? new Set()).add(cellNumber));
        }
      },
      frame: (from, to, frame) => {
        if (frame.frame !== "actual" || frame.value === null) return;
        const [first = ""] = frame.key.split("/");
        if (first === "location") {
          const { cellNumber } = frame.value as { readonly cellNumber: number };
          const cell = installation.cellOf(cellNumber);
          const here = cellsAt.get(to) ?? new Set();
          const isKnown = here.has(cellNumber) || [...here].some((n) => meet(cell, installation.cellOf(n)));
          verdict.check(
            isKnown,
            () => `${from} told ${to} ${frame.key} of cell ${cellNumber}, which it has nothing of`,
          );
          return;
        }
        const isNamed = [...installation.processes.keys()].some((name) => name === first);
        if (isNamed) verdict.check(first === to, () => `${from} told ${to} what is for ${first}: ${frame.key}`);
      },
    });
    return undefined;
  },
};
