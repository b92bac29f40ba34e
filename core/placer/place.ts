import type { HostName } from "../../model/cell/identifiers.ts";
import { softRank } from "../../model/cell/tenants/affinity/affinity.ts";
import type { ActualPlacement, DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
import {
  type Asker,
  besidesAt,
  type Candidate,
  cpuRatio,
  type Filter,
  type HostView,
  implicitOf,
  memoryFor,
  nobody,
  noUse,
  type Ratios,
  takenMiB,
  type Usage,
  useWithout,
} from "./candidate.ts";
import { affinity } from "./filters/affinity.ts";
import { capacity } from "./filters/capacity.ts";
import { dedication, isHidden, whyNoGroup } from "./filters/dedication.ts";
import { groups } from "./filters/groups.ts";
import { hostState } from "./filters/host-state.ts";
import { implicit, implicitRank, isHeld } from "./filters/implicit.ts";
import { speed } from "./filters/speed.ts";
import { membershipsOf } from "./groups.ts";

const filters: readonly Filter[] = [hostState, dedication, implicit, affinity, groups, speed, capacity];
/** CPUs are shared in time; memory is not. */
export const defaultRatios: Ratios = { cpu: cpuRatio, memory: 1 };

export type Placed =
  | { readonly host: HostName; readonly boot?: number }
  /** `said`: what holds of the request, or of hosts that are not to be named; absent: nothing more than of each host. */
  | { readonly refusals: ActualPlacement["refusals"]; readonly said?: string };

/**
 * The host for a VM, or one sentence per host why it is not that one: each is said by one filter in `filters/` (`capacity.ts`, `dedication.ts`,
 * `implicit.ts`, `affinity.ts`, `groups.ts`, `speed.ts`, `host-state.ts`); that a host is not reachable is said here. A host that is others' is not named. Pure; `usage` is what
 * all reservations take, without the request's own. The cloud's own VMs stand at hosts that are nobody's as long as there are such. Of the hosts that pass, first those that the request would not rather avoid, then those with the fewest
 * VMs of its `x.placement.spread` and of its groups that are non-strict, then the one with the most free memory, so that VMs spread; ties by name.
 */
export function place(
  hosts: readonly HostView[],
  usage: Usage,
  request: DesiredPlacement,
  ratios: Ratios = defaultRatios,
  asker: Asker = nobody,
): Placed {
  const noGroup = whyNoGroup(request, asker);
  if (noGroup !== null) return { refusals: [], said: noGroup };
  const memberships = membershipsOf(usage, request, asker);
  const refusals: HostRefusal[] = [];
  let hidden = 0;
  const avoid = new Set<string>(request.avoid ?? []);
  let best: Ranked | null = null;
  for (const { host, reachable, actual, died = null, closed, rule } of hosts) {
    if (rule !== undefined && isHidden({ rule }, asker)) {
      hidden += 1;
      continue;
    }
    if (!reachable || actual === null) {
      const why = died === null ? "not reachable" : `declared dead at ${died}`;
      refusals.push({ host, kind: "unreachable", why, lifts: "the host answers again" });
      continue;
    }
    const use = useWithout(usage.get(host) ?? noUse(), request.vm);
    const candidate: Candidate = {
      actual,
      use,
      ...(closed === undefined ? {} : { closed }),
      ...(rule === undefined ? {} : { rule }),
      ...(memberships.length === 0 ? {} : { groups: memberships }),
    };
    const refusal = firstRefusal(candidate, request, ratios, asker);
    if (refusal !== null) refusals.push({ host, ...refusal });
    else {
      const freeMiB = memoryFor(actual, ratios) - takenMiB(actual, candidate.use);
      const { boot } = actual;
      const isOthers = !asker.isSystem ? 0 : isHeld(use, request, asker) ? 2 : rule === undefined ? 0 : 1;
      const implicitly = implicitRank(use, request, asker);
      const asks = implicitOf(request.placement) !== null;
      const ranked = {
        host,
        boot,
        avoided: avoid.has(host),
        isOthers,
        asked: asks ? implicitly : 0,
        held: asks ? 0 : implicitly,
        besides: besidesAt(candidate.use, request) + softRank(memberships, host),
        freeMiB,
      };
      if (best === null || isBetter(ranked, best)) best = ranked;
    }
  }
  if (best === null)
    return { refusals, ...(hidden > 0 && refusals.length === 0 ? { said: "no host is for its account" } : {}) };
  const { host, boot } = best;
  return { host, ...(boot === undefined ? {} : { boot }) };
}

interface Ranked {
  readonly host: HostName;
  readonly boot: number | undefined;
  readonly avoided: boolean;
  /** Of the cloud's own VMs: at what is nobody's (0), dedicated (1), or held (2). */
  readonly isOthers: number;
  /** What asks for implicit dedication looks at that before it spreads; what does not, after. */
  readonly asked: number;
  readonly held: number;
  readonly besides: number;
  readonly freeMiB: number;
}
function isBetter(a: Ranked, b: Ranked): boolean {
  if (a.avoided !== b.avoided) return b.avoided;
  if (a.isOthers !== b.isOthers) return a.isOthers < b.isOthers;
  if (a.asked !== b.asked) return a.asked < b.asked;
  if (a.besides !== b.besides) return a.besides < b.besides;
  if (a.held !== b.held) return a.held < b.held;
  return a.freeMiB > b.freeMiB || (a.freeMiB === b.freeMiB && a.host < b.host);
}

function firstRefusal(
  candidate: Candidate,
  request: DesiredPlacement,
  ratios: Ratios,
  asker: Asker,
): ReturnType<Filter> {
  for (const filter of filters) {
    const refusal = filter(candidate, request, ratios, asker);
    if (refusal !== null) return refusal;
  }
  return null;
}
