import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { AgentSeen } from "../../documents/bin.ts";
import { mayDesire, maySee } from "../../documents/permissions.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import type { AgentLease, AgentLeaseActual } from "../../documents/vocabulary.ts";
import type { Effect, Input, Instant, Service, Step } from "../../env.ts";
import type { EventName } from "../../telemetry/event-names.ts";
import { gatherMs, handleBeats, mayGather } from "../heartbeat/beats.ts";
import { isCounted, requestsSaid, takeLooked, takeRequestsDesire } from "../heartbeat/requests.ts";
import { hearMember, takeDeclaration, takeInstallation } from "../succession-evidence.ts";
import { addToBin, binMiBOf, emptyBin, isBinToSee, keepBin, sweepBin } from "./bin.ts";
import { type AgentDesired, asItIs, imageDocuments, isAgentKey, readDesired } from "./documents.ts";
import { growth, growthAlone, withSize } from "./growth.ts";
import {
  advanceLease,
  confirmed,
  confirmFence,
  type LeaseCircumstances,
  moved,
  newOrigin,
  noLease,
  prepared,
} from "./lease.ts";
import { leaseActual } from "./lease-actual.ts";
import { adoptedSince, forgetSeen, markAnswer, markOf, mayServe, type RecordWriters, whyOlder } from "./mark.ts";
import { measureAgent } from "./measure.ts";
import { claim, isOwnersToSee, promisedTo, settleOwner } from "./owners.ts";
import { readersActual } from "./readers.ts";
import type { AgentState } from "./records.ts";
import { heldBackReason, updateHeldBack } from "./reserve.ts";
import { inUse } from "./sentences.ts";
import { restoreAgent } from "./state.ts";
import { keepAsked, nextLease, successionActual, successionKey, successorOf } from "./succession.ts";
import { fileWork, nextVolume, volumeActual, withoutFile } from "./volume.ts";
import type {
  AgentOptions,
  AgentReport,
  BinAnswer,
  ExportAccess,
  LeaseRecord,
  OriginRecord,
  VolumeRecord,
  VolumeWork,
  WantedExport,
} from "./work.ts";

/**
 * The storage agent: holds (volume, epoch, holder) durably and says which files and exports must be there.
 *
 * Everything about one volume is decided in `settle`, from the whole of what is wanted and recorded about it; inputs
 * only change one of the two and call it. Nothing is settled before `start`: a desired document that is missing then
 * is a tombstone that arrived just before a crash.
 */
export function createAgentService(options: AgentOptions): Service<AgentState> {
  return {
    restore: (restored) => restoreAgent(options, restored),
    step,
    audience: () => null,
    // Whose a volume is does not change as long as something is said of it.
    entitled: (state, peer, key) =>
      maySee("agent", peer, key) && isOwnersToSee(state, peer, key) && isBinToSee(state, peer, key),
    accepts: (peer: PeerName, key: string) => mayDesire("agent", peer, key) && isAgentKey(key),
    read: documentsOf("agent"),
    gathers: { forMs: gatherMs, isOne: ({ beats }, peer, key, value) => mayGather(beats, peer, key, value) },
    measure: measureAgent,
  };
}

function step(state: AgentState, input: Input, now: Instant): Step<AgentState> {
  const effects: Effect[] = [];
  const version = state.workVersion;
  const { started } = state;
  if (handleBeats(state.beats, input, { nowMs: now.ms, started }, effects)) return { state, effects };
  switch (input.kind) {
    case "start": {
      state.started = true;
      const known = [...Object.values(state.desired), state.volumes, state.leases, state.origins].flatMap((map) => [
        ...map.keys(),
      ]);
      for (const uid of new Set(known)) settle(state, uid, effects);
      break;
    }
    case "desired": {
      if (input.key === "seen") {
        if (input.value === null) state.marks.seen.delete(input.from);
        else state.marks.seen.set(input.from, input.value as unknown as AgentSeen);
        if (state.started) settleHeld(state, input.from, effects);
        break;
      }
      if (takeRequestsDesire(state.requests, input, effects)) {
        for (const uid of state.started ? state.leases.keys() : []) settle(state, uid, effects);
        break;
      }
      const read = readDesired(input.key, input.value);
      if (!read.ok) {
        effects.push(log("document/refused", { key: input.key, from: input.from, why: read.error }));
        const stored = state.started ? null : asItIs(input.key, state);
        if (stored !== null) keepDesired(state, input.from, stored, effects);
        break;
      }
      if (read.value.kind !== "succession" && !claim(state, read.value.uid, input.from, read.value.value !== null)) {
        const why = `it is a volume of ${state.owners.get(read.value.uid)?.manager}`;
        effects.push(log("document/refused", { key: input.key, from: input.from, why }));
        break;
      }
      keepDesired(state, input.from, read.value, effects);
      if (state.started) settle(state, read.value.uid, effects);
      break;
    }
    case "actual":
      if (takeDeclaration(state.evidence, input.from, input.key, input.value)) settleAsked(state, effects);
      break;
    case "reachable":
      if (hearMember(state.evidence, input.peer, input.reachable)) settleAsked(state, effects);
      break;
    case "earlier":
      forget(state, (manager) => manager === input.peer, effects);
      break;
    case "request":
      receive(state, input.id, input.request as unknown as AgentReport, effects);
      break;
    default:
      break;
  }
  sayOlder(state, effects);
  if (state.started)
    for (const [key, value] of requestsSaid(state.requests, state.leases)) publish(state, key, value, effects);
  if (state.workVersion !== version) answerWaiting(state, effects);
  return { state, effects };
}

