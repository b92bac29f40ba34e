import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import {
  type ActualConnection,
  type AgentLease,
  type AgentLeaseActual,
  type Attachment,
  actualKey,
  type BootRecord,
  type DesiredConnection,
  type Layer,
  type LeaseHolder,
  type Progress,
} from "../../documents/vocabulary.ts";
import { desire, log, progress, publish, write } from "../../outbox.ts";
import { fenceConcerns, isFenced } from "./fences/fences.ts";
import {
  type ConnectionRecord,
  describeHolder,
  epochsOf,
  holderOf,
  type LeaseRecord,
  type ManagerState,
  mark,
  mayUse,
  nameOf,
  provider,
  removeFrom,
  sameHolder,
  serverOf,
  serverTrouble,
  type VolumeRecord,
  type Wanted,
} from "./state.ts";
import { freeze, notReady, rootController, stillGrows, writerOf } from "./volumes.ts";

/*
 * One writer. A volume's lease goes through epochs, one at a time: the next is asked for only when the agent has reported
 * the present one, since the agent grants nothing but its current epoch plus one and a skipped epoch would never be granted.
 *
 *   free (no holder, confirmed) ──grant──► held ──the desire is gone or changed──► fencing (no holder) ──confirmed──► free
 *
 * Between two holders there is always an epoch without one, and a connection is withdrawn only when the agent has
 * confirmed that epoch: whoever sees it gone knows that its holder can write nothing any more. What the agent says wins
 * over what this manager remembers, so a manager that lost its store fences what it finds before it grants.
 */

const noLease: LeaseRecord = { epoch: 0, holder: null, connection: null };

/** Brings the writable lease of one volume a step further. */
export function reconcileLease(state: ManagerState, volume: Uid) {
  const record = state.volumes.get(volume);
  if (record === undefined || isTombstoned(state, volume, record)) return;
  const actual = state.agents.get(record.agent)?.leases.get(volume);
  let lease = adopt(state, volume, state.leases.get(volume) ?? noLease, actual);
  if (lease.epoch > 0) askFor(state, volume, record, lease);
  const reported = lease.epoch === 0 || actual?.epoch === lease.epoch;
  if (lease.holder !== null) {
    if (isKept(state, volume, lease) || isAskedAbout(state, volume, lease)) return;
    // Not reported: the agent may still refuse that epoch, so the same one is asked for without a holder. Had it been
    // granted after all, the agent keeps the holder and says so, and `adopt` leads to the next epoch.
    lease = { epoch: reported ? lease.epoch + 1 : lease.epoch, holder: null, connection: null };
    log(state.outbox, "lease/asked", { volume, path: record.path, epoch: lease.epoch, vm: null });
    return keepLease(state, volume, record, lease);
  }
  if (!reported || (lease.epoch > 0 && actual?.phase !== "ready")) return;
  releaseWriters(state, volume);
  const next = record.frozen ? null : nextWriter(state, volume, record);
  if (next === null) return;
  const holder = holderOf(next.document);
  const connection: ConnectionRecord = { client: next.client, volume, mode: "rw", holder };
  keepConnection(state, next.document.uid, connection);
  const asked = { epoch: lease.epoch + 1, vm: holder.vm, incarnation: holder.incarnation, host: holder.host };
  log(state.outbox, "lease/asked", { volume, path: record.path, ...asked });
  keepLease(state, volume, record, { epoch: lease.epoch + 1, holder, connection: next.document.uid });
}

/** After its tombstones a volume's lease is never asked for again. */
const isTombstoned = (state: ManagerState, volume: Uid, record: VolumeRecord): boolean =>
  !(state.outbox.desired.get(record.agent)?.has(`volume/${volume}`) ?? false);

