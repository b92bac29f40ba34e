import { Counts } from "../../requests/places.ts";
import { type RefusedError, refused } from "../../requests/refused.ts";

/*
 * A cell that is asked for who asks CaaS may be silent, and then his request waits, with a connection to the gateway that all have
 * together. So few requests of one person ask cells at one time, and so few of all.
 */
export interface WaitingLimits {
  readonly inAll: number;
  readonly ofOne: number;
}
export const waitingLimits: WaitingLimits = { inAll: 48, ofOne: 4 };

/** Of one request: it takes a place before its first cell is asked, and keeps it for all of them. */
export interface Waiting {
  /** Throws where there is none: 429 for somebody who has all of his, else 503. */
  take(): void;
  /** Once the request is over, whatever came of it. */
  leave(): void;
}

/** @returns for each request, by who asks */
export function createWaiting({ inAll, ofOne }: WaitingLimits): (who: string) => Waiting {
  const taken = new Counts();
  return (who) => {
    let has = false;
    return {
      take: () => {
        if (has) return;
        if (taken.of(who) >= ofOne)
          throw busy(429, `${ofOne} requests of yours wait for cells already, which is as many as may`);
        if (taken.all >= inAll) throw busy(503, "too many requests wait for cells that do not answer");
        taken.add(who, 1);
        has = true;
      },
      leave: () => {
        if (has) taken.add(who, -1);
        has = false;
      },
    };
  };
}
const busy = (status: number, why: string): RefusedError =>
  refused(status, "busy", `${why}; try again in a few seconds`);
