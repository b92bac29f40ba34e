import type { PeerName, Uid } from "../../model/identifiers.ts";
import type { Json, JsonObject } from "../../model/json.ts";
import type {
  AgentLease,
  AgentLeaseActual,
  AgentReaders,
  AgentReadersActual,
  AgentVolume,
  AgentVolumeActual,
} from "../documents.ts";
import type { Effect, Input, Restored, Service, Step } from "../env.ts";
import type { EventName } from "../event-names.ts";
import { mayDesire, maySee } from "../identity/permissions.ts";
import { type AgentDesired, isAgentKey, readDesired } from "./agent-documents.ts";
import {
  advanceLease,
  confirmed,
  confirmFence,
  type LeaseCircumstances,
  layerOf,
  moved,
  newOrigin,
  noLease,
  prepared,
  refusal,
} from "./agent-lease.ts";
import { measureAgent } from "./agent-measure.ts";
import {
  claim,
  isOwnersToSee,
  newVolume,
  type Owner,
  promisedTo,
  restoredOwners,
  settleOwner,
} from "./agent-owners.ts";
import { lostVolume, sizeRemark } from "./agent-remarks.ts";
import { keepAsked, nextLease, successionActual, successionKey, successorOf } from "./agent-succession.ts";
import type {
  AgentOptions,
  AgentReport,
  ExportAccess,
  LeaseRecord,
  OriginRecord,
  VolumeRecord,
  VolumeWork,
  WantedExport,
} from "./agent-work.ts";

/**
 * The storage agent: holds (volume, epoch, holder) durably and says which files and exports must be there.
 *
 * Everything about one volume is decided in `settle`, from the whole of what is wanted and recorded about it; inputs
 * only change one of the two and call it. Nothing is settled before `start`: a desired document that is missing then
 * is a tombstone that arrived just before a crash.
 */
export interface AgentState {
  readonly options: AgentOptions;
  started: boolean;
  readonly desired: {
    readonly volume: Map<Uid, AgentVolume>;
    readonly lease: Map<Uid, AgentLease>;
    readonly readers: Map<Uid, AgentReaders>;
    /** What hosts ask for themselves, by volume. */
    readonly succession: Map<Uid, Map<PeerName, AgentLease>>;
  };
  readonly volumes: Map<Uid, VolumeRecord>;
  readonly leases: Map<Uid, LeaseRecord>;
  readonly origins: Map<Uid, OriginRecord>;
  /** Of every volume of which something is wanted or there; and the sum for each manager. */
  readonly owners: Map<Uid, Owner>;
  readonly promisedMiB: Map<PeerName, number>;
  /** As the executor told of it last. */
  space: { readonly totalMiB: number; readonly freeMiB: number } | null;
  readonly portsInUse: Set<number>;
  /** Last failure the executor told of, per volume and subject (`<uid>/file`, `<uid>/export`). */
  readonly failures: Map<string, string>;
  readonly usedMiB: Map<Uid, number>;
  readonly images: Set<string>;
  readonly work: Map<Uid, VolumeWork>;
  workVersion: number;
  /** Requests for work that wait for a newer version. */
  waiting: { readonly id: number; readonly known: number }[];
  /** What was published, as text: the same is not said twice. */
  readonly published: Map<string, string>;
}

export function createAgentService(options: AgentOptions): Service<AgentState> {
  return {
    restore: (restored) => restore(options, restored),
    step,
    audience: () => null,
    // Whose a volume is does not change as long as something is said of it.
    entitled: (state, peer, key) => maySee("agent", peer, key) && isOwnersToSee(state, peer, key),
    accepts: (peer: PeerName, key: string) => mayDesire("agent", peer, key) && isAgentKey(key),
    measure: measureAgent,
  };
}

