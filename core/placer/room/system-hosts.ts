import type { HostRefusal } from "../../documents/vocabulary.ts";
import type { HostUse, HostView } from "../candidate.ts";
import type { PlacerState } from "../state.ts";

/*
 * Hosts that are left to the management (`x.placement.systemHosts`): a VM with `x.placement.dedication "strict"` makes a host its account's
 * alone by standing there, and the cloud's own VMs would have to break that where nothing else is left. So it takes none of the
 * last. Where its account has a host by a strict VM already, one more takes nothing from anybody.
 */

/** The cloud's own VMs may start there, and break nothing by it. */
export const isForSystem = ({ closed, pooled }: Pick<HostView, "closed" | "pooled">, isStrict: boolean): boolean =>
  closed === undefined && pooled === undefined && !isStrict;
/** Somebody's strict VM is there, or was lately. */
export function holdsStrict(use: HostUse | undefined): boolean {
  if (use === undefined || use.implicit === 0) return false;
  for (const { implicit } of use.reservations.values()) if (implicit === "strict") return true;
  for (const { terms } of use.taken.values()) if (terms?.implicit === "strict") return true;
  return false;
}

/** How many hosts strict VMs may still take. */
export function claimsLeft({ hosts, usage, settings }: PlacerState, most = Number.POSITIVE_INFINITY): number {
  const { systemHosts = 0 } = settings;
  if (systemHosts === 0) return most;
  let free = 0;
  for (const view of hosts.values()) {
    const { host, reachable, actual } = view;
    if (!reachable || actual === null || actual.state !== "up") continue;
    if (isForSystem(view, holdsStrict(usage.get(host)))) free += 1;
    if (free - systemHosts >= most) break;
  }
  return Math.max(0, free - systemHosts);
}

export const leftToSystem: Omit<HostRefusal, "host"> = {
  kind: "dedicated",
  why: 'it is one of the last that are left to the cloud\'s own VMs, which none with x.placement.dedication "strict" takes',
  lifts:
    'ask for x.placement.dedication "preferred", or let one more host join; the operator says with `x.placement.systemHosts` how many are left',
};
