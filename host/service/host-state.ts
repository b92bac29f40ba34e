import type { DesiredProbe } from "../../core/documents/ha.ts";
import type { ActualPresenceMissed } from "../../core/documents/presence.ts";
import { actualLocation } from "../../core/documents/readers/network.ts";
import type { ActualHost, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect, Restored } from "../../core/env.ts";
import { cpuRatio } from "../../core/placer/candidate.ts";
import { type HostName, peerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { NetworkAllocation, PolicyInForce } from "../drivers/network/driver.ts";
import { restoreBeats } from "../heartbeat/beats-state.ts";
import type { WatchdogWord } from "../heartbeat/watchdog.ts";
import type { HostState } from "../known.ts";
import { restoreClaims } from "../machine/claims/claims.ts";
import { noteOver, restoreOver } from "../machine/over.ts";
import type { Claims } from "../network/addresses.ts";
import { restoreEntrances } from "../network/entrances.ts";
import { believedLocations, numberRecord } from "../network/locations.ts";
import { type OfferedNetwork, restoreNetwork, whyNoTap } from "../network/network-view.ts";
import { replacedRecord, viewOf } from "../network/policy-view.ts";
import { restorePresence } from "../presence/presence-state.ts";
import { advanceSuccession, createSuccession, restraints, withSuccession } from "../root-vm/succession.ts";
import type { VmRecord } from "../vm-record.ts";
import type { Found, Wanted } from "../wanted.ts";
import { shortage } from "./planner.ts";

/** What the Host Manager's service knows, how it comes back after a restart, and what the planner sees of it. */
export interface HostManagerOptions {
  readonly host: ActualHost;
  /** Called when there may be new actions. It must do no more than wake the executor, which then asks for them. */
  readonly wake: () => void;
  /** Whether the machine was booted since the Host Manager ran last. Absent: unknown, and boots are not told apart. */
  readonly booted?: boolean;
  /** With `booted`: the machine had been shut down properly, so no VM here crashed. */
  readonly switchedOff?: true;
  /** The Presence group declared a generation of a host dead. It must do no more than pass that on. */
  readonly onDeath?: (host: HostName, generation: number) => void;
  /** A member of the Presence group does not hear a host. It must do no more than pass that on. */
  readonly onMissed?: (missed: ActualPresenceMissed) => void;
  /** The authority said which key a peer has; null: none any more. Absent: this process pins no keys. */
  readonly onPin?: (key: string, value: Json) => void;
  /** Whom this host is to ask on the network (`host/network/neighbours.ts`); must only hand it on. */
  readonly onProbes?: (wanted: readonly DesiredProbe[]) => void;
  /** What this machine's watchdog is told; must only hand it on. Absent: it has none. */
  readonly onWatchdog?: (word: WatchdogWord) => void;
  /** A networking mode of Eucalyptus that this host offers. Absent: none. */
  readonly network?: OfferedNetwork;
  /** There is an authority, which says whose gateway may be on the management network. */
  readonly hasAuthority?: true;
}

export const restoreState = (restored: Restored, { host, network }: HostManagerOptions): HostState => {
  const { records } = restored;
  const state: HostState = {
    over: restoreOver(records),
    vms: new Map(),
    policies: new Map(),
    views: new Map(),
    locations: new Map(),
    places: new Map(),
    external: null,
    numbers: new Map(),
    saidPolicies: new Map(),
    peerAddresses: null,
    believed: null,
    held: new Map(),
    ownAddress: host.address,
    claims: null,
    overfull: new Set(),
    unconfirmed: new Map(),
    records: new Map(),
    entrances: restoreEntrances(records),
    strangers: null,
    started: false,
    revision: null,
    allocation: { interfaces: [], policies: [] },
    routers: [],
    groups: new Map(),
    busy: new Set(),
    stalled: new Map(),
    guestTimers: new Map(),
    troubles: new Map(),
    published: new Map(),
    audiences: new Map(),
    subscribed: new Set(),
    presence: restorePresence(records),
    claimed: restoreClaims(records),
    succession: createSuccession(host.host, restored),
    probes: new Map(),
    network: restoreNetwork(records, network, host),
    beats: restoreBeats(restored),
    now: 0,
  };
  const replaced = new Map<string, Map<string, Json>>();
  for (const [key, value] of records) {
    const [kind, name = "", address = ""] = key.split("/");
    if (kind === replacedRecord) inner(replaced, name, () => new Map<string, Json>()).set(address, value);
    if (kind === inForceRecord) state.allocation = withPolicy(state.allocation, value as unknown as PolicyInForce);
    if (kind === numberRecord) state.numbers.set(name, Number(value));
    if (kind === "machine") state.records.set(uid(name), value as unknown as VmRecord);
    if (kind !== "location") continue;
    const location = actualLocation.of(value, address);
    if (location === null) continue;
    inner(state.locations, peerName(name), () => new Map()).set(address, location);
    inner(state.unconfirmed, peerName(name), () => new Set()).add(address);
  }
  for (const [cell, of] of replaced) state.views.set(cell, viewOf(of));
  return state;
};

/** Writes the durable record of a VM; null deletes it. */
export const store = (state: HostState, vm: Uid, record: VmRecord | null, effects: Effect[]): void => {
  const before = state.records.get(vm);
  if (record === null && before !== undefined) noteOver(state.over, before, effects);
  if (record === null) state.records.delete(vm);
  else state.records.set(vm, record);
  effects.push({ kind: "write", key: `machine/${vm}`, value: record as unknown as Json });
};

/** Keeps the VM's path up to date, so that events name it by its present path even after its document is gone. */
export const takePath = (state: HostState, { uid: vm, path }: DesiredVm, effects: Effect[]): void => {
  const record = state.records.get(vm);
  if (record === undefined || record.vm.path === path) return;
  store(state, vm, { ...record, vm: { ...record.vm, path } }, effects);
};

/**
 * Record `in-force/<cell>`: which rules of a cell are in force. They are in pinned maps, so they are still there after this
 * process has restarted. After a reboot of the machine they are gone, and so is every interface that could send a packet.
 */
const inForceRecord = "in-force";
const withPolicy = (allocation: NetworkAllocation, policy: PolicyInForce): NetworkAllocation => ({
  ...allocation,
  policies: [...allocation.policies, { ...policy, problem: null }],
});

/** Takes over what the driver has achieved. */
export const takeAllocation = (state: HostState, allocation: NetworkAllocation, effects: Effect[]): void => {
  const record = (cell: string, value: Json): void => {
    effects.push({ kind: "write", key: `${inForceRecord}/${cell}`, value });
  };
  const before = new Map(state.allocation.policies.map(({ cell, version }) => [cell, version]));
  for (const { cell, version } of allocation.policies) {
    if (before.get(cell) !== version) record(cell, { cell, version });
    before.delete(cell);
  }
  for (const cell of before.keys()) record(cell, null);
  state.allocation = allocation;
};

/**
 * A change of the network has failed, and of what it did before nothing is known: whatever it did not name may be gone, and what
 * was in place before is to be put there again.
 * @param tried interfaces that it was to leave in place
 */
export function leftAfterFailure(state: HostState, tried: readonly Uid[]): void {
  const named = new Set(tried);
  const interfaces = state.allocation.interfaces.filter((each) => named.has(each.interface));
  state.allocation = { ...state.allocation, interfaces };
  state.revision = null;
}

export const inner = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const found = map.get(key) ?? make();
  map.set(key, found);
  return found;
};

