import type { Invariant } from "../invariant.ts";
import { incarnationOf } from "./said-over.ts";

const order = ["Scheduled", "Investigating", "Fencing", "Restarting", "Done", "Cancelled"];
/** From each step, those that may follow. */
const follows: Readonly<Record<string, readonly string[]>> = {
  Scheduled: ["Investigating", "Cancelled"],
  Investigating: ["Fencing", "Restarting", "Cancelled"],
  Fencing: ["Restarting", "Cancelled"],
  Restarting: ["Done"],
};

/** Of one incarnation one item is worked on, and a machine's later incarnation has the only other one. */
export const oneItem: Invariant = {
  number: 9,
  title: "one active HA work item per VM incarnation, and its steps follow the table",
  watch: ({ kernel }, verdict) => {
    const steps = new Map<string, string>();
    kernel.watchers.push({
      log: (who, event, { vm, incarnation, step }) => {
        if (event === "process/crashed" && who === "ha-manager") steps.clear();
        if (who !== "ha-manager" || (event !== "ha/scheduled" && event !== "ha/step")) return;
        const name = incarnationOf({ vm, incarnation });
        const before = steps.get(name);
        if (event === "ha/scheduled") {
          const isFree = before === undefined || before === "Cancelled" || before === "lost";
          verdict.check(isFree, () => `an item of ${name} was scheduled while one is at ${before}`);
          steps.set(name, "Scheduled");
          return;
        }
        const to = String(step);
        const isAllowed = before === undefined ? order.includes(to) : (follows[before] ?? []).includes(to);
        verdict.check(isAllowed, () => `the item of ${name} went from ${before} to ${to}`);
        steps.set(name, to);
      },
    });
    return undefined;
  },
};
