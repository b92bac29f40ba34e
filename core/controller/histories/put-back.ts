import type { Cause } from "../../../model/cause/cause.ts";
import { type ElementPath, type HostName, hostName, type Uid, uid } from "../../../model/cell/identifiers.ts";
import { actualConnection } from "../../documents/readers/storage.ts";
import type { LeaseHolder } from "../../documents/vocabulary.ts";
import type { GoneHosts } from "../../env.ts";
import { letGo, log, write } from "../../outbox.ts";
import type { Run, VmRecord } from "../records.ts";
import { serviceVms } from "../services/boot-disks.ts";
import { offersOf } from "../services/hosts.ts";
import { isService } from "../services/service-data.ts";
import { lastBootedFirst, ownVm } from "../services/succession.ts";
import {
  actualOf,
  type ControllerState,
  elementOf,
  linksOf,
  placerOf,
  recordAt,
  saveCounters,
  saveElement,
  savePolicy,
  saveVm,
  storageManagerOf,
} from "../state.ts";
import { goOnAt } from "./given-out.ts";
import { isSilent } from "./kept-disks.ts";
import { grantAnew } from "./kept-grants.ts";
import { beyondUnheard } from "./kept-numbers.ts";

/**
 * A controller whose store was put back from a backup (decision 59). What it gave out between the backup and its end may be in
 * no store any more, where its receivers were lost as well, and lives on in the volumes of storage servers: their UIDs, and
 * the incarnations that hold their leases. So it goes on far above all that it can have given out since.
 */
const withoutRun = (vm: VmRecord): VmRecord =>
  vm.run === null ? vm : { ...vm, failure: null, failures: 0, again: false, avoid: [], run: null };

const isIn = (gone: GoneHosts, host: HostName): boolean => gone === "all" || gone.includes(host);
const isGone = ({ afterRestore }: ControllerState, host: HostName): boolean =>
  afterRestore !== null && isIn(afterRestore.gone, host);

/** Those to which this store has said anything. */
const hostsInStore = ({ outbox }: ControllerState): readonly HostName[] =>
  [...outbox.desired.keys()].flatMap((peer) =>
    peer.startsWith("host.") ? [hostName(peer.slice("host.".length))] : [],
  );

function noteUnheard(state: ControllerState, unheard: readonly HostName[]): void {
  if (state.afterRestore !== null) state.afterRestore = { ...state.afterRestore, unheard };
  write(state.outbox, "gone", state.afterRestore);
}

/**
 * Hosts of the backup of which nobody has said that they are gone, and that have not said yet what they run: until they have, or
 * are known to be off, no VM of the backup starts, since it may have moved there.
 */
const unheardHosts = (state: ControllerState): readonly HostName[] =>
  (state.afterRestore?.unheard ?? []).filter((host) => isSilent(state, host));

/** One that was heard is not waited for again. */
export function settleUnheard(state: ControllerState): void {
  if (state.afterRestore?.asksPlacer === true) addThoseOfPlacer(state);
  const still = unheardHosts(state);
  if (still.length < (state.afterRestore?.unheard.length ?? 0)) noteUnheard(state, still);
}

function addThoseOfPlacer(state: ControllerState): void {
  const { afterRestore } = state;
  const offers = offersOf(state);
  if (afterRestore === null || state.reachable.get(placerOf(state)) !== true || offers?.complete !== true) return;
  const { asksPlacer: _asksPlacer, ...rest } = afterRestore;
  state.afterRestore = rest;
  noteUnheard(state, [...new Set([...rest.unheard, ...offers.hosts.map(({ host }) => hostName(host))])].sort());
}

/** Why a VM does not start; null: not for that. */
export function whyUnheard(state: ControllerState, vm: VmRecord): Cause | null {
  const hosts = vm.endedAt === undefined ? [] : unheardHosts(state);
  const isAsking = vm.endedAt !== undefined && state.afterRestore?.asksPlacer === true;
  return hosts.length === 0 && !isAsking ? null : { kind: "restored-unheard", hosts };
}

/**
 * An operator has let this store count, though it is older than what others had heard of this controller. A host that says nothing
 * may run what it was told by the newer store, as a VM without disks, of which no lease tells: until each host has been heard, or
 * is known to be off, no VM that the store knows starts anew.
 */
export function hearBeforeStarts(state: ControllerState): void {
  const { gone, unheard } = state.afterRestore ?? { gone: [], unheard: [] };
  state.afterRestore = { gone, unheard, asksPlacer: true };
  noteUnheard(state, [...new Set([...unheard, ...hostsInStore(state)])].sort());
  for (const vm of [...state.vms.values()])
    if (vm.endedAt === undefined && !isOfCloud(state, vm)) saveVm(state, { ...vm, endedAt: [] });
}

/**
 * What ran at a host that is gone has ended. What ran elsewhere goes on; and it may have moved since, to a host of which this
 * store knows nothing. VMs of the cloud itself go by the word about the management as a whole: without them nobody could say more.
 */
function afterHosts(state: ControllerState, vm: VmRecord): VmRecord {
  const host = vm.run?.host ?? null;
  const next = host === null || isGone(state, host) ? withoutRun(vm) : vm;
  return state.afterRestore?.gone === "all" || isOfCloud(state, vm) ? next : { ...next, endedAt: [] };
}

