import { hostName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/** A death takes longer than this: a host whose last trouble is as long ago has been heard since. */
const longAgoMs = 12_000;
/** A pause up to this long must not kill (decision 25). */
const shortMs = 5000;

/**
 * The life that a host lives is declared over only while it stands still, is down or cut off, or not long after; and a pause of
 * up to 5 s alone never is the cause. The premise is a declaration, or such a pause.
 */
export const heardIsAlive: Invariant = {
  number: 24,
  title: "no host that runs and can be heard is declared dead",
  watch: ({ kernel, installation }, verdict) => {
    const { network, clock } = kernel;
    kernel.watchers.push({
      log: (who, event, { words }) => {
        const [, name = "", ms = "0"] = /^(host\.\S+) for (\d+)$/.exec(String(words)) ?? [];
        if (who === "history" && event === "pause" && name !== "" && Number(ms) <= shortMs)
          verdict.check(true, () => "");
      },
      stepped: (who, input, effects) => {
        if (!who.startsWith("presence.") || input.kind === "start") return;
        for (const effect of effects) {
          if (effect.kind !== "publish" || !effect.key.startsWith("dead/")) continue;
          const name = hostName(effect.key.replace("dead/", ""));
          const process = installation.managers.get(name);
          const { generation } = effect.value as unknown as { readonly generation: number };
          if (process?.distribution?.life !== generation) continue;
          const cutMs = network.cutBeforeMs(process.machine);
          const isWell = !process.isPaused && cutMs !== null && network.isUp(process.machine);
          const sinceMs = clock.nowMs - Math.max(process.wellSinceMs, cutMs ?? 0);
          verdict.check(
            !isWell || sinceMs < longAgoMs,
            () => `${name} is declared dead by ${who} and has been well for ${Math.round(sinceMs)} ms`,
          );
        }
      },
    });
    return undefined;
  },
};
