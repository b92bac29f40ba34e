import type { CellName, ElementPath, HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Answer } from "./investigators/investigator.ts";

/*
 * Items of work, by the names of CloudStack's HA Manager (`HighAvailabilityManager`), so that whoever knows that one finds his
 * way here. One item is about one incarnation of one VM, and for one incarnation there is one at most, for good.
 */

/**
 * `HA`: started again elsewhere. `Stop`: freed of its host, since it is being stopped and its host cannot confirm that; `Destroy`: the same
 * of one that has left its model. These are about a host that is lost, and `decide.ts` is their table.
 */
export const lossTypes = ["HA", "Stop", "Destroy"] as const;
export type LossType = (typeof lossTypes)[number];
/**
 * What goes in order, at a host that is not lost (`orderly/`). `Migration`: it leaves its host, by the operator's word or since that is in
 * maintenance; the Placer says where to and its controller stops and starts it. `CheckStop`: it is to stop, and its host, which is heard, goes on
 * listing it. `ForceStop`: an operator has freed it of a host that could not confirm its end (`cells stop --force`).
 */
export const orderlyTypes = ["Migration", "CheckStop", "ForceStop"] as const;
export type OrderlyType = (typeof orderlyTypes)[number];
export type WorkType = LossType | OrderlyType;

/**
 *   Scheduled → Investigating → Fencing → Restarting → Done
 *                    │  └────────────────────┘ ▲
 *                    └→ Cancelled              └ (seen stopped: nothing to fence)
 *   of what goes in order:
 *   Scheduled → Migrating → Done | Cancelled
 *   Scheduled (→ Investigating) → Stopping → Done | Cancelled
 *
 * A fence that has begun is carried through: some of the leases may have ended. Only its VM's own controller, which has learned
 * otherwise that the incarnation is over, cancels it then. `Error`: an item that another version has written and this one cannot read; what
 * is due is scheduled anew, by what is so.
 */
export const steps = [
  "Scheduled",
  "Investigating",
  "Fencing",
  "Stopping",
  "Migrating",
  "Restarting",
  "Done",
  "Cancelled",
  "Error",
] as const;
export type Step = (typeof steps)[number];
export const isActive = (step: Step): boolean => step !== "Done" && step !== "Cancelled" && step !== "Error";

/** Asked in this order. */
export const fencerNames = ["storage", "power", "recreatable"] as const;
export type FencerName = (typeof fencerNames)[number];

/**
 * Record `item/<vm>/<incarnation>`; of what goes in order, and of what could not be read, `work/<vm>/<incarnation>`: earlier versions, which
 * know neither these types nor their steps, leave those alone.
 */
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
  /** It is not tried any more: a person is to look. */
  readonly gaveUp?: true;
  /** As in `DesiredProtected`. */
  readonly boundAt?: number;
}
export interface SaidAnswer extends Omit<Answer, "heardMs"> {
  readonly by: string;
  /** Since when it says that, milliseconds since 1970. */
  readonly at: number;
}

export const itemKey = (vm: Uid, incarnation: number): string => `item/${vm}/${incarnation}`;
export const workKey = (vm: Uid, incarnation: number): string => `work/${vm}/${incarnation}`;
