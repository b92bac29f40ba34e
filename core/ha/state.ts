import { type CellName, type HostName, hostName, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import {
  type ActualFence,
  type ActualHeartbeat,
  type ActualMachines,
  type ActualOver,
  type DesiredProtected,
  overKey,
  probeKey,
  requestsKey,
  type SystemHostsShort,
  type ToldAlert,
} from "../documents/ha.ts";
import { servicePeer } from "../documents/service-roles.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Restored } from "../env.ts";
import { createOutbox, type Outbox, toJson, write } from "../outbox.ts";
import { createDeaths, type Deaths } from "../presence/group/deaths.ts";
import type { Known, Probed, Served } from "./investigators/investigator.ts";
import { isActive, itemKey, type WorkItem } from "./item.ts";
import { createOrderly, isReadable, type Orderly, restoreOrderly } from "./orderly/records.ts";
import {
  type Alert,
  channels,
  createNotices,
  type Mail,
  type Notices,
  restoreLeft,
  restoreNotices,
  sortNotices,
  type Webhook,
} from "./people/alert.ts";
import { createPower, type PowerState, restorePower } from "./power/power-state.ts";
import { type Settings, settingsFrom } from "./settings.ts";

export interface HaOptions {
  readonly self: PeerName;
  /** Members of the Presence group. */
  readonly presence: readonly PeerName[];
  readonly storageManagers: readonly PeerName[];
  /** Storage agents, which say whom they hear. */
  readonly agents?: readonly PeerName[];
  /** All HA Managers of the installation. Absent: not known, and whichever a controller says to be gone is. */
  readonly haManagers?: readonly PeerName[];
  /** All hosts of the installation: how many are lost is a share of them. */
  readonly hosts: readonly PeerName[];
}
/** Record `host/<name>`. */
export interface KnownHost {
  readonly address: string;
  readonly mac: string;
}
/**
 * Record `storm`: many hosts were lost at once, and nobody has looked since; or the operator has said beforehand that hosts will be
 * switched off (`asked`). `since`: milliseconds since 1970.
 */
export interface Storm {
  readonly since: number;
  readonly hosts: readonly HostName[];
  readonly asked?: true;
}

/** What the HA Manager knows. Records: `item/<vm>/<incarnation>`, `over/<vm>`. The rest is desired here, or said again. */
export interface HaState extends Known {
  /** Of Presence there may come more members. */
  options: HaOptions;
  readonly outbox: Outbox;
  started: boolean;
  /** Peers that had seen more of this store when it ended. */
  readonly forkedAt: readonly PeerName[];
  /** By VM: who protects it, and what it says. */
  readonly wanted: Map<Uid, Protected>;
  /** VMs of which a stored desire cannot be read: what is done about them stays as it is. */
  readonly unread: Set<Uid>;
  readonly at: Map<HostName, Set<Uid>>;
  readonly deaths: Deaths;
  /** By host that is suspected, which life of it each member of the Presence group means. */
  readonly suspicions: Map<HostName, Map<PeerName, number>>;
  /** Hosts that this manager has lost a moment ago, and since when, monotonic ms, in that order. */
  readonly unheard: Map<HostName, number>;
  readonly machines: Map<HostName, ActualMachines>;
  readonly machinesMs: Map<HostName, number>;
  readonly reachable: Map<PeerName, boolean>;
  /** By VM, what its Storage Manager says of its fence. */
  readonly fences: Map<Uid, ActualFence>;
  readonly heartbeats: Map<HostName, Map<PeerName, ActualHeartbeat>>;
  /** Active items, by VM; and of which VMs there are any, by host. */
  readonly active: Map<Uid, WorkItem>;
  readonly activeAt: Map<HostName, Set<Uid>>;
  /** Those that have ended, by their keys. */
  readonly ended: Map<string, WorkItem>;
  /** What goes in order. Records: `work/<vm>/<incarnation>`. */
  readonly orderly: Orderly;
  readonly over: Map<Uid, OverRecord>;
  storm: Storm | null;
  /** Not durable: they are desired here. */
  settings: Settings;
  /** Management controllers of hosts, and what they were asked. Records: `power/`, `order/`, `off/`, `boot/<host>`. */
  readonly power: PowerState;
  /** Hosts that the operator has in maintenance: that they go is no accident. Not durable: it is desired here. */
  readonly maintained: Set<HostName>;
  /** Fewer hosts are left to the cloud's own VMs than are to be; null: as many, or nobody has said. Not durable: it is desired here. */
  short: SystemHostsShort | null;
  /** The cell by which people reach the cloud; null: none, or nobody has said. Not durable: it is desired here. */
  entrance: CellName | null;
  /** Cells whose own HA Manager is gone, and which that is; null: that cannot be read. Not durable: it is desired here. */
  readonly unguarded: Map<CellName, PeerName | null>;
  /** What further HA Managers have open; null: that cannot be read. Not durable: it is desired here. */
  readonly told: Map<PeerName, readonly ToldAlert[] | null>;
  /** Those of them that were said to be gone since. Record `left/<peer>`. */
  readonly left: Set<PeerName>;
  /** Those that are open, by their keys. */
  readonly alerts: Map<string, Alert>;
  readonly notices: Notices<Webhook>;
  readonly mail: Notices<Mail>;
  /** Where hosts are on the network, as they said last. */
  readonly known: Map<HostName, KnownHost>;
  /** Hosts that are looked into, and who asks them. */
  readonly asking: Map<HostName, Asking>;
  /** Hosts of which other neighbours or storage servers may have to be asked than before. */
  readonly looksDue: Set<HostName>;
  readonly probes: Map<HostName, Map<PeerName, Probed>>;
  readonly requests: Map<HostName, Map<PeerName, Map<string, Served>>>;
  /** Hosts whose machines' requests storage servers look at, and since when, monotonic ms; null: since before this start. */
  readonly looking: Map<HostName, number | null>;
  /** Of the step. */
  nowMs: number;
  /** Hosts that are declared dead, and when that was heard, monotonic ms. */
  readonly losses: Map<HostName, { readonly generation: number; ms: number }>;
  /** Since when somebody says that the incarnation of an item runs, monotonic ms; counted anew after a start. */
  readonly vetoedSince: Map<Uid, number>;
  readonly subscribed: Set<PeerName>;
  /** Hosts at which something else is protected than before. */
  readonly beatsDue: Set<HostName>;
  /** VMs of which their hosts say otherwise than what is wanted, and since when, monotonic ms. */
  readonly differing: Map<Uid, Differing>;
  /** VMs to look at before the step ends. */
  readonly dirty: Set<Uid>;
  /** Timers that are set. */
  readonly timed: Set<string>;
  /** When the next one is due of which nothing but its volumes can be given up, monotonic ms; null: none is. */
  recreateDueMs: number | null;
  /** The earliest time at which nobody is waited for any more who was asked about some host, monotonic ms; null: nobody is. */
  patienceDueMs: number | null;
}
/** Who puts questions to a host and its machines. */
export interface Asking {
  peers: readonly PeerName[];
  /** Peers that were asked before this start, and have not been heard since. */
  readonly strays: Set<PeerName>;
  /** Since when these are asked, monotonic ms; null: since before this start. */
  sinceMs: number | null;
  patienceMs: number;
  /** The machines that are asked now, and by neighbour, how often it has asked some of them, and anybody. */
  turn: Turn;
  turns: number;
  /** In which turn each machine was asked last. */
  readonly lastTurn: Map<Uid, number>;
}
interface Turn {
  readonly vms: ReadonlySet<Uid>;
  /** Since when it goes on, monotonic ms; null: all are asked at once. */
  readonly sinceMs: number | null;
  readonly rounds: Map<PeerName, { readonly listed: number; readonly all: number }>;
}
export const createAsking = (): Asking => ({
  peers: [],
  strays: new Set(),
  sinceMs: null,
  patienceMs: 0,
  turn: { vms: new Set(), sinceMs: null, rounds: new Map() },
  turns: 0,
  lastTurn: new Map(),
});
export interface Differing {
  readonly incarnation: number;
  readonly wants: "start" | "stop";
  readonly sinceMs: number;
}
/** Record `over/<vm>`. */
export interface OverRecord extends ActualOver {
  readonly client: PeerName;
}
export interface Protected {
  readonly client: PeerName;
  readonly document: DesiredProtected;
  /** When this incarnation was heard of first, milliseconds since 1970; by this process. */
  readonly since: number;
  /** When it was heard of first at that host, for that boot, monotonic ms; by this process. */
  readonly sinceMs: number;
}

export function restoreHa(restored: Restored, options: HaOptions): HaState {
  const state: HaState = {
    options,
    outbox: createOutbox(restored),
    started: false,
    forkedAt: [...(restored.forkedAt ?? [])].flatMap(([peer, { forked }]) => (forked ? [peer] : [])),
    wanted: new Map(),
    unread: new Set(),
    at: new Map(),
    deaths: createDeaths(options.presence),
    suspicions: new Map(),
    unheard: new Map(),
    machines: new Map(),
    machinesMs: new Map(),
    reachable: new Map(),
    fences: new Map(),
    heartbeats: new Map(),
    active: new Map(),
    activeAt: new Map(),
    ended: new Map(),
    orderly: createOrderly(),
    over: new Map(),
    storm: (restored.records.get("storm") ?? null) as unknown as Storm | null,
    settings: settingsFrom({}),
    power: createPower(options.self !== servicePeer("ha-manager")),
    maintained: new Set(),
    short: null,
    entrance: null,
    unguarded: new Map(),
    told: new Map(),
    left: new Set(),
    losses: new Map(),
    alerts: new Map(),
    notices: createNotices(channels.webhook),
    mail: createNotices(channels.mail),
    known: new Map(),
    asking: new Map(),
    looksDue: new Set(),
    probes: new Map(),
    requests: new Map(),
    looking: new Map(),
    nowMs: 0,
    vetoedSince: new Map(),
    subscribed: new Set(),
    beatsDue: new Set(),
    differing: new Map(),
    dirty: new Set(),
    timed: new Set(),
    recreateDueMs: null,
    patienceDueMs: null,
  };
  for (const [key, value] of restored.records) {
    restorePower(state.power, key, value);
    restoreLeft(state.left, key);
    for (const notices of [state.notices, state.mail]) restoreNotices(notices, key, value);
    if (key.startsWith("item/")) restoreItem(state, key, value as unknown as WorkItem);
    if (key.startsWith("work/")) restoreOrderly(state.orderly, key, value as unknown as WorkItem);
    if (key.startsWith("host/")) state.known.set(hostName(key.slice("host/".length)), value as unknown as KnownHost);
    if (key.startsWith("alert/")) state.alerts.set(key, value as unknown as Alert);
    if (key.startsWith("over/")) {
      const over = value as unknown as OverRecord;
      state.over.set(over.vm, over);
    }
  }
  for (const notices of [state.notices, state.mail]) sortNotices(notices);
  restoreLooks(state);
  return state;
}

/** Hosts that were looked into before: whoever is still asked about one is not asked for ever. */
function restoreLooks({ outbox, looking, looksDue, asking }: HaState): void {
  const [requests, probe] = [requestsKey("" as HostName), probeKey("" as HostName)];
  for (const [peer, documents] of outbox.desired)
    for (const key of documents.keys()) {
      const prefix = [requests, probe].find((each) => key.startsWith(each));
      if (prefix === undefined) continue;
      const host = hostName(key.slice(prefix.length));
      looksDue.add(host);
      if (prefix === requests) looking.set(host, null);
      else {
        const asked = asking.get(host) ?? createAsking();
        asking.set(host, asked);
        asked.strays.add(peer);
      }
    }
}

function restoreItem(state: HaState, key: string, item: WorkItem): void {
  if (isReadable(item)) keepItem(state, item);
  else state.orderly.unread.set(key, item);
}
function keepItem(state: HaState, item: WorkItem): void {
  const { active, activeAt, ended } = state;
  const key = itemKey(item.vm, item.incarnation);
  if (isActive(item.step)) {
    leaveActive(state, item.vm);
    active.set(item.vm, item);
    activeAt.set(item.host, (activeAt.get(item.host) ?? new Set()).add(item.vm));
    ended.delete(key);
  } else {
    if (active.get(item.vm)?.incarnation === item.incarnation) leaveActive(state, item.vm);
    ended.set(key, item);
  }
  state.looksDue.add(item.host);
}
/** Nothing is under way of that VM. */
export function leaveActive({ active, activeAt, looksDue }: HaState, vm: Uid): void {
  const host = active.get(vm)?.host;
  if (host === undefined) return;
  active.delete(vm);
  const there = activeAt.get(host);
  there?.delete(vm);
  if (there?.size === 0) activeAt.delete(host);
  looksDue.add(host);
}
export function saveItem(state: HaState, item: WorkItem): void {
  write(state.outbox, itemKey(item.vm, item.incarnation), item);
  keepItem(state, item);
}
export function forgetItem(state: HaState, key: string): void {
  write(state.outbox, key, null);
  state.ended.delete(key);
}

/** Durable before it is said: whoever hears it starts the next incarnation. */
export function saveOver(state: HaState, over: OverRecord): void {
  write(state.outbox, overKey(over.vm), over);
  state.over.set(over.vm, over);
  sayOver(state, over);
}
export function sayOver({ outbox }: HaState, { client, ...over }: OverRecord): void {
  const key = actualKey(client, overKey(over.vm));
  if (outbox.published.has(key)) return;
  outbox.published.set(key, toJson(over));
  outbox.effects.push({ kind: "publish", key, value: toJson(over) });
}
export function forgetOver({ outbox, over }: HaState, { client, vm }: OverRecord): void {
  over.delete(vm);
  write(outbox, overKey(vm), null);
  const key = actualKey(client, overKey(vm));
  if (outbox.published.delete(key)) outbox.effects.push({ kind: "publish", key, value: null });
}

export function keepProtected(state: HaState, vm: Uid, wanted: Protected | null): void {
  const before = state.wanted.get(vm)?.document.host;
  if (before !== undefined) {
    const there = state.at.get(before);
    there?.delete(vm);
    state.looksDue.add(before);
    state.beatsDue.add(before);
    if (there?.size === 0) state.at.delete(before);
  }
  if (wanted === null) state.wanted.delete(vm);
  else {
    state.wanted.set(vm, wanted);
    const { host } = wanted.document;
    state.at.set(host, (state.at.get(host) ?? new Set()).add(vm));
    state.looksDue.add(host);
    state.beatsDue.add(host);
  }
  state.dirty.add(vm);
}
