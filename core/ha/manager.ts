import { type HostName, hostName, type PeerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  type ActualHeartbeat,
  alertsKey,
  type DesiredSettings,
  fenceKey,
  heartbeatKey,
  machinesKey,
  probeKey,
  settingsKey,
  unguardedKey,
} from "../documents/ha.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { presenceKey } from "../documents/presence.ts";
import {
  actualFence,
  actualHeartbeat,
  actualMachines,
  desiredProtected,
  desiredSettings,
} from "../documents/readers/ha.ts";
import { desiredHost } from "../documents/readers/placement.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { actualKey, hostKey } from "../documents/vocabulary.ts";
import type { Input, Instant, Service } from "../env.ts";
import { cellOfController, log, takeEffects, toJson } from "../outbox.ts";
import { followDeaths, followOthers, hearMember, membersIn, takeDeath } from "../presence/group/deaths.ts";
import { noteLoss } from "./guards.ts";
import { takeRequests } from "./investigators/requests.ts";
import { cleanUpOrderly, endUnread } from "./orderly/orderly.ts";
import { settleAlerts } from "./people/alerts.ts";
import { type ByHandRefusal, takeWord } from "./people/by-hand.ts";
import { measureHa } from "./people/measure.ts";
import { settleNotices, takeNoticeWord } from "./people/notices.ts";
import { reportOf } from "./people/report.ts";
import { compareAll } from "./people/stuck.ts";
import { leaveAllTold, returnTold, settleTold, takeTold } from "./people/told.ts";
import { takeUnguarded } from "./people/unguarded.ts";
import { takeAsked } from "./power/asked.ts";
import { settleWait, takePower } from "./power/orders.ts";
import { noteBoot } from "./power/power-state.ts";
import { takeHost, takeProbe } from "./probes.ts";
import { askedTimer, compareTimer, followHosts, lookTimer, recreateTimer, settleQueue } from "./queue.ts";
import { settingsFrom } from "./settings.ts";
import { forgetItem, type HaOptions, type HaState, keepProtected, restoreHa } from "./state.ts";
import { lookAnew, noteHeard, takeSuspicion } from "./suspicions.ts";

/**
 * The HA Manager: a VM whose host is lost starts elsewhere without anybody being asked, and never twice.
 *
 * A VM's integrity comes before its availability. A declared death is evidence of silence and of nothing else: it opens an
 * investigation, and what the investigators do not know is fenced. Only an incarnation that was seen stopped, or that has been
 * fenced by the word of whoever holds its data, is said to be over; and that is all that this manager does about it. The
 * controller, which alone mints incarnations, takes it for confirmed stopped and goes on as after every other end: back-off,
 * limits, placement and leases stay where they are. So a mistake here can start nothing that the storage does not allow.
 *
 * Rejected: an HA Manager that starts VMs itself. Two would know how, and a crash between its start and its record would
 * have to be told from a start that a controller made.
 */
