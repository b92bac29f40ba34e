import type { ActualLocation } from "../../../../core/documents/vocabulary.ts";
import type { GlobalNetwork } from "../driver.ts";
import { tapName } from "./devices.ts";
import type { Dataplane } from "./program/dataplane.ts";
import { type Device, deviceOf } from "./rules/slots.ts";
import {
  addressingMaps,
  type Difference,
  difference,
  entryDifference,
  isEmpty,
  wantedAddressing,
} from "./rules/wanted.ts";

/**
 * Endpoints, locations and what goes with them, in force on this host. A change costs what has changed: what this process
 * wrote it need not read again. It reads what it finds when it starts, and again when it was told to doubt.
 */
export interface Addressing {
  isInForce(global: GlobalNetwork): boolean;
  implement(global: GlobalNetwork): void;
  doubt(): void;
}
interface InForce {
  readonly global: GlobalNetwork;
  /** Devices of its taps, as they were then. */
  readonly devices: ReadonlyMap<string, Device | null>;
}
type Work = readonly (Difference & { readonly name: (typeof addressingMaps)[number] })[];

const sameLocation = (a: ActualLocation, b: ActualLocation): boolean =>
  a === b ||
  (a.address === b.address &&
    a.hostMac === b.hostMac &&
    a.cellNumber === b.cellNumber &&
    a.identity === b.identity &&
    a.vmIdentity === b.vmIdentity &&
    a.subnetIdentity === b.subnetIdentity);

/** Addresses for which two networks may say different things: between what both lists begin and end with, and all here. */
function changedAddresses(before: GlobalNetwork, after: GlobalNetwork): ReadonlySet<string> {
  const [old, now] = [before.locations, after.locations];
  const shorter = Math.min(old.length, now.length);
  let start = 0;
  while (start < shorter && sameLocation(old[start]!, now[start]!)) start += 1;
  let end = 0;
  while (end < shorter - start && sameLocation(old[old.length - 1 - end]!, now[now.length - 1 - end]!)) end += 1;
  const between = [...old.slice(start, old.length - end), ...now.slice(start, now.length - end)];
  const here = [...before.interfaces, ...after.interfaces].map(({ desired }) => desired);
  return new Set([...between, ...here].map(({ address }) => address));
}

/** @param renew makes every flow ask its way again */
export function createAddressing(dataplane: Dataplane, mtu: number, renew: () => void): Addressing {
  const { maps } = dataplane;
  const look = deviceOf(dataplane);
  let inForce: InForce | null = null;

  const devicesOf = ({ interfaces }: GlobalNetwork): InForce["devices"] =>
    new Map(interfaces.map(({ desired }) => tapName(desired.uid)).map((tap) => [tap, look(tap)]));
  const workFor = (now: InForce): Work => {
    const wanted = ({ global, devices }: InForce, some?: ReadonlySet<string>) => {
      const locations = some === undefined ? global.locations : global.locations.filter((l) => some.has(l.address));
      return wantedAddressing({ ...global, locations }, mtu, (tap) => devices.get(tap) ?? null);
    };
    if (inForce === null) {
      const all = wanted(now);
      return addressingMaps.map((name) => ({ name, ...difference(maps[name], all[name]) }));
    }
    const some = changedAddresses(inForce.global, now.global);
    const [old, next] = [wanted(inForce, some), wanted(now, some)];
    return addressingMaps.map((name) => ({ name, ...entryDifference(old[name].values(), next[name]) }));
  };
  return {
    isInForce: (global) => workFor({ global, devices: devicesOf(global) }).every(isEmpty),
    /** Takes away before it adds, opens an address last. */
    implement: (global) => {
      const now = { global, devices: devicesOf(global) };
      const work = workFor(now);
      // Until all is written, nobody knows what is there.
      inForce = null;
      for (const { name, remove } of work.toReversed()) for (const entry of remove) maps[name].delete(entry);
      for (const { name, change, add } of work) maps[name].setAll([...change, ...add]);
      if (!work.every(isEmpty)) renew();
      inForce = now;
    },
    doubt: () => {
      inForce = null;
    },
  };
}
