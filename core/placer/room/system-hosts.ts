import { placementSettings } from "../../../model/cell/attributes/placement-settings.ts";
import type { HostRefusal } from "../../documents/vocabulary.ts";
import type { HostUse, HostView } from "../candidate.ts";
import type { PlacerState } from "../state.ts";

/*
 * Hosts that are left to the management (`x.placement.systemHosts`): a VM with `x.placement.dedication "strict"` makes a host its account's
 * alone by standing there, and the cloud's own VMs would have to break that where nothing else is left. So it takes none of the
 * last. Where its account has a host by a strict VM already, one more takes nothing from anybody.
 *
 * Where the operator has said nothing one is left, in a cloud that has enough of them (decision 193).
 */

/** In a cloud of no more open hosts than that none is left by itself. */
export const smallCloud = 4;
function leftOf({ hosts, settings }: Pick<PlacerState, "hosts" | "settings">): number {
  if (settings.systemHosts !== undefined) return settings.systemHosts;
  let open = 0;
  for (const { closed, pooled } of hosts.values()) {
    // One that is away counts: or the loss of hosts would let somebody have the last.
    if (closed === undefined && pooled === undefined) open += 1;
    if (open > smallCloud) return placementSettings.systemHosts.preset;
  }
  return 0;
}

/** The cloud's own VMs may start there, and break nothing by it. */
export const isForSystem = ({ closed, pooled }: Pick<HostView, "closed" | "pooled">, isStrict: boolean): boolean =>
  closed === undefined && pooled === undefined && !isStrict;
/** Somebody's strict VM is there, or was lately. */
export function holdsStrict(use: HostUse | undefined): boolean {
  if (use === undefined || use.implicit === 0) return false;
  for (const { implicit } of use.reservations.values()) if (implicit === "strict") return true;
  // Of one that has a place here this Placer's own word counts, as everywhere.
  for (const [vm, { terms }] of use.taken) if (terms?.implicit === "strict" && !use.reservations.has(vm)) return true;
  return false;
}

/** How many hosts strict VMs may still take. */
export function claimsLeft(state: PlacerState, most = Number.POSITIVE_INFINITY): number {
  const systemHosts = leftOf(state);
  return systemHosts === 0 ? most : Math.max(0, freeOf(state, systemHosts + most) - systemHosts);
}
/** How many there are that could be left; no more than that many are counted. */
function freeOf({ hosts, usage }: PlacerState, most: number): number {
  let free = 0;
  for (const view of hosts.values()) {
    const { host, reachable, actual } = view;
    if (!reachable || actual === null || actual.state !== "up") continue;
    if (isForSystem(view, holdsStrict(usage.get(host)))) free += 1;
    if (free >= most) break;
  }
  return free;
}

/** How many hosts are to be left, where fewer are: strict VMs had them before that was said, or other hosts are away. Null: there are as many. */
export function shortOf(state: PlacerState): { readonly kept: number; readonly left: number } | null {
  const kept = leftOf(state);
  const left = kept === 0 ? 0 : freeOf(state, kept);
  return left < kept ? { kept, left } : null;
}

export const leftToSystem: Omit<HostRefusal, "host"> = {
  kind: "dedicated",
  why: 'it is one of the last that are left to the cloud\'s own VMs, which none with x.placement.dedication "strict" takes',
  lifts:
    'ask for x.placement.dedication "preferred", or let one more host join; the operator says with `x.placement.systemHosts` how many are left',
};