/** A Storage Manager has said what it saw of this server: what waited for that goes on. */
function settleHeld(state: AgentState, manager: PeerName, effects: Effect[]): void {
  for (const [uid, owner] of state.owners) if (owner.manager === manager) settle(state, uid, effects);
}

function forget(state: AgentState, isGone: (manager: PeerName) => boolean, effects: Effect[]): void {
  for (const manager of forgetSeen(state.marks, isGone)) if (state.started) settleHeld(state, manager, effects);
}

function sayOlder(state: AgentState, effects: Effect[]): void {
  const why = whyOlder(state.marks);
  if (!state.started || state.marks.older === why) return;
  state.marks.older = why;
  state.workVersion += 1;
  effects.push(log("store/older", { why }));
  for (const uid of new Set([...state.leases.keys(), ...state.origins.keys()])) settle(state, uid, effects);
}

/** What hosts ask for may be granted now, or no more. */
function settleAsked(state: AgentState, effects: Effect[]): void {
  if (state.started) for (const uid of state.desired.succession.keys()) settle(state, uid, effects);
}

function keepDesired(state: AgentState, from: PeerName, { kind, uid, value }: AgentDesired, effects: Effect[]): void {
  if (kind !== "succession") {
    const map = state.desired[kind] as Map<Uid, unknown>;
    if (value === null) map.delete(uid);
    else map.set(uid, value);
    return;
  }
  if (keepAsked(state.desired.succession, from, uid, value)) publish(state, successionKey(from, uid), null, effects);
}

// --- reports of the executor -------------------------------------------------------------------------------------

function receive(state: AgentState, id: number, report: AgentReport, effects: Effect[]): void {
  if (report.kind === "work") {
    state.waiting.push({ id, known: report.known });
    answerWaiting(state, effects);
    return;
  }
  const marks = markAnswer(state, report, recordsOf(state, effects), effects);
  if (marks !== null) {
    if (report.kind !== "tick" && state.started) for (const uid of state.owners.keys()) settle(state, uid, effects);
    publishServer(state, effects);
    effects.push({ kind: "reply", id, response: marks });
    return;
  }
  const bin = binAnswer(state, report, effects);
  if (report.kind === "looked") takeLooked(state.requests, report.exports);
  else if (bin === null) record(state, report, effects);
  if ("volume" in report && state.started) settle(state, report.volume, effects);
  effects.push({ kind: "reply", id, response: { ok: true, ...(bin === null ? {} : (json(bin) as JsonObject)) } });
}

/** Null: it is no report about the bin as a whole. */
function binAnswer(state: AgentState, report: AgentReport, effects: Effect[]): BinAnswer | null {
  if (report.kind === "empty-bin") return emptyBin(state, report.files, effects);
  if (report.kind !== "bin") return null;
  keepBin(state, report.files, effects, (key, value) => publish(state, key, value, effects));
  publishServer(state, effects);
  // A volume may have waited for a file that is there no more, or no longer.
  if (state.started)
    for (const uid of state.desired.volume.keys())
      if (!state.volumes.has(uid) || state.missing.has(uid)) settle(state, uid, effects);
  return sweepBin(state, effects);
}

