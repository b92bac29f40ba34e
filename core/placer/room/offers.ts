import type { PlacementSettings } from "../../../model/cell/attributes/placement-settings.ts";
import { mostKnownMarks } from "../../../model/cell/tenants/dedication/marks.ts";
import type { KnownOffering } from "../../../model/cell/tenants/pools/offerings.ts";
import type { HostOffer } from "../../../model/check/check-hosts.ts";
import type { ActualHost, HostOffers } from "../../documents/vocabulary.ts";
import { cpusFor, freeMiB, type HostView, noUse, type Ratios } from "../candidate.ts";

/** What one could hold if it were empty. */
export const offerOf = (actual: ActualHost, ratios: Ratios): HostOffer => ({
  host: actual.host,
  memoryMiB: freeMiB(actual, noUse(), ratios),
  cpus: cpusFor(actual, ratios),
  cpuSpeedMHz: actual.cpuSpeedMHz,
});

/**
 * What the hosts could hold if they were empty, for controllers to tell what can never be placed. A host that was never
 * heard of might hold anything: then the list is not complete, and nothing is impossible.
 */
export function offersOf(
  hosts: Iterable<HostView>,
  ratios: Ratios,
  { lastHostS }: PlacementSettings = {},
  offerings: readonly KnownOffering[] = [],
): HostOffers {
  const offers: HostOffer[] = [];
  let complete = true;
  const [places, tags, properties] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { host, actual, marks } of hosts) {
    if (marks?.cluster !== undefined) places.add(marks.cluster);
    for (const tag of marks?.tags ?? []) tags.add(tag);
    for (const name of Object.keys(marks?.properties ?? {})) properties.add(name);
    if (actual === null) complete = false;
    else offers.push({ ...offerOf(actual, ratios), host });
  }
  const all = [places, tags, properties];
  // More than can be said are not said at all: then nothing is impossible for want of one.
  const marks = all.every(({ size }) => size <= mostKnownMarks)
    ? { marks: { places: [...places].sort(), tags: [...tags].sort(), properties: [...properties].sort() } }
    : {};
  // Nothing is said of what is as preset: a controller of the version before does not know the field.
  const said = lastHostS === undefined ? {} : { lastHostS };
  return { hosts: offers.sort((a, b) => (a.host < b.host ? -1 : 1)), complete, ...marks, offerings, ...said };
}
