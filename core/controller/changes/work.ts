import type { Input, Instant } from "../../env.ts";

/** What a controller does step by step, and may stop in (`slices.ts`). */
export type Work = Generator<void, void>;

export interface Held {
  readonly input: Input;
  readonly now: Instant;
}
/** What is being done, and what waits for the end of it. */
export interface Working {
  current: Work | null;
  readonly requests: Held[];
  readonly news: Held[];
}
export const noWork = (): Working => ({ current: null, requests: [], news: [] });