function keepLease(state: ManagerState, volume: Uid, record: VolumeRecord, lease: LeaseRecord): void {
  write(state.outbox, `lease/${volume}`, lease);
  state.leases.set(volume, lease);
  askFor(state, volume, record, lease);
  // A copy may be waiting for the volume to be free, and a deletion for the fence.
  mark(state, volume);
}
function askFor(state: ManagerState, volume: Uid, record: VolumeRecord, lease: LeaseRecord): void {
  const open = isOpenToHosts(state, volume) ? ({ succession: true } as const) : {};
  const asked: AgentLease = { volume, epoch: lease.epoch, holder: lease.holder, ...open };
  desire(state.outbox, record.agent, `lease/${volume}`, asked);
}

/** The agent's durable state is the truth: an epoch above ours, or another holder at ours, replaces what we remember. */
function adopt(
  state: ManagerState,
  volume: Uid,
  lease: LeaseRecord,
  actual: AgentLeaseActual | undefined,
): LeaseRecord {
  if (actual === undefined || actual.epoch < lease.epoch) return lease;
  const connection = succeededBy(state, volume, actual.holder);
  const isSame = actual.epoch === lease.epoch && sameHolder(actual.holder, lease.holder);
  const isGranted = connection === null || (lease.connection !== null && state.connections.has(connection));
  if (isSame && (lease.holder === null || isGranted)) return lease;
  const adopted: LeaseRecord = { epoch: actual.epoch, holder: actual.holder, connection };
  if (actual.holder !== null) fenceConcerns(state, actual.holder.vm);
  log(state.outbox, "lease/adopted", { volume, epoch: actual.epoch, remembered: lease.epoch });
  write(state.outbox, `lease/${volume}`, adopted);
  state.leases.set(volume, adopted);
  if (connection !== null && actual.holder !== null) {
    const granted = state.connections.get(connection);
    const client = state.wantedConnections.get(connection)?.client;
    if (granted?.mode === "rw" && granted.volume === volume)
      keepConnection(state, connection, { ...granted, holder: actual.holder });
    // One that still counts for another volume is this one's when that has ended.
    else if (client !== undefined && granted?.mode !== "rw")
      keepConnection(state, connection, { client, volume, mode: "rw", holder: actual.holder });
  }
  return adopted;
}

function isKept(state: ManagerState, volume: Uid, lease: LeaseRecord): boolean {
  if (lease.connection === null) return mayBeExplained(state, volume) && !isSuperseded(state, volume, lease);
  const wanted = state.wantedConnections.get(lease.connection);
  if (wanted?.document.volume !== volume) return false;
  if (lease.holder !== null && isFencedFor(state, wanted, lease.holder)) return false;
  return sameHolder(holderOf(wanted.document), lease.holder) || mayHaveSucceeded(wanted, lease.holder);
}

const isFencedFor = (state: ManagerState, wanted: Wanted<DesiredConnection>, holder: LeaseHolder): boolean =>
  !isSuccession(wanted) && isFenced(state, wanted.client, holder);

/** Of the root controller's VM, whose host may have taken the lease itself for its next incarnation (decision 35). */
function isOpenToHosts(state: ManagerState, volume: Uid): boolean {
  for (const id of state.connectionsOf.get(volume) ?? []) {
    const wanted = state.wantedConnections.get(id);
    if (wanted?.document.volume === volume && isSuccession(wanted)) return true;
  }
  return false;
}
const isSuccession = ({ client, document }: Wanted<DesiredConnection>): boolean =>
  client === rootController && document.succession === true;

/** Its controller has yet to hear where it runs now: what it desires is of an earlier incarnation. */
const mayHaveSucceeded = (wanted: Wanted<DesiredConnection>, holder: LeaseHolder | null): boolean =>
  isSuccession(wanted) &&
  holder !== null &&
  holder.vm === wanted.document.vm &&
  holder.incarnation > wanted.document.incarnation;

/** The connection that a holder has which only the agent knew of; null: nobody wants it. */
function succeededBy(state: ManagerState, volume: Uid, holder: LeaseHolder | null): Uid | null {
  for (const id of state.connectionsOf.get(volume) ?? []) {
    const wanted = state.wantedConnections.get(id);
    if (wanted === undefined || wanted.document.volume !== volume) continue;
    // Whoever is given the lease is told its secrets: nobody else's desire counts.
    const owner = state.volumes.get(volume)?.client;
    const { client, document } = wanted;
    if (owner !== undefined && client !== owner && !mayUse(state, "connect", volume, client, document.vm)) continue;
    if (sameHolder(holderOf(document), holder) || mayHaveSucceeded(wanted, holder)) return id;
  }
  return null;
}

