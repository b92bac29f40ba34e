import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { guardKey } from "../../documents/ha.ts";
import { mayDesire, maySee } from "../../documents/permissions.ts";
import {
  agentBinned,
  agentImage,
  agentLeaseActual,
  agentReadersActual,
  agentServer,
  agentVolumeActual,
  desiredConnection,
  desiredGrant,
  desiredLetGo,
  desiredVolume,
} from "../../documents/readers/storage.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import { desiredCellOwner } from "../../documents/readers/tenancy.ts";
import { isOffersRequest } from "../../documents/supply.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Input, Service } from "../../env.ts";
import { cellOfController, log, progress, publish, sameJson, takeEffects, toJson, write } from "../../outbox.ts";
import { storageOffersOf } from "../offers.ts";
import { fenceConcerns, sayFences, takeFence, takeGuard } from "./fences/fences.ts";
import { reconcileConnection, reconcileLease } from "./leases.ts";
import { keepGrant, letGoOf, lookAtHeld, sayGrant, sayHolds } from "./left/holds.ts";
import { publishKept } from "./left/kept.ts";
import { forgetFormer, forgetMarks, takeMark } from "./marks.ts";
import { measureStorageManager } from "./measure.ts";
import { endUnclaimed, endUnknown, forgetEnded, lookForEnded, takeUnknownEnd } from "./recovery/ended.ts";
import { isRefused, lookAgain, refuse, settleOwner } from "./recovery/owner.ts";
import {
  beginRecovery,
  excuse,
  explained,
  explainTimer,
  heard,
  heardClient,
  noteFound,
  saidAll,
  takeBehind,
  takeFork,
} from "./recovery/recovery.ts";
import { unclaimedVolumes } from "./recovery/unclaimed.ts";
import {
  type AgentView,
  addTo,
  isFull,
  keepVolume,
  type ManagerState,
  mark,
  markChains,
  markGranted,
  placesOf,
  provider,
  removeFrom,
  restoreManager,
  splitKey,
} from "./state.ts";
import { freeze, publishVolume, reconcileVolume } from "./volumes.ts";

/*
 * The Storage Manager decides where volumes lie, who may copy or connect them and who writes them now; agents hold the
 * bytes and have the last word on leases. Every input only changes what is known and marks the volumes it concerns; one
 * reconciler per volume then compares what is wanted with what is so. Nothing depends on the order of inputs.
 */

export interface StorageManagerOptions {
  readonly self: PeerName;
  readonly agents: readonly PeerName[];
  /** Domain below which every cell has its own; `cells.internal` if absent. */
  readonly domain?: string;
}

