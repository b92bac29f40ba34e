import { type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { isServiceImage, isUpload } from "../../../model/cell/image-name.ts";
import { limits } from "../../../model/limits.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import {
  type ActualVolume,
  type AgentReaders,
  type AgentVolume,
  actualKey,
  type DesiredVolume,
  type Phase,
  type Progress,
} from "../../documents/vocabulary.ts";
import type { OriginLacks, VolumeSize } from "../../documents/volumes.ts";
import { desire, log, progress, publish, write } from "../../outbox.ts";
import { holdsNothing, isInBin } from "../bin.ts";
import { copyNeedsMiB, overcommit } from "../offers.ts";
import { binnedOf, hasOnlyBinned, leaveToBin } from "./binned.ts";
import { grow, sizes } from "./growth.ts";
import { heldSentence, isHeldFor, noteHeldFor, stillHeldFor } from "./left/holds.ts";
import { aboutOf, imageUnderCopies, noteOriginImage, otherImage } from "./recovery/origin-image.ts";
import { adopt, adoptOrigins, findVolume } from "./recovery/recovery.ts";
import { heldCopy } from "./recovery/unclaimed.ts";
import {
  type AgentView,
  addTo,
  describeHolder,
  forgetVolume,
  holderOf,
  keepVolume,
  layersOf,
  type ManagerState,
  mark,
  mayUse,
  nameOf,
  promisedMiB,
  provider,
  removeFrom,
  serverOf,
  serverTrouble,
  type VolumeRecord,
  type Wanted,
} from "./state.ts";

/** Brings one volume a step further: places it, follows what its agent says, or takes it away. */
export function reconcileVolume(state: ManagerState, volume: Uid): void {
  const wanted = state.wantedVolumes.get(volume);
  leaveToBin(state, volume);
  const record = state.volumes.get(volume);
  state.unplaced.delete(volume);
  if (wanted?.document.origin.kind === "copy") removeFrom(state.waitingCopiesOf, wanted.document.origin.volume, volume);
  if (record !== undefined) {
    if (wanted === undefined) deleteVolume(state, volume, record);
    else followVolume(state, volume, record, wanted.document);
  } else if (wanted !== undefined) {
    placeVolume(state, volume, wanted);
  } else {
    const [copy] = state.copiesOf.get(volume) ?? [];
    const above = copy === undefined ? undefined : state.volumes.get(copy);
    if (above !== undefined) adoptOrigins(state, above);
  }
}

export function publishVolume(
  state: ManagerState,
  client: PeerName,
  volume: Uid,
  what: Progress & VolumeSize & OriginLacks & Pick<ActualVolume, "available">,
  record: VolumeRecord | null,
): void {
  const actual: ActualVolume = {
    ...what,
    server: record === null ? null : serverOf(record.agent),
    sizeMiB: record?.sizeMiB ?? null,
    ...(record?.heldFor === undefined ? {} : { held: true as const, heldFor: record.heldFor }),
  };
  publish(state.outbox, actualKey(client, `volume/${volume}`), actual);
}

/** What is desired of a volume that has no place yet. A place is durable before the agent hears of it, and never changes. */
function placeVolume(state: ManagerState, volume: Uid, wanted: Wanted<DesiredVolume>): void {
  const { client, document } = wanted;
  const found = findVolume(state, volume, wanted);
  if (found?.ok === true) {
    adopt(state, volume, found.value);
    adoptOrigins(state, found.value);
    followVolume(state, volume, found.value, document);
    return;
  }
  const plan = found ?? planVolume(state, wanted);
  if (!plan.ok) {
    state.unplaced.add(volume);
    if (document.origin.kind === "copy") addTo(state.waitingCopiesOf, document.origin.volume, volume);
    publishVolume(state, client, volume, plan.error, null);
    return;
  }
  const record = plan.value;
  if (record.origin !== null) freeze(state, record.origin);
  write(state.outbox, `volume/${volume}`, record);
  keepVolume(state, volume, record);
  log(state.outbox, "volume/placed", { volume, path: record.path, agent: record.agent, sizeMiB: record.sizeMiB });
  mark(state, volume);
  followVolume(state, volume, record, document);
}

