import type { MachineTruth } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";
import { canWrite, incarnationOf, isHaManager, watchHa } from "./said-over.ts";

/**
 * Once an incarnation is said to be over, none of its writes lands any more, and nothing that would take one is left. One whose volumes
 * may be lost (`x.recreatable`) may go on writing: no later incarnation has any volume of it then.
 */
export const fenceIsPhysical: Invariant = {
  number: 31,
  title: "a fencer's yes is physical: nothing that was said to be over writes later",
  watch: ({ kernel, truth }, verdict) => {
    const { over, recreatable } = watchHa(kernel);
    /** By VM, volumes that an incarnation had, and which one. */
    const had = new Map<string, Map<string, string>>();
    kernel.watchers.push({
      log: (who, event, { vm, incarnation, by }) => {
        if (!isHaManager(who) || event !== "ha/over" || recreatable.has(incarnationOf({ vm, incarnation }))) return;
        const running = [...truth.machines].find((each) => each.vm === vm && each.incarnation === incarnation);
        // Of one whose host has no power, or that was seen to have ended, nothing runs.
        const isHarmless = by === "storage" && running !== undefined && !canWrite(truth, running);
        verdict.check(
          running === undefined || isHarmless,
          () => `${vm}.${incarnation} was said to be over by ${by}, and runs at ${running?.host}`,
        );
      },
    });
    truth.watchers.push({
      landed: (write) => {
        const isOver = over.has(incarnationOf(write)) && !recreatable.has(incarnationOf(write));
        if (isOver) verdict.violate(`${incarnationOf(write)} wrote ${write.volume} after it was said to be over`);
      },
      machineStarted: (machine) => {
        const ofVm = had.get(machine.vm) ?? new Map<string, string>();
        had.set(machine.vm, ofVm);
        for (const volume of writtenBy(machine)) {
          const before = ofVm.get(volume);
          ofVm.set(volume, incarnationOf(machine));
          verdict.check(
            before === undefined || before === incarnationOf(machine) || !recreatable.has(before),
            () => `${incarnationOf(machine)} has ${volume}, which was given up with ${before}`,
          );
        }
        if (recreatable.has(incarnationOf(machine))) return;
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

const writtenBy = ({ disks }: MachineTruth): readonly string[] =>
  disks.flatMap(({ attachment: { volume, layers } }) => (layers[0]?.writable === true ? [volume] : []));