function isOfCloud(state: ControllerState, { uid: vm }: VmRecord): boolean {
  const record = state.elements.get(vm);
  const element = record === undefined ? undefined : elementOf(state, record);
  return element?.type === "VM" && isService(state, element.data);
}

/**
 * Of an incarnation that may be the first one since the store was put back: whom the Storage Manager has found with the leases
 * of its disks. `clear`: the leases may be taken; null: not all of it is known yet.
 */
function holdersOf(state: ControllerState, vm: VmRecord, run: Run): "clear" | readonly LeaseHolder[] | null {
  const { endedAt = [] } = vm;
  const living: LeaseHolder[] = [];
  for (const { connection } of run.disks) {
    const actual = actualOf(actualConnection, state, storageManagerOf(state), `connection/${connection}`);
    const said = actual?.incarnation === run.incarnation ? actual : undefined;
    if (said?.phase === "ready") continue;
    const holder = said?.holder ?? null;
    if (holder === null) return null;
    // A later one as well: after a first restore of the same backup, which may have drawn a higher number (decision 73).
    const isRun = holder.incarnation === run.incarnation && holder.host === run.host;
    const isOther = holder.vm === vm.uid && !isRun;
    if (isOther && !isGone(state, holder.host) && !endedAt.includes(holder.host)) living.push(holder);
  }
  return living.length === 0 ? "clear" : living;
}

/** The store was put back: nothing is taken from an incarnation that may run where nobody has said that it ended. */
export function askFirst(state: ControllerState, vm: VmRecord, run: Run): void {
  if (vm.endedAt === undefined) return;
  const holders = holdersOf(state, vm, run);
  if (holders === null) return;
  if (holders === "clear") {
    const { endedAt: _endedAt, ...rest } = vm;
    saveVm(state, rest);
    return;
  }
  const strays = [...new Set(holders.map(({ host }) => host))].sort();
  const straysUpTo = holders.reduce((most, { incarnation }) => Math.max(most, incarnation), vm.straysUpTo ?? 0);
  saveVm(state, { ...vm, strays, straysUpTo });
  log(state.outbox, "vm/strays", { vm: vm.uid, path: state.elements.get(vm.uid)?.path ?? null, hosts: strays });
}

/** Beyond all numbers that a lost store may have given out. @returns the version of the policy, which means other rules then */
export function beyondGivenOut(state: ControllerState): number {
  const { drawn, counters } = state;
  const { nextIdentity, nextRule } = counters;
  saveCounters(state, {
    ...goOnAt(counters, beyondUnheard(drawn, "element", counters.nextNumber)),
    nextIdentity: beyondUnheard(drawn, "identity", nextIdentity),
    nextRule: beyondUnheard(drawn, "rule", nextRule),
  });
  grantAnew(state);
  return beyondUnheard(drawn, "policy version", state.policy.version);
}
export const aboveUnheard = ({ drawn }: ControllerState, vm: VmRecord): VmRecord => ({
  ...vm,
  above: beyondUnheard(drawn, "incarnation", vm.incarnation),
});

/** Once, at the first start of such a store. */
export function goOnAbove(state: ControllerState): void {
  savePolicy(state, { ...state.policy, version: beyondGivenOut(state) });
  const { afterRestore } = state;
  for (const vm of [...state.vms.values()]) {
    const next = aboveUnheard(state, vm);
    saveVm(state, afterRestore === null ? next : afterHosts(state, next));
  }
  noteUnheard(state, afterRestore === null ? [] : hostsInStore(state).filter((host) => !isGone(state, host)));
  if (state.options.root === undefined || afterRestore === null) return;
  for (const { path } of serviceVms(state)) giveNewStores(state, path);
}

/**
 * Every service VM of the root cell begins anew where the stores were put back: on a volume of a new UID, which is blank, and takes
 * over its store of the backup. A store that survived on a server knows of later things than the others, and of hosts that are
 * gone; its volume stays there as it is.
 */
function giveNewStores(state: ControllerState, vm: ElementPath): void {
  const disks = linksOf(state, vm).filter((link) => link.type === "VolumeConnection");
  const [stores] = disks.sort(lastBootedFirst);
  const before = stores === undefined || disks.length < 2 ? undefined : recordAt(state, stores.volume);
  if (before === undefined) return;
  const number = state.counters.nextNumber;
  saveCounters(state, { nextNumber: number + 1 });
  state.elements.delete(before.uid);
  write(state.outbox, `element/${before.uid}`, null);
  // A Storage Manager without its store would look for the volume of whose end it is told, and delete it.
  letGo(state.outbox, storageManagerOf(state), `volume/${before.uid}`);
  const volume = uid(`${state.options.cellUid}-${number}`);
  state.uids.set(before.path, volume);
  saveElement(state, { ...before, uid: volume, unwritten: true, phase: null, causes: [] });
  log(state.outbox, "volume/anew", { path: before.path, volume, before: before.uid });
}

/**
 * After the store of the root controller was put back, its own VM starts before every other of the root cell: until then it
 * runs as a process of one host, with a Placer that knows this host alone.
 */
export function waitsForOwnVm(state: ControllerState, vm: Uid): boolean {
  if (state.options.root === undefined) return false;
  const own = ownVm(state);
  return own !== undefined && own.uid !== vm && own.above !== undefined && own.run?.handedOver !== true;
}
