import type { HostName } from "../../model/cell/identifiers.ts";
import type { ActualPlacement, DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
import { type Asker, cpuRatio, type HostView, implicitOf, nobody, type Ratios, type Usage } from "./candidate.ts";
import { whyNoGroup } from "./filters/dedication.ts";
import { whyNoPool } from "./filters/pool.ts";
import { type Given, wishesOf } from "./filters/wishes.ts";
import { membershipsOf } from "./groups.ts";
import { type Asked, isBetter, judge, type Ranked } from "./judge.ts";

/** CPUs are shared in time; memory is not. */
export const defaultRatios: Ratios = { cpu: cpuRatio, memory: 1 };

export type Placed =
  | ({ readonly host: HostName; readonly boot?: number } & Given)
  /** `said`: what holds of the request, or of hosts that are not to be named; absent: nothing more than of each host. */
  | { readonly refusals: ActualPlacement["refusals"]; readonly said?: string };

export const askedOf = (usage: Usage, request: DesiredPlacement, ratios: Ratios, asker: Asker): Asked => ({
  request,
  usage,
  ratios,
  asker,
  memberships: membershipsOf(usage, request, asker),
  wishes: wishesOf(usage, request, asker),
  avoid: new Set<string>(request.avoid ?? []),
  mayClaim: asker.isSystem || implicitOf(request.placement) !== "strict" || asker.mayClaim?.() !== false,
});
export const placedAt = ({ host, boot, given, so }: Ranked): Placed => ({
  host,
  ...(boot === undefined ? {} : { boot }),
  ...(so === undefined ? {} : { so }),
  ...(given === undefined ? {} : { given }),
});

/**
 * The host for a VM, or one sentence per host why it is not that one: each is said by one filter in `filters/` (`capacity.ts`, `dedication.ts`,
 * `implicit.ts`, `affinity.ts`, `groups.ts`, `speed.ts`, `host-state.ts`); that a host is not reachable is said by `judge.ts`. A host that is others' is not named. Pure; `usage` is what
 * all reservations take, without the request's own. The cloud's own VMs stand at hosts that are nobody's as long as there are such. Of the hosts that pass, first those that the request would not rather avoid, then those whose nice wishes that are so weigh most, then those with the fewest
 * VMs of its `x.placement.spread` and of its groups that are non-strict, then the one with the most free memory, so that VMs spread, or with the least where they are to pack; ties by name.
 * It looks at each host; `index/` finds the same one by looking at few.
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
  const asked = askedOf(usage, request, ratios, asker);
  const refusals: HostRefusal[] = [];
  let hidden = 0;
  let best: Ranked | null = null;
  for (const view of hosts) {
    const judged = judge(view, asked);
    if (judged === null) hidden += 1;
    else if ("why" in judged) refusals.push(judged);
    else if (best === null || isBetter(judged, best)) best = judged;
  }
  if (best !== null) return placedAt(best);
  return {
    refusals,
    ...(hidden > 0 && refusals.length === 0 ? { said: whyNoPool(request) ?? "no host is for its account" } : {}),
  };
}
