import { isDeepStrictEqual } from "node:util";
import type { ActualLocation } from "../../../../core/documents/vocabulary.ts";
import type { GlobalNetwork } from "../driver.ts";
import { inOneOf } from "../in-one-of.ts";
import type { Dataplane } from "./program/dataplane.ts";
import { addressKey, identityKey, interfaceState, location } from "./program/layout.ts";
import type { CellRules } from "./rules/cell-rules.ts";
import { createFanOut } from "./rules/fan-out.ts";
import type { Generations } from "./rules/generations.ts";
import { isOpenToMany, type Joined } from "./rules/lists.ts";
import {
  type AddressingMap,
  addressingMaps,
  type Difference,
  difference,
  entryDifference,
  isEmpty,
  wantedAddressing,
} from "./rules/wanted.ts";
import { tapName } from "./taps/devices.ts";
import { type Device, deviceOf } from "./taps/slots.ts";

/**
 * Endpoints, locations and what goes with them, in force on this host. A change costs what has changed: what this process
 * wrote it need not read again. It reads what it finds when it starts, and again when it was told to doubt.
 */
export interface Addressing {
  isInForce(global: GlobalNetwork): boolean;
  implement(global: GlobalNetwork): void;
  /** Guests have joined groups, or left them; `isSame`: they have not, and what could not be written before is. True: some of it is not yet. */
  renewGroups(isSame: boolean): boolean;
  doubt(): void;
}
interface InForce {
  readonly global: GlobalNetwork;
  /** Devices of its taps, as they were then. */
  readonly devices: ReadonlyMap<string, Device | null>;
}
type Change = Difference & { readonly name: AddressingMap };
interface Work {
  readonly changes: readonly Change[];
  /** For when they are written: every flow that they may concern asks its way again. */
  readonly renew: () => void;
}
type Wanted = ReturnType<typeof wantedAddressing>;
/** For which parts two networks may say different things. */
interface Changed {
  /** Of which another place is said. */
  readonly addresses: ReadonlySet<string>;
  /** Whose rules are others. */
  readonly cells: ReadonlySet<number>;
  /** What is here; entries of one interface are others' as well, so it is all of them or none. */
  readonly isHereSame: boolean;
}

/** Documents are never changed, only replaced by others. */
function changedBetween(before: InForce, after: InForce): Changed {
  const [old, now] = [before.global, after.global];
  const [was, is] = [old.interfaces, now.interfaces];
  const elsewhere = inOneOf(old.locations, now.locations).map(({ address }) => address);
  const cells = new Set(inOneOf(old.policies, now.policies).map(({ cellNumber }) => cellNumber));
  const openIn = ({ policies }: GlobalNetwork): string =>
    policies.flatMap((each) => (isOpenToMany(each) ? [each.cellNumber] : [])).join();
  const addresses = new Set<string>(elsewhere);
  const isHereSame =
    was.length === is.length &&
    was.every(({ desired, cellNumber }, at) => desired === is[at]?.desired && cellNumber === is[at].cellNumber) &&
    isDeepStrictEqual(before.devices, after.devices) &&
    openIn(old) === openIn(now) &&
    !is.some(({ desired }) => addresses.has(desired.address));
  // What is here is here, whatever its former host last said.
  if (!isHereSame) for (const { desired } of [...was, ...is]) addresses.add(desired.address);
  return { addresses, cells, isHereSame };
}

/**
 * Whose flows may be about what changes: the cells of the entries themselves, before and after, and cells that have rules
 * about the addresses of others.
 */
function concerned(changes: readonly Change[], both: readonly Wanted[], rules: CellRules): ReadonlySet<number> {
  const cells = new Set<number>();
  const addresses = new Set<string>();
  for (const { name, remove, change, add } of changes)
    for (const entry of [...remove, ...[...change, ...add].map(({ key }) => key)]) {
      if (name === "identities") cells.add(identityKey.decode(entry).cell);
      if (name === "endpoints" || name === "services" || name === "locations")
        addresses.add(addressKey.decode(entry).address);
      for (const wanted of both) {
        const value = wanted[name].get(entry.toString("hex"))?.value;
        if (value !== undefined && name === "interfaces") cells.add(interfaceState.decode(value).cell);
        if (value !== undefined && name === "locations") cells.add(location.decode(value).cell);
      }
    }
  return new Set([...cells, ...rules.speakingOf(addresses)]);
}

export function createAddressing(
  dataplane: Dataplane,
  mtu: number,
  rules: CellRules,
  generations: Generations,
  joined: Joined = () => [],
): Addressing {
  const { maps } = dataplane;
  const look = deviceOf(dataplane);
  const fanOut = createFanOut(dataplane);
  let inForce: InForce | null = null;

  const devicesOf = ({ interfaces }: GlobalNetwork): InForce["devices"] =>
    new Map(interfaces.map(({ desired }) => tapName(desired.uid)).map((tap) => [tap, look(tap)]));
  const workFor = (now: InForce): Work => {
    const wanted = ({ global, devices }: InForce, some?: Changed) => {
      const isConcerned = ({ address }: ActualLocation): boolean => some?.addresses.has(address) !== false;
      const locations = some?.addresses.size === 0 ? [] : global.locations.filter(isConcerned);
      const interfaces = some?.isHereSame === true ? [] : global.interfaces;
      const deviceOf = (tap: string) => devices.get(tap) ?? null;
      return wantedAddressing({ ...global, locations, interfaces }, mtu, deviceOf, some?.cells);
    };
    if (inForce === null) {
      const all = wanted(now);
      const changes = addressingMaps.map((name) => ({ name, ...difference(maps[name], all[name]) }));
      return { changes, renew: () => generations.renewAll() };
    }
    const some = changedBetween(inForce, now);
    const [old, next] = [wanted(inForce, some), wanted(now, some)];
    const changes = addressingMaps.map((name) => ({ name, ...entryDifference(old[name].values(), next[name]) }));
    return { changes, renew: () => generations.renew(concerned(changes, [old, next], rules)) };
  };
  return {
    isInForce: (global) =>
      workFor({ global, devices: devicesOf(global) }).changes.every(isEmpty) && fanOut.isInForce(global, look, joined),
    /** Takes away before it adds, opens an address last. */
    implement: (global) => {
      const now = { global, devices: devicesOf(global) };
      const { changes, renew } = workFor(now);
      // Until all is written, nobody knows what is there.
      inForce = null;
      for (const { name, remove } of changes.toReversed()) for (const entry of remove) maps[name].delete(entry);
      for (const { name, change, add } of changes) maps[name].setAll([...change, ...add]);
      fanOut.implement(global, look, joined);
      if (!changes.every(isEmpty)) renew();
      inForce = now;
    },
    renewGroups: (isSame) => {
      if (inForce !== null && (!isSame || fanOut.isBehind())) fanOut.catchUp(inForce.global, look, joined);
      return fanOut.isBehind();
    },
    doubt: () => {
      inForce = null;
      fanOut.doubt();
    },
  };
}