type Obstacle = Progress & OriginLacks;
const waiting = (reason: string) => fail(progress("waiting", reason));
const hidden = (volume: Uid) =>
  fail({ ...progress("waiting", `no volume ${volume} is visible to this cell`), hidden: true as const });
const failed = (reason: string) => fail(progress("failed", reason));

/**
 * What the services themselves boot is the provider's: to every other cell there is no `service`, and no `service-2`. What somebody uploaded is
 * for the cell that has persistent volumes, whoever learned of its name.
 */
const isForCell = (image: string, client: PeerName): boolean =>
  isUpload(image) ? client === primaryController : !isServiceImage(image) || client === rootController;
export const rootController = peerName("controller.root");
const primaryController = peerName("controller.primary");

/** Decides place, size and source of a new volume, or says why it cannot be made now (waiting) or at all (failed). */
function planVolume(state: ManagerState, wanted: Wanted<DesiredVolume>): Result<VolumeRecord, Obstacle> {
  const { client, document } = wanted;
  const common = { client, cell: document.cell, path: document.path, frozen: false };
  const reachable = [...state.agents.values()].filter((agent) => agent.reachable !== false && agent.server !== null);
  if (reachable.length === 0) {
    const servers = [...state.agents.keys()].map(serverOf).join(", ");
    return waiting(servers === "" ? "there is no storage server" : `no storage server is reachable (${servers})`);
  }
  const back = planFromBin(state, wanted);
  if (back !== null) return back;
  const { origin } = document;
  if (origin.kind === "copy") {
    const source = planOrigin(state, wanted, origin.volume);
    if (!source.ok) return source;
    const originMiB = wholeMiB(state, origin.volume, source.value);
    const sizeMiB = document.sizeMiB ?? originMiB;
    if (sizeMiB < originMiB) {
      return failed(`a copy of "${source.value.path}" needs at least its size of ${originMiB} MiB, not ${sizeMiB} MiB`);
    }
    if (layersOf(state, origin.volume) >= limits.layers) {
      return failed(
        `"${source.value.path}" is the last of ${limits.layers} volumes of which each is a copy of the one before: no more are allowed, so copy one of the first of them`,
      );
    }
    const agent = choose(state, reachable, copyNeedsMiB, sizeMiB);
    if (agent === null) return noRoom(state, reachable, copyNeedsMiB);
    return ok({ ...common, agent: agent.name, source: { kind: "overlay" }, origin: origin.volume, sizeMiB });
  }
  if (origin.kind === "empty") {
    const sizeMiB = document.sizeMiB ?? 0;
    const agent = choose(state, reachable, sizeMiB, sizeMiB);
    if (agent === null) return noRoom(state, reachable, sizeMiB);
    return ok({ ...common, agent: agent.name, source: { kind: "empty" }, origin: null, sizeMiB });
  }
  const under = imageUnderCopies(state, document.uid);
  const hasImage = ({ images }: (typeof reachable)[number], image: string): boolean =>
    images.has(image) && isForCell(image, client) && (under === null || images.get(image)?.digest === under);
  const having = reachable.filter((agent) => hasImage(agent, origin.image));
  if (having.length === 0 && under !== null) return waiting(otherImage(origin.image, under));
  if (having.length === 0) {
    // Persistent volumes are many people's, who read this: no upload is named to any of them.
    const names = [...new Set(reachable.flatMap(({ images }) => [...images.keys()]))]
      .filter((image) => !isUpload(image) && isForCell(image, client))
      .sort();
    const silent = [...state.agents.values()]
      .filter((agent) => !reachable.includes(agent))
      .map(({ name }) => serverOf(name));
    const none = `no image "${origin.image}"; there are: ${names.length === 0 ? "none" : names.join(", ")}`;
    if (silent.length > 0) return waiting(`${none}; not reachable: ${silent.join(", ")}`);
    return fail({ ...progress("waiting", none), noImage: true as const });
  }
  const imageMiB = Math.max(...having.map((agent) => agent.images.get(origin.image)?.sizeMiB ?? 0));
  const sizeMiB = document.sizeMiB ?? imageMiB;
  if (sizeMiB < imageMiB) return failed(`image "${origin.image}" needs at least ${imageMiB} MiB, not ${sizeMiB} MiB`);
  const agent = choose(state, having, sizeMiB, sizeMiB);
  if (agent === null) return noRoom(state, having, sizeMiB);
  const source = { kind: "image", image: origin.image, ...(under === null ? {} : { digest: under }) } as const;
  return ok({ ...common, agent: agent.name, source, origin: null, sizeMiB, frozen: under !== null });
}

