import type { Invariant } from "../invariant.ts";
import { canWrite, incarnationOf, watchHa } from "./said-over.ts";

/** Once an incarnation is said to be over, none of its writes lands any more, and nothing that would take one is left. */
export const fenceIsPhysical: Invariant = {
  number: 31,
  title: "a fencer's yes is physical: nothing that was said to be over writes later",
  watch: ({ kernel, truth }, verdict) => {
    const { over } = watchHa(kernel);
    kernel.watchers.push({
      log: (who, event, { vm, incarnation }) => {
        if (who !== "ha-manager" || event !== "ha/over") return;
        const running = [...truth.machines].find((each) => each.vm === vm && each.incarnation === incarnation);
        verdict.check(
          running === undefined || !canWrite(truth, running),
          () => `${vm}.${incarnation} was said to be over, and can write at ${running?.host}`,
        );
      },
    });
    truth.watchers.push({
      landed: (write) => {
        if (over.size > 0 && over.has(incarnationOf(write)))
          verdict.violate(`${incarnationOf(write)} wrote ${write.volume} after it was said to be over`);
      },
      machineStarted: (machine) => {
        if (over.has(incarnationOf(machine)))
          verdict.check(
            !canWrite(truth, machine),
            () => `${incarnationOf(machine)} started at ${machine.host} after it was said to be over`,
          );
      },
    });
    return undefined;
  },
};