/** Clients: `controller.<cell>`; agents: `agent.<server>`. Records: `volume/`, `lease/`, `connection/<uid>`. */
export function createStorageManager({
  self,
  agents,
  domain = "cells.internal",
}: StorageManagerOptions): Service<ManagerState> {
  return {
    restore: (restored) => restoreManager(restored, self, agents, domain),
    step: (state, input) => {
      take(state, input);
      if (state.started) settle(state);
      if (state.started && lookAtHeld(state)) settle(state);
      sayFences(state);
      sayHolds(state);
      publishKept(state);
      state.outbox.quiet = false;
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("storage-manager", peer, key),
    accepts: (peer, key) => mayDesire("storage-manager", peer, key),
    read: documentsOf("storage-manager"),
    unclaimed: unclaimedVolumes,
    measure: measureStorageManager,
  };
}

function take(state: ManagerState, input: Input): void {
  if (input.kind === "start") start(state);
  else if (input.kind === "desired") takeDesired(state, input.from, input.key, input.value);
  else if (input.kind === "unknown-end") takeUnknownEnd(state, input.from, input.key);
  else if (input.kind === "actual") {
    const agent = state.agents.get(input.from);
    if (agent !== undefined) takeActual(state, agent, input.key, input.value);
  } else if (input.kind === "reachable") {
    const agent = state.agents.get(input.peer);
    if (agent === undefined) return;
    setReachable(state, agent, input.reachable);
    if (input.reachable) heard(state, agent);
    if (input.reachable) lookAgain(state);
    if (input.reachable) lookForEnded(state);
  } else if (input.kind === "forked") {
    const agent = state.agents.get(input.peer);
    if (agent !== undefined) takeFork(state, agent, input.forked, input.itForked);
  } else if (input.kind === "behind" || input.kind === "set-back") takeBehind(state, input.peer);
  else if (input.kind === "excused") excuse(state, input.peer);
  else if (input.kind === "another") {
    const agent = state.agents.get(input.peer);
    if (agent !== undefined) forgetFormer(state, agent);
  } else if (input.kind === "timer" && input.name === explainTimer) {
    explained(state);
  } else if (input.kind === "kept") {
    const agent = state.agents.get(input.peer);
    if (agent !== undefined && input.value !== null) takeBackOnceMore(state, agent, input.key);
  } else if (input.kind === "released") {
    state.outbox.releasing.get(input.peer)?.delete(input.key);
  } else if (input.kind === "request") {
    const response = isOffersRequest(input.request) ? offers(state) : status(state);
    state.outbox.effects.push({ kind: "reply", id: input.id, response });
  } else if (input.kind === "complete") {
    saidAll(state, input.peer);
  } else if (input.kind === "ended") {
    endUnclaimed(state, input.peer, input.keys);
  }
}

function setReachable(state: ManagerState, agent: AgentView, reachable: boolean): void {
  if (agent.reachable === reachable) return;
  agent.reachable = reachable;
  touchVolumesOn(state, agent);
  touchUnplaced(state);
}

/** What a server is like concerns its volumes and all that is made of them. */
function touchVolumesOn(state: ManagerState, agent: AgentView): void {
  const here = [...state.volumes].filter(([, record]) => record.agent === agent.name);
  markChains(
    state,
    here.map(([volume]) => volume),
  );
}

/** Everything is looked at once; a record without a desire had its tombstone before the restart. */
function start(state: ManagerState): void {
  state.started = true;
  state.outbox.quiet = true;
  for (const to of state.agents.keys()) state.outbox.effects.push({ kind: "subscribe", to, prefix: "" });
  const all = [state.volumes, state.wantedVolumes, state.connectionsOf].flatMap((map) => [...map.keys()]);
  for (const volume of all) state.dirty.add(volume);
  for (const grant of state.grants.values()) sayGrant(state, grant);
  const counts = { volumes: state.volumes.size, connections: state.connections.size };
  log(state.outbox, "service/restored", counts);
  forgetMarks(state);
  lookAgain(state);
  beginRecovery(state);
  lookForEnded(state);
  publishOffers(state);
}

/** What the servers could ever hold. */
const offers = (state: ManagerState): Json =>
  toJson(
    storageOffersOf(
      [...state.agents.values()].map(({ server }) => server),
      [...state.agents.values()].flatMap(({ images }) => [...images.values()]),
    ),
  );

/** The same, to every controller; said again only when it is something else. */
function publishOffers(state: ManagerState): void {
  const value = offers(state);
  if (!state.started || sameJson(state.offered, value)) return;
  state.offered = value;
  state.outbox.effects.push({ kind: "publish", key: "storage", value });
}

function settle(state: ManagerState): void {
  do {
    for (const key of state.unsettled) settleOwner(state, key, takeDesired);
    state.unsettled.clear();
    settleVolumes(state);
    // A connection that ended there may be another's.
  } while (state.unsettled.size > 0);
}

function settleVolumes(state: ManagerState): void {
  for (const volume of state.dirty) {
    // Taken off first: what its own reconciling marks again is looked at again.
    state.dirty.delete(volume);
    settleOwner(state, `volume/${volume}`, takeDesired);
    if (isUnread(state, volume)) continue;
    try {
      reconcileVolume(state, volume);
      reconcileLease(state, volume);
      for (const id of [...(state.connectionsOf.get(volume) ?? [])]) reconcileConnection(state, id, volume);
    } catch (error) {
      setAside(state, volume, error as Error);
    }
  }
}

/** What is wanted of it, or of a connection to it, is stored and cannot be read: then all of it stays as it is. */
const isUnread = ({ unread, connectionsOf }: ManagerState, volume: Uid): boolean =>
  unread.has(volume) || [...(connectionsOf.get(volume) ?? [])].some((id) => unread.has(id));

/**
 * What one volume's documents lead to must not end the manager of everybody's. Each volume is brought further by itself and
 * what was decided of it goes out whole or not at all with the step, so the others are not touched by its failure. It is looked at
 * again when something of it changes, and named until then.
 */
function setAside(state: ManagerState, volume: Uid, error: Error): void {
  const from = state.wantedVolumes.get(volume)?.client ?? state.volumes.get(volume)?.client ?? provider;
  log(state.outbox, "document/refused", {
    from,
    key: `volume/${volume}`,
    why: `it cannot be worked with: ${error.message}`,
  });
  const told = progress("waiting", "it is set aside: the Storage Manager cannot work with what is asked of it");
  if (from !== provider) publishVolume(state, from, volume, told, null);
}

function takeDesired(state: ManagerState, client: PeerName, key: string, value: Json): void {
  heardClient(state, client);
  const [kind, id] = splitKey(key);
  if (kind === "volume") takeVolume(state, client, id, value);
  else if (kind === "connection") takeConnection(state, client, id, value);
  else if (kind === "grant") takeGrant(state, client, id, value);
  else if (kind === "let-go") takeLetGo(state, client, id, value);
  else if (kind === "fence") takeFence(state, client, id, value);
  else if (key === guardKey) takeGuard(state, client, value);
  else if (kind === "owner") takeCellOwner(state, id, value);
}

const malformed = (what: string) =>
  `the ${what} document is malformed; see core/documents/readers/storage.ts for its fields`;

function takeVolume(state: ManagerState, client: PeerName, id: Uid, value: Json) {
  const key = `volume/${id}`;
  const before = state.wantedVolumes.get(id);
  state.kept.touched.add(id);
  if (value !== null) takeBack(state, client, id);
  if (isRefused(state, client, key, value, before)) return;
  const document = desiredVolume.of(value, id);
  if (value !== null && (document === null || document.cell !== cellOfController(client))) {
    if (before === undefined) state.unread.add(id);
    return refuse(state, client, key, malformed("volume"));
  }
  state.unread.delete(id);
  if (before?.document.origin.kind === "copy") removeFrom(state.waitingCopiesOf, before.document.origin.volume, id);
  const origin = state.volumes.get(id)?.origin ?? null;
  if (origin !== null) state.holds.touched.add(origin);
  if (document !== null) {
    state.wantedVolumes.set(id, { client, document });
    forgetEnded(state, client, id);
  } else {
    state.wantedVolumes.delete(id);
    state.unplaced.delete(id);
    if (!state.volumes.has(id)) endUnknown(state, client, id);
  }
  mark(state, id);
}

/** A cell that wants a volume again that it had left to the provider has it again: it was never anybody else's. */
function takeBack(state: ManagerState, client: PeerName, id: Uid): void {
  const record = state.volumes.get(id);
  if (record?.client !== provider || record.cell !== cellOfController(client)) return;
  const { found: _found, ...known } = record;
  write(state.outbox, `volume/${id}`, { ...known, client });
  keepVolume(state, id, { ...known, client });
}

function takeConnection(state: ManagerState, client: PeerName, id: Uid, value: Json) {
  const key = `connection/${id}`;
  const before = state.wantedConnections.get(id);
  const record = state.connections.get(id);
  if (isRefused(state, client, key, value, before, before?.client ?? record?.client)) return;
  const document = desiredConnection.of(value, id);
  if (value !== null && document === null) {
    if (before === undefined) state.unread.add(id);
    return refuse(state, client, key, malformed("connection"));
  }
  state.unread.delete(id);
  for (const vm of [before?.document.vm, document?.vm]) if (vm !== undefined) fenceConcerns(state, vm);
  if (before !== undefined) {
    mark(state, before.document.volume);
    if (before.document.volume !== document?.volume && record?.volume !== before.document.volume) {
      removeFrom(state.connectionsOf, before.document.volume, id);
    }
  }
  if (record !== undefined) mark(state, record.volume);
  if (document !== null) {
    state.wantedConnections.set(id, { client, document });
    addTo(state.connectionsOf, document.volume, id);
    mark(state, document.volume);
    return;
  }
  state.wantedConnections.delete(id);
  if (record === undefined) publish(state.outbox, actualKey(client, key), null);
}

function takeGrant(state: ManagerState, client: PeerName, id: Uid, value: Json) {
  const of = `${client}/${id}`;
  const before = state.grants.get(of);
  const document = desiredGrant.of(value, id);
  if (value !== null && document === null) {
    log(state.outbox, "document/refused", { from: client, key: `grant/${id}`, why: malformed("grant") });
    return publish(state.outbox, actualKey(client, `grant/${id}`), progress("failed", malformed("grant")));
  }
  keepGrant(state, of, document === null ? null : { client, document });
  if (document === null) publish(state.outbox, actualKey(client, `grant/${id}`), null);
  else if (state.started) sayGrant(state, { client, document });
  for (const grant of [before?.document, document]) if (grant) mark(state, grant.volume);
}

function takeLetGo(state: ManagerState, client: PeerName, id: Uid, value: Json): void {
  if (desiredLetGo.of(value, id) === null) state.letGo.delete(letGoOf(client, id));
  else state.letGo.add(letGoOf(client, id));
  mark(state, id);
}

/** One that is malformed changes nothing. What is granted to whoever has it, or had it, is looked at anew. */
function takeCellOwner(state: ManagerState, cell: string, value: Json): void {
  const document = value === null ? null : desiredCellOwner.of(value, cell);
  if (document === null && value !== null) return;
  const before = state.owners.get(cell);
  if (document === null) state.owners.delete(cell);
  else state.owners.set(cell, document);
  markGranted(state, before, document ?? undefined);
}

function takeActual(state: ManagerState, agent: AgentView, key: string, value: Json): void {
  const [kind, id] = splitKey(key);
  if (kind === "server") {
    const wasFull = isFull(agent);
    agent.server = agentServer.of(value);
    if (agent.server?.mark !== undefined) takeMark(state, agent, agent.server.mark);
    if (isFull(agent) !== wasFull) touchVolumesOn(state, agent);
    if (agent.reachable === null) setReachable(state, agent, true);
    touchUnplaced(state);
    publishOffers(state);
  } else if (kind === "image") {
    if (put(agent.images, String(id), agentImage.of(value))) touchUnplaced(state);
    publishOffers(state);
  } else if (kind === "volume") {
    const before = agent.volumes.get(id);
    const after = agentVolumeActual.of(value);
    if (after !== null) noteFound(state);
    // How full it is changes all the time and decides nothing here.
    const changed = !sameJson(toJson({ ...before, usedMiB: 0 }), toJson({ ...after, usedMiB: 0 }));
    if (put(agent.volumes, id, after) && changed) markChains(state, [id]);
    holdCopy(state, id, before?.about?.origin ?? null, after?.about?.origin ?? null);
    // One that has a place to be found may be wanted by now, or its copy was found on a server that was heard sooner.
    if (!state.volumes.has(id) && (state.wantedVolumes.has(id) || state.copiesOf.has(id))) mark(state, id);
  } else if (kind === "bin") {
    // Copies wait for it as for a server; and a volume that was not to be made anew may be now.
    const binned = agentBinned.of(value);
    if (binned !== null) noteFound(state);
    if (put(agent.bin, String(id), binned)) touchUnplaced(state);
    if (binned !== null && agent.volumes.has(binned.volume)) mark(state, binned.volume);
  } else if (kind === "lease") {
    const lease = agentLeaseActual.of(value);
    if (lease !== null) noteFound(state);
    if (put(agent.leases, id, lease)) mark(state, id);
    if (lease?.holder != null) fenceConcerns(state, lease.holder.vm);
  } else if (kind === "readers") {
    if (put(agent.readers, id, agentReadersActual.of(value))) markChains(state, [id]);
    // An older store knows it from before its first copy.
    const record = state.volumes.get(id);
    if (record?.agent === agent.name && !record.frozen && agent.readers.has(id) && state.wantedVolumes.has(id))
      freeze(state, id);
  }
}

/** What it was a copy of may have waited for its end. */
function holdCopy(state: ManagerState, copy: Uid, before: Uid | null, after: Uid | null): void {
  if (after !== null) addTo(state.copiesHeldOf, after, copy);
  if (before === null || before === after || placesOf(state, copy).length > 0) return;
  removeFrom(state.copiesHeldOf, before, copy);
  if (state.unplaced.has(before) || state.volumes.has(before)) mark(state, before);
}

/** Sets or (null) deletes; true if that changed anything. */
function put<K, V extends object>(map: Map<K, V>, key: K, value: V | null): boolean {
  const before = map.get(key);
  if (value === null) return map.delete(key);
  map.set(key, value);
  return before === undefined || !sameJson(toJson(before), toJson(value));
}

function touchUnplaced(state: ManagerState): void {
  for (const volume of state.unplaced) mark(state, volume);
}

/**
 * An agent has a document that was taken back there, and that the agent has forgotten since: its store was put back. Where the
 * volume's end is still waited for it is taken back once more; nobody would ever say that it has ended otherwise. What is no volume of
 * this manager any more stays with its agent, for an operator.
 */
function takeBackOnceMore(state: ManagerState, agent: AgentView, key: string): void {
  const [, volume] = splitKey(key);
  const isEnding = state.volumes.get(volume)?.agent === agent.name && !state.wantedVolumes.has(volume);
  const { desired, releasing, effects } = state.outbox;
  const isTombstoned = desired.get(agent.name)?.has(`volume/${volume}`) !== true;
  if (!isEnding || !isTombstoned || isUnread(state, volume)) return;
  releasing.set(agent.name, (releasing.get(agent.name) ?? new Set()).add(key));
  effects.push({ kind: "desire", to: agent.name, key, value: null });
}

/** For the operator: how much lies where. */
const status = (state: ManagerState): Json => ({
  servers: [...state.agents.values()].map((agent) => ({
    agent: agent.name,
    reachable: agent.reachable,
    freeMiB: agent.server?.freeMiB ?? null,
    provisionedMiB: agent.provisionedMiB,
    volumes: [...state.volumes.values()].filter((record) => record.agent === agent.name).length,
  })),
});
