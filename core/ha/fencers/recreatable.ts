import type { Fencer } from "./fencer.ts";

/**
 * The last resort where neither the storage nor a power answers: all that the incarnation may write to may be lost, and its controller
 * gives it up. What it writes from then on, it writes to what nobody will ever read. The others come first, since they lose nothing:
 * a fence at the storage takes up to some 8 s, and an order to a power 3 s later may take 10 s.
 */
export const recreateAfterMs = 15_000;

export const recreatableFencer: Fencer = {
  name: "recreatable",
  judge: ({ recreatable, fencingMs }) => {
    if (recreatable !== true) return { isFenced: false, sentence: "it writes to what cannot be made anew" };
    if (fencingMs === null || fencingMs < recreateAfterMs)
      return { isFenced: false, sentence: "its volumes are made anew if nothing else helps" };
    return { isFenced: true, sentence: "all that it writes to may be made anew, and is given up" };
  },
};