/** Takes a report into the records. One that does not fit what is wanted now is late, and says nothing any more. */
function record(state: AgentState, report: AgentReport, effects: Effect[]): void {
  switch (report.kind) {
    case "created":
    case "found":
    case "grown":
    case "exported": {
      if (report.kind === "exported") {
        state.failures.delete(`${report.volume}/export`);
        changeExport(state, report.volume, report.epoch, effects, (r) => confirmed(r, report.exportName));
      }
      const volume = withSize(state, report);
      if (volume !== null) writeVolume(state, report.volume, volume, effects);
      if (volume === null || report.kind === "exported") return;
      state.missing.delete(report.volume);
      state.failures.delete(`${report.volume}/file`);
      state.badImages.delete(report.volume);
      effects.push(log(`volume/${report.kind}`, { volume: report.volume, sizeMiB: volume.sizeMiB }));
      return;
    }
    case "removed":
      if (state.volumes.get(report.volume)?.removing !== true) return;
      state.failures.delete(`${report.volume}/file`);
      state.badImages.delete(report.volume);
      state.failures.delete(`${report.volume}/export`);
      state.usedMiB.delete(report.volume);
      state.missing.delete(report.volume);
      writeVolume(state, report.volume, null, effects);
      if (report.file !== null) addToBin(state, report.file, (key, value) => publish(state, key, value, effects));
      effects.push(log("volume/deleted", { volume: report.volume, file: report.file?.file ?? null }));
      writeOrigin(state, report.volume, null, effects);
      return;
    case "prepared":
      changeExport(state, report.volume, report.epoch, effects, (r) => prepared(r, report, freePort(state)));
      return;
    case "fenced": {
      state.failures.delete(`${report.volume}/export`);
      const origin = state.origins.get(report.volume);
      if (report.epoch === 0 && origin?.fencing === true) writeOrigin(state, report.volume, newOrigin, effects);
      const lease = confirmFence(state.leases.get(report.volume) ?? noLease, report.epoch);
      if (lease === null) return;
      writeLease(state, report.volume, lease, effects);
      effects.push(log("lease/fenced", { volume: report.volume, epoch: report.epoch }));
      return;
    }
    case "failed": {
      const without = report.missing === true ? withoutFile(state, report.volume) : null;
      if (without !== null) writeVolume(state, report.volume, without, effects);
      state.failures.set(`${report.volume}/${report.about}`, report.reason);
      if (report.badImage === true) state.badImages.add(report.volume);
      else state.badImages.delete(report.volume);
      effects.push(log("volume/failed", { volume: report.volume, about: report.about, reason: report.reason }));
      if (report.portTaken) {
        const epoch = state.work.get(report.volume)?.export?.epoch;
        if (epoch !== undefined)
          changeExport(state, report.volume, epoch, effects, (r) => moved(r, freePort(state, r.access?.port)));
      }
      return;
    }
    case "usage":
      for (const { volume, usedMiB } of report.volumes) {
        if (!state.volumes.has(volume)) continue;
        state.usedMiB.set(volume, usedMiB);
        if (state.started) publishVolume(state, volume, effects);
      }
      holdBack(state, effects);
      return;
    case "installation":
      effects.push(...takeInstallation(state.evidence, report.hosts, report.members));
      settleAsked(state, effects);
      if (report.managers.length > 0) forget(state, (manager) => !report.managers.includes(manager), effects);
      return;
    case "server":
      state.space = { totalMiB: report.totalMiB, freeMiB: report.freeMiB };
      publishServer(state, effects);
      holdBack(state, effects);
      return;
    case "images":
      for (const [key, image] of imageDocuments(state, report.images)) publish(state, key, image, effects);
      return;
  }
}

function holdBack(state: AgentState, effects: Effect[]): void {
  const { volumes, changes } = updateHeldBack(state);
  for (const { cell, held, usedMiB } of changes)
    effects.push(log(held ? "server/held-back" : "server/let-go", { cell, usedMiB, ...state.space }));
  if (state.started) for (const volume of volumes) settle(state, volume, effects);
}

type AnyExport = { readonly access: ExportAccess | null; readonly confirmed: boolean; readonly fencing: boolean };

/** Changes the lease of that very epoch (0: the origin's readers), if `change` finds that there is something to. */
function changeExport(
  state: AgentState,
  uid: Uid,
  epoch: number,
  effects: Effect[],
  change: <R extends AnyExport>(record: R) => R | null,
): void {
  if (epoch === 0) {
    const origin = state.origins.get(uid);
    const next = origin === undefined ? null : change(origin);
    if (next !== null) writeOrigin(state, uid, next, effects);
    return;
  }
  const lease = state.leases.get(uid);
  const next = lease?.epoch === epoch && lease.holder !== null ? change(lease) : null;
  if (next !== null) writeLease(state, uid, next, effects);
}

/** The lowest port that no export has, other than `not`. */
function freePort(state: AgentState, not?: number): number {
  let port = state.options.firstPort;
  while (state.portsInUse.has(port) || (not !== undefined && port <= not)) port += 1;
  return port;
}

