import type { Uid } from "../../../model/cell/identifiers.ts";
import type { ActualFence } from "../../documents/ha.ts";
import type { Subject } from "../investigators/investigator.ts";
import type { FencerName } from "../item.ts";
import type { PowerState } from "../power/power-state.ts";

/**
 * Something that makes sure that an incarnation can write nothing any more, whatever becomes of it. A fencer says yes only of
 * what has physically happened: not of what was asked for, and not of what should have happened by a clock. Its name is one of
 * `fencerNames` in `core/ha/item.ts`; it is asked in `core/ha/queue.ts`.
 */
export interface Fencer {
  readonly name: FencerName;
  /** What is known of its fence, by what whoever carries it out says. */
  judge(subject: Fencing, known: Fenced): FenceAnswer;
}
export interface Fencing extends Subject {
  /** For how long its item has been at *Fencing*; null: it is at another step. */
  readonly fencingMs: number | null;
  /** `DesiredProtected.recreatable` */
  readonly recreatable?: true;
}
/** What those who carry fences out have said. */
export interface Fenced {
  readonly fences: ReadonlyMap<Uid, ActualFence>;
  readonly power: PowerState;
}
export interface FenceAnswer {
  readonly isFenced: boolean;
  /** For people. */
  readonly sentence: string;
}
