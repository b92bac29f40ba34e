import type { DesiredProtected, Isolated } from "../documents/ha.ts";
import type { State } from "./investigators/investigator.ts";
import type { Step } from "./item.ts";

/*
 * The decision table of the queue: from where an item is and what is so to its next step. Pure, and small enough to be gone
 * through as a whole (`decide.test.ts`).
 */

/** What has become of the protected incarnation since its item was scheduled. */
export type Since =
  /** It is protected as it was. */
  | "same"
  /** Its controller runs a later one. */
  | "later"
  /** Its controller knows that it is over, or does not know it any more. */
  | "gone";

export interface Circumstances {
  readonly since: Since;
  /** What its controller wants of it; of no interest unless `since` is "same". */
  readonly lost: DesiredProtected["lost"];
  /** Its host is declared dead, and has not come back; or has had no power in the boot for which it was placed. */
  readonly isHostLost: boolean;
  /** What the investigators say together. */
  readonly state: State;
  readonly isFenced: boolean;
  readonly isolated: Isolated;
  /** Somebody has been asked, and has yet to answer. */
  readonly isAsking: boolean;
  /** It waits for a person. */
  readonly isHeld: boolean;
  /** A person has said that it is to be left alone. */
  readonly isCancelled: boolean;
  /** Somebody has said *Running* for as long as an operator would bear it. */
  readonly isVetoedLong: boolean;
}
export interface Move {
  readonly to: Step;
  /** It is over from now on: some fencer has fenced it, or it was seen that it has ended. */
  readonly by?: "fencer" | "stopped";
  readonly why: string;
}

/** The next step; null: it stays where it is. */
export function decide(step: Step, so: Circumstances): Move | null {
  switch (step) {
    case "Scheduled":
      return cancelled(so) ?? { to: "Investigating", why: "the investigators are asked" };
    case "Investigating":
      return cancelled(so) ?? (so.isHeld ? null : investigated(so));
    case "Fencing":
      if (so.since !== "same") return { to: "Cancelled", why: "its controller has learned otherwise that it is over" };
      if (so.isFenced) return { to: "Restarting", by: "fencer", why: "it is fenced" };
      return so.state === "Stopped" ? { to: "Restarting", by: "stopped", why: "it was seen that it has ended" } : null;
    case "Restarting":
      if (so.since === "later") return { to: "Done", why: "its next incarnation is on its way" };
      return so.since === "gone" ? { to: "Done", why: "its controller has freed it" } : null;
    default:
      // It has ended, or is none of the kind that fences (`orderly/decide.ts`).
      return null;
  }
}

/** Whether its reason has gone, as long as nothing was done. */
function cancelled({ since, lost, isHostLost, isCancelled }: Circumstances): Move | null {
  if (since === "later") return { to: "Cancelled", why: "a later incarnation of it is on its way" };
  if (since === "gone") return { to: "Cancelled", why: "its controller has learned otherwise that it is over" };
  if (lost === "leave") return { to: "Cancelled", why: "it is not to be started again by itself" };
  if (isCancelled) return { to: "Cancelled", why: "the operator has cancelled it: `cells ha retry` takes it up again" };
  return isHostLost ? null : { to: "Cancelled", why: "its host is there again" };
}

function investigated({ state, isAsking, isolated, isVetoedLong }: Circumstances): Move | null {
  switch (state) {
    case "Stopped":
      return { to: "Restarting", by: "stopped", why: "it was seen that it has ended" };
    case "Unknown":
      return isAsking ? null : { to: "Fencing", why: "nobody knows whether it runs" };
    case "Running":
      return isVetoedLong && isolated === "restart"
        ? {
            to: "Fencing",
            why: "it runs where its host cannot be reached, and x.ha.isolated says to start it elsewhere",
          }
        : null;
  }
}