/** A volume whose former file is in a bin is not made anew; one that an operator brings back begins with it. Null: neither. */
function planFromBin(state: ManagerState, wanted: Wanted<DesiredVolume>): Result<VolumeRecord, Obstacle> | null {
  const { client, document } = wanted;
  const { uid, cell, path, origin } = document;
  const found = binnedOf(state, uid, cell, path);
  const [first, ...more] = found.filter(({ binned }) => binned.offered);
  if (found.length === 0) return null;
  if (first === undefined) {
    const all = [...state.agents.values()].flatMap(({ bin }) => [...bin.values()]);
    const former = found.find(({ binned }) => !holdsNothing(binned, all));
    if (former !== undefined) return waiting(isInBin(serverOf(former.agent.name), former.binned));
    // What was desired of it there has been taken back (`leaveToBin`).
    const speaks = found.find(({ agent }) => hasOnlyBinned(agent, uid));
    return speaks === undefined
      ? null
      : waiting(`${serverOf(speaks.agent.name)} has yet to forget that it was deleted`);
  }
  const name = `${serverOf(first.agent.name)}/${first.binned.file}`;
  if (more.length > 0) {
    const names = [first, ...more].map(({ agent, binned }) => `${serverOf(agent.name)}/${binned.file}`);
    return waiting(
      `several files are to be brought back as "${path}": ${names.join(", ")}; empty those that are not meant`,
    );
  }
  const { file, volume, overlay, about, sizeMiB } = first.binned;
  const emptied = `\`cells bin empty ${name}\` for it to be made anew`;
  const from = { file, volume };
  const common = { client, cell, path, agent: first.agent.name, frozen: isCopied(state, uid), sizeMiB, from };
  if (!overlay) {
    if (origin.kind === "copy")
      return failed(
        `${name}, which is to be brought back, is no copy: make it an empty volume or one of an image, or ${emptied}`,
      );
    return ok({ ...common, source: { kind: "empty" }, origin: null });
  }
  if (origin.kind !== "copy")
    return failed(
      `${name}, which is to be brought back, is a copy of ${about?.origin}: make it a copy of that, or ${emptied}`,
    );
  const isOrigin = origin.volume === about?.origin || state.volumes.get(origin.volume)?.from?.volume === about?.origin;
  if (!isOrigin)
    return failed(
      `${name}, which is to be brought back, is a copy of ${about?.origin}, not of "${nameOf(state, origin.volume)}": ${emptied}`,
    );
  const source = planOrigin(state, wanted, origin.volume);
  return source.ok ? ok({ ...common, source: { kind: "overlay" }, origin: origin.volume }) : source;
}

const isCopied = ({ copiesOf, copiesHeldOf }: ManagerState, volume: Uid): boolean =>
  copiesOf.has(volume) || copiesHeldOf.has(volume);

