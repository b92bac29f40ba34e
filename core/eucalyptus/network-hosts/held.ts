import type { NetworkView } from "../../../model/eucalyptus/view/network-view.ts";
import { type ActualNetworkBeat, networkLease } from "../../documents/network/eucalyptus.ts";

/*
 * The host's side of a network host's lease (`leases.ts`). It counts from when it asked, by its own clock; what was answered to an earlier life of this
 * process counts for nothing, since nobody knows any more when that had asked.
 */
export interface HeldLease {
  /** Version of the view that has come by which this host carries its cluster under a lease; null: without one. */
  leased: number | null;
  beat: number;
  /** Beats that may still be answered, and when they were sent. */
  readonly sentMs: Map<number, number>;
  /** Until when it carries; null: it has no lease. */
  untilMs: number | null;
}
export const noHeldLease = (): HeldLease => ({ leased: null, beat: 0, sentMs: new Map(), untilMs: null });

/** No life of a process begins with the number of another one: none beats 64 times in a millisecond. */
export function beginHeld(held: HeldLease, wallMs: number): void {
  held.beat = Math.floor(wallMs) * 64;
}
export function askAgain(held: HeldLease, nowMs: number): ActualNetworkBeat {
  held.beat += 1;
  held.sentMs.set(held.beat, nowMs);
  for (const [beat, sentMs] of held.sentMs) if (nowMs - sentMs >= networkLease.holdsMs) held.sentMs.delete(beat);
  return { beat: held.beat, ...(held.leased === null ? {} : { leased: held.leased }) };
}
/** @returns whether it may carry for longer than before */
export function takeAnswer(held: HeldLease, beat: number): boolean {
  const sentMs = held.sentMs.get(beat);
  if (sentMs === undefined) return false;
  for (const earlier of [...held.sentMs.keys()]) if (earlier <= beat) held.sentMs.delete(earlier);
  held.untilMs = Math.max(held.untilMs ?? 0, sentMs + networkLease.holdsMs);
  return true;
}
export const mayCarry = ({ leased, untilMs }: HeldLease, nowMs: number): boolean =>
  leased === null || (untilMs !== null && nowMs < untilMs);

/** By which a machine that has no lease carries nothing. */
export const withoutCarrier = (view: NetworkView, address: number): NetworkView => ({
  ...view,
  clusters: view.clusters.map((cluster) =>
    cluster.enabledCcIp === address ? { ...cluster, enabledCcIp: 0 } : cluster,
  ),
});
/** Of a machine that a view names as the network host of a cluster. */
export const isCarrierIn = (view: NetworkView, address: number): boolean =>
  view.clusters.some(({ enabledCcIp }) => enabledCcIp === address);
