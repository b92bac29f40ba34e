import type { HostName } from "../../model/identifiers.ts";
import type { ActualPlacement, DesiredPlacement, HostRefusal } from "../documents.ts";
import {
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
 * The host for a VM, or one sentence per host why it is not that one. Pure; `usage` is what all reservations take, without
 * the request's own. Of the hosts that pass, the one with the most free memory, so that VMs spread; ties by name. One
 * that the request would rather avoid comes after all others.
 */
export function place(
  hosts: readonly HostView[],
  usage: Usage,
  request: DesiredPlacement,
  ratios: Ratios = defaultRatios,
): Placed {
  const refusals: HostRefusal[] = [];
  const avoid = new Set<string>(request.avoid ?? []);
  let best: Candidate | null = null;
  let lastResort: Candidate | null = null;
  for (const { host, reachable, actual, died = null } of hosts) {
    if (!reachable || actual === null) {
      const why = died === null ? "not reachable" : `declared dead at ${died}`;
      refusals.push({ host, why, lifts: "the host answers again" });
      continue;
    }
    const candidate: Candidate = { actual, use: useWithout(usage.get(host) ?? noUse(), request.vm) };
    const refusal = firstRefusal(candidate, request, ratios);
    if (refusal !== null) refusals.push({ host, ...refusal });
    else if (avoid.has(host)) {
      if (lastResort === null || isBetter(candidate, lastResort, ratios)) lastResort = candidate;
    } else if (best === null || isBetter(candidate, best, ratios)) best = candidate;
  }
  const chosen = best ?? lastResort;
  if (chosen === null) return { refusals };
  const { host, boot } = chosen.actual;
  return { host, ...(boot === undefined ? {} : { boot }) };
}

function firstRefusal(candidate: Candidate, request: DesiredPlacement, ratios: Ratios): ReturnType<Filter> {
  for (const filter of filters) {
    const refusal = filter(candidate, request, ratios);
    if (refusal !== null) return refusal;
  }
  return null;
}

function isBetter(a: Candidate, b: Candidate, ratios: Ratios): boolean {
  const free = ({ actual, use }: Candidate): number => memoryFor(actual, ratios) - takenMiB(actual, use);
  return free(a) > free(b) || (free(a) === free(b) && a.actual.host < b.actual.host);
}
