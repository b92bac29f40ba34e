import { isHarmless, watchHa } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A VM that can write runs in one place. The premise is one that has run before. Of an incarnation that the HA Manager has said to
 * be over counts what it physically can do: its machine may run on where nobody reaches it, and writes nowhere.
 */
export const onePlace: Invariant = {
  number: 4,
  title: "no VM runs on two hosts with a writable volume",
  watch: ({ kernel, truth }, verdict) => {
    const said = watchHa(kernel);
    const seen = new Set<string>();
    truth.watchers.push({
      machineStarted: (machine) => {
        const { vm, incarnation, host } = machine;
        if (!seen.has(vm)) {
          seen.add(vm);
          return;
        }
        const others = [...truth.machines].filter(
          (other) => other !== machine && other.vm === vm && !isHarmless(said, truth, other),
        );
        const writes = others.find(({ disks }) =>
          disks.some(({ attachment: { layers } }) => layers[0]?.writable === true),
        );
        verdict.check(
          writes === undefined,
          () => `${vm}.${incarnation} started at ${host} while ${vm}.${writes?.incarnation} runs at ${writes?.host}`,
        );
      },
    });
    return undefined;
  },
};
