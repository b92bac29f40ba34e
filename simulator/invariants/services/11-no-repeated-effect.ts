import { watchOwn } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/** An incarnation's machine is started once, whatever crashed meanwhile, but for the one that its host starts again. The premise is a host whose manager has crashed before. */
export const noRepeatedEffect: Invariant = {
  number: 11,
  title: "a crash at any step resumes without repeating an effect",
  watch: ({ kernel, truth }, verdict) => {
    const started = new Set<string>();
    const crashed = new Set<string>();
    const byHost = watchOwn(kernel);
    kernel.watchers.push({
      log: (who, event) => {
        if (event === "process/crashed") crashed.add(who);
      },
    });
    truth.watchers.push({
      machineStarted: ({ vm, incarnation, host }) => {
        const key = `${vm}.${incarnation}`;
        const again = started.has(key);
        started.add(key);
        if (again && !byHost.has(vm)) verdict.violate(`${key} was started a second time, at ${host}`);
        if (crashed.has(`host.${host}`)) verdict.check(true, () => "");
      },
    });
    return undefined;
  },
};
