import type { CellName, ElementPath, HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Answer } from "./investigators/investigator.ts";

/*
 * Items of work, by the names of CloudStack's HA Manager (`HighAvailabilityManager`), so that whoever knows that one finds his
 * way here. One item is about one incarnation of one VM, and for one incarnation there is one at most, for good.
 */

/**
 * `HA`: started again elsewhere. `Stop`: freed of its host, since it is being stopped and its host cannot confirm that; `Destroy`: the same
 * of one that has left its model. CloudStack's other three are somebody else's here: a `Migration` is the Placer's and the controller's
 * (decision 102), `CheckStop` is what every controller waits for, and `ForceStop` an operator's word to it (`cells stop --force`).
 */
export const workTypes = ["HA", "Stop", "Destroy"] as const;
export type WorkType = (typeof workTypes)[number];

/**
 *   Scheduled → Investigating → Fencing → Restarting → Done
 *                    │  └────────────────────┘ ▲
 *                    └→ Cancelled              └ (seen stopped: nothing to fence)
 *
 * A fence that has begun is carried through: some of the leases may have ended. Only its VM's own controller, which has learned
 * otherwise that the incarnation is over, cancels it then.
 */
export const steps = ["Scheduled", "Investigating", "Fencing", "Restarting", "Done", "Cancelled"] as const;
export type Step = (typeof steps)[number];
export const isActive = (step: Step): boolean => step !== "Done" && step !== "Cancelled";

/** Asked in this order. */
export const fencerNames = ["storage", "power", "recreatable"] as const;
export type FencerName = (typeof fencerNames)[number];

/** Record `item/<vm>/<incarnation>`. */
export interface WorkItem {
  readonly type: WorkType;
  readonly step: Step;
  readonly client: PeerName;
  readonly vm: Uid;
  readonly cell: CellName;
  readonly path: ElementPath;
  readonly incarnation: number;
  readonly host: HostName;
  /** Milliseconds since 1970, for people: when it was scheduled, and since when it is at its step. */
  readonly scheduledAt: number;
  readonly since: number;
  /** Why it was scheduled, and in the end why it ended so: sentences. */
  readonly reason: string;
  readonly outcome?: string;
  /** What each investigator said when it was last asked. */
  readonly answers: readonly SaidAnswer[];
  /** What the fencers said last. */
  readonly fencing: readonly SaidAnswer[];
  readonly fencedBy?: FencerName | "stopped";
  /** Why it waits for a person (`guards.ts`), a sentence. */
  readonly held?: string;
  /** Its host was lost soon after the incarnation came. */
  readonly young?: true;
  /** A person has looked: it is not held any more. */
  readonly released?: true;
  /** A person has said that this incarnation is left alone. */
  readonly cancelled?: true;
}
export interface SaidAnswer extends Omit<Answer, "heardMs"> {
  readonly by: string;
  /** Since when it says that, milliseconds since 1970. */
  readonly at: number;
}

export const itemKey = (vm: Uid, incarnation: number): string => `item/${vm}/${incarnation}`;
