import type { Invariant } from "../invariant.ts";

/** Epochs of a volume's exports and incarnations of a VM's machines never decrease. */
export const numbersGrow: Invariant = {
  number: 3,
  title: "epochs and incarnations never decrease",
  watch: ({ truth }, verdict) => {
    const epochs = new Map<string, number>();
    const incarnations = new Map<string, number>();
    truth.watchers.push({
      exportStarted: ({ volume, epoch, writable }) => {
        if (!writable) return;
        const before = epochs.get(volume);
        epochs.set(volume, Math.max(epoch, before ?? 0));
        if (before !== undefined)
          verdict.check(epoch >= before, () => `${volume} is exported in epoch ${epoch} after epoch ${before}`);
      },
      machineStarted: ({ vm, incarnation, host }) => {
        const before = incarnations.get(vm);
        incarnations.set(vm, Math.max(incarnation, before ?? 0));
        if (before !== undefined)
          verdict.check(incarnation >= before, () => `${vm}.${incarnation} started at ${host} after ${vm}.${before}`);
      },
    });
    return undefined;
  },
};
