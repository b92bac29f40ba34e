import type { Invariant } from "../invariant.ts";

/**
 * The power of a host is ordered to be cut once for a boot within `x.ha.restartRetryInterval`, whatever crashes meanwhile, unless nobody has
 * asked its controller to, or who has is lost, and nobody has the order any more; never of a host that the HA Manager hears. What is read as off has no power, or had none a moment ago. The
 * premise is an order, or such a reading.
 */
const retryMs = 600_000;
const voidMs = 25_000;
const readingMs = 15_000;

export const powerOrders: Invariant = {
  number: 35,
  title: "no power order is repeated by a crash, and off is what has no power",
  watch: ({ kernel }, verdict) => {
    const ordered = new Map<string, number>();
    const orders = new Map<string, number>();
    const cut = new Map<string, number>();
    const cutMs = new Map<string, number>();
    /** When a host was seen to stand still or to be away last. */
    let troubleMs = Number.NEGATIVE_INFINITY;
    /** Of hosts without power, and when others had theirs back. */
    const down = new Set<string>();
    const upMs = new Map<string, number>();
    const inStep = new Set<string>();
    kernel.watchers.push({
      // Also of a step whose process crashes behind its commit.
      stepped: (who, _input, effects) => {
        if (who !== "ha-manager") return;
        for (const effect of effects) {
          if (effect.kind !== "log") continue;
          const { event, fields } = effect;
          if (event !== "ha/power-off") continue;
          const { host, boot } = fields;
          const beforeMs = ordered.get(`${host} ${boot}`);
          const { nowMs } = kernel.clock;
          ordered.set(`${host} ${boot}`, nowMs);
          orders.set(`bmc.${host}`, (orders.get(`bmc.${host}`) ?? 0) + 1);
          const isUncut = beforeMs !== undefined && (cutMs.get(`bmc.${host}`) ?? 0) < beforeMs;
          const isLostToo = beforeMs !== undefined && nowMs - beforeMs >= voidMs && troubleMs >= beforeMs - readingMs;
          verdict.check(
            beforeMs === undefined || isUncut || isLostToo || nowMs - beforeMs >= retryMs - readingMs,
            () => `the power of ${host} was ordered to be cut again after ${nowMs - (beforeMs ?? 0)} ms`,
          );
          verdict.check(
            !inStep.has(`host.${host}`),
            () => `the power of ${host} was ordered to be cut, which is heard`,
          );
        }
      },
      log: (who, event, { host, peer }) => {
        if (event === "power-off") down.add(who);
        if (event === "power-on" && down.delete(who)) upMs.set(who, kernel.clock.nowMs);
        if (event === "peer/unreachable" && who === "ha-manager") troubleMs = kernel.clock.nowMs;
        if (event === "asked to cut") {
          cutMs.set(who, kernel.clock.nowMs);
          const times = (cut.get(who) ?? 0) + 1;
          cut.set(who, times);
          const given = orders.get(who) ?? 0;
          if (times > given)
            verdict.violate(`${who} was asked ${times} times to cut the power, and ordered ${given} times`);
        }
        if (who !== "ha-manager") return;
        if (event === "process/crashed") inStep.clear();
        if (event === "peer/reachable") inStep.add(String(peer));
        if (event === "peer/unreachable") inStep.delete(String(peer));
        if (event !== "ha/power-is-off") return;
        const name = String(host);
        const sinceMs = kernel.clock.nowMs - (upMs.get(name) ?? Number.NEGATIVE_INFINITY);
        verdict.check(down.has(name) || sinceMs <= readingMs, () => `${name} counts as off, and has power`);
      },
    });
    return undefined;
  },
};
