import { tapOfInstance } from "../../core/documents/network/modes.ts";
import type { CellPolicy, DesiredDisk, DesiredInterface, DesiredVm } from "../../core/documents/vocabulary.ts";
import { machineShares } from "../../core/placer/machine-memory.ts";
import { displayShare } from "../../model/cell/attributes/display-memory.ts";
import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import { dataExcess } from "../../model/check/data-size.ts";
import type { GlobalNetwork, LocalInterface, NetworkAllocation } from "../drivers/network/driver.ts";
import { standingHere } from "../machine/claims/standing.ts";
import { isOver } from "../machine/over.ts";
import {
  addressInUse,
  addressTaken,
  type Held,
  type Holder,
  heldAddresses,
  holdAddresses,
  noClaims,
} from "../network/addresses.ts";
import { admitted, trespass } from "../network/management.ts";
import { runsOtherwise, startedFrom } from "../root-vm/boot-trial.ts";
import type { VmRecord } from "../vm-record.ts";
import type { Found, Wanted } from "../wanted.ts";

/**
 * What a host must do next: wanted × found → actions. Pure, without memory, and asked again after every change; what it
 * says is executed without further choices. An action only appears once everything it rests on is in place, so there
 * is no order among the actions of one plan, and planning again after they were carried out says the next ones, or none.
 */

export type Action =
  | { readonly kind: "implement-network"; readonly global: GlobalNetwork; readonly revision: string }
  | {
      readonly kind: "start-machine";
      readonly vm: Uid;
      readonly desired: DesiredVm;
      readonly interfaces: readonly { readonly tap: string; readonly desired: DesiredInterface }[];
    }
  | { readonly kind: "stop-machine"; readonly vm: Uid; readonly incarnation: number; readonly graceMs: number }
  /** A disk of a machine that runs becomes larger. */
  | { readonly kind: "grow-disk"; readonly vm: Uid; readonly disk: DesiredDisk; readonly sizeMiB: number }
  | { readonly kind: "release-disks"; readonly vm: Uid; readonly disks: readonly DesiredDisk[] }
  /** This incarnation will never be started here: its controller looks for another place. */
  | { readonly kind: "refuse-machine"; readonly vm: Uid; readonly desired: DesiredVm; readonly reason: string }
  /** Everything of it is gone: its actual state may be withdrawn. */
  | { readonly kind: "withdraw-state"; readonly vm: Uid };

/** From the request to power off to pulling the plug. */
const graceMs = 10_000;

export const planHost = (wanted: Wanted, found: Found): readonly Action[] => {
  const global = globalNetwork(wanted, found.records);
  const revision = revisionOf(global);
  const actions: Action[] = [];
  if (revision !== found.revision && !found.busy.has("network"))
    actions.push({ kind: "implement-network", global, revision });
  const records = new Map(found.records);
  const inUse = addressesInUse(wanted, records);
  for (const vm of [...new Set([...wanted.vms.keys(), ...records.keys()])].sort()) {
    if (found.busy.has(vm)) continue;
    const action = planVm(vm, wanted, { ...found, records }, inUse, revision === found.revision);
    if (action === null) continue;
    actions.push(action);
    if (action.kind !== "start-machine") continue;
    // Its memory and its addresses are spoken for when the next VM is looked at.
    const record = startingRecord(wanted.vms.get(vm)?.client, action.desired);
    records.set(vm, record);
    holdAddresses(inUse, holderOf(wanted, record));
  }
  return actions;
};

const numbers = new WeakMap<object, number>();
let lastNumber = 0;
const numberOf = (document: object): number => {
  const number = numbers.get(document) ?? ++lastNumber;
  numbers.set(document, number);
  return number;
};
/** What is worked out of a list of documents once for all plans that it is the same list at. */
const once = <T extends object, R>(work: (list: T) => R): ((list: T) => R) => {
  const known = new WeakMap<T, R>();
  return (list) => {
    const result = known.get(list) ?? work(list);
    known.set(list, result);
    return result;
  };
};
const numbersOf = once((locations: GlobalNetwork["locations"]) => locations.map(numberOf).join());
/**
 * Equal texts stand for equal networks. Policies and locations are documents that are never changed, only replaced by others,
 * with tens of thousands of rules, or as many of them: so each is told by a number and not read again at every plan. The same
 * content in another document is another one here; whoever implements it finds that there is nothing to do.
 */
