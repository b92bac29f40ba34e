import type { Cell, Element } from "../../../model/cell/cell.ts";
import {
  type ElementPath,
  type HostName,
  hostName,
  hostPeer,
  type PeerName,
  peerName,
  type Uid,
} from "../../../model/cell/identifiers.ts";
import { actualVm, desiredVm } from "../../documents/readers/host.ts";
import { actualConnection, actualVolume } from "../../documents/readers/storage.ts";
import { type DesiredStandby, type StandbyVolume, standbyKey } from "../../documents/standby.ts";
import type { CellPolicy, DesiredVm, LeaseHolder } from "../../documents/vocabulary.ts";
import { log, sameJson, toJson } from "../../outbox.ts";
import type { Desires } from "../changes/desires.ts";
import type { Run, VmRecord } from "../records.ts";
import {
  actualOf,
  addDesire,
  type ControllerState,
  desiredNow,
  keepDesire,
  saveVm,
  storageManager,
  storageManagerOf,
} from "../state.ts";
import { closedHosts, offersOf } from "./hosts.ts";
import { isOwnVm } from "./service-data.ts";

/**
 * The root controller's own VM, whose host may be lost together with everybody who could do something about it (decision 35).
 * Beforehand every host is given what it needs to start the next incarnation. Afterwards the controller in it finds by what
 * hosts say that it runs elsewhere, as a later incarnation than it knew of, and goes on from there.
 */

/** All hosts that the Placer knows, and those that have a document: one that cannot be heard now must not lose it. */
export const hostsWith = (state: ControllerState, key: string): ReadonlySet<HostName> => {
  const offers = offersOf(state);
  const hosts = new Set(offers?.hosts.map(({ host }) => hostName(host)));
  if (offers?.complete === true) return hosts;
  for (const host of toldHosts(state, key)) hosts.add(host);
  return hosts;
};
const toldHosts = (state: ControllerState, key: string): readonly HostName[] =>
  [...state.outbox.desired].flatMap(([peer, documents]) =>
    peer.startsWith("host.") && documents.has(key) ? [hostName(peer.slice("host.".length))] : [],
  );
const standbyHosts = (state: ControllerState): readonly HostName[] => toldHosts(state, standbyKey);

/** Whom to listen to: any of them may be the one that took over. */
export const successors = (state: ControllerState): readonly PeerName[] => standbyHosts(state).map(hostPeer);

/** After those for VMs, whose document it is made from. */
export function desireStandby(state: ControllerState, desires: Desires): void {
  const policy = state.derived.policy.get("") ?? null;
  if (state.options.root === undefined || state.cell === null) return;
  const own = ownVm(state);
  const fresh = own?.run == null || policy === null ? null : standbyOf(state, desires, own.run, own.uid, policy);
  const [some] = standbyHosts(state);
  const known = some === undefined ? undefined : desiredNow(state, hostPeer(some), standbyKey);
  // One object for all hosts while nothing changes: what is the same object is not compared field by field, host by host.
  const document = fresh !== null && known !== undefined && sameJson(known, toJson(fresh)) ? (known as object) : fresh;
  for (const host of hostsWith(state, standbyKey)) {
    if (document !== null) addDesire(desires, hostPeer(host), standbyKey, document);
    else keepDesire(state, desires, hostPeer(host), standbyKey);
  }
}

export const ownVm = (state: ControllerState): VmRecord | undefined =>
  [...state.vms.values()].find(({ uid }) => isOwnVm(state, uid));

function standbyOf(
  state: ControllerState,
  desires: Desires,
  run: Run,
  uid: Uid,
  policy: CellPolicy,
): DesiredStandby | null {
  if (run.stage !== "running" || run.host === null) return null;
  const vm = desiredVm.of(desires.get(hostPeer(run.host), `vm/${uid}`));
  if (vm?.incarnation !== run.incarnation) return null;
  const volumes: StandbyVolume[] = [];
  // Its boot volume is a copy that nobody writes: without the other the old incarnation can commit nothing.
  for (const { connection, attachment, readOnly } of [...vm.disks].sort(lastBootedFirst)) {
    if (readOnly) continue;
    const server = actualOf(actualVolume, state, storageManager, `volume/${attachment.volume}`)?.server;
    if (server == null) return null;
    const { volume, epoch } = attachment;
    volumes.push({ volume, connection, agent: peerName(`agent.${server}`), epoch });
  }
  const bare = { ...policy, rules: [], networks: [], hosts: [], version: 0 };
  // A boot disk on trial is its present host's matter: a successor has no lease of it.
  const { trial: _, ...settled } = vm;
  const last = lastOf(state, uid);
  return {
    vm: { ...settled, disks: vm.disks.map(withoutLease) },
    host: run.host,
    policy: bare,
    volumes,
    ...(last.length === 0 ? {} : { last }),
  };
}

