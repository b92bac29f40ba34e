import { isObject } from "../../../core/outbox.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A member of the Presence group that has heard a host's refutation, a higher incarnation in the same generation, neither
 * votes nor declares on what was said of an earlier one. What another member declared before counts everywhere, and so does an
 * operator's word that the host's power is off, which rests on no suspicion.
 */
export const refutedNeverDies: Invariant = {
  number: 17,
  title: "a refuted suspicion never becomes a death",
  watch: ({ kernel }, verdict) => {
    /** `<member> <host>` → what the host last said of itself there. */
    const said = new Map<string, Life>();
    kernel.watchers.push({
      began: (who) => {
        for (const key of said.keys()) if (key.startsWith(`${who} `)) said.delete(key);
      },
      stepped: (who, input, effects) => {
        if (!who.startsWith("presence.")) return;
        const isCopy = input.kind === "actual" && input.from.startsWith("presence.") && input.key.startsWith("dead/");
        if (input.kind === "actual" && input.key === "presence/self") {
          const key = `${who} ${input.from.replace("host.", "")}`;
          const life = lifeOf(input.value);
          const before = said.get(key);
          if (life === null) said.delete(key);
          else said.set(key, life);
          if (life !== null && life.generation === before?.generation && life.incarnation > before.incarnation)
            verdict.check(true, () => "");
        }
        for (const effect of effects) {
          const { kind } = effect;
          if (kind !== "publish" || input.kind === "start" || isCopy) continue;
          const life = /^(dead|vote)\//.test(effect.key) ? lifeOf(effect.value) : null;
          const now = said.get(`${who} ${effect.key.split("/")[1]}`);
          if (life === null || now?.generation !== life.generation || isCertain(effect.value)) continue;
          verdict.check(
            now.incarnation <= life.incarnation,
            () => `${who} says ${effect.key} of incarnation ${life.incarnation}, and was told of ${now.incarnation}`,
          );
        }
      },
    });
    return undefined;
  },
};

/** It says of that life's boot that it is over. */
const isCertain = (value: Json): boolean => isObject(value) && value.endedIn === value.generation;

interface Life {
  readonly generation: number;
  readonly incarnation: number;
}
const lifeOf = (value: Json): Life | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as unknown as Life) : null;
