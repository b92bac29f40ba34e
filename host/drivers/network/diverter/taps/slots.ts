import type { Dataplane } from "../program/dataplane.ts";
import { word } from "../program/layout.ts";
import { indexOf } from "../program/libbpf.ts";

/**
 * Every interface has a slot: a small number by which the program finds its counters and its table of flows. Which one is
 * kept in a map, so that the next process knows it too.
 */
export interface Device {
  readonly index: number;
  readonly slot: number;
}
/** As many as the arrays of the object have. */
export const slotCount = 4096;
const key = (value: number): Buffer => word.encode({ value });

export function slotOf({ maps }: Dataplane, ifindex: number): number | null {
  const found = ifindex === 0 ? null : maps.slots.get(key(ifindex));
  return found === null ? null : word.decode(found).value;
}
/** The slot of a device, a free one if it has none yet. Throws if this host has as many interfaces as can be. */
export function takeSlot(dataplane: Dataplane, ifindex: number): number {
  const known = slotOf(dataplane, ifindex);
  if (known !== null) return known;
  const { slots } = dataplane.maps;
  const used = new Set(slots.keys().map((entry) => slots.get(entry)?.readUInt32LE()));
  const free = Array.from({ length: slotCount }, (_, slot) => slot).find((slot) => !used.has(slot));
  if (free === undefined) throw new Error(`this host has ${slotCount} interfaces already, and no room for another one`);
  slots.set(key(ifindex), key(free));
  return free;
}
/** The device of an interface's tap; null where it is not there or not guarded yet. */
export const deviceOf =
  (dataplane: Dataplane) =>
  (tap: string): Device | null => {
    const index = indexOf(tap);
    const slot = slotOf(dataplane, index);
    return slot === null ? null : { index, slot };
  };
export type DeviceOf = (tap: string) => Device | null;
