import type { HostOffer } from "../../../model/check/check-hosts.ts";
import type { HostOffers } from "../../documents/vocabulary.ts";
import { cpusFor, freeMiB, type HostView, noUse, type Ratios } from "../candidate.ts";

/**
 * What the hosts could hold if they were empty, for controllers to tell what can never be placed. A host that was never
 * heard of might hold anything: then the list is not complete, and nothing is impossible.
 */
export function offersOf(hosts: Iterable<HostView>, ratios: Ratios): HostOffers {
  const offers: HostOffer[] = [];
  let complete = true;
  for (const { host, actual } of hosts) {
    if (actual === null) complete = false;
    else {
      const { cpuSpeedMHz } = actual;
      offers.push({ host, memoryMiB: freeMiB(actual, noUse(), ratios), cpus: cpusFor(actual, ratios), cpuSpeedMHz });
    }
  }
  return { hosts: offers.sort((a, b) => (a.host < b.host ? -1 : 1)), complete };
}