export const revisionOf = ({ policies, interfaces, locations, external }: GlobalNetwork): string =>
  JSON.stringify([policies.map(numberOf), interfaces, numbersOf(locations), ...(external ?? [])]);

export const startingRecord = (client: PeerName | undefined, vm: DesiredVm): VmRecord => ({
  client: client ?? ("" as PeerName),
  vm,
  stage: "starting",
  ended: null,
  reason: null,
  released: false,
});

const planVm = (
  vm: Uid,
  wanted: Wanted,
  found: Found,
  inUse: AddressesInUse,
  networkInPlace: boolean,
): Action | null => {
  const record = found.records.get(vm);
  const { client, desired } = wanted.vms.get(vm) ?? {};
  if (record?.stage === "starting" && record.ending === true)
    return { kind: "stop-machine", vm, incarnation: record.vm.incarnation, graceMs: 0 };
  if (record !== undefined && record.stage !== "ended") {
    const unwanted =
      desired === undefined ||
      desired.power === "off" ||
      desired.incarnation > record.vm.incarnation ||
      (found.isSameBoot !== true && isOfEarlierBoot(desired, found.boot));
    const restarts = desired?.restart === "host" && (record.health === "silent" || runsOtherwise(desired, record));
    const isIsolated = found.isolated?.has(vm) === true;
    const surplus = unwanted || restarts || isIsolated;
    // A guest that hangs, or whose CPUs stand still, does not hear that it should power off.
    const isDeaf =
      record.health === "silent" || found.stalled.has(vm) || found.succeeded?.has(vm) === true || isIsolated;
    if (record.stage !== "running") return null;
    return surplus
      ? { kind: "stop-machine", vm, incarnation: record.vm.incarnation, graceMs: isDeaf ? 0 : graceMs }
      : growth(desired, record);
  }
  if (record !== undefined && !record.released) return { kind: "release-disks", vm, disks: record.vm.disks };
  if (desired === undefined) return networkInPlace ? { kind: "withdraw-state", vm } : null;
  if (!mayStart(desired, record)) return null;
  const trespassing = trespass(client, desired, wanted.entrances);
  if (trespassing !== null && wanted.entrancesUnheard === true) return null;
  const reason =
    trespassing ??
    addressRefusal(desired, wanted, inUse) ??
    earlierBoot(desired, found) ??
    endedBefore(client, desired, record, found) ??
    oversized(desired) ??
    unlawful(client, desired, wanted, found) ??
    shortage(desired, found);
  if (reason !== null) return startsAgain(desired, record) ? null : { kind: "refuse-machine", vm, desired, reason };
  // What is being changed may just be taking the interfaces away that an earlier document did not name.
  if (desired.interfaces.length > 0 && found.busy.has("network")) return null;
  const refusal = refusedInterface(desired, found);
  if (refusal !== null)
    return startsAgain(desired, record) ? null : { kind: "refuse-machine", vm, desired, reason: refusal };
  if (obstacle(desired, wanted, found, inUse) !== null) return null;
  // Its interface may have been there before the rules came that speak of it.
  if (!networkInPlace && policyOf(desired, wanted)?.identities !== undefined) return null;
  const interfaces = readyInterfaces(desired, found.allocation);
  return { kind: "start-machine", vm, desired: startedFrom(desired, record), interfaces };
};

/** The disks of a machine that are to be larger than they were at its lease's grant. A guest looks at an IDE disk's size once. */
export const growingDisks = (desired: DesiredVm): readonly (readonly [DesiredDisk, number])[] =>
  desired.disks.flatMap((disk): (readonly [DesiredDisk, number])[] => {
    const { growToMiB } = disk.attachment;
    return growToMiB === undefined || disk.readOnly || disk.busType === "ide" ? [] : [[disk, growToMiB]];
  });

