import type { ActualFence, Fence } from "../../documents/ha.ts";

/**
 * Something that makes sure that an incarnation can write nothing any more, whatever becomes of it. A fencer says yes only of
 * what has physically happened: not of what was asked for, and not of what should have happened by a clock. Its name is one of
 * `fences` in `core/documents/ha.ts`; it is asked in `core/ha/queue.ts`.
 */
export interface Fencer {
  readonly name: Fence;
  /** What is known of its fence, by what whoever carries it out says. */
  judge(said: ActualFence | undefined, incarnation: number): FenceAnswer;
}
export interface FenceAnswer {
  readonly isFenced: boolean;
  /** For people. */
  readonly sentence: string;
}
