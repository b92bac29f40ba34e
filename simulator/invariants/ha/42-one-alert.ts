import type { Invariant } from "../invariant.ts";
import { isHaManager } from "./said-over.ts";

/** What waits for a person is said once, however often it is looked at, and again only after it was over. */
export const oneAlert: Invariant = {
  number: 42,
  title: "one open alert for each matter that waits for a person",
  watch: ({ kernel }, verdict) => {
    const open = new Set<string>();
    kernel.watchers.push({
      log: (who, event, { kind, subject }) => {
        // What it had opened last may not have become durable.
        if (event === "process/crashed" && isHaManager(who))
          for (const alert of open) if (alert.startsWith(`${who} `)) open.delete(alert);
        const name = `${who} ${kind} ${subject}`;
        if (event === "alert/opened") {
          verdict.check(!open.has(name), () => `${name} was opened, and is open`);
          open.add(name);
        }
        if (event === "alert/ended") open.delete(name);
      },
    });
    return undefined;
  },
};
