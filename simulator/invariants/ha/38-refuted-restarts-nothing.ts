import type { Invariant } from "../invariant.ts";
import { isHaManager } from "./said-over.ts";

/**
 * A suspicion is no loss: before a host is declared dead, nothing is done about its VMs, unless its power was read as off. The premise is an
 * item about a host, or a suspicion that ends without a declaration.
 */
export const refutedRestartsNothing: Invariant = {
  number: 38,
  title: "a suspicion that is refuted restarts nothing",
  watch: ({ kernel }, verdict) => {
    const declared = new Set<string>();
    const off = new Set<string>();
    kernel.watchers.push({
      log: (who, event, fields) => {
        const host = String(fields.host);
        if (event === "presence/declared") declared.add(host);
        if (!isHaManager(who)) return;
        if (event === "ha/power-is-off") off.add(host);
        if (event === "ha/not-suspected" && !declared.has(host)) verdict.check(true, () => "");
        // What goes in order at a host that is heard restarts nothing by itself.
        if (event === "ha/scheduled" && ["HA", "Stop", "Destroy"].includes(String(fields.type)))
          verdict.check(
            declared.has(host) || off.has(host),
            () => `${fields.vm}.${fields.incarnation} is looked into, and nobody has declared ${host} dead`,
          );
      },
    });
    return undefined;
  },
};