function answerWaiting(state: AgentState, effects: Effect[]): void {
  if (!state.started) return;
  const still: typeof state.waiting = [];
  for (const request of state.waiting) {
    if (request.known === state.workVersion) still.push(request);
    else effects.push({ kind: "reply", id: request.id, response: answer(state) });
  }
  state.waiting = still;
}

const answer = (state: AgentState): Json =>
  whyOlder(state.marks) === null
    ? json({ version: state.workVersion, work: [...state.work.values()] })
    : json({ version: state.workVersion, work: [], hold: true });

// --- one volume, as a whole --------------------------------------------------------------------------------------

/** Brings records, wanted work and published state of one volume in line with what is desired. Idempotent. */
function settle(state: AgentState, uid: Uid, effects: Effect[]): void {
  const [asked, held] = [state.desired.lease.get(uid)?.epoch ?? 0, state.leases.get(uid) ?? noLease];
  const isExcused = asked > held.epoch + 1 && whyOlder(state.marks) === null;
  const since = isExcused ? adoptedSince(state.marks, held, asked) : null;
  if (since !== null) writeLease(state, uid, since, effects);
  if (asked > held.epoch + 1 && since === null) state.marks.behind.add(uid);
  else state.marks.behind.delete(uid);
  const isOlder = whyOlder(state.marks) !== null;
  if (!isOlder) settleOrigin(state, uid, effects);
  if (!isOlder) settleVolume(state, uid, effects);
  while (!isOlder) {
    const lease = state.leases.get(uid) ?? noLease;
    const asked = state.desired.succession.get(uid);
    const wanted = nextLease(state.desired.lease.get(uid), asked, lease, state.evidence);
    const next = advanceLease(lease, wanted, circumstances(state, uid));
    if (next === null) break;
    writeLease(state, uid, next, effects);
    const { epoch, holder, fencing } = next;
    effects.push(log(fencing ? "lease/fencing" : "lease/granted", { volume: uid, epoch, holder: json(holder) }));
  }
  const work = wantedWork(state, uid);
  if (JSON.stringify(work) !== JSON.stringify(state.work.get(uid) ?? null)) {
    if (work === null) state.work.delete(uid);
    else state.work.set(uid, work);
    state.workVersion += 1;
  }
  publishVolume(state, uid, effects);
  publishLease(state, uid, effects);
  publish(state, `readers/${uid}`, json(readersActual(state, uid)), effects);
  settleOwner(state, uid);
  publishServer(state, effects);
}

function circumstances(state: AgentState, uid: Uid): LeaseCircumstances {
  const volume = state.volumes.get(uid);
  const isThere = volume !== undefined && volume.sizeMiB !== null && !volume.removing && volume.doubted !== true;
  const usable = state.desired.volume.has(uid) && isThere;
  return { usable, isOrigin: state.origins.has(uid) };
}

function settleVolume(state: AgentState, uid: Uid, effects: Effect[]): void {
  const next = () => nextVolume(state, uid, () => inUse(state, uid) !== null);
  for (let volume = next(); volume !== null; volume = next()) {
    // Only one that begins anew.
    if (volume.sizeMiB === null && volume.found !== true) state.missing.delete(uid);
    writeVolume(state, uid, volume, effects);
  }
}

function settleOrigin(state: AgentState, uid: Uid, effects: Effect[]): void {
  const origin = state.origins.get(uid);
  const desired = state.desired.readers.has(uid);
  if (origin === undefined && desired && circumstances(state, uid).usable) writeOrigin(state, uid, newOrigin, effects);
  if (origin !== undefined && !desired && origin.access !== null && !origin.fencing)
    writeOrigin(state, uid, { ...origin, fencing: true }, effects);
}

function wantedWork(state: AgentState, uid: Uid): VolumeWork | null {
  const volume = state.volumes.get(uid);
  const lease = state.leases.get(uid) ?? noLease;
  const origin = state.origins.get(uid);
  const desired = state.desired.volume.get(uid);
  let file = fileWork(state, uid);
  let fence: VolumeWork["fence"] = null;
  let wanted: WantedExport | null = null;
  const waits = mayServe(state, uid, volume) ? {} : { wait: true as const };
  if (lease.fencing) fence = { epoch: lease.epoch };
  else if (origin?.fencing) fence = { epoch: 0 };
  else if (lease.holder !== null && heldBackReason(state, uid) !== null) {
    // Nothing runs, and nothing is given up: the lease, its name and its key stay.
  } else if (lease.holder !== null) {
    // Growing happens at a grant: once others know the export, its size is fixed, since NBD's is.
    const grow = lease.confirmed ? null : (desired?.sizeMiB ?? null);
    const { holder, epoch, access } = lease;
    wanted = {
      epoch,
      writable: true,
      sizeMiB: grow,
      access,
      holder: holder.host,
      ...growth(volume, desired),
      ...(isCounted(state.requests, holder) ? { counted: true as const } : {}),
      ...waits,
    };
  } else if (origin !== undefined && state.desired.readers.has(uid) && volume?.removing === false)
    wanted = { epoch: 0, writable: false, sizeMiB: null, access: origin.access, ...waits };
  if (fence === null) file ??= mayServe(state, uid, volume) ? growthAlone(state, uid) : null;
  if (file === null && fence === null && wanted === null) return null;
  return { volume: uid, file, fence, export: wanted };
}

