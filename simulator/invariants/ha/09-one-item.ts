import type { Invariant } from "../invariant.ts";
import { incarnationOf, isHaManager } from "./said-over.ts";

/** Of one incarnation one item is worked on, and a machine's later incarnation has the only other one. */
export const oneItem: Invariant = {
  number: 9,
  title: "one active HA work item per VM incarnation",
  watch: ({ kernel }, verdict) => {
    const at = new Map<string, string>();
    /** By incarnation, the manager that works on it. */
    const by = new Map<string, string>();
    const types = new Map<string, string>();
    kernel.watchers.push({
      log: (who, event, { vm, incarnation, step, type }) => {
        if (event === "process/crashed") for (const [name, manager] of by) if (manager === who) at.delete(name);
        if (!isHaManager(who) || (event !== "ha/scheduled" && event !== "ha/step")) return;
        const name = incarnationOf({ vm, incarnation });
        const before = at.get(name);
        by.set(name, who);
        if (event === "ha/scheduled") {
          // What was given up, or could not be read, is due anew where the host is lost then.
          const isFree = before === undefined || ["Cancelled", "Error", "CheckStop Done"].includes(before);
          verdict.check(isFree, () => `an item of ${name} was scheduled while one is at ${before}`);
          at.set(name, "Scheduled");
          types.set(name, String(type));
          return;
        }
        const to = String(step);
        at.set(name, to === "Done" && types.get(name) === "CheckStop" ? "CheckStop Done" : to);
      },
    });
    return undefined;
  },
};