const spreadWith = new WeakMap<Cell, readonly ElementPath[]>();
/** Other VMs with the same `x.placement.spread`. */
function matesIn(cell: Cell, path: ElementPath): readonly ElementPath[] {
  const known = spreadWith.get(cell);
  if (known !== undefined) return known;
  const own = cell.elements.get(path);
  const word = own?.type === "VM" ? own.placement.spread : undefined;
  const isMate = (other: Element): boolean =>
    other.type === "VM" && word !== undefined && other.placement.spread === word && other.path !== path;
  const found = [...cell.elements.values()].filter(isMate).map((mate) => mate.path);
  spreadWith.set(cell, found);
  return found;
}

/** Who takes its turn last, and in which order. */
function lastOf(state: ControllerState, uid: Uid): readonly HostName[] {
  const path = state.elements.get(uid)?.path;
  if (state.cell === null || path === undefined) return [];
  const closed = closedHosts(state.cell);
  const mates = matesIn(state.cell, path).flatMap((mate) => {
    const of = state.uids.get(mate);
    return (of === undefined ? null : state.vms.get(of)?.run?.host) ?? [];
  });
  return [...new Set(mates.filter((host) => !closed.includes(host)).sort()), ...closed];
}
type Disk = DesiredVm["disks"][number];
/** The first is the one with its stores: a VM boots from another. */
export const lastBootedFirst = (one: { readonly bootOrder?: number | null | undefined }, other: typeof one): number =>
  (other.bootOrder ?? Number.MAX_SAFE_INTEGER) - (one.bootOrder ?? Number.MAX_SAFE_INTEGER);
const withoutLease = (disk: Disk): Disk => ({
  ...disk,
  attachment: { ...disk.attachment, layers: disk.attachment.layers.filter(({ writable }) => !writable) },
});

/**
 * A host says that it runs a later incarnation. Only whoever has the leases can have started it, and any host can say so: it
 * counts when the lease of what the controller keeps its stores on names that host and incarnation, by the agent's own word.
 */
export function adoptSuccession(state: ControllerState): void {
  if (state.options.root === undefined) return;
  const vm = ownVm(state);
  if (vm?.run == null) return;
  const holder = holderOfStores(state, vm);
  let found: { readonly host: HostName; readonly incarnation: number } | null = null;
  for (const host of standbyHosts(state)) {
    const actual = actualOf(actualVm, state, hostPeer(host), `vm/${vm.uid}`);
    // One that was minted here and told to nobody may be the one that a host minted.
    const known = found?.incarnation ?? (vm.run.handedOver ? vm.incarnation : vm.incarnation - 1);
    if (actual?.power !== "on" || actual.incarnation <= known) continue;
    const isHolder = holder?.vm === vm.uid && holder.host === host && holder.incarnation === actual.incarnation;
    if (holder === undefined || isHolder) found = { host, incarnation: actual.incarnation };
  }
  if (found === null) return;
  const { host, incarnation } = found;
  const path = state.elements.get(vm.uid)?.path ?? null;
  log(state.outbox, "succession/adopted", { vm: vm.uid, path, host, incarnation, before: vm.run.host });
  const run: Run = { ...vm.run, incarnation, host, stage: "running", handedOver: true, succeeded: true };
  saveVm(state, { ...vm, incarnation, failure: null, failures: 0, again: false, run });
}

/** null: nobody, or not known; undefined: the Storage Manager is of the previous version, which does not say it. */
function holderOfStores(state: ControllerState, { run }: VmRecord): LeaseHolder | null | undefined {
  const [stores] = [...(run?.disks ?? [])].sort(lastBootedFirst);
  if (stores === undefined) return null;
  const said = actualOf(actualConnection, state, storageManagerOf(state), `connection/${stores.connection}`);
  return said === undefined ? null : said.holder;
}
