import type { Invariant } from "./invariant.ts";

/** Once an epoch has begun, nothing lands under an earlier one. The premise is a volume that has seen more than one. */
export const noOldWrite: Invariant = {
  number: 2,
  title: "no write below the current epoch succeeds",
  watch: ({ truth }, verdict) => {
    const current = new Map<string, number>();
    truth.watchers.push({
      exportStarted: ({ volume, epoch, writable }) => {
        if (writable) current.set(volume, Math.max(epoch, current.get(volume) ?? 0));
      },
      landed: ({ volume, epoch, vm, incarnation }) => {
        const newest = current.get(volume) ?? 0;
        if (newest < 2) return;
        verdict.check(
          epoch >= newest,
          () => `${vm}.${incarnation} wrote ${volume} in epoch ${epoch}, and epoch ${newest} had begun`,
        );
      },
    });
    return undefined;
  },
};
