import type { Since } from "../decide.ts";
import type { OrderlyType, Step } from "../item.ts";

/*
 * The decision table of what is done in order, where no host is lost: from where an item is and what is so to its next step. Beside
 * that of the queue (`../decide.ts`), pure as that is, and gone through as a whole (`decide.test.ts`).
 */

export interface OrderlyCircumstances {
  readonly since: Since;
  /** What it was scheduled for is still wanted. */
  readonly isWanted: boolean;
  /** Its controller has its host stop it. */
  readonly isStopping: boolean;
  readonly isHostLost: boolean;
  /** As its host lists it; "unknown": the host is not heard, or has not said. */
  readonly power: "on" | "off" | "unknown";
  /** `x.ha.stopRetryInterval` has passed `x.ha.maxRetries` times. */
  readonly areTriesUsed: boolean;
}
export interface OrderlyMove {
  readonly to: Step;
  readonly why: string;
  /** Nobody tries it any more: a person is to look. */
  readonly gaveUp?: true;
}

/** The next step; null: it stays where it is. */
export function decideOrderly(type: OrderlyType, step: Step, so: OrderlyCircumstances): OrderlyMove | null {
  switch (step) {
    case "Scheduled":
      return ended(so, "Cancelled") ?? unwanted(type, so) ?? begun(type, so);
    case "Investigating":
      return ended(so, "Cancelled") ?? unwanted(type, so) ?? looked(so);
    case "Migrating":
      // What has begun to be stopped goes on elsewhere, whatever has become of the reason.
      return ended(so, "Done") ?? (so.isStopping ? lost(type, so) : unwanted(type, so));
    case "Stopping":
      return ended(so, "Done") ?? unwanted(type, so) ?? stopped(type, so);
    default:
      return null;
  }
}

/** The incarnation is over: the end of what was begun, and the reason to leave alone what was not. */
function ended({ since }: OrderlyCircumstances, to: "Done" | "Cancelled"): OrderlyMove | null {
  if (since === "later") return { to, why: "a later incarnation of it is on its way" };
  return since === "gone" ? { to, why: "its controller knows that it has ended" } : null;
}

/** A lost host is asked for nothing: what becomes of its VMs is an item of its own. Whom an operator has freed waits for the host. */
function lost(type: OrderlyType, { isHostLost }: OrderlyCircumstances): OrderlyMove | null {
  return isHostLost && type !== "ForceStop" ? { to: "Cancelled", why: "its host is lost" } : null;
}
function unwanted(type: OrderlyType, so: OrderlyCircumstances): OrderlyMove | null {
  return lost(type, so) ?? (so.isWanted ? null : { to: "Cancelled", why: "nobody wants that any more" });
}

function begun(type: OrderlyType, { isStopping }: OrderlyCircumstances): OrderlyMove | null {
  switch (type) {
    case "Migration":
      return isStopping ? { to: "Migrating", why: "its controller stops it there, and it starts elsewhere" } : null;
    case "CheckStop":
      return { to: "Investigating", why: "the list of its host is read" };
    case "ForceStop":
      return { to: "Stopping", why: "its host ends it when it is heard" };
  }
}

function looked({ power }: OrderlyCircumstances): OrderlyMove | null {
  if (power === "off") return { to: "Done", why: "its host lists it as ended" };
  return power === "on" ? { to: "Stopping", why: "its host, which is heard, lists it as running" } : null;
}

function stopped(type: OrderlyType, { power, areTriesUsed }: OrderlyCircumstances): OrderlyMove | null {
  if (power === "off") return { to: "Done", why: "its host lists it as ended" };
  if (type !== "CheckStop" || !areTriesUsed) return null;
  return { to: "Done", gaveUp: true, why: "its host was given time again and again, and still lists it as running" };
}