/** Who desires a holder that only the agent remembers may not have said so yet (`recovery/recovery.ts`). */
const mayBeExplained = ({ explained, lost, spoke, volumes }: ManagerState, volume: Uid): boolean =>
  !explained || (lost && !spoke.has(volumes.get(volume)?.client ?? provider));

/** A later incarnation of the holder is desired, or the volume is not desired any more. */
function isSuperseded(state: ManagerState, volume: Uid, { holder }: LeaseRecord): boolean {
  if (!state.wantedVolumes.has(volume)) return true;
  return desiresFor(state, volume).some(({ vm, incarnation }) => vm === holder?.vm && incarnation > holder.incarnation);
}

/**
 * Whoever comes after the holder does not know where it runs, and has yet to say that it ended there. Its number may well be
 * the lower one: the same backup may have been restored before, with a higher one drawn (decision 73).
 */
function isAskedAbout(state: ManagerState, volume: Uid, { holder }: LeaseRecord): boolean {
  return desiresFor(state, volume).some(
    (desire) => desire.asksFirst === true && desire.vm === holder?.vm && !sameHolder(holderOf(desire), holder),
  );
}

/** Of those who may use the volume: nobody else's desire keeps a lease or ends it. */
const desiresFor = (state: ManagerState, volume: Uid): readonly DesiredConnection[] =>
  [...(state.connectionsOf.get(volume) ?? [])].flatMap((id) => {
    const { client, document } = state.wantedConnections.get(id) ?? {};
    if (client === undefined || document?.volume !== volume) return [];
    return mayUse(state, "connect", volume, client, document.vm) ? [document] : [];
  });

/** The volume is confirmed to have no holder: no connection may still count as writing it. */
function releaseWriters(state: ManagerState, volume: Uid): void {
  for (const id of [...(state.connectionsOf.get(volume) ?? [])]) {
    const record = state.connections.get(id);
    if (record?.volume === volume && record.mode === "rw") dropConnection(state, id, record);
  }
}

function nextWriter(state: ManagerState, volume: Uid, record: VolumeRecord): Wanted<DesiredConnection> | null {
  const wantedVolume = state.wantedVolumes.get(volume);
  if (wantedVolume === undefined || wantedVolume.document.access === "ro" || !isReady(state, volume)) return null;
  for (const id of state.connectionsOf.get(volume) ?? []) {
    const wanted = state.wantedConnections.get(id);
    if (wanted === undefined || wanted.document.volume !== volume || state.connections.has(id)) continue;
    if (isFencedFor(state, wanted, holderOf(wanted.document))) continue;
    if (wanted.client === record.client || mayUse(state, "connect", volume, wanted.client, wanted.document.vm))
      return wanted;
  }
  return null;
}

const isReady = (state: ManagerState, volume: Uid): boolean => {
  const record = state.volumes.get(volume);
  return record !== undefined && state.agents.get(record.agent)?.volumes.get(volume)?.phase === "ready";
};

function keepConnection(state: ManagerState, id: Uid, record: ConnectionRecord): void {
  write(state.outbox, `connection/${id}`, record);
  state.connections.set(id, record);
}
/** A connection is over: nobody can write under it any more. */
function dropConnection(state: ManagerState, id: Uid, record: ConnectionRecord): void {
  write(state.outbox, `connection/${id}`, null);
  state.connections.delete(id);
  state.unsettled.add(`connection/${id}`);
  const wanted = state.wantedConnections.get(id);
  if (wanted?.document.volume !== record.volume) removeFrom(state.connectionsOf, record.volume, id);
  if (wanted === undefined) publish(state.outbox, actualKey(record.client, `connection/${id}`), null);
  else mark(state, wanted.document.volume);
  mark(state, record.volume);
}

