import type { MachineTruth } from "../../world/truth.ts";
import { watchOwn } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A VM whose host's power was said to be off starts somewhere, which may be there again: and nothing of it runs anywhere
 * then, nor does an earlier incarnation ever start beside it; the one that its host starts again keeps its own. The premise is a VM that was lost with its host, of which that
 * was said.
 */
export const certainEnd: Invariant = {
  number: 27,
  title: "a certain end of a host starts no VM twice",
  watch: ({ kernel, truth }, verdict) => {
    /** Host → machines that were lost with its power. */
    const lost = new Map<string, Map<string, MachineTruth>>();
    const ended = new Map<string, MachineTruth>();
    const byHost = watchOwn(kernel);
    kernel.watchers.push({
      log: (who, event, fields) => {
        if (!who.startsWith("presence.") || event !== "presence/power-off") return;
        for (const [vm, machine] of lost.get(String(fields.host)) ?? []) ended.set(vm, machine);
        lost.delete(String(fields.host));
      },
    });
    truth.watchers.push({
      machineEnded: (machine) => {
        if (kernel.network.isUp(machine.host)) return;
        const there = lost.get(machine.host) ?? new Map<string, MachineTruth>();
        lost.set(machine.host, there.set(machine.vm, machine));
      },
      machineStarted: (machine) => {
        const { vm, incarnation, host } = machine;
        const before = ended.get(vm);
        if (before === undefined) return;
        const other = [...truth.machines].find((each) => each !== machine && each.vm === vm);
        verdict.check(
          other === undefined && (incarnation > before.incarnation || byHost.has(vm)),
          () =>
            `${vm}.${incarnation} started at ${host}: ` +
            (other === undefined
              ? `${before.incarnation} was lost at ${before.host}, whose end is certain`
              : `${other.incarnation} runs at ${other.host}`),
        );
      },
    });
    return undefined;
  },
};
