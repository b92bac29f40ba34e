import type { Dataplane } from "../program/dataplane.ts";
import { word } from "../program/layout.ts";
import { addFlowTables, hasFlowTables, removeFlowTables } from "./flow-tables.ts";
import { slotOf, takeSlot } from "./slots.ts";

/** What an interface has in the maps beside its addressing: its slot, its counters, its tables of flows. */
const key = (value: number): Buffer => word.encode({ value });

export function isOpenInterface(dataplane: Dataplane, ifindex: number, memoryMiB: number): boolean {
  const slot = slotOf(dataplane, ifindex);
  return slot !== null && hasFlowTables(dataplane, key(slot), memoryMiB);
}
/** Without its tables of flows, which come last, nothing passes. */
export function openInterface(dataplane: Dataplane, ifindex: number, memoryMiB: number): void {
  const slot = key(takeSlot(dataplane, ifindex));
  const { maps } = dataplane;
  if (maps.flows.get(slot) === null) maps.counters.clear(slot);
  addFlowTables(dataplane, slot, memoryMiB);
}
/** Its address first, so that nothing is delivered to a device that goes away. */
export function closeInterface(dataplane: Dataplane, ifindex: number): void {
  const { maps } = dataplane;
  for (const map of [maps.endpoints, maps.services])
    for (const address of map.keys()) if (map.get(address)?.readUInt32LE() === ifindex) map.delete(address);
  for (const name of ["interfaces", "dhcp", "memberships"] as const) maps[name].delete(key(ifindex));
  const slot = slotOf(dataplane, ifindex);
  if (slot !== null) removeFlowTables(dataplane, key(slot));
  maps.slots.delete(key(ifindex));
}
