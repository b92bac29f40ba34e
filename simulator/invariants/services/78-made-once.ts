import type { Invariant } from "../invariant.ts";

/** A patch that was made is not refused when it is asked for again under its key: whoever asks would think that it was not. */
export const madeOnce: Invariant = {
  number: 78,
  title: "what was made is not refused when it is asked for again",
  watch: ({ kernel }, verdict) => {
    kernel.watchers.push({
      log: (who, event, { sent, twice }) => {
        if (event !== "patch-refused") return;
        verdict.check(
          twice !== true,
          () => `what ${who} patched was made, and refused when it came for the ${sent}. time`,
        );
      },
    });
    return undefined;
  },
};
