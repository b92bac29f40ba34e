import type { Invariant } from "../invariant.ts";

/**
 * Once an epoch is granted, by the agent's own word, nothing lands under an earlier one. The premise is a volume that has seen
 * more than one.
 */
export const noOldWrite: Invariant = {
  number: 2,
  title: "no write below the current epoch succeeds",
  watch: ({ kernel, truth }, verdict) => {
    const current = new Map<string, number>();
    const begin = (volume: string, epoch: number): void => {
      current.set(volume, Math.max(epoch, current.get(volume) ?? 0));
    };
    kernel.watchers.push({
      log: (who, event, { volume, epoch }) => {
        if (who.startsWith("agent.") && event === "lease/granted") begin(String(volume), Number(epoch));
      },
    });
    truth.watchers.push({
      exportStarted: ({ volume, epoch, writable }) => {
        if (writable) begin(volume, epoch);
      },
      landed: ({ volume, epoch, vm, incarnation }) => {
        const newest = current.get(volume) ?? 0;
        if (newest < 2) return;
        verdict.check(
          epoch >= newest,
          () => `${vm}.${incarnation} wrote ${volume} in epoch ${epoch}, and epoch ${newest} was granted`,
        );
      },
    });
    return undefined;
  },
};