// --- records -----------------------------------------------------------------------------------------------------

function writeVolume(state: AgentState, uid: Uid, value: VolumeRecord | null, effects: Effect[]): void {
  if (value === null) state.volumes.delete(uid);
  else state.volumes.set(uid, value);
  effects.push({ kind: "write", key: `volume/${uid}`, value: json(value) });
}

function writeLease(state: AgentState, uid: Uid, value: LeaseRecord, effects: Effect[]): void {
  exchangePort(state, state.leases.get(uid)?.access, value.access);
  state.leases.set(uid, value);
  effects.push({ kind: "write", key: `lease/${uid}`, value: json(value) });
}

function writeOrigin(state: AgentState, uid: Uid, value: OriginRecord | null, effects: Effect[]): void {
  if (value === null && !state.origins.has(uid)) return;
  exchangePort(state, state.origins.get(uid)?.access, value?.access);
  if (value === null) state.origins.delete(uid);
  else state.origins.set(uid, value);
  effects.push({ kind: "write", key: `readers/${uid}`, value: json(value) });
}

const recordsOf = (state: AgentState, effects: Effect[]): RecordWriters => ({
  volume: (uid, value) => writeVolume(state, uid, value, effects),
  lease: (uid, value) => writeLease(state, uid, value, effects),
  origin: (uid, value) => writeOrigin(state, uid, value, effects),
});

function exchangePort(state: AgentState, before?: ExportAccess | null, after?: ExportAccess | null): void {
  if (before) state.portsInUse.delete(before.port);
  if (after) state.portsInUse.add(after.port);
}

function publishVolume(state: AgentState, uid: Uid, effects: Effect[]): void {
  publish(state, `volume/${uid}`, json(volumeActual(state, uid, inUse(state, uid))), effects);
}

/** The room that there is, once it is known, and what is promised of it. */
function publishServer(state: AgentState, effects: Effect[]): void {
  if (state.space === null) return;
  const { server, address } = state.options;
  publish(
    state,
    "server",
    {
      server,
      address,
      ...state.space,
      ...binMiBOf(state),
      ...(json(markOf(state.marks)) as JsonObject),
      ...(json(promisedTo(state)) as JsonObject),
    },
    effects,
  );
}

function publishLease(state: AgentState, uid: Uid, effects: Effect[]): void {
  const desired = state.desired.lease.get(uid);
  const lease = state.leases.get(uid);
  const key = `lease/${uid}`;
  publish(state, `successor/${uid}`, json(successorOf(desired, lease ?? noLease)), effects);
  if (desired === undefined && (lease === undefined || !state.volumes.has(uid))) {
    publish(state, key, null, effects);
    tellHosts(state, uid, { phase: "ready", reason: null, epoch: 0, holder: null, layer: null }, effects);
    return;
  }
  const actual = leaseActual(state, uid, circumstances(state, uid));
  publish(state, key, json(actual), effects);
  tellHosts(state, uid, actual, effects);
}

/** Those that asked for a lease themselves. */
function tellHosts(state: AgentState, uid: Uid, actual: AgentLeaseActual, effects: Effect[]): void {
  const [marked, lease] = [state.desired.lease.get(uid), state.leases.get(uid) ?? noLease];
  const asked = state.desired.succession.get(uid) ?? new Map<PeerName, AgentLease>();
  for (const from of asked.keys()) {
    const told = successionActual(from, asked, marked, lease, actual, state.evidence);
    publish(state, successionKey(from, uid), json(told), effects);
  }
}

function publish(state: AgentState, key: string, value: Json, effects: Effect[]): void {
  const text = value === null ? undefined : JSON.stringify(value);
  if (state.published.get(key) === text) return;
  if (text === undefined) state.published.delete(key);
  else state.published.set(key, text);
  effects.push({ kind: "publish", key, value });
}

const log = (event: EventName, fields: JsonObject): Effect => ({ kind: "log", event, fields });
const json = (value: unknown): Json => value as Json;
