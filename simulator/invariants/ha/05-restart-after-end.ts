import type { MachineTruth } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";
import { incarnationOf, watchHa } from "./said-over.ts";

/**
 * The other half of 7: where an earlier incarnation does run when the next one starts, it was fenced, by the HA Manager's word, or freed by an operator. The
 * premise is a machine that starts after one of its VM was lost with its host, or goes on behind a cut.
 */
export const restartAfterEnd: Invariant = {
  number: 5,
  title: "a restart implies confirmed stopped, or a fence",
  watch: ({ kernel, truth }, verdict) => {
    const said = watchHa(kernel);
    const last = new Map<string, MachineTruth>();
    /** Incarnations whose end their host could have told. */
    const told = new Set<string>();
    const certain = new Set<string>();
    kernel.watchers.push({
      log: (who, event, { host }) => {
        if (who.startsWith("presence.") && event === "presence/power-off")
          for (const machine of last.values()) if (machine.host === host) certain.add(incarnationOf(machine));
      },
      began: (who) => {
        // A host that has started anew says of what it ran that it has ended.
        for (const machine of last.values())
          if (who === `host.${machine.host}` && !truth.machines.has(machine)) told.add(incarnationOf(machine));
      },
    });
    truth.watchers.push({
      machineEnded: (machine) => {
        if (kernel.network.isUp(machine.host)) told.add(incarnationOf(machine));
      },
      machineStarted: (machine) => {
        const before = last.get(machine.vm);
        last.set(machine.vm, machine);
        if (before === undefined || before.incarnation === machine.incarnation) return;
        const name = incarnationOf(before);
        if (told.has(name) || certain.has(name)) return;
        verdict.check(
          said.over.has(name) || said.forced.has(name),
          () =>
            `${incarnationOf(machine)} started at ${machine.host}, and of ${name} at ${before.host} nobody knew that it is over`,
        );
      },
    });
    return undefined;
  },
};
