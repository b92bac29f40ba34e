import { beatKey, type DesiredBeat, everyBeatMs, lateMs } from "../../core/documents/ha.ts";
import { desiredBeat, desiredBeats } from "../../core/documents/readers/ha.ts";
import { actualKey, type DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import { toJson } from "../../core/outbox.ts";
import { type HostName, hostPeer, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostState } from "../known.ts";
import type { VmRecord } from "../vm-record.ts";
import type { BeatsState } from "./beats-state.ts";

/**
 * This host says to each storage server that its machines write at that it is there, as long as an HA Manager wants that, and
 * hears whether that was made durable. Where no server has heard it for 9 s of its own time and it hears no majority of the
 * hosts either, others are about to take its machines' volumes away and start them elsewhere: it ends those of them that write. That
 * keeps what such a machine still says, and what is lost of its writes, short. It is no fence: nobody counts on it (decision 95).
 *
 * A Host Manager that starts begins to count anew. Of one that stood still the time for which it did is left out, and no more: nobody's
 * silence was heard in it, but one that stands still now and then, unheard all the while, is to end them as well (decision 232).
 */
export const beatTimer = "beat";
/** A timer that comes so much too late: this process stood still. */
const stoodStillMs = 2_000;
/**
 * Whoever stood still has so long to hear somebody before it ends anything, and again if it stood still in that time, too: what came
 * meanwhile lies unread when its timer comes. Then it ends them, however late it is.
 */
const listenMs = 1_000;
const mostListens = 2;
const mostUnanswered = 10;
const isolatedReason =
  "no storage server had heard its host for 9 s, nor did that hear most of the other hosts, so it was ended";

/**
 * Desired by the HA Manager, each of several for the VMs that it looks after: `beats`. What cannot be read is of another version: it says that
 * this host is to beat, and no more. Others hear nothing of it.
 */
export const takeBeats = ({ beats }: HostState, from: PeerName, value: Json): false => {
  if (value === null) beats.wantedBy.delete(from);
  else beats.wantedBy.set(from, desiredBeats.of(value)?.ends ?? []);
  beats.wanted = beats.wantedBy.size > 0;
  beats.ends = new Set([...beats.wantedBy.values()].flat());
  return false;
};

/** A server has made a beat durable. */
export const hearBeat = ({ beats }: HostState, self: HostName, from: PeerName, key: string, value: Json): void => {
  if (key !== actualKey(hostPeer(self), beatKey)) return;
  const server = beats.to.get(from);
  const said = desiredBeat.of(value);
  const sentMs = said === null ? undefined : beats.sent.get(said.count);
  if (server === undefined || sentMs === undefined) return;
  if (sentMs > heardMs(beats)) beats.listens = 0;
  server.ackedMs = Math.max(server.ackedMs ?? 0, sentMs);
};

/**
 * After every input: says what is due, and looks whether anybody hears this host.
 * @returns whether there are machines to be ended
 */
export const settleBeats = (state: HostState, self: HostName, effects: Effect[]): boolean => {
  const { beats, now, presence } = state;
  // It is not known yet whose addresses its disks are at.
  if (state.peerAddresses === null) return false;
  const servers = beats.wanted && presence.boot !== null ? serversOf(state) : new Set<PeerName>();
  if (beats.dueMs !== null && now - beats.dueMs > stoodStillMs) leaveOut(beats, now - beats.dueMs, now);
  for (const peer of beats.to.keys()) if (!servers.has(peer)) leave(beats, self, peer, effects);
  if (servers.size === 0) {
    [beats.sinceMs, beats.dueMs, beats.listens] = [null, null, 0];
    return false;
  }
  const isNew = [...servers].some((peer) => beats.to.get(peer) === undefined);
  for (const to of servers) {
    if (beats.to.has(to) && beats.sinceMs !== null) continue;
    if (!beats.to.has(to)) beats.to.set(to, { ackedMs: null });
    effects.push({ kind: "subscribe", to, prefix: actualKey(hostPeer(self), beatKey) });
  }
  // Whom nothing was said to yet has not been silent.
  if (beats.sinceMs === null || isNew) [beats.sinceMs, beats.listens] = [now, 0];
  if (isNew || beats.sentMs === null || now - beats.sentMs >= everyBeatMs) say(state, servers, effects);
  const isolates = isolate(state, effects);
  if (beats.dueMs === null || beats.dueMs <= now) {
    // On the minute when it would be too long, and with the next beat at the latest.
    const inMs = [(beats.sentMs ?? now) + everyBeatMs - now, heardMs(beats) + lateMs - now].filter((ms) => ms > 0);
    const afterMs = Math.max(100, Math.min(everyBeatMs, ...inMs));
    beats.dueMs = now + afterMs;
    effects.push({ kind: "timer", name: beatTimer, afterMs });
  }
  return isolates;
};

/** It stood still for so long: what it was heard of, and what may still be acknowledged, was said that much later by its own time. */
const leaveOut = (beats: BeatsState, stoodMs: number, now: number): void => {
  for (const [count, sentMs] of beats.sent) beats.sent.set(count, sentMs + stoodMs);
  beats.sinceMs = heardMs(beats) + stoodMs;
  const leastMs = now + listenMs - lateMs;
  if (beats.sinceMs >= leastMs || beats.listens >= mostListens) return;
  beats.sinceMs = leastMs;
  beats.listens += 1;
};

const say = ({ beats, now, presence }: HostState, servers: ReadonlySet<PeerName>, effects: Effect[]): void => {
  beats.count += 1;
  beats.sentMs = now;
  beats.sent.set(beats.count, now);
  for (const count of beats.sent.keys()) if (count <= beats.count - mostUnanswered) beats.sent.delete(count);
  const beat: DesiredBeat = { boot: presence.boot ?? 0, count: beats.count };
  for (const to of servers) effects.push({ kind: "desire", to, key: beatKey, value: toJson(beat) });
};

/** Until when it has heard this host counts on: to write nowhere but at a silent server is not to be heard by nobody. */
const leave = (beats: BeatsState, self: HostName, peer: PeerName, effects: Effect[]): void => {
  const ackedMs = beats.to.get(peer)?.ackedMs ?? null;
  if (beats.sinceMs !== null && ackedMs !== null) beats.sinceMs = Math.max(beats.sinceMs, ackedMs);
  beats.to.delete(peer);
  effects.push({ kind: "desire", to: peer, key: beatKey, value: null });
  effects.push({ kind: "unsubscribe", to: peer, prefix: actualKey(hostPeer(self), beatKey) });
};

/** Up to when somebody has certainly heard this host, of the servers. */
export const heardMs = ({ to, sinceMs }: BeatsState): number =>
  Math.max(sinceMs ?? Number.POSITIVE_INFINITY, ...[...to.values()].map(({ ackedMs }) => ackedMs ?? 0));

const isolate = (state: HostState, effects: Effect[]): boolean => {
  const { beats, now, records } = state;
  const hears = hearsMost(state);
  if (hears) beats.listens = 0;
  if (hears || now - heardMs(beats) < lateMs) return false;
  const ended: Uid[] = [];
  for (const [vm, { stage, vm: desired }] of records)
    if (stage === "running" && endsUnheard(beats, desired) && !beats.isolated.has(vm)) ended.push(vm);
  if (ended.length === 0) return false;
  for (const vm of ended) {
    beats.isolated.add(vm);
    const { path = null, incarnation = null } = records.get(vm)?.vm ?? {};
    effects.push({ kind: "log", event: "host/isolated", fields: { vm, path, incarnation } });
  }
  return true;
};

/** What was ended since nobody heard this host was neither stopped nor did it end by itself: its controller starts it again. */
export const endedAs = ({ beats }: HostState, vm: Uid, how: End): End =>
  beats.isolated.delete(vm) ? { ended: "crashed", reason: isolatedReason } : how;
type End = Pick<VmRecord, "ended" | "reason">;

/** This host's part in Presence hears more than half of all hosts, itself among them, and is answered when it asks. */
export const hearsMost = ({ beats, succession: { heard, hosts } }: HostState): boolean =>
  !beats.doubts && (1 + heard.size) * 2 > hosts.size;

/** It writes, and others start it elsewhere. What nobody does goes on: to end it would help nobody. The root controller's has rules of its own (decision 35). */
export const endsUnheard = ({ ends }: BeatsState, vm: DesiredVm): boolean =>
  writes(vm) && ends.has(vm.uid) && vm.restart !== "host";

const writes = ({ disks }: DesiredVm): boolean =>
  disks.some(({ attachment: { layers } }) => layers[0]?.writable === true);

/** Where machines of this host write, as far as it is known whose addresses these are. */
const serversOf = ({ records, peerAddresses }: HostState): Set<PeerName> => {
  const addresses = new Set<string>();
  for (const { stage, vm } of records.values())
    if (stage !== "ended")
      for (const { attachment } of vm.disks) {
        const [layer] = attachment.layers;
        if (layer?.writable === true) addresses.add(layer.address);
      }
  const servers = new Set<PeerName>();
  for (const [peer, address] of peerAddresses ?? [])
    if (peer.startsWith("agent.") && addresses.has(address)) servers.add(peer as PeerName);
  return servers;
};