/** May this volume become (or be) the immutable origin of this copy now? */
function planOrigin(
  state: ManagerState,
  { client, document }: Wanted<DesiredVolume>,
  origin: Uid,
): Result<VolumeRecord, Obstacle> {
  const record = state.volumes.get(origin);
  // The same sentence for a foreign volume as for none: a cell learns nothing about what others have.
  const isGranted = mayUse(state, "copy", origin, client, null) || isHeldFor(state, record, document);
  if (record === undefined || !isGranted) {
    const own = state.wantedVolumes.get(origin)?.client === client;
    return own ? waiting(`"${nameOf(state, origin)}" has no place yet`) : hidden(origin);
  }
  // What is held is there to be copied, whoever has taken it back.
  if (!state.wantedVolumes.has(origin) && record.heldFor === undefined)
    return waiting(`"${record.path}" is being deleted`);
  if (record.frozen) return ok(record);
  const actual = state.agents.get(record.agent)?.volumes.get(origin);
  if (actual?.phase !== "ready") return waiting(notReady(state, origin));
  const growing = stillGrows(state, origin, record);
  if (growing !== null) return waiting(growing);
  const writer = writerOf(state, origin);
  if (writer !== null)
    return waiting(`"${record.path}" is being written by ${writer}; a copy waits until nobody writes`);
  return ok(record);
}

/** Its size as its server has it, of which an older store may know less. */
const wholeMiB = ({ agents }: ManagerState, volume: Uid, { agent, sizeMiB }: VolumeRecord): number =>
  Math.max(sizeMiB, agents.get(agent)?.volumes.get(volume)?.sizeMiB ?? 0);

/** Why a volume is not made immutable yet: it has not all that it was promised, and never would; null: it has. */
export function stillGrows(
  { agents }: ManagerState,
  volume: Uid,
  { agent, path, sizeMiB }: VolumeRecord,
): string | null {
  const hasMiB = agents.get(agent)?.volumes.get(volume)?.sizeMiB ?? null;
  return hasMiB === null || hasMiB >= sizeMiB ? null : `"${path}" still grows to ${sizeMiB} MiB`;
}

/** Why a volume cannot be used yet: what its server says, or that the server says nothing. */
export function notReady(state: ManagerState, volume: Uid): string {
  const agent = state.agents.get(state.volumes.get(volume)?.agent ?? peerName(""));
  const why = (agent && serverTrouble(agent)) ?? agent?.volumes.get(volume)?.reason ?? null;
  return `"${nameOf(state, volume)}" is not ready yet${why === null ? "" : `: ${why}`}`;
}

/**
 * Who writes the volume or is about to. A VM that merely restarts still counts between its incarnations, or a waiting copy
 * would take its disk away just then.
 */
export function writerOf(state: ManagerState, volume: Uid): string | null {
  const lease = state.leases.get(volume);
  if (lease?.holder) return describeHolder(lease.holder);
  const agent = state.agents.get(state.volumes.get(volume)?.agent ?? peerName(""));
  const actual = agent?.leases.get(volume);
  if (lease !== undefined && (actual?.epoch !== lease.epoch || actual.phase !== "ready")) {
    return "a VM whose lease is still being fenced";
  }
  for (const id of state.connectionsOf.get(volume) ?? []) {
    const record = state.connections.get(id);
    if (record?.volume === volume && record.mode === "rw") return describeHolder(record.holder);
    const wanted = state.wantedConnections.get(id);
    const readOnly = state.wantedVolumes.get(volume)?.document.access === "ro";
    if (
      wanted?.document.volume === volume &&
      !readOnly &&
      mayUse(state, "connect", volume, wanted.client, wanted.document.vm)
    ) {
      return describeHolder(holderOf(wanted.document));
    }
  }
  return null;
}

/** Makes a volume immutable for good: durable here, and served read-only by its agent from now on. */
export function freeze(state: ManagerState, volume: Uid): void {
  const record = state.volumes.get(volume);
  if (record === undefined) return;
  if (!record.frozen) {
    const frozen = { ...record, frozen: true };
    write(state.outbox, `volume/${volume}`, frozen);
    keepVolume(state, volume, frozen);
    log(state.outbox, "volume/frozen", { volume, path: record.path });
    mark(state, volume);
  }
  const readers: AgentReaders = { volume };
  desire(state.outbox, record.agent, `readers/${volume}`, readers);
}

