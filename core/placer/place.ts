import type { HostName } from "../../model/cell/identifiers.ts";
import type { ActualPlacement, DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
import {
  besidesAt,
  type Candidate,
  cpuRatio,
  type Filter,
  type HostView,
  memoryFor,
  noUse,
  type Ratios,
  takenMiB,
  type Usage,
  useWithout,
} from "./candidate.ts";
import { affinity } from "./filters/affinity.ts";
import { capacity } from "./filters/capacity.ts";
import { hostState } from "./filters/host-state.ts";
import { speed } from "./filters/speed.ts";

const filters: readonly Filter[] = [hostState, affinity, speed, capacity];
/** CPUs are shared in time; memory is not. */
export const defaultRatios: Ratios = { cpu: cpuRatio, memory: 1 };

export type Placed =
  | { readonly host: HostName; readonly boot?: number }
  | { readonly refusals: ActualPlacement["refusals"] };

/**
 * The host for a VM, or one sentence per host why it is not that one: each is said by one filter in `filters/` (`capacity.ts`,
 * `affinity.ts`, `speed.ts`, `host-state.ts`); that a host is not reachable is said here. Pure; `usage` is what all reservations take, without
 * the request's own. Of the hosts that pass, first those that the request would not rather avoid, then those with the fewest
 * VMs of its `x.placement.spread`, then the one with the most free memory, so that VMs spread; ties by name.
 */
export function place(
  hosts: readonly HostView[],
  usage: Usage,
  request: DesiredPlacement,
  ratios: Ratios = defaultRatios,
): Placed {
  const refusals: HostRefusal[] = [];
  const avoid = new Set<string>(request.avoid ?? []);
  let best: Ranked | null = null;
  for (const { host, reachable, actual, died = null, closed } of hosts) {
    if (!reachable || actual === null) {
      const why = died === null ? "not reachable" : `declared dead at ${died}`;
      refusals.push({ host, kind: "unreachable", why, lifts: "the host answers again" });
      continue;
    }
    const use = useWithout(usage.get(host) ?? noUse(), request.vm);
    const candidate: Candidate = { actual, use, ...(closed === undefined ? {} : { closed }) };
    const refusal = firstRefusal(candidate, request, ratios);
    if (refusal !== null) refusals.push({ host, ...refusal });
    else {
      const freeMiB = memoryFor(actual, ratios) - takenMiB(actual, candidate.use);
      const { boot } = actual;
      const ranked = { host, boot, avoided: avoid.has(host), besides: besidesAt(candidate.use, request), freeMiB };
      if (best === null || isBetter(ranked, best)) best = ranked;
    }
  }
  if (best === null) return { refusals };
  const { host, boot } = best;
  return { host, ...(boot === undefined ? {} : { boot }) };
}

interface Ranked {
  readonly host: HostName;
  readonly boot: number | undefined;
  readonly avoided: boolean;
  readonly besides: number;
  readonly freeMiB: number;
}
function isBetter(a: Ranked, b: Ranked): boolean {
  if (a.avoided !== b.avoided) return b.avoided;
  if (a.besides !== b.besides) return a.besides < b.besides;
  return a.freeMiB > b.freeMiB || (a.freeMiB === b.freeMiB && a.host < b.host);
}

function firstRefusal(candidate: Candidate, request: DesiredPlacement, ratios: Ratios): ReturnType<Filter> {
  for (const filter of filters) {
    const refusal = filter(candidate, request, ratios);
    if (refusal !== null) return refusal;
  }
  return null;
}