export function createHaManager(options: HaOptions): Service<HaState> {
  return {
    restore: (restored) => restoreHa(restored, options),
    step: (state, input, now) => {
      state.nowMs = now.ms;
      const isOfEdge =
        input.kind === "request" &&
        (takePower(state, input.id, input.request, now) || takeNoticeWord(state, input.id, input.request, now));
      if (!isOfEdge) advance(state, input, now);
      else if (state.started) settleQueue(state, now);
      settleWait(state, now);
      settleNotices(state, now);
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("ha-manager", peer, key),
    accepts: (peer, key) => mayDesire("ha-manager", peer, key),
    read: documentsOf("ha-manager"),
    measure: measureHa,
  };
}

function advance(state: HaState, input: Input, now: Instant): void {
  const refusal = input.kind === "request" ? takeWord(state, input.request, now) : null;
  take(state, input, now);
  if (state.started) {
    if (state.subscribed.size === 0 || input.kind === "desired") followHosts(state);
    settleQueue(state, now);
    settleAlerts(state, now);
    settleTold(state);
  }
  // What a person is answered is what has become of the word.
  if (input.kind === "request") reply(state, input.id, refusal);
}

function take(state: HaState, input: Input, now: Instant): void {
  switch (input.kind) {
    case "start":
      start(state, now);
      return;
    case "desired":
      if (input.key === settingsKey) takeSettings(state, input.value);
      else if (input.key.startsWith(hostKey("" as HostName))) takeMaintained(state, input.key, input.value);
      else if (input.key === unguardedKey) takeUnguarded(state, input.from, input.value);
      else if (input.key === alertsKey) takeTold(state, input.from, input.value);
      else if (!takeAsked(state, input.from, input.key, input.value))
        takeProtected(state, input.from, uid(input.key.slice("protected/".length)), input.value, now);
      return;
    case "actual":
      takeActual(state, input.from, input.key, input.value, now);
      return;
    case "reachable":
      hearMember(state.deaths, input.peer, input.reachable);
      if (input.peer.startsWith("host.")) noteHeard(state, hostName(input.peer.slice("host.".length)), input.reachable);
      state.reachable.set(input.peer, input.reachable);
      if (input.peer.startsWith("host.")) {
        touchHost(state, input.peer.slice("host.".length));
      } else if (input.peer.startsWith("agent.")) {
        for (const [host, byAgent] of state.heartbeats) if (byAgent.has(input.peer)) touchHost(state, host);
      } else if (state.deaths.members.has(input.peer)) for (const vm of state.wanted.keys()) state.dirty.add(vm);
      lookAnew(state);
      return;
    case "request": {
      const members = membersIn(input.request);
      if (members !== null) takeMembers(state, members);
      return;
    }
    case "timer":
      if (input.name === recreateTimer) state.recreateDueMs = null;
      if (input.name === askedTimer) state.patienceDueMs = null;
      if (input.name === askedTimer || input.name === lookTimer) lookAnew(state);
      if (input.name === askedTimer || input.name === recreateTimer)
        for (const vm of state.active.keys()) state.dirty.add(vm);
      state.timed.delete(input.name);
      if (input.name === lookTimer)
        for (const vm of [...state.active.keys(), ...state.orderly.active.keys()]) state.dirty.add(vm);
      if (input.name === compareTimer) {
        cleanUp(state, now);
        compareAll(state, now);
      }
      return;
    case "complete":
      returnTold(state, input.peer);
      return;
    case "forked":
      if (input.forked) knowsAgain(state, input.peer);
      return;
    case "kept":
      endForgotten(state, input.peer, input.key, input.value);
      return;
    case "released":
      state.outbox.releasing.get(input.peer)?.delete(input.key);
      return;
    default:
      return;
  }
}

function reply(state: HaState, id: number, refusal: ByHandRefusal | null): void {
  const response = toJson(refusal === null ? reportOf(state) : { refusal });
  state.outbox.effects.push({ kind: "reply", id, response });
}

function start(state: HaState, now: Instant): void {
  state.started = true;
  log(state.outbox, "service/restored", { protected: state.wanted.size, items: state.active.size });
  state.outbox.effects.push(...followDeaths(state.deaths));
  leaveAllTold(state);
  followSuspicions(state, state.options.presence);
  for (const to of state.options.storageManagers)
    state.outbox.effects.push({ kind: "subscribe", to, prefix: actualKey(state.options.self, fenceKey("" as Uid)) });
  for (const peer of state.forkedAt) knowsAgain(state, peer);
  endUnread(state, now);
  for (const vm of [...state.wanted.keys(), ...state.active.keys(), ...state.over.keys()]) state.dirty.add(vm);
  for (const vm of state.orderly.active.keys()) state.dirty.add(vm);
  cleanUp(state, now);
}

function followSuspicions({ outbox }: HaState, members: readonly PeerName[]): void {
  for (const to of members) outbox.effects.push({ kind: "subscribe", to, prefix: presenceKey.suspected("") });
}

/** Presence has gained members: what most of them say is judged anew. */
function takeMembers(state: HaState, members: readonly PeerName[]): void {
  followSuspicions(
    state,
    members.filter((member) => !state.deaths.members.has(member)),
  );
  state.outbox.effects.push(...followOthers(state.deaths, members));
  state.options = { ...state.options, presence: members };
  lookAnew(state);
  for (const vm of state.wanted.keys()) state.dirty.add(vm);
}

/** What the operator says of a host. One that is malformed changes nothing. */
function takeMaintained(state: HaState, key: string, value: Json): void {
  const host = hostName(key.slice(hostKey("" as HostName).length));
  const said = value === null ? null : desiredHost.of(value, host);
  if (said?.state === "maintenance") state.maintained.add(host);
  else if (said !== null || value === null) state.maintained.delete(host);
}

/** What the operator sets; null: all as preset. What is malformed changes nothing. */
function takeSettings(state: HaState, value: Json): void {
  const said: DesiredSettings | null = value === null ? { settings: {} } : desiredSettings.of(value);
  if (said === null) {
    log(state.outbox, "document/refused", { from: "controller.root", key: settingsKey, why: "it is malformed" });
    return;
  }
  state.settings = settingsFrom(said.settings);
  lookAnew(state);
  state.short = said.short ?? null;
  state.entrance = said.entrance ?? null;
  // What was held by another number is judged anew, and the next look is due by the new time.
  for (const vm of state.active.keys()) state.dirty.add(vm);
  state.timed.clear();
}

/** A controller speaks for its own cell's VMs, and whoever was first for one goes on speaking for it. */
function takeProtected(state: HaState, client: PeerName, vm: Uid, value: Json, { ms, wallMs }: Instant): void {
  const before = state.wanted.get(vm);
  if (value === null) {
    state.unread.delete(vm);
    if (before?.client === client) keepProtected(state, vm, null);
    return;
  }
  const document = desiredProtected.of(value, vm);
  const why =
    document === null
      ? "it is malformed; see core/documents/readers/ha.ts for its fields"
      : document.cell !== cellOfController(client)
        ? `it names the cell ${document.cell}`
        : before !== undefined && before.client !== client
          ? `${before.client} protects that VM`
          : !state.options.storageManagers.includes(document.storageManager)
            ? `there is no ${document.storageManager}`
            : null;
  if (document === null && before === undefined && !state.started) state.unread.add(vm);
  if (document === null || why !== null) {
    log(state.outbox, "document/refused", { from: client, key: `protected/${vm}`, why });
    return;
  }
  state.unread.delete(vm);
  const isSame = before?.document.incarnation === document.incarnation;
  const isThere = isSame && before.document.host === document.host && before.document.boot === document.boot;
  const [since, sinceMs] = [isSame ? before.since : wallMs, isThere ? before.sinceMs : ms];
  keepProtected(state, vm, { client, document, since, sinceMs });
}

function takeActual(state: HaState, from: PeerName, key: string, value: Json, now: Instant): void {
  if (takeSuspicion(state, from, key, value)) return;
  const dead = takeDeath(state.deaths, from, key, value);
  if (dead !== null) {
    noteLoss(state, dead, now);
    lookAnew(state);
    touchHost(state, dead);
    return;
  }
  if (key === machinesKey && from.startsWith("host.")) {
    const host = hostName(from.slice("host.".length));
    const said = actualMachines.of(value);
    if (said === null) state.machines.delete(host);
    else state.machines.set(host, said);
    noteBoot(state.power, state.outbox, host, said?.boot);
    state.machinesMs.set(host, now.ms);
    touchHost(state, host);
    return;
  }
  if (key === "host" && from.startsWith("host.")) {
    takeHost(state, hostName(from.slice("host.".length)), value);
    return;
  }
  const probed = actualKey(state.options.self, probeKey("" as HostName));
  if (key.startsWith(probed)) {
    const host = hostName(key.slice(probed.length));
    takeProbe(state, from, host, value);
    touchHost(state, host);
    return;
  }
  if (from.startsWith("agent.") && key.startsWith(heartbeatKey("" as HostName))) {
    takeHeartbeat(state, from, hostName(key.slice(heartbeatKey("" as HostName).length)), value);
    return;
  }
  const lookedInto = takeRequests(state, from, key, value);
  if (lookedInto !== null) {
    touchHost(state, lookedInto);
    return;
  }
  const prefix = actualKey(state.options.self, fenceKey("" as Uid));
  if (!key.startsWith(prefix)) return;
  const vm = uid(key.slice(prefix.length));
  const said = actualFence.of(value);
  // Of a Storage Manager that is not the one of this VM.
  if (state.wanted.get(vm)?.document.storageManager !== from) return;
  if (said === null) state.fences.delete(vm);
  else state.fences.set(vm, said);
  state.dirty.add(vm);
}

/** What a server says of a host: malformed, it says nothing. */
function takeHeartbeat(state: HaState, agent: PeerName, host: HostName, value: Json): void {
  const said = actualHeartbeat.of(value, host);
  const byAgent = state.heartbeats.get(host) ?? new Map<PeerName, ActualHeartbeat>();
  if (said === null) byAgent.delete(agent);
  else byAgent.set(agent, said);
  state.heartbeats.set(host, byAgent);
  touchHost(state, host);
}

function touchHost({ at, dirty }: HaState, host: string): void {
  for (const vm of at.get(hostName(host)) ?? []) dirty.add(vm);
}

/**
 * A peer has seen more of this store, and keeps what it was asked for then: a fence of an earlier incarnation would stand in the way
 * of every later one. What is desired here follows from what controllers and Presence say, so nothing of that store is needed.
 */
function knowsAgain({ outbox }: HaState, at: PeerName): void {
  outbox.effects.push({ kind: "recovered", at });
}

/** A fence that a store knew which was lost since. What it began is done, and begun anew where it has to be. */
function endForgotten({ outbox }: HaState, peer: PeerName, key: string, value: Json): void {
  if (value === null || outbox.desired.get(peer)?.has(key) === true) return;
  outbox.releasing.set(peer, (outbox.releasing.get(peer) ?? new Set()).add(key));
  outbox.effects.push({ kind: "desire", to: peer, key, value: null });
}

function cleanUp(state: HaState, now: Instant): void {
  const { wallMs } = now;
  cleanUpOrderly(state, now);
  for (const [key, item] of [...state.ended]) {
    // What a person has said of an incarnation holds as long as that may be lost.
    const isLeft = item.cancelled === true && state.wanted.get(item.vm)?.document.incarnation === item.incarnation;
    if (!isLeft && wallMs - item.since > state.settings.keptMs) forgetItem(state, key);
  }
}