const growth = (desired: DesiredVm | undefined, { vm, grown }: VmRecord): Action | null => {
  if (desired?.incarnation !== vm.incarnation) return null;
  const due = growingDisks(desired).find(([{ connection }, sizeMiB]) => (grown?.[connection] ?? 0) < sizeMiB);
  return due === undefined ? null : { kind: "grow-disk", vm: vm.uid, disk: due[0], sizeMiB: due[1] };
};

/**
 * An incarnation is started once in its life. What ended is started again by its controller, as the next incarnation; only
 * the VM of the root controller has nobody who would, and its host does.
 */
export const mayStart = (desired: DesiredVm, record: VmRecord | undefined): boolean =>
  desired.power === "on" &&
  (record === undefined || desired.incarnation > record.vm.incarnation || startsAgain(desired, record));

/**
 * The same incarnation, on the host that saw it end: nothing of it runs, and what it may write is leased to it here. One
 * that was refused may have been given to another host.
 */
export const startsAgain = (desired: DesiredVm, record: VmRecord | undefined): boolean =>
  desired.restart === "host" &&
  record?.stage === "ended" &&
  record.refused !== true &&
  record.vm.incarnation === desired.incarnation;

/**
 * Placed for an earlier boot of this machine, whose end others may know for certain: then they have started the next
 * incarnation elsewhere.
 */
const isOfEarlierBoot = ({ boot }: DesiredVm, own: number | null): boolean =>
  boot !== undefined && own !== null && boot < own;
const earlierBoot = (desired: DesiredVm, { boot }: Found): string | null =>
  isOfEarlierBoot(desired, boot) ? "this host has started again since it was chosen" : null;

/** Of an incarnation whose record is here, `mayStart` says more. */
const endedBefore = (
  client: PeerName | undefined,
  { uid, incarnation, restart }: DesiredVm,
  record: VmRecord | undefined,
  { over = new Map() }: Found,
): string | null =>
  record === undefined && client !== undefined && restart !== "host" && isOver(over, client, uid, incarnation)
    ? "this incarnation has ended here before, and its controller's store is older than that"
    : null;

/** It must not stand at this host, or beside who is here. */
const unlawful = (client: PeerName | undefined, desired: DesiredVm, wanted: Wanted, found: Found): string | null => {
  const standing = standingHere(client, desired, wanted, found.records);
  return standing !== null && "refused" in standing ? standing.refused : null;
};

/** A controller counts the same before it takes a specification, but it runs in its tenant's cell. */
const oversized = ({ data }: DesiredVm): string | null => {
  const excess = dataExcess(data);
  return excess === null ? null : `its x.data ${excess}`;
};

/** Why a VM that should start cannot start yet, as a sentence; null: nothing is in its way. */
export const obstacle = (desired: DesiredVm, wanted: Wanted, found: Found, inUse: AddressesInUse): string | null => {
  const before = found.records.get(desired.uid);
  if (before !== undefined && before.stage !== "ended")
    return `incarnation ${before.vm.incarnation} must be gone from this host first`;
  const held = found.held?.get(desired.uid);
  if (held !== undefined) return held;
  const client = wanted.vms.get(desired.uid)?.client;
  if (wanted.entrancesUnheard === true && trespass(client, desired, wanted.entrances) !== null)
    return "waits for the authority to say whether this cell may be on the management network";
  const standing = standingHere(client, desired, wanted, found.records);
  if (standing !== null) return "waits" in standing ? standing.waits : standing.refused;
  if (desired.interfaces.some(isDiverters) && !isSpokenOf(desired, policyOf(desired, wanted)))
    return `the rules of cell ${desired.cell} have not reached this host yet`;
  for (const link of desired.interfaces) {
    const why = addressInUse(link, inUse);
    if (why !== null) return why;
    const { uid, path } = link;
    if (link.instance !== undefined) {
      const noTap =
        found.whyNoTap === undefined ? "this host offers no mode" : found.whyNoTap(link.instance, desired.cell);
      if (noTap !== null) return `the interface ${path} is not in place yet: ${noTap}`;
      continue;
    }
    const allocated = found.allocation.interfaces.find((candidate) => candidate.interface === uid);
    if (allocated?.ready !== true)
      return `the interface ${path} is not in place yet${allocated?.reason ? `: ${allocated.reason}` : ""}`;
  }
  return shortage(desired, found);
};

