import { hostName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/**
 * HA asks further before it fences: what runs at a host that the HA Manager hears is not fenced, whoever was declared dead. The
 * premise is a fence that begins.
 */
export const freshIsNotFenced: Invariant = {
  number: 32,
  title: "what is heard to run is not fenced",
  watch: ({ kernel, truth, installation }, verdict) => {
    /** When the HA Manager was last in step with a host, and went out of it. */
    const inStep = new Set<string>();
    kernel.watchers.push({
      log: (who, event, fields) => {
        if (who !== "ha-manager") return;
        if (event === "process/crashed") inStep.clear();
        if (event === "peer/reachable") inStep.add(String(fields.peer));
        if (event === "peer/unreachable") inStep.delete(String(fields.peer));
        if (event !== "ha/step" || fields.step !== "Fencing") return;
        const { vm, incarnation, host } = fields;
        const running = [...truth.machines].find((each) => each.vm === vm && each.incarnation === incarnation);
        // Its manager has to run for long enough to have said what is there.
        const manager = installation.managers.get(hostName(String(host)));
        const isHeard = inStep.has(`host.${host}`) && manager?.state != null && running !== undefined;
        verdict.check(
          !isHeard || kernel.clock.nowMs - running.startedMs < 2000,
          () => `${vm}.${incarnation} is fenced, and ${host} says that it runs`,
        );
      },
    });
    return undefined;
  },
};