/** Spread: the server with the most space left once everything promised on it is written; ties by name. */
function choose(
  state: ManagerState,
  agents: readonly AgentView[],
  needsMiB: number,
  sizeMiB: number,
): AgentView | null {
  let best: AgentView | null = null;
  const left = (agent: AgentView) => (agent.server?.freeMiB ?? 0) - promisedMiB(state, agent);
  for (const agent of agents) {
    const { freeMiB, totalMiB } = agent.server ?? { freeMiB: 0, totalMiB: 0 };
    if (freeMiB < needsMiB || promisedMiB(state, agent) + sizeMiB > overcommit * totalMiB) continue;
    if (best === null || left(agent) > left(best) || (left(agent) === left(best) && agent.name < best.name))
      best = agent;
  }
  return best;
}
/** Who is not heard may have room. */
function noRoom(state: ManagerState, agents: readonly AgentView[], needsMiB: number): Result<never, Obstacle> {
  const isAllHeard = [...state.agents.values()].every(({ reachable, server }) => reachable === true && server !== null);
  const full = progress("waiting", noSpace(state, agents, needsMiB));
  return fail(isAllHeard ? { ...full, noRoom: true as const } : full);
}
const noSpace = (state: ManagerState, agents: readonly AgentView[], needsMiB: number): string =>
  `no storage server has room for ${needsMiB} MiB: ${agents
    .map(
      (agent) =>
        `${serverOf(agent.name)} has ${agent.server?.freeMiB ?? 0} MiB free, ${promisedMiB(state, agent)} MiB promised`,
    )
    .join("; ")}`;

function followVolume(state: ManagerState, volume: Uid, before: VolumeRecord, document: DesiredVolume): void {
  const agent = state.agents.get(before.agent);
  const actual = agent?.volumes.get(volume);
  const named = noteHeldFor(state, volume, rename(state, volume, before, document), document);
  const made = actual?.phase === "ready" ? keepMade(state, volume, named) : named;
  const record = grow(state, volume, noteOriginImage(state, volume, made), document);
  const { source, sizeMiB } = record;
  const isMade = record.made === true ? { made: true as const } : {};
  const from = record.made === true || record.from === undefined ? {} : { from: record.from.file };
  const asked: AgentVolume = { uid: volume, source, sizeMiB, ...isMade, ...from, about: aboutOf(record) };
  desire(state.outbox, record.agent, `volume/${volume}`, asked);
  if (record.frozen) freeze(state, volume);
  const server = `storage server ${serverOf(record.agent)}`;
  let phase: Phase = actual?.phase ?? "working";
  let reason = actual?.reason ?? null;
  const trouble = chainTrouble(state, volume);
  if (agent === undefined) {
    [phase, reason] = ["waiting", `its ${server} is no longer part of the installation`];
  } else if (actual === undefined) {
    if (agent.reachable === true) reason = `${server} is making it`;
    else [phase, reason] = ["waiting", trouble ?? `waits to hear from ${server}`];
  } else if (trouble !== null) {
    reason = reason === null || phase === "ready" ? trouble : `${trouble}; ${reason}`;
  }
  const available = trouble === null ? {} : { available: false as const };
  const size = actual === undefined ? {} : sizes(state, record, document, actual);
  const noImage = actual?.badImage === true && trouble === null ? { noImage: true as const } : {};
  publishVolume(state, record.client, volume, { phase, reason, ...available, ...size, ...noImage }, record);
}

/** The volume under the path that its cell calls it now: in sentences, and where a file from the bin is looked for by its path. */
function rename(state: ManagerState, volume: Uid, record: VolumeRecord, { path }: DesiredVolume): VolumeRecord {
  if (record.path === path) return record;
  const renamed: VolumeRecord = { ...record, path };
  write(state.outbox, `volume/${volume}`, renamed);
  keepVolume(state, volume, renamed);
  return renamed;
}

function keepMade(state: ManagerState, volume: Uid, record: VolumeRecord): VolumeRecord {
  if (record.made === true) return record;
  const made: VolumeRecord = { ...record, made: true };
  write(state.outbox, `volume/${volume}`, made);
  keepVolume(state, volume, made);
  return made;
}