/** Not one whose tap the agent of a mode of Eucalyptus makes. */
const isDiverters = ({ instance }: DesiredInterface): boolean => instance === undefined;

const policyOf = ({ cell }: DesiredVm, { policies }: Wanted): CellPolicy | undefined =>
  policies.find((policy) => policy.cell === cell);
/** Are the rules of all its interfaces here? On the management network there are none. */
function isSpokenOf({ interfaces }: DesiredVm, policy: CellPolicy | undefined): boolean {
  if (policy?.identities === undefined) return policy !== undefined;
  const identities = new Set(policy.identities);
  return interfaces.every(
    ({ management, instance, identity, vmIdentity, subnetIdentity }) =>
      management === true ||
      instance !== undefined ||
      [identity, vmIdentity, subnetIdentity].every((each) => identities.has(each)),
  );
}

/** The same incarnation's newer document decides alone: what it no longer names is closed. */
const holderOf = ({ vms }: Wanted, { client, vm }: VmRecord): Holder => {
  const newer = vms.get(vm.uid)?.desired;
  return { client, vm: newer?.incarnation === vm.incarnation ? newer : vm };
};
const runningHere = (wanted: Wanted, records: Found["records"]): readonly Holder[] =>
  [...records.values()].filter(({ stage }) => stage !== "ended").map((record) => holderOf(wanted, record));

type AddressesInUse = ReadonlyMap<string, Held>;
/** Of what runs here. Made once for all VMs that are looked at: a host has many of them. */
export const addressesInUse = (wanted: Wanted, records: Found["records"]): Map<string, Held> =>
  heldAddresses(runningHere(wanted, records));

const addressRefusal = (desired: DesiredVm, wanted: Wanted, inUse: AddressesInUse): string | null => {
  const client = wanted.vms.get(desired.uid)?.client;
  if (client === undefined) return null;
  for (const link of desired.interfaces) {
    const why = addressTaken({ client, vm: desired }, link, wanted.claims ?? noClaims, inUse);
    if (why !== null) return why;
  }
  return null;
};

/** Why this host can never have one of the VM's interfaces, as a sentence. */
const refusedInterface = ({ interfaces }: DesiredVm, { allocation }: Found): string | null => {
  for (const { uid, path } of interfaces) {
    const refused = allocation.interfaces.find((each) => each.interface === uid && each.refused === true);
    if (refused !== undefined) return `the interface ${path} cannot be had here: ${refused.reason}`;
  }
  return null;
};

/**
 * Memory that a machine takes beside its guest's: 80 to 130 MiB were measured, up to 200 of a large one, which counts twice
 * (`machineShares`), for its translation cache (`hypervisor/arguments.ts`). The machines of a host are not let beyond what
 * is offered to them all together, so what is given out must be what is taken.
 */
export const overheadMiB = 128;

const ownMiB = (vm: Pick<DesiredVm, "memoryMiB" | "display">): number =>
  machineShares(vm.memoryMiB) * overheadMiB + displayShare(vm);

/**
 * Why this host cannot hold it, as a sentence. A Placer counts the same, but two of them may promise the same room: a host
 * has the last word on its own.
 */
