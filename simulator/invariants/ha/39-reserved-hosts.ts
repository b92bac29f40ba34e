import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";
import { incarnationOf, watchHa } from "./said-over.ts";

/**
 * A host that the operator keeps for VMs whose host was lost (tag `ha`) takes nothing else, by whichever Placer has heard of it: what is new there is an incarnation of a VM
 * whose last one was said to be over by the HA Manager, or was at a host that is known to have lost its power, or was declared dead. What ran there before stays. The premise is a
 * placement while some host is reserved.
 */
export const reservedHosts: Invariant = {
  number: 39,
  title: "reserved hosts hold restarts only",
  watch: ({ kernel, truth }, verdict) => {
    const { over } = watchHa(kernel);
    /** By Placer, hosts that it was told are reserved. */
    const reserved = new Map<string, Set<Json | undefined>>();
    /** By VM, hosts that its incarnations were placed at. */
    const placedAt = new Map<string, Set<string>>();
    const placed = new Set<string>();
    const lost = new Set<string>();
    const overOf = new Set<string>();
    truth.watchers.push({
      machineStarted: ({ vm, host }) => {
        placedAt.set(vm, (placedAt.get(vm) ?? new Set()).add(host));
      },
    });
    kernel.watchers.push({
      log: (who, event, { host, vm, incarnation }) => {
        if (event === "power-off") lost.add(who);
        if (event === "presence/declared" || event === "presence/power-off") lost.add(String(host));
        if (event === "ha/over" && over.has(incarnationOf({ vm, incarnation }))) overOf.add(String(vm));
        if (event === "store/taken") reserved.delete(who);
      },
      stepped: (who, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind !== "log") continue;
          const { event, fields } = effect;
          const of = reserved.get(who) ?? new Set();
          if (event === "host/administered") {
            reserved.set(who, of);
            if (fields.state === "reserved") of.add(fields.host);
            else of.delete(fields.host);
          }
          if (event !== "placement/reserved") continue;
          const key = `${fields.vm} ${fields.incarnation} ${fields.host}`;
          const isNews = !placed.has(key);
          placed.add(key);
          const hosts = placedAt.get(String(fields.vm)) ?? new Set<string>();
          const isRestart = overOf.has(String(fields.vm)) || [...hosts].some((host) => lost.has(host));
          hosts.add(String(fields.host));
          placedAt.set(String(fields.vm), hosts);
          if (isNews && of.size > 0)
            verdict.check(
              !of.has(fields.host) || isRestart,
              () => `${who} places ${fields.vm} at ${fields.host}, which is kept for VMs whose host was lost`,
            );
        }
      },
    });
    return undefined;
  },
};