/** Why a volume cannot be read or written now, on account of a server that it or one of its origins lies on. */
function chainTrouble(state: ManagerState, volume: Uid): string | null {
  for (let at: Uid | null = volume; at !== null; ) {
    const record: VolumeRecord | undefined = state.volumes.get(at);
    const agent = record && state.agents.get(record.agent);
    if (record === undefined || agent === undefined) return null;
    // Nobody writes to an origin: that its server is full is no concern of a copy elsewhere.
    const trouble = at === volume || agent.reachable === false ? serverTrouble(agent) : null;
    if (trouble !== null) return at === volume ? trouble : `${trouble}, which has its origin "${record.path}"`;
    at = record.origin;
  }
  return null;
}

const isCopiedByOthersOnly = (state: ManagerState, volume: Uid, record: VolumeRecord): boolean =>
  [...(state.copiesOf.get(volume) ?? [])].every((copy) => {
    const owner = state.volumes.get(copy)?.client;
    return owner !== undefined && owner !== record.client;
  });

function leaveWithProvider(state: ManagerState, volume: Uid, record: VolumeRecord): void {
  const left: VolumeRecord = { ...record, client: provider };
  write(state.outbox, `volume/${volume}`, left);
  keepVolume(state, volume, left);
  log(state.outbox, "volume/left", { volume, path: record.path });
  publish(state.outbox, actualKey(record.client, `volume/${volume}`), null);
  // What it is a copy of itself may have waited for that.
  if (record.origin !== null) mark(state, record.origin);
}

/** Tombstones at the agent once nobody uses the volume; the record goes when the agent has confirmed. */
function deleteVolume(state: ManagerState, volume: Uid, before: VolumeRecord) {
  const record = stillHeldFor(state, volume, before);
  const say = (reason: string) =>
    record.client === provider
      ? undefined
      : publishVolume(state, record.client, volume, progress("deleting", reason), record);
  const connected = [...(state.connectionsOf.get(volume) ?? [])]
    .map((id) => state.connections.get(id))
    .find((connection) => connection?.volume === volume);
  if (connected !== undefined) return say(`it is still connected to ${describeHolder(connected.holder)}`);
  if (record.heldFor !== undefined) return say(heldSentence(record.heldFor));
  const copies = [...(state.copiesOf.get(volume) ?? [])].map((copy) => `"${nameOf(state, copy)}"`);
  if (copies.length > 0) {
    if (record.client === provider) return;
    if (isCopiedByOthersOnly(state, volume, record)) return leaveWithProvider(state, volume, record);
    const others = copies.length > 3 ? ` and ${copies.length - 3} more` : "";
    return say(`it is the origin of ${copies.slice(0, 3).join(", ")}${others} and stays until the last copy is gone`);
  }
  if (record.found === true) return;
  const server = `storage server ${serverOf(record.agent)}`;
  // Of a copy whose cell has yet to say that it desires it, too.
  const held = heldCopy(state, volume, record.cell);
  if (held !== null) {
    const end = held.end === "" ? "" : `; ${held.end}`;
    return say(`it is the origin of ${held.name}, and stays until that is gone${end}`);
  }
  // A holder that only the agent remembers is fenced first (reconcileLease does that).
  if (state.leases.get(volume)?.holder) return say(`waits until ${server} has fenced its last lease`);
  for (const key of ["lease", "readers", "volume"]) desire(state.outbox, record.agent, `${key}/${volume}`, null);
  const agent = state.agents.get(record.agent);
  if (agent?.reachable !== true) return say(`${server} is not reachable; its bytes are removed when it returns`);
  if (agent.volumes.has(volume)) return say(agent.volumes.get(volume)?.reason ?? `${server} is removing it`);
  write(state.outbox, `volume/${volume}`, null);
  write(state.outbox, `lease/${volume}`, null);
  state.leases.delete(volume);
  forgetVolume(state, volume, record);
  if (record.client !== provider) publish(state.outbox, actualKey(record.client, `volume/${volume}`), null);
  if (record.origin !== null) mark(state, record.origin);
}