export const shortage = (desired: DesiredVm, found: Found): string | null => {
  const running = [...found.records.values()].filter(({ stage }) => stage !== "ended").map(({ vm }) => vm);
  const freeMiB = running.reduce((free, vm) => free - vm.memoryMiB - ownMiB(vm), found.capacityMiB);
  const freeCpus = found.capacityCpus - running.reduce((sum, { cpus }) => sum + cpus, 0);
  if (desired.cpus > freeCpus)
    return `this host has ${Math.max(0, freeCpus)} virtual CPUs left and the VM needs ${desired.cpus}`;
  // Who asked for no place for its screen would be given the same host again, and never start.
  const needsMiB = ownMiB(desired) - (desired.besideMiB === undefined ? displayShare(desired) : 0);
  return desired.memoryMiB + needsMiB > freeMiB
    ? `this host has ${Math.max(0, freeMiB)} MiB of memory left and the VM needs ${desired.memoryMiB} MiB, its machine ${needsMiB} MiB more`
    : null;
};

/** Memory of everything that may be running. */
export const usedMiB = (records: ReadonlyMap<Uid, VmRecord>): number =>
  [...records.values()].reduce((sum, { stage, vm }) => sum + (stage === "ended" ? 0 : vm.memoryMiB), 0);

const readyInterfaces = (desired: DesiredVm, allocation: NetworkAllocation) =>
  desired.interfaces.flatMap((wanted) => {
    if (wanted.instance !== undefined) return [{ tap: tapOfInstance(wanted.instance), desired: wanted }];
    const allocated = allocation.interfaces.find((candidate) => candidate.interface === wanted.uid);
    return allocated === undefined ? [] : [{ tap: allocated.tap, desired: wanted }];
  });

const byText = <T>(values: Iterable<T>, text: (value: T) => string): readonly T[] =>
  [...values]
    .map((value) => [text(value), value] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, value]) => value);

/**
 * Interfaces of VMs that run or may start here, in a fixed order. A machine keeps its interfaces until it is confirmed gone,
 * whatever became of its document.
 */
export const localInterfaces = (wanted: Wanted, records: ReadonlyMap<Uid, VmRecord>): readonly LocalInterface[] => {
  const cellNumbers = new Map(wanted.policies.map((policy) => [policy.cell, policy.cellNumber]));
  const interfaces = new Map<Uid, LocalInterface>();
  const running = runningHere(wanted, records);
  const inUse = heldAddresses(running);
  const held = heldAddresses([
    ...running,
    ...[...wanted.vms.values()].map(({ client, desired }) => ({ client, vm: desired })),
  ]);
  const add = (vm: DesiredVm, client: PeerName, { memoryMiB } = vm): void => {
    const cellNumber = cellNumbers.get(vm.cell);
    if (cellNumber === undefined) return;
    for (const desired of admitted(client, vm, wanted.entrances)) {
      if (!isDiverters(desired)) continue;
      if (addressTaken({ client, vm }, desired, wanted.claims ?? noClaims, held) !== null) continue;
      if (addressInUse(desired, inUse) !== null) continue;
      interfaces.set(desired.uid, { vm: vm.uid, memoryMiB, cellNumber, desired });
    }
  };
  for (const { vm, stage, client } of records.values()) {
    const newer = wanted.vms.get(vm.uid)?.desired;
    // The same incarnation's newer document decides alone: what it no longer names is closed.
    if (stage !== "ended" && newer?.incarnation !== vm.incarnation) add(vm, client);
  }
  for (const { desired, client } of wanted.vms.values()) {
    const record = records.get(desired.uid);
    const living = record !== undefined && record.stage !== "ended" ? record.vm : null;
    const runs = living?.incarnation === desired.incarnation;
    if (runs || mayStart(desired, record)) add(desired, client, living ?? desired);
  }
  return byText(interfaces.values(), ({ desired }) => desired.uid);
};

const inOrder = once((locations: Wanted["locations"]) =>
  byText(locations, (location) => `${location.address} ${location.host}`),
);
/** The network of this host, in a fixed order, so that equal networks have equal texts. */
export const globalNetwork = (wanted: Wanted, records: ReadonlyMap<Uid, VmRecord>): GlobalNetwork => ({
  policies: byText(wanted.policies, (policy) => policy.cell),
  interfaces: localInterfaces(wanted, records),
  locations: inOrder(wanted.locations),
  ...(wanted.external === undefined ? {} : { external: wanted.external }),
});