function restore(options: AgentOptions, restored: Restored): AgentState {
  const volumes = new Map<Uid, VolumeRecord>();
  const leases = new Map<Uid, LeaseRecord>();
  const origins = new Map<Uid, OriginRecord>();
  const portsInUse = new Set<number>();
  for (const [key, value] of restored.records) {
    const uid = key.slice(key.indexOf("/") + 1) as Uid;
    if (key.startsWith("volume/")) volumes.set(uid, value as unknown as VolumeRecord);
    if (key.startsWith("lease/")) leases.set(uid, value as unknown as LeaseRecord);
    if (key.startsWith("readers/")) origins.set(uid, value as unknown as OriginRecord);
  }
  for (const record of [...leases.values(), ...origins.values()])
    if (record.access !== null) portsInUse.add(record.access.port);
  return {
    options,
    started: false,
    desired: { volume: new Map(), lease: new Map(), readers: new Map(), succession: new Map() },
    volumes,
    leases,
    origins,
    owners: restoredOwners(volumes),
    promisedMiB: new Map(),
    space: null,
    portsInUse,
    failures: new Map(),
    usedMiB: new Map(),
    images: new Set(),
    work: new Map(),
    workVersion: 1,
    waiting: [],
    published: new Map(),
  };
}

function step(state: AgentState, input: Input): Step<AgentState> {
  const effects: Effect[] = [];
  const version = state.workVersion;
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
      const read = readDesired(input.key, input.value);
      if (!read.ok) {
        effects.push(log("document/refused", { key: input.key, from: input.from, why: read.error }));
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
    case "request":
      receive(state, input.id, input.request as unknown as AgentReport, effects);
      break;
    default:
      break;
  }
  if (state.workVersion !== version) answerWaiting(state, effects);
  return { state, effects };
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
  record(state, report, effects);
  if ("volume" in report && state.started) settle(state, report.volume, effects);
  effects.push({ kind: "reply", id, response: { ok: true } });
}

