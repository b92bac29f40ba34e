import type { NotReady } from "../../../model/api.ts";
import type { Cause, CauseOf } from "../../../model/cause/cause.ts";
import { sentence } from "../../../model/cause/sentence.ts";
import { type HostName, hostName, hostPeer, type PeerName, type Uid, uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import type { PolicySlice } from "../../documents/network/network.ts";
import { desiredConnection } from "../../documents/readers/storage.ts";
import type { CellPolicy, DesiredConnection, DesiredVm } from "../../documents/vocabulary.ts";
import { isObject, log, sameJson, toJson } from "../../outbox.ts";
import { isOff } from "../../presence/group/deaths.ts";
import type { Run, RunDisk, VmRecord } from "../records.ts";
import { takeKeptPooled } from "../services/pools/kept-pools.ts";
import {
  type ControllerState,
  cellManager,
  confirmedGone,
  desiredNow,
  linksOf,
  placerOf,
  runs,
  saveCounters,
  savePolicy,
  saveVm,
  storageManagerOf,
} from "../state.ts";
import { goOnAt, isOwn, numberOf } from "./given-out.ts";
import { unknownOfSilent } from "./kept-disks.ts";
import { takeKeptGrant } from "./kept-grants.ts";
import { isPlausible, type Source } from "./kept-numbers.ts";
import { aboveUnheard, beyondGivenOut, hearBeforeStarts } from "./put-back.ts";

/**
 * A controller whose store was lost, or put back from an older copy. What it desires is the desire of its cell's people, and
 * nobody else knows that: it stands still, so that nothing is stopped, fenced, deleted or started by what it wrongly takes
 * for the present, until an operator brings the newer store back, or lets this one count (`cells orphans release`).
 *
 * Meanwhile its receivers tell it which documents of its own they hold. No number that one of them has seen is ever given
 * out a second time, and an incarnation that runs is taken for what it is: a release then ends no machine.
 */
export function isForked(state: ControllerState): boolean {
  const hosts = [...state.forkedAt].filter(isHost);
  if (hosts.length === 0 || hosts.length < state.forkedAt.size) return hosts.length < state.forkedAt.size;
  // What these would say of it is not known.
  if ([storageManagerOf(state), placerOf(state)].some((peer) => state.reachable.get(peer) !== true)) return true;
  const told = new Set(hosts);
  for (const [peer, documents] of state.outbox.desired) if (isHost(peer) && documents.size > 0) told.add(peer);
  return hosts.length > 1 && 2 * hosts.length > told.size;
}
const isHost = (peer: PeerName): boolean => peer.startsWith("host.");

/**
 * A host that says so alone, or with few others, may be one that lies: whatever the newer store said to hosts it said to most
 * of them (rules), or to the Placer as well (machines). So its word holds up what it has, and no more: that stays as it is.
 */
export const isHeldAt = (state: ControllerState, host: HostName | null): host is HostName =>
  host !== null && state.forkedAt.has(hostPeer(host));
/** All of these, for whoever looks for another one: what would be given to one of them stays as it is, and does not begin. */
export const heldHosts = (state: ControllerState): readonly HostName[] =>
  [...state.forkedAt]
    .filter(isHost)
    .map((peer) => hostName(peer.slice("host.".length)))
    .sort();
export const whyHeld = ({ options }: ControllerState, host: HostName): Cause => ({
  kind: "host-doubts-store",
  host,
  controller: options.self,
});

/** Why nothing changes here; null: the store is whole, as far as anybody knows. */
export const whyForked = (state: ControllerState): CauseOf<"store-older"> | null =>
  isForked(state) ? { kind: "store-older", controller: state.options.self, peers: [...state.forkedAt].sort() } : null;
/** The same as a sentence. */
export function forkReason(state: ControllerState): string | null {
  const why = whyForked(state);
  return why === null ? null : sentence(why);
}

export function takeFork(state: ControllerState, peer: PeerName, forked: boolean, itForked: boolean): void {
  const isReleased = state.forkedAt.has(peer) && !forked;
  if (itForked && !isReleased) state.olderPeers.add(peer);
  else state.olderPeers.delete(peer);
  // Both stores were older: what the peer has more is none that this one took back, and stays.
  if (itForked && isReleased) state.outbox.effects.push({ kind: "recovered", at: peer });
  doubtRuns(state, peer, itForked && !isReleased ? "lost" : null);
  if (itForked) endOnceMore(state, peer);
  const before = isForked(state);
  if (forked) state.forkedAt.add(peer);
  else state.forkedAt.delete(peer);
  if (isReleased && !isForked(state)) noteStrays(state);
  if (state.forkedAt.size === 0) for (const kept of Object.values(state.kept)) kept.clear();
  if (before === isForked(state)) return;
  const { cell } = state.options;
  log(state.outbox, before ? "controller/released" : "controller/forked", { cell, peer, reason: forkReason(state) });
  if (!before) return;
  otherRulesUpTo(state, beyondGivenOut(state));
  hearBeforeStarts(state);
}

/**
 * The store was lost, or is from before the end of all that a service held of the cell, which holds nothing that could be a fork. What
 * the lost store gave out may be known to others all the same: files of its volumes lie in bins under their UIDs. One such word
 * counts in each start; a host's does not, which has no files.
 */
export function goOnBeyondLost(state: ControllerState, peer: PeerName): void {
  if (isHost(peer) || state.wentOn) return;
  state.wentOn = true;
  otherRulesUpTo(state, beyondGivenOut(state));
  for (const vm of [...state.vms.values()]) saveVm(state, aboveUnheard(state, vm));
  log(state.outbox, "controller/went-on", { cell: state.options.cell, peer });
}

/**
 * A Storage Manager that has lost its store has forgotten which volumes it was to remove, and its silence about one says nothing.
 * So it is told once more, and finds them where they are.
 */
function endOnceMore(state: ControllerState, peer: PeerName): void {
  if (peer !== storageManagerOf(state) || isForked(state)) return;
  for (const { uid: volume, type, deleting } of state.elements.values()) {
    const key = `volume/${volume}`;
    if (!deleting || (type !== "Volume" && type !== "VolumeCopy")) continue;
    if (desiredNow(state, peer, key) === undefined) takeBack(state, peer, key, { again: true });
  }
}

/**
 * A host that says that this store is older says what it was told to run. Wherever this store knows it elsewhere, or nowhere,
 * no other incarnation starts from then on: before a release, nobody knows which of the two is right.
 */
function noteClaim(state: ControllerState, host: HostName, { uid: vm, incarnation }: DesiredVm): void {
  const record = state.vms.get(vm);
  if (record === undefined || record.run?.host === host) return;
  const strays = [...new Set([...(record.strays ?? []), host])].sort();
  const straysUpTo = Math.max(record.straysUpTo ?? 0, incarnation);
  if (straysUpTo === record.straysUpTo && sameJson(strays, [...(record.strays ?? [])])) return;
  saveVm(state, { ...record, strays, straysUpTo });
}

/**
 * A release makes this store count, and some host may run an incarnation that it does not know, as of a VM without disks, of which
 * the Storage Manager says nothing. No other one starts before that host has ended it.
 */
function noteStrays(state: ControllerState): void {
  for (const record of [...state.vms.values()]) {
    const { uid: vm, run } = record;
    const kept = unknownOfSilent(state, record);
    const named = new Set([
      ...(state.kept.claims.get(vm)?.keys() ?? []),
      ...(record.strays ?? []),
      ...kept.map(({ host }) => host),
    ]);
    const strays = [...named].filter((host) => host !== run?.host && !isHeldAt(state, host));
    const keptDisks = kept.length === 0 ? {} : { keptDisks: kept };
    // Where it has run before, its host alone can say how far it is.
    if (strays.length === 0 && kept.length > 0) saveVm(state, { ...record, ...keptDisks });
    if (strays.length === 0) continue;
    for (const host of strays)
      if (desiredNow(state, hostPeer(host), `vm/${vm}`) === undefined)
        takeBack(state, hostPeer(host), `vm/${vm}`, { again: true });
    const claims = state.kept.claims.get(vm);
    const said = [...(claims?.values() ?? [])].map(({ incarnation }) => incarnation);
    for (const host of strays) claims?.delete(host);
    saveVm(state, {
      ...record,
      run: run?.handedOver === true ? run : null,
      strays: [...new Set([...(record.strays ?? []), ...strays])].sort(),
      straysUpTo: Math.max(record.straysUpTo ?? 0, ...said, ...kept.map(({ incarnation }) => incarnation)),
      ...keptDisks,
    });
    if (strays.every((host) => record.strays?.includes(host) === true)) continue;
    log(state.outbox, "vm/strays", { vm, path: state.elements.get(vm)?.path ?? null, hosts: strays });
  }
}

/**
 * Those hosts that have not yet said that they ended what they run of it, and are not known to be off: of what is kept as it is,
 * none says so.
 */
export const straysOf = (state: ControllerState, { uid: vm, strays = [] }: VmRecord): readonly HostName[] =>
  strays.filter(
    (host) => isHeldAt(state, host) || !(confirmedGone(state, hostPeer(host), `vm/${vm}`) || isOff(state.deaths, host)),
  );

/** Why the next incarnation waits for them; null: it does not. */
export function whyStrays(state: ControllerState, vm: VmRecord): Cause | null {
  const hosts = straysOf(state, vm);
  const held = hosts.find((host) => isHeldAt(state, host));
  if (held !== undefined) return { kind: "may-run-at", host: held, because: [whyHeld(state, held)] };
  return hosts.length === 0 ? null : { kind: "forgotten-runs", hosts };
}

/** They have all ended it: the next incarnation is above theirs. */
export function withoutStrays({
  strays = [],
  straysUpTo = 0,
  keptDisks: _keptDisks,
  endedAt,
  ...record
}: VmRecord): VmRecord {
  const run = record.run?.handedOver === true ? record.run : null;
  const ended = endedAt === undefined ? {} : { endedAt: [...new Set([...endedAt, ...strays])].sort() };
  return { ...record, ...ended, incarnation: Math.max(record.incarnation, straysUpTo), run };
}

/** Of what was given to that host, its silence says nothing from now on; null: it does, an operator has looked. */
export function doubtRuns(state: ControllerState, peer: PeerName, why: NonNullable<Run["unsure"]> | null): void {
  for (const record of [...state.vms.values()]) {
    const { run } = record;
    if (run === null || run.host === null || !run.handedOver || hostPeer(run.host) !== peer) continue;
    if (why === null ? run.unsure === undefined : run.unsure === why || run.unsure === "replaced") continue;
    const { unsure: _unsure, ...rest } = run;
    saveVm(state, { ...record, run: why === null ? rest : { ...rest, unsure: why } });
  }
}

/** Another one has the name of a receiver: its silence is not the former one's, and it does not hold what that one held. */
export function takeAnother(state: ControllerState, peer: PeerName): void {
  doubtRuns(state, peer, "replaced");
  state.forgotten.delete(peer);
}

/**
 * A receiver whose store was lost is told all that is desired of it as soon as it is there, and what it has too much is taken
 * back. After that, and where it is a host as soon as nothing is in doubt that it had then, there is nothing left to look at.
 */
const settledAfterMs = 60_000;
export const olderTimer = "older/";
export function watchOlder(state: ControllerState, peer: PeerName): void {
  if (state.olderPeers.has(peer))
    state.outbox.effects.push({ kind: "timer", name: `${olderTimer}${peer}`, afterMs: settledAfterMs });
}
export function olderDue(state: ControllerState, peer: PeerName): void {
  if (!state.olderPeers.has(peer) || state.forkedAt.has(peer)) return;
  const isInDoubt = [...runs(state)].some(
    ({ run }) => run.unsure !== undefined && run.host !== null && hostPeer(run.host) === peer,
  );
  const isTold = state.reachable.get(peer) === true && (state.outbox.releasing.get(peer)?.size ?? 0) === 0;
  if (isTold && !isInDoubt) state.outbox.effects.push({ kind: "recovered", at: peer });
  else watchOlder(state, peer);
}

/** A receiver holds a document of this controller, which is unknown here or another one. */
export function takeKept(state: ControllerState, peer: PeerName, key: string, value: Json): void {
  if (!isObject(value)) return;
  const [kind = "", name = ""] = key.split("/");
  const isForkedAt = state.forkedAt.has(peer);
  if (isForkedAt || (state.hasLost && !state.hasHeardAll)) takeKeptPooled(state, peer, key, value);
  if (!isForkedAt) {
    // It holds what this store took back long ago. What another store of this cell gave out stays, for an operator to look at.
    if (state.olderPeers.has(peer) && isOwn(state, name) && desiredNow(state, peer, key) === undefined)
      takeBack(state, peer, key);
    return;
  }
  const source = { peer, key };
  raiseUids(state, source, name);
  if (kind === "slice") raiseRules(state, source, value as unknown as PolicySlice);
  if (kind === "policy") raisePolicy(state, source, value as unknown as CellPolicy);
  if (kind === "connection" && peer === storageManagerOf(state))
    takeConnection(state, source, value as unknown as DesiredConnection);
  if (kind === "cell" && peer === cellManager)
    takeKeptGrant(state, source, uid(name), (value as unknown as DesiredCell).grant);
  if (kind === "placement") raiseIncarnation(state, source, value.vm, value.incarnation);
  if (kind === "vm" && peer.startsWith("host."))
    takeVm(state, source, hostName(peer.slice("host.".length)), value as unknown as DesiredVm);
}

/** On their way to one receiver at a time. It says the others again on its next connection. */
export const mostTakenBack = 10_000;

export function takeBack(
  state: ControllerState,
  peer: PeerName,
  key: string,
  how: { readonly again?: true } = {},
): void {
  const releasing = state.outbox.releasing.get(peer) ?? state.outbox.make.set<string>();
  if (releasing.size >= mostTakenBack) return;
  state.outbox.releasing.set(peer, releasing.add(key));
  state.outbox.effects.push({ kind: "desire", to: peer, key, value: null, ...how });
}

export function raiseUids(state: ControllerState, source: Source, name: string): void {
  const [to, now] = [numberOf(state.options.cellUid, name), state.counters.nextNumber];
  if (to !== null && isPlausible(state, source, "element", { to, now }) && to >= now)
    saveCounters(state, goOnAt(state.counters, to + 1));
}

function raiseRules(
  state: ControllerState,
  source: Source,
  { rules = [], networks = [] }: Pick<PolicySlice, "rules" | "networks">,
): void {
  const identities = [...rules.flatMap(({ from, to }) => [from, to]), ...networks.map(({ identity }) => identity)];
  raiseIdentities(state, source, identities);
  const rule = rules.reduce((most, { id }) => Math.max(most, id), 0);
  const now = state.counters.nextRule;
  if (isPlausible(state, source, "rule", { to: rule, now }) && rule >= now) saveCounters(state, { nextRule: rule + 1 });
}

function raisePolicy(state: ControllerState, source: Source, policy: CellPolicy): void {
  const { version } = policy;
  raiseRules(state, source, policy);
  const known = state.policy.version;
  if (isPlausible(state, source, "policy version", { to: version, now: known }) && version > known)
    otherRulesUpTo(state, version);
}

function otherRulesUpTo(state: ControllerState, version: number): void {
  // What is in force under that number are other rules, whatever these are: the next ones have the next number, each of them.
  const all = [...state.elements.values()].filter(({ type }) => type === "NetworkRule");
  const since = Object.fromEntries(all.map(({ path }) => [path, version + 1]));
  savePolicy(state, { ...state.policy, compiled: null, since, version, base: version });
  state.compiled = null;
}

function raiseIdentities(state: ControllerState, source: Source, identities: readonly number[]): void {
  const to = identities.reduce((most, each) => Math.max(most, each), 0);
  const now = state.counters.nextIdentity;
  if (isPlausible(state, source, "identity", { to, now }) && to >= now) saveCounters(state, { nextIdentity: to + 1 });
}

/** False: such an incarnation cannot be. */
function raiseIncarnation(state: ControllerState, source: Source, vm: Json | undefined, to: Json | undefined): boolean {
  const record = typeof vm === "string" ? state.vms.get(uid(vm)) : undefined;
  if (record === undefined) return true;
  const now = record.incarnation;
  if (typeof to !== "number" || !isPlausible(state, source, "incarnation", { to, now, of: record.uid })) return false;
  if (to > now) saveVm(state, { ...record, incarnation: to });
  return true;
}

/**
 * What a host says that it was told to run, is what runs where something else says so as well; a host's word alone moves no
 * VM to it and gives it no disk.
 *
 * - The record names that host already: then it may be of a later incarnation, with the disks that are known here.
 * - Or the Storage Manager keeps, for each of its disks, a connection of that incarnation at that host.
 *
 * A VM without disks that has moved since is not found: its machine is an orphan at its host, for an operator to look at.
 */
function takeVm(state: ControllerState, source: Source, host: HostName, document: DesiredVm): void {
  const { uid: vm, incarnation: to, interfaces } = document;
  raiseIdentities(
    state,
    source,
    interfaces.flatMap(({ identity, vmIdentity, subnetIdentity }) => [identity, vmIdentity, subnetIdentity]),
  );
  const now = state.vms.get(vm)?.incarnation;
  if (now === undefined || !isPlausible(state, source, "incarnation", { to, now, of: vm })) return;
  inner(state.kept.claims, vm).set(host, document);
  adopt(state, host, document);
  noteClaim(state, host, document);
}

/** In either order with what the host says. */
function takeConnection(state: ControllerState, source: Source, connection: DesiredConnection): void {
  const { vm, uid: name } = connection;
  if (!state.vms.has(vm) || !raiseIncarnation(state, source, vm, connection.incarnation)) return;
  inner(state.kept.connections, vm).set(name, connection);
  for (const [host, document] of state.kept.claims.get(vm) ?? []) adopt(state, host, document);
}

const inner = <Key, Name, Value>(map: Map<Key, Map<Name, Value>>, key: Key): Map<Name, Value> => {
  const found = map.get(key) ?? new Map<Name, Value>();
  map.set(key, found);
  return found;
};

/** Then the document is no news, and how far that run is, is known better here. */
const isKnownRun = (run: Run | null, host: HostName, incarnation: number): boolean =>
  run?.handedOver === true && run.host === host && run.incarnation === incarnation;

function adopt(state: ControllerState, host: HostName, document: DesiredVm): void {
  const { uid: vm, incarnation } = document;
  const record = state.vms.get(vm);
  if (record === undefined || isKnownRun(record.run, host, incarnation)) return;
  const run = confirmedRun(state, record, host, document) ?? laterRun(state, record, host, document);
  if (run === null || sameJson(toJson(run), record.run === null ? null : toJson(record.run))) return;
  const path = state.elements.get(vm)?.path ?? null;
  log(state.outbox, "vm/adopted", { vm, path, host, incarnation, before: record.run?.incarnation ?? null });
  const newest = Math.max(incarnation, record.incarnation);
  const { strays: before = [], ...rest } = record;
  const others = before.filter((each) => each !== host);
  const strays = others.length === 0 ? {} : { strays: others };
  saveVm(state, { ...rest, ...strays, incarnation: newest, failure: null, failures: 0, again: false, run });
}

/** A later incarnation where the record says that it is; null: it is not one, or the Storage Manager says otherwise. */
function laterRun(
  state: ControllerState,
  { uid: vm, run, incarnation: minted }: VmRecord,
  host: HostName,
  now: DesiredVm,
) {
  const { incarnation, boot } = now;
  if (run === null || run.host !== host || incarnation < minted) return null;
  if (run.handedOver && incarnation <= run.incarnation) return null;
  for (const connection of state.kept.connections.get(vm)?.values() ?? []) if (connection.host !== host) return null;
  const stage: Run["stage"] = "running";
  return { ...run, incarnation, stage, handedOver: true, ...(boot === undefined ? {} : { boot }) };
}

/** As the Storage Manager and the host say; null: the Storage Manager does not say so. */
function confirmedRun(
  state: ControllerState,
  { uid: vm, run }: VmRecord,
  host: HostName,
  document: DesiredVm,
): Run | null {
  const { incarnation, boot, memoryMiB, cpus } = document;
  const disks: RunDisk[] = [];
  for (const { connection: name, busType, busNumber, busSlot, bootOrder } of document.disks) {
    const connection = connectionOf(state, vm, name);
    if (connection?.vm !== vm || connection.host !== host || connection.incarnation !== incarnation) return null;
    disks.push({ connection: name, volume: connection.volume, busType, busNumber, busSlot, bootOrder });
  }
  if (disks.length === 0) return null;
  return {
    incarnation,
    stage: "running",
    host,
    handedOver: true,
    memoryMiB,
    cpus,
    ...(boot === undefined ? {} : { boot }),
    cpuSpeedMHz: run?.cpuSpeedMHz ?? 0,
    placement: run?.placement ?? {},
    disks,
    interfaces: interfacesOf(state, vm, run, document),
  };
}

/** As it was told to the Storage Manager last. */
const connectionOf = (state: ControllerState, vm: Uid, name: Uid): DesiredConnection | undefined =>
  state.kept.connections.get(vm)?.get(name) ??
  desiredConnection.of(desiredNow(state, storageManagerOf(state), `connection/${name}`)) ??
  undefined;

/** None of those that are known to be another VM's. */
function interfacesOf(state: ControllerState, vm: Uid, run: Run | null, { interfaces }: DesiredVm): readonly Uid[] {
  const path = state.elements.get(vm)?.path;
  const links = path === undefined ? [] : linksOf(state, path);
  const own = new Set([...links.map((link) => state.uids.get(link.path)), ...(run?.interfaces ?? [])]);
  return interfaces.map((each) => each.uid).filter((each) => own.has(each) || !state.elements.has(each));
}

/** The same, in front of what the cell waits for. */
export function forkNote(state: ControllerState): readonly NotReady[] {
  const why = whyForked(state);
  return why === null ? [] : [{ path: state.options.cell, phase: "failed", reason: sentence(why), causes: [why] }];
}