/** Says how far one connection of a volume is. Runs after `reconcileLease` of that volume. */
export function reconcileConnection(state: ManagerState, id: Uid, volume: Uid) {
  let record = state.connections.get(id);
  const wanted = state.wantedConnections.get(id);
  // Read-only ends at once: there is nothing to fence.
  let changed =
    record !== undefined &&
    (wanted === undefined ||
      wanted.document.volume !== record.volume ||
      !sameHolder(record.holder, holderOf(wanted.document)));
  if (record?.mode === "ro" && changed) {
    dropConnection(state, id, record);
    record = undefined;
    changed = false;
  }
  if (wanted === undefined) {
    if (record === undefined) return;
    const reason = `waiting until the lease of ${describeHolder(record.holder)} is fenced`;
    return publishConnection(state, id, record.client, record.holder.incarnation, progress("deleting", reason), null);
  }
  if (record === undefined && wanted.document.volume !== volume) return;
  const { incarnation } = wanted.document;
  if (record !== undefined && changed) {
    const reason = `waiting until the lease of ${describeHolder(record.holder)} on "${nameOf(state, record.volume)}" is fenced`;
    return publishConnection(state, id, wanted.client, incarnation, progress("waiting", reason), null);
  }
  const granted = record ?? grantReadOnly(state, id, wanted);
  if ("phase" in granted) return publishConnection(state, id, wanted.client, incarnation, granted, null);
  const attachment = compose(state, granted);
  if ("phase" in attachment) return publishConnection(state, id, wanted.client, incarnation, attachment, null);
  publishConnection(state, id, wanted.client, incarnation, progress("ready"), attachment);
}

function publishConnection(
  state: ManagerState,
  id: Uid,
  client: ConnectionRecord["client"],
  incarnation: number,
  what: Progress & Pick<ActualConnection, "hidden">,
  attachment: Attachment | null,
): void {
  const actual: ActualConnection = { ...what, incarnation, attachment, ...holderSaid(state, id) };
  publish(state.outbox, actualKey(client, `connection/${id}`), actual);
}

/**
 * The root controller believes no host that it runs there before the agent has said so (decision 49), and one whose store was
 * put back hears where its own VM has the lease that it would take (decision 74).
 */
function holderSaid(state: ManagerState, id: Uid): Pick<ActualConnection, "holder"> {
  const wanted = state.wantedConnections.get(id);
  if (wanted === undefined || !(isSuccession(wanted) || wanted.document.asksFirst === true)) return {};
  const { volume, vm } = wanted.document;
  const agent = state.agents.get(state.volumes.get(volume)?.agent ?? ("" as PeerName));
  const holder = agent?.leases.get(volume)?.holder ?? null;
  const isTold = isSuccession(wanted) || (holder?.vm === vm && mayUse(state, "connect", volume, wanted.client, vm));
  return { holder: isTold ? holder : null };
}

/** Attaches an immutable or read-only volume through its readers; otherwise says what a writer waits for. */
function grantReadOnly(
  state: ManagerState,
  id: Uid,
  { client, document }: Wanted<DesiredConnection>,
): ConnectionRecord | (Progress & Pick<ActualConnection, "hidden">) {
  const { volume } = document;
  if (isFencedFor(state, { client, document }, holderOf(document)))
    return progress(
      "waiting",
      `incarnation ${document.incarnation} of its VM is fenced, and is given nothing any more`,
    );
  const record = state.volumes.get(volume);
  const name = nameOf(state, volume);
  const known = state.wantedVolumes.get(volume) ?? record;
  if (known === undefined || !mayUse(state, "connect", volume, client, document.vm)) {
    return { ...progress("waiting", `no volume ${volume} is visible to this cell`), hidden: true };
  }
  const wantedVolume = state.wantedVolumes.get(volume);
  if (wantedVolume === undefined) return progress("waiting", `"${name}" is being deleted`);
  if (record === undefined) return progress("waiting", `"${name}" has no place yet`);
  if (!isReady(state, volume)) return progress("waiting", notReady(state, volume));
  const readOnly = record.frozen || wantedVolume.document.access === "ro";
  const writer = readOnly && !record.frozen ? writerOf(state, volume) : null;
  const growing = readOnly && !record.frozen ? stillGrows(state, volume, record) : null;
  if (growing !== null && writer === null) return progress("waiting", growing);
  if (readOnly && writer === null) {
    freeze(state, volume);
    const granted: ConnectionRecord = { client, volume, mode: "ro", holder: holderOf(document) };
    keepConnection(state, id, granted);
    return granted;
  }
  const lease = state.leases.get(volume);
  if (lease?.holder) return progress("waiting", `"${name}" is being written by ${describeHolder(lease.holder)}`);
  const trouble = troubleOf(state, record);
  return progress("waiting", trouble ?? `waiting until the last lease of "${name}" is fenced`);
}