/** Takes a report into the records. One that does not fit what is wanted now is late, and says nothing any more. */
function record(state: AgentState, report: Exclude<AgentReport, { kind: "work" }>, effects: Effect[]): void {
  switch (report.kind) {
    case "created": {
      const volume = state.volumes.get(report.volume);
      if (volume === undefined || volume.removing || volume.sizeMiB !== null) return;
      state.failures.delete(`${report.volume}/file`);
      writeVolume(state, report.volume, { ...volume, sizeMiB: report.sizeMiB, boot: report.boot }, effects);
      effects.push(log("volume/created", { volume: report.volume, sizeMiB: report.sizeMiB }));
      return;
    }
    case "removed":
      if (state.volumes.get(report.volume)?.removing !== true) return;
      state.failures.delete(`${report.volume}/file`);
      state.failures.delete(`${report.volume}/export`);
      state.usedMiB.delete(report.volume);
      writeVolume(state, report.volume, null, effects);
      effects.push(log("volume/deleted", { volume: report.volume }));
      writeOrigin(state, report.volume, null, effects);
      return;
    case "prepared":
      changeExport(state, report.volume, report.epoch, effects, (r) => prepared(r, report, freePort(state)));
      return;
    case "exported": {
      state.failures.delete(`${report.volume}/export`);
      changeExport(state, report.volume, report.epoch, effects, (r) => confirmed(r, report.exportName));
      const volume = state.volumes.get(report.volume);
      if (volume !== undefined && volume.sizeMiB !== null && volume.sizeMiB !== report.sizeMiB)
        writeVolume(state, report.volume, { ...volume, sizeMiB: report.sizeMiB }, effects);
      return;
    }
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
    case "failed":
      state.failures.set(`${report.volume}/${report.about}`, report.reason);
      effects.push(log("volume/failed", { volume: report.volume, about: report.about, reason: report.reason }));
      if (report.portTaken) {
        const epoch = state.work.get(report.volume)?.export?.epoch;
        if (epoch !== undefined)
          changeExport(state, report.volume, epoch, effects, (r) => moved(r, freePort(state, r.access?.port)));
      }
      return;
    case "usage":
      for (const { volume, usedMiB } of report.volumes) {
        if (!state.volumes.has(volume)) continue;
        state.usedMiB.set(volume, usedMiB);
        if (state.started) publishVolume(state, volume, effects);
      }
      return;
    case "server":
      state.space = { totalMiB: report.totalMiB, freeMiB: report.freeMiB };
      publishServer(state, effects);
      return;
    case "images":
      for (const name of state.images)
        if (!report.images.some((image) => image.name === name)) publish(state, `image/${name}`, null, effects);
      state.images.clear();
      for (const image of report.images) {
        state.images.add(image.name);
        publish(state, `image/${image.name}`, { ...image }, effects);
      }
      return;
  }
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

const answer = (state: AgentState): Json => json({ version: state.workVersion, work: [...state.work.values()] });

// --- one volume, as a whole --------------------------------------------------------------------------------------

/** Brings records, wanted work and published state of one volume in line with what is desired. Idempotent. */
function settle(state: AgentState, uid: Uid, effects: Effect[]): void {
  settleOrigin(state, uid, effects);
  settleVolume(state, uid, effects);
  for (;;) {
    const lease = state.leases.get(uid) ?? noLease;
    const wanted = nextLease(state.desired.lease.get(uid), state.desired.succession.get(uid), lease);
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
  publishReaders(state, uid, effects);
  settleOwner(state, uid);
  publishServer(state, effects);
}

function circumstances(state: AgentState, uid: Uid): LeaseCircumstances {
  const volume = state.volumes.get(uid);
  const usable = state.desired.volume.has(uid) && volume !== undefined && volume.sizeMiB !== null && !volume.removing;
  return { usable, isOrigin: state.origins.has(uid) };
}

function settleVolume(state: AgentState, uid: Uid, effects: Effect[]): void {
  const desired = state.desired.volume.get(uid);
  const volume = state.volumes.get(uid);
  if (desired !== undefined && volume === undefined && desired.made !== true)
    writeVolume(state, uid, { ...newVolume(state.owners, uid), source: desired.source }, effects);
  if (desired === undefined && volume !== undefined && !volume.removing && inUse(state, uid) === null)
    writeVolume(state, uid, { ...volume, removing: true }, effects);
}

/** Why the file cannot be removed yet; null: nobody uses it. */
function inUse(state: AgentState, uid: Uid): string | null {
  const lease = state.leases.get(uid) ?? noLease;
  if (lease.holder !== null)
    return `waits until the lease of epoch ${lease.epoch} is fenced; ${lease.holder.vm} on ${lease.holder.host} holds it`;
  const origin = state.origins.get(uid);
  if (origin !== undefined && state.desired.readers.has(uid)) return "waits until no copy reads it any more";
  if (origin !== undefined && origin.access !== null) return "waits until its readers are cut off";
  return null;
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
  let file: VolumeWork["file"] = null;
  if (volume?.removing) file = { action: "remove" };
  else if (volume?.sizeMiB === null && desired !== undefined)
    file = { action: "create", source: volume.source, sizeMiB: desired.sizeMiB };
  let fence: VolumeWork["fence"] = null;
  let wanted: WantedExport | null = null;
  if (lease.fencing) fence = { epoch: lease.epoch };
  else if (origin?.fencing) fence = { epoch: 0 };
  else if (lease.holder !== null) {
    // Growing happens at a grant: once others know the export, its size is fixed, since NBD's is.
    const grow = lease.confirmed ? null : (desired?.sizeMiB ?? null);
    wanted = { epoch: lease.epoch, writable: true, sizeMiB: grow, access: lease.access };
  } else if (origin !== undefined && state.desired.readers.has(uid) && volume?.removing === false)
    wanted = { epoch: 0, writable: false, sizeMiB: null, access: origin.access };
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

function exchangePort(state: AgentState, before?: ExportAccess | null, after?: ExportAccess | null): void {
  if (before) state.portsInUse.delete(before.port);
  if (after) state.portsInUse.add(after.port);
}

// --- what is told ------------------------------------------------------------------------------------------------

function publishVolume(state: AgentState, uid: Uid, effects: Effect[]): void {
  const volume = state.volumes.get(uid);
  const desired = state.desired.volume.get(uid);
  if (volume === undefined) {
    const lost = {
      phase: "failed",
      reason: lostVolume(state.options.server),
      sizeMiB: null,
      usedMiB: null,
      boot: null,
    } as const;
    publish(state, `volume/${uid}`, desired === undefined ? null : json(lost satisfies AgentVolumeActual), effects);
    return;
  }
  const failure = state.failures.get(`${uid}/file`) ?? null;
  const { sizeMiB, boot } = volume;
  const told = { sizeMiB, usedMiB: state.usedMiB.get(uid) ?? null, boot };
  let actual: AgentVolumeActual;
  if (desired === undefined || volume.removing)
    actual = { phase: "deleting", reason: failure ?? inUse(state, uid), ...told };
  else if (sizeMiB === null) actual = { phase: failure === null ? "working" : "waiting", reason: failure, ...told };
  else actual = { phase: "ready", reason: sizeRemark(sizeMiB, desired.sizeMiB), ...told };
  publish(state, `volume/${uid}`, json(actual), effects);
}

/** The room that there is, once it is known, and what is promised of it. */
function publishServer(state: AgentState, effects: Effect[]): void {
  if (state.space === null) return;
  const { server, address } = state.options;
  publish(state, "server", { server, address, ...state.space, ...(json(promisedTo(state)) as JsonObject) }, effects);
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
  const { epoch, holder, access, confirmed: listens, fencing } = lease ?? noLease;
  const refused = desired === undefined ? null : refusal(lease ?? noLease, desired, circumstances(state, uid));
  const failure = state.failures.get(`${uid}/export`) ?? null;
  const told = { epoch, holder, layer: null };
  let actual: AgentLeaseActual;
  if (fencing) actual = { phase: "working", reason: failure ?? `epoch ${epoch} is being fenced`, ...told };
  else if (holder !== null && failure !== null) actual = { phase: "waiting", reason: failure, ...told };
  else if (holder !== null && access !== null && listens)
    actual = { phase: "ready", reason: refused, ...told, layer: layerOf(state.options, uid, access, true) };
  else if (holder !== null) actual = { phase: "working", reason: "the export is being started", ...told };
  else if (refused !== null) {
    const mayCome = desired?.epoch === epoch + 1 && !state.origins.has(uid);
    actual = { phase: mayCome ? "waiting" : "failed", reason: refused, ...told };
  } else actual = { phase: "ready", reason: null, ...told };
  publish(state, key, json(actual), effects);
  tellHosts(state, uid, actual, effects);
}

/** Those that asked for a lease themselves. */
function tellHosts(state: AgentState, uid: Uid, actual: AgentLeaseActual, effects: Effect[]): void {
  const [marked, lease] = [state.desired.lease.get(uid), state.leases.get(uid) ?? noLease];
  for (const [from, asked] of state.desired.succession.get(uid) ?? [])
    publish(state, successionKey(from, uid), json(successionActual(from, asked, marked, lease, actual)), effects);
}

function publishReaders(state: AgentState, uid: Uid, effects: Effect[]): void {
  const origin = state.origins.get(uid);
  const key = `readers/${uid}`;
  const failure = state.failures.get(`${uid}/export`) ?? null;
  let actual: AgentReadersActual | null;
  if (!state.desired.readers.has(uid))
    actual = origin?.fencing ? { phase: "deleting", reason: failure, layer: null } : null;
  else if (origin === undefined) {
    actual = { phase: "waiting", reason: "the volume's file is not there, or not yet", layer: null };
  } else if ((state.leases.get(uid) ?? noLease).holder !== null) {
    actual = { phase: "waiting", reason: "waits until the writable lease on it is fenced", layer: null };
  } else if (failure !== null) actual = { phase: "waiting", reason: failure, layer: null };
  else if (origin.access !== null && origin.confirmed && !origin.fencing)
    actual = { phase: "ready", reason: null, layer: layerOf(state.options, uid, origin.access, false) };
  else actual = { phase: "working", reason: "the export is being started", layer: null };
  publish(state, key, json(actual), effects);
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
