import type { Invariant } from "../invariant.ts";

/** A VM that can write runs in one place. The premise is one that has run before. */
export const onePlace: Invariant = {
  number: 4,
  title: "no VM runs on two hosts with a writable volume",
  watch: ({ truth }, verdict) => {
    const seen = new Set<string>();
    truth.watchers.push({
      machineStarted: (machine) => {
        const { vm, incarnation, host } = machine;
        if (!seen.has(vm)) {
          seen.add(vm);
          return;
        }
        const others = [...truth.machines].filter((other) => other !== machine && other.vm === vm);
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
