import type { Invariant } from "../invariant.ts";
import { incarnationOf, isHaManager, watchPauses } from "./said-over.ts";

/** A host that is lost so soon after an incarnation came may have been lost by it; less than the manager's own time, which begins when it hears of it. */
const youngMs = 500_000;
const togetherMs = 3_600_000;

/**
 * What waits for a person goes no further until one has looked. Where many hosts were lost at once that is every tenant's VM whose fence has not begun; and a
 * VM that has lost two hosts soon after it came to each waits by itself. Which VM that is, is counted here by when its machines started and which item was done; the
 * premise is an item that waits, and one that goes on.
 */
export const heldUntilReleased: Invariant = {
  number: 43,
  title: "paused and quarantined until released",
  watch: ({ kernel, truth }, verdict) => {
    const paused = watchPauses(kernel);
    const started = new Map<string, number>();
    /** By manager and incarnation: what its item is about. */
    const items = new Map<string, { readonly type: string; readonly isYoung: boolean }>();
    /** By manager and VM, hosts that were lost soon after it came, for which it was started elsewhere. */
    const lost = new Map<string, Map<string, number>>();
    const released = new Set<string>();
    truth.watchers.push({
      machineStarted: (machine) => {
        const name = incarnationOf(machine);
        if (!started.has(name)) started.set(name, kernel.clock.nowMs);
      },
    });
    const goesOn = (who: string, { vm, incarnation, host, cell, step }: { readonly [name: string]: unknown }): void => {
      const name = `${who} ${vm}.${incarnation}`;
      const item = items.get(name);
      if (cell === "root" || item === undefined) return;
      const { nowMs } = kernel.clock;
      const other = [...(lost.get(`${who} ${vm}`) ?? [])].find(
        ([before, atMs]) => before !== host && nowMs - atMs < togetherMs,
      );
      verdict.check(!paused.has(who), () => `${vm}.${incarnation} goes on to ${step}, and ${who} has paused`);
      verdict.check(
        !item.isYoung || other === undefined || released.has(name),
        () => `${vm}.${incarnation} goes on to ${step}: ${other?.[0]} and ${host} were lost soon after it came to each`,
      );
    };
    kernel.watchers.push({
      // Also of a step whose process crashes before its commit: it would have been done.
      stepped: (who, _input, effects) => {
        if (!isHaManager(who)) return;
        for (const effect of effects) {
          if (effect.kind !== "log") continue;
          const { event, fields } = effect;
          if (event === "ha/released" && fields.vm !== null)
            for (const name of items.keys()) if (name.startsWith(`${who} ${fields.vm}.`)) released.add(name);
          if (event === "ha/step" && (fields.step === "Fencing" || fields.step === "Restarting")) {
            // A fence that has begun is carried through.
            const isBegun = items.get(`${who} ${fields.vm}.${fields.incarnation} begun`) !== undefined;
            if (!isBegun) goesOn(who, fields);
          }
        }
      },
      log: (who, event, fields) => {
        if (!isHaManager(who)) return;
        const { vm, incarnation, host, step, type } = fields;
        const name = `${who} ${vm}.${incarnation}`;
        if (event === "store/taken")
          for (const each of [items, lost])
            for (const key of each.keys()) if (key.startsWith(`${who} `)) each.delete(key);
        if (event === "ha/held") verdict.check(true, () => "");
        if (event === "ha/scheduled") {
          const sinceMs = kernel.clock.nowMs - (started.get(incarnationOf({ vm, incarnation })) ?? -youngMs);
          items.set(name, { type: String(type), isYoung: sinceMs < youngMs });
          items.delete(`${name} begun`);
        }
        const item = items.get(name);
        if (event !== "ha/step" || item === undefined) return;
        if (step === "Fencing") items.set(`${name} begun`, item);
        if (step !== "Done" || item.type !== "HA" || !item.isYoung) return;
        const hosts = lost.get(`${who} ${vm}`) ?? new Map<string, number>();
        lost.set(`${who} ${vm}`, hosts.set(String(host), kernel.clock.nowMs));
      },
    });
    return undefined;
  },
};
