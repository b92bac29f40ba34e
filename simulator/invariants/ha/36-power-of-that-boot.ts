import type { Invariant } from "../invariant.ts";
import { isHaManager, named, watchPauses } from "./said-over.ts";

/** Who was handed an order to cut, and has said nothing, has it no more after this. */
const voidMs = 25_000;
/** A controller that is slow does what it was asked for up to so much later. */
const slowMs = 14_000;

/**
 * An order to cut a power is for the boot in which the host is as far as the HA Manager was told, and for no earlier one; none is given while many hosts
 * were lost at once; and none is carried out long after it was given, when the host may be in a later boot. The premise is an order, and a controller that is
 * asked to cut.
 */
export const powerOfThatBoot: Invariant = {
  number: 36,
  title: "no power order is begun for a later boot, and none in a storm",
  watch: ({ kernel }, verdict) => {
    const pauses = watchPauses(kernel);
    /** By manager and host, the boot that the host said last that it is in. */
    const told = new Map<string, number>();
    const orderedMs = new Map<string, number>();
    kernel.watchers.push({
      frame: (from, to, frame) => {
        if (!isHaManager(to) || frame.frame !== "actual" || frame.key !== "machines") return;
        const boot = named(frame.value, "boot");
        if (typeof boot === "number") told.set(`${to} ${from}`, boot);
      },
      stepped: (who, _input, effects) => {
        if (!isHaManager(who)) return;
        for (const effect of effects) {
          if (effect.kind !== "log" || effect.event !== "ha/power-off") continue;
          const { host, boot } = effect.fields;
          orderedMs.set(`bmc.${host}`, kernel.clock.nowMs);
          const latest = told.get(`${who} host.${host}`);
          verdict.check(
            latest === undefined || latest <= Number(boot),
            () => `the power of ${host} is ordered to be cut in boot ${boot}, and it has said that it is in ${latest}`,
          );
          verdict.check(!pauses.has(who), () => `the power of ${host} is ordered to be cut while many hosts are lost`);
        }
      },
      log: (who, event) => {
        if (event !== "asked to cut") return;
        const sinceMs = kernel.clock.nowMs - (orderedMs.get(who) ?? Number.NEGATIVE_INFINITY);
        verdict.check(
          sinceMs <= voidMs + slowMs,
          () => `${who} was asked to cut ${Math.round(sinceMs)} ms after that was ordered`,
        );
      },
    });
    return undefined;
  },
};
