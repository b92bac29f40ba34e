import { incarnationOf, isHarmless, watchHa } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A controller mints the next incarnation of a VM only when nothing of an earlier one runs, whatever it can see; or when what
 * runs on was said to be over by the HA Manager, and cannot write, or to
 * volumes alone that were given up; or an operator has freed it of its host. Its volumes are leased after a fence in any case (1, 4).
 */
export const unknownIsNotStopped: Invariant = {
  number: 7,
  title: "unknown is never taken for stopped",
  watch: ({ kernel, truth }, verdict) => {
    const said = watchHa(kernel);
    const minted = new Map<string, number>();
    kernel.watchers.push({
      log: (who, event, { vm, incarnation, stage }) => {
        if (!who.startsWith("controller.") || event !== "vm/stage" || stage === "none") return;
        const before = minted.get(String(vm)) ?? 0;
        if (Number(incarnation) <= before) return;
        minted.set(String(vm), Number(incarnation));
        if (before === 0) return;
        const still = [...truth.machines].find(
          (machine) =>
            machine.vm === vm &&
            machine.incarnation < Number(incarnation) &&
            !isHarmless(said, truth, machine) &&
            !said.forced.has(incarnationOf(machine)),
        );
        verdict.check(
          still === undefined,
          () => `incarnation ${incarnation} of ${vm} was minted while ${still?.incarnation} runs at ${still?.host}`,
        );
      },
    });
    return undefined;
  },
};
