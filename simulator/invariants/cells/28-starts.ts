import { isObject } from "../../../core/outbox.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

const attribute = "x.limits.vmStartsPerMinute";
const savedMinutes = 10;

/** The limit in a model; null: it has none, or is an all-or-none cell, whose deployment is not held up. */
const limitIn = (document: Json): number | null => {
  const cell = isObject(document) ? Object.values(document).find(isObject) : undefined;
  const limit = cell?.[attribute];
  return typeof limit === "number" && cell?.["x.policy.deploy"] !== "all-or-none" ? limit : null;
};

/**
 * Incarnations as they are minted, by the clock of all: where they then start, and how late, is another's business. Only cells
 * that had a limit from the beginning, and by the largest that they ever had. How many were taken is in the controller's store: one
 * that was lost or is older may give them out once more.
 */
export const starts: Invariant = {
  number: 28,
  title: "no cell starts more machines than it may, in any stretch of time",
  watch: ({ kernel }, verdict) => {
    const limits = new Map<string, number | null>();
    const incarnations = new Map<string, number>();
    const times = new Map<string, number[]>();
    kernel.watchers.push({
      log: (who, event) => {
        if (event === "store/taken") times.delete(who);
      },
      stepped: (who, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind !== "write" || !who.startsWith("controller.") || !isObject(effect.value)) continue;
          if (effect.key === "model" && effect.value.document !== null) {
            const limit = limitIn(effect.value.document ?? null);
            const before = limits.get(who);
            limits.set(who, limit === null || before === null ? null : Math.max(limit, before ?? 0));
          }
          if (!effect.key.startsWith("vm/") || typeof effect.value.incarnation !== "number") continue;
          const vm = `${who} ${effect.key}`;
          const added = effect.value.incarnation - (incarnations.get(vm) ?? 0);
          if (added <= 0) continue;
          incarnations.set(vm, effect.value.incarnation);
          const all = times.get(who) ?? [];
          times.set(who, all);
          for (let each = 0; each < added; each += 1) all.push(kernel.clock.nowMs);
          const limit = limits.get(who) ?? null;
          if (limit === null) continue;
          const tooMany = all.findIndex((from, first) => {
            const most = limit * (savedMinutes + (kernel.clock.nowMs - from) / 60_000);
            return all.length - first > most + 0.01;
          });
          verdict.check(
            tooMany < 0,
            () =>
              `${who} started ${all.length - tooMany} machines within ${kernel.clock.nowMs - (all[tooMany] ?? 0)} ms, and may start ${limit} a minute`,
          );
        }
      },
    });
    return undefined;
  },
};