const claimsOf = (state: HostState): Claims => {
  const placed = new Map<string, string>();
  for (const [cell, { own }] of state.places) for (const address of own.keys()) placed.set(address, cell);
  const underlay = new Set<string>([state.ownAddress, ...(state.peerAddresses?.values() ?? [])]);
  return { placed, underlay };
};

export const wantedOf = (state: HostState): Wanted => {
  state.claims ??= claimsOf(state);
  const policies = [...state.policies.values()];
  const locations = believedLocations(state);
  const entrances = state.entrances.known;
  const unheard = state.entrances.heard ? {} : { entrancesUnheard: true as const };
  const { vms, claims, claimed } = state;
  const external = state.external === null ? {} : { external: state.external };
  return withSuccession(
    { vms, policies, locations, entrances, ...unheard, ...external, claims, claimed },
    state.succession,
    state.now,
  );
};
export const foundOf = (state: HostState, { host }: HostManagerOptions): Found => ({
  records: state.records,
  over: state.over,
  revision: state.revision,
  allocation: state.allocation,
  ...(state.network.offered === null ? {} : { whyNoTap: (instance, cell) => whyNoTap(state.network, instance, cell) }),
  busy: new Set([...state.busy, ...state.troubles.keys()]),
  stalled: state.stalled,
  isolated: state.beats.isolated,
  ...restraints(state.succession, state.vms, state.now),
  capacityMiB: host.memoryMiB - host.reservedMiB,
  boot: state.presence.boot,
  isSameBoot: state.presence.isSameBoot,
  capacityCpus: Math.floor(host.cpus * cpuRatio),
});

/** @returns whether something may have changed for the plan */
export const succeed = (state: HostState, options: HostManagerOptions, effects: Effect[]): boolean => {
  const before = effects.length;
  const obstacle = (vm: DesiredVm): string | null =>
    options.host.state === "up" ? shortage(vm, foundOf(state, options)) : "it takes no more VMs";
  const root = state.succession.standby?.vm.uid;
  const desired = root === undefined ? undefined : state.vms.get(root)?.desired;
  advanceSuccession(state.succession, { now: state.now, desired, obstacle }, effects);
  return effects.length > before;
};