const troubleOf = (state: ManagerState, record: VolumeRecord): string | null => {
  const agent = state.agents.get(record.agent);
  const trouble = agent === undefined ? null : serverTrouble(agent);
  return trouble === null ? null : `${trouble}, which has "${record.path}"`;
};

/** The layers of a volume from itself down to its first origin, or what is still missing. */
function compose(state: ManagerState, granted: ConnectionRecord): Attachment | Progress {
  const layers: Layer[] = [];
  let boot: BootRecord | null = null;
  let sizeMiB = 0;
  let growToMiB: number | null = null;
  let epoch = 0;
  let pristine = granted.mode === "rw";
  for (let at: Uid | null = granted.volume; at !== null; ) {
    const record: VolumeRecord | undefined = state.volumes.get(at);
    const agent = record && state.agents.get(record.agent);
    const volume = agent?.volumes.get(at);
    if (record === undefined)
      return progress("waiting", `"${nameOf(state, at)}", of which it is a copy, is on no storage server`);
    if (agent === undefined) {
      return progress("waiting", `the storage server of "${nameOf(state, at)}" is no longer part of the installation`);
    }
    const trouble = troubleOf(state, record);
    if (volume === undefined) {
      return progress(
        "waiting",
        trouble ?? `waiting to hear of "${record.path}" from storage server ${serverOf(agent.name)}`,
      );
    }
    if (volume.phase !== "ready") return progress("waiting", notReady(state, at));
    const top = at === granted.volume;
    const source = top && granted.mode === "rw" ? agent.leases.get(at) : agent.readers.get(at);
    if (top && granted.mode === "rw") {
      const lease = state.leases.get(at);
      const held = source as AgentLeaseActual | undefined;
      if (lease === undefined || held?.epoch !== lease.epoch || !sameHolder(held.holder, granted.holder)) {
        const granting = `waiting for ${record.agent} to grant epoch ${lease?.epoch ?? 0} of "${record.path}"`;
        return progress(trouble === null ? "working" : "waiting", trouble ?? held?.reason ?? granting);
      }
      epoch = lease.epoch;
    }
    if (source?.phase !== "ready" || source.layer === null) {
      const serving = source?.reason ?? `waiting for ${record.agent} to serve "${record.path}"`;
      const waits = trouble !== null || source?.phase === "waiting";
      return progress(waits ? "waiting" : "working", trouble ?? serving);
    }
    layers.push(source.layer);
    pristine &&= epochsOf(state, agent, at) === (top ? 1 : 0);
    if (top) {
      sizeMiB = record.sizeMiB;
      const isSmaller = granted.mode === "rw" && volume.sizeMiB !== null && volume.sizeMiB < sizeMiB;
      if (isSmaller && (volume.roomMiB ?? 0) >= sizeMiB) growToMiB = sizeMiB;
    }
    boot ??= volume.boot;
    at = record.origin;
  }
  const untouched = pristine && boot?.saved !== undefined ? ({ pristine: true } as const) : {};
  const grows = growToMiB === null ? {} : { growToMiB };
  return { volume: granted.volume, epoch, sizeMiB, ...grows, layers, boot, ...untouched };
}
