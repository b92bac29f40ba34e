import type { DesiredBeat } from "../../../core/documents/ha.ts";
import type { Invariant } from "../invariant.ts";

/** A host says at least this long that nobody answers it. */
const silenceMs = 9000;

/**
 * A host ends its own machines only where nobody hears it: none of its beats that a storage server said to have made durable was
 * said within the last 9 s. So one slow server, or one that is away alone, ends nothing. The premise is a machine that its host
 * ends so.
 */
export const nobodyHears: Invariant = {
  number: 37,
  title: "a host ends its machines only where nobody has heard it for 9 s",
  watch: ({ kernel }, verdict) => {
    /** By host: when it said its last beats, by count; and when the latest that was acknowledged was said. */
    const said = new Map<string, Map<number, number>>();
    const heardMs = new Map<string, number>();
    kernel.watchers.push({
      stepped: (who, input, effects) => {
        if (!who.startsWith("host.")) return;
        const { nowMs } = kernel.clock;
        if (input.kind === "actual" && input.key === `${who}/beat` && input.value !== null) {
          const at = said.get(who)?.get((input.value as unknown as DesiredBeat).count);
          if (at !== undefined) heardMs.set(who, Math.max(heardMs.get(who) ?? 0, at));
        }
        for (const effect of effects) {
          if (effect.kind !== "desire" || effect.key !== "beat" || effect.value === null) continue;
          const counts = said.get(who) ?? new Map<number, number>();
          said.set(who, counts.set((effect.value as unknown as DesiredBeat).count, nowMs));
        }
        for (const effect of effects)
          if (effect.kind === "log" && effect.event === "host/isolated") {
            const ms = nowMs - (heardMs.get(who) ?? Number.NEGATIVE_INFINITY);
            verdict.check(ms >= silenceMs, () => `${who} ends a machine, and was heard ${Math.round(ms)} ms ago`);
          }
      },
    });
    return undefined;
  },
};
