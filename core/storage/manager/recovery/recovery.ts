import { type PeerName, peerName, type Uid } from "../../../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../../../model/result.ts";
import { fileSizes } from "../../../documents/readers/storage.ts";
import type {
  ActualVolume,
  AgentVolume,
  AgentVolumeActual,
  DesiredVolume,
  Progress,
} from "../../../documents/vocabulary.ts";
import { desire, log, progress, write } from "../../../outbox.ts";
import { hasOnlyBinned, lookAtBin } from "../binned.ts";
import type { Recovery } from "../records.ts";
import {
  type AgentView,
  keepVolume,
  type ManagerState,
  mark,
  markChains,
  placesOf,
  provider,
  serverOf,
  type VolumeRecord,
  type Wanted,
} from "../state.ts";
import { imageUnderCopies } from "./origin-image.ts";
import { heldCopy } from "./unclaimed.ts";

/*
 * A Storage Manager whose store is lost, blank or older than what others have seen. All that it decides follows from what
 * controllers desire and what agents hold, so it finds its own way back:
 *
 *  - A volume that some agent has is where that agent has it. It is adopted, never placed.
 *  - Nothing is placed before each server has said what it has: a blank file under the UID of a volume that lies on a server
 *    which is still silent would be taken for that volume.
 *  - A holder that only an agent remembers is left alone until its controller has spoken, and has had time to say that it
 *    desires it. It is fenced sooner only for a later incarnation of itself, where the volume goes, and by a store that is the
 *    first: no server had anything when all were heard.
 *  - What was found under a copy of another cell stays until its own cell has said all that it desires, or until an operator
 *    says that the cell is gone. What a server has a copy of stays in any case.
 *  - An agent has the last word on epochs, so the next one that is asked for exceeds what it has.
 *
 * That an old store is one is heard from the agents (`forked`); a blank one shows itself. A controller that has seen more of it says
 * so as well (`behind`), where the one server that knows is away: its own volumes wait then, and nobody else's, since it may be lying.
 */

/** What controllers have, after a start, to say what they desire. */
export const explainMs = 5 * 60_000;
export const explainTimer = "explain";

type Obstacle = Progress & Pick<ActualVolume, "hidden">;

/** At a start, once the agents and the records are known. */
export function beginRecovery(state: ManagerState): void {
  if (state.recovery === null)
    // The store of a version that kept no such record has volumes, unless it is blank as well.
    waitFor(state, state.volumes.size === 0 && state.leases.size === 0 ? [...state.agents.keys()] : []);
  else
    waitFor(
      state,
      state.recovery.waitsFor.filter((name) => state.agents.has(name)),
    );
  for (const [client, servers] of Object.entries(state.recovery?.behind ?? {}))
    waitBehind(
      state,
      client,
      servers.filter((name) => state.agents.has(name)),
    );
  if (state.lostAt.size > 0) waitForSilent(state);
  if (state.recovery?.waitsFor.length !== 0) letExplain(state);
}

/** For a while nobody is fenced whose controller may only have yet to say that it desires it. */
function letExplain(state: ManagerState): void {
  state.explained = false;
  state.lost = true;
  state.outbox.effects.push({ kind: "timer", name: explainTimer, afterMs: explainMs });
}

/** A controller says what it desires, for the first time since the start; the rest comes behind it. */
export function heardClient(state: ManagerState, client: PeerName): void {
  if (!state.started || state.spoke.has(client)) return;
  state.spoke.add(client);
  if (state.lost) letExplain(state);
}

export function explained(state: ManagerState): void {
  state.explained = true;
  for (const [volume, { holder }] of state.leases) if (holder !== null) mark(state, volume);
}

/** An agent knows documents of this manager that its store has not: whoever is silent may have others. */
export function takeFork(state: ManagerState, agent: AgentView, forked: boolean, itForked: boolean): void {
  agent.older = itForked;
  if (!forked) {
    state.lostAt.delete(agent.name);
    return;
  }
  state.lostAt.add(agent.name);
  letExplain(state);
  if (state.started) waitForSilent(state);
  if (agent.inStep) releaseAt(state, agent);
}

/** An agent has said all that it has. */
export function heard(state: ManagerState, agent: AgentView): void {
  if (!agent.inStep) for (const volume of state.unplaced) mark(state, volume);
  if (!agent.inStep) lookAtBin(state, agent);
  agent.inStep = true;
  const { waitsFor } = state.recovery ?? { waitsFor: [] };
  if (waitsFor.includes(agent.name))
    waitFor(
      state,
      waitsFor.filter((name) => name !== agent.name),
    );
  if (waitsFor.length > 0 && isNew(state)) beginNew(state);
  for (const [client, servers] of Object.entries(state.recovery?.behind ?? {}))
    if (servers.includes(agent.name))
      waitBehind(
        state,
        client,
        servers.filter((name) => name !== agent.name),
      );
  if (state.lostAt.has(agent.name)) releaseAt(state, agent);
}

/** All servers were heard, and none of them had anything that somebody could explain, then or since: the store is not lost, but the first. */
const isNew = ({ recovery, lostAt, volumes, leases, found }: ManagerState): boolean =>
  recovery?.waitsFor.length === 0 && lostAt.size + volumes.size + leases.size === 0 && !found;

/** Nobody is waited for: what an agent comes to hold from now on it holds by this manager's word. */
function beginNew(state: ManagerState): void {
  state.lost = false;
  state.outbox.effects.push({ kind: "timer", name: explainTimer, afterMs: null });
  explained(state);
}

/**
 * A client has seen more of this store than it contains, or was put back to before what was seen of it: what it desires may lie on a
 * server that is silent, or in its bin.
 */
export function takeBehind(state: ManagerState, client: PeerName): void {
  const before = state.recovery?.behind?.[client] ?? [];
  const servers = [...new Set([...before, ...silentOf(state)])].sort();
  if (servers.length === before.length) return;
  log(state.outbox, "recovery/behind", { client, servers: servers.map(serverOf) });
  waitBehind(state, client, servers);
}
/** An operator has looked: what that client desires is waited for no more, and what no server has by then is made anew. */
export function excuse(state: ManagerState, client: PeerName): void {
  if (state.recovery?.behind?.[client] !== undefined) waitBehind(state, client, []);
}

function waitBehind(state: ManagerState, client: string, servers: readonly PeerName[]): void {
  const { [client]: _before, ...others } = state.recovery?.behind ?? {};
  const behind = servers.length === 0 ? others : { ...others, [client]: servers };
  const more = Object.keys(behind).length === 0 ? {} : { behind };
  keepRecovery(state, { waitsFor: state.recovery?.waitsFor ?? [], ...more });
  for (const volume of state.unplaced) mark(state, volume);
}

function keepRecovery(state: ManagerState, { found: _found, ...recovery }: Recovery): void {
  const { outbox, found } = state;
  state.recovery = { ...recovery, ...(found && recovery.waitsFor.length > 0 ? { found: true as const } : {}) };
  write(outbox, "recovery", state.recovery);
}
/** A server has something. Durable while others are waited for: after a start it may have it no more, and the store was lost all the same. */
export function noteFound(state: ManagerState): void {
  if (state.found) return;
  state.found = true;
  if (state.recovery !== null) keepRecovery(state, state.recovery);
}

/** From now on the agent takes what is desired here: that holds nothing which goes behind what the agent has. */
function releaseAt(state: ManagerState, agent: AgentView): void {
  // An older agent is for an operator to look at.
  if (!agent.older) state.outbox.effects.push({ kind: "recovered", at: agent.name });
}

const silentOf = ({ agents }: ManagerState): readonly PeerName[] =>
  [...agents.values()].filter(({ inStep }) => !inStep).map(({ name }) => name);
function waitForSilent(state: ManagerState): void {
  waitFor(state, [...new Set([...(state.recovery?.waitsFor ?? []), ...silentOf(state)])].sort());
}

function waitFor(state: ManagerState, waitsFor: readonly PeerName[]): void {
  const before = state.recovery?.waitsFor ?? [];
  const servers = waitsFor.map(serverOf);
  if (waitsFor.length > before.length) log(state.outbox, "recovery/waits", { servers });
  else if (waitsFor.length === 0 && before.length > 0) log(state.outbox, "recovery/complete", {});
  const { behind } = state.recovery ?? {};
  keepRecovery(state, { waitsFor, ...(behind === undefined ? {} : { behind }) });
  for (const volume of state.unplaced) mark(state, volume);
}

/**
 * Where the volume is already, or why that is not known yet; null: nowhere, and it may be placed.
 * @returns its record as it must have been
 */
export function findVolume(
  state: ManagerState,
  volume: Uid,
  wanted: Wanted<DesiredVolume>,
): Result<VolumeRecord, Obstacle> | null {
  const having = placesOf(state, volume).filter((agent) => !hasOnlyBinned(agent, volume));
  const [agent, ...more] = having;
  if (agent === undefined) {
    const silent = state.recovery?.waitsFor ?? [];
    const unheard = state.recovery?.behind?.[wanted.client] ?? [];
    if (silent.length === 0 && unheard.length === 0) return lostUnderCopies(state, volume, wanted);
    if (silent.length === 0)
      return waiting(
        `this Storage Manager is older than what ${wanted.client} has seen of it, or that one was put back, and it has yet to hear what is on ${unheard.map(serverOf).join(", ")}, ` +
          `where the volume or its former file may be; if that never comes back, \`cells orphans release ${wanted.client}\` has it made anew, empty`,
      );
    return waiting(
      `this Storage Manager has lost what it knew and has yet to hear what is on ${silent.map(serverOf).join(", ")}`,
    );
  }
  if (more.length > 0)
    return waiting(
      `${having.map(({ name }) => serverOf(name)).join(" and ")} both have a file of it: an operator has to say which is right`,
    );
  const actual = agent.volumes.get(volume);
  const about = actual?.about;
  const server = `storage server ${serverOf(agent.name)}`;
  // That it is an origin comes behind it: taken for none it would get a writer.
  if (!agent.inStep) return waiting(`${server} has it and has yet to say all that it has`);
  if (actual === undefined || actual.phase === "deleting")
    return waiting(`${server} is still removing a volume with its UID`);
  if (about === undefined) return waiting(`${server} has it and does not know whose it is: an earlier version made it`);
  // The same words as for a volume of another cell that is known.
  if (about.cell !== wanted.document.cell)
    return fail(progress("failed", `the UID ${volume} belongs to an element of another cell`));
  const sizeMiB = sizeOf(actual) ?? wanted.document.sizeMiB;
  if (sizeMiB === null) return waiting(`${server} is making it`);
  const { client, document } = wanted;
  return ok({
    client,
    cell: document.cell,
    path: document.path,
    agent: agent.name,
    origin: about.origin,
    sizeMiB,
    source: sourceOf(about.origin, document),
    ...(about.originImage === undefined ? {} : { originImage: about.originImage }),
    frozen: agent.readers.has(volume),
    ...(actual.phase === "ready" || actual.phase === "failed" ? { made: true as const } : {}),
  });
}
const waiting = (reason: string) => fail(progress("waiting", reason));

/** Whoever still has a copy of it would read something else, were it made anew. Null: nobody has one, or would read the same. */
function lostUnderCopies(
  state: ManagerState,
  volume: Uid,
  wanted: Wanted<DesiredVolume>,
): Result<never, Obstacle> | null {
  // An operator may bring it back.
  if ([...state.agents.values()].some(({ bin }) => [...bin.values()].some((binned) => binned.volume === volume)))
    return null;
  if (wanted.document.origin.kind === "image" && imageUnderCopies(state, volume) !== null) return null;
  const held = heldCopy(state, volume, wanted.document.cell);
  if (held === null) return null;
  const end = held.end === "" ? "" : `; ${held.end}`;
  return waiting(
    `its file is on no storage server, and ${held.name} is a copy of it, which would read something else: bring the server back that had it, or delete its copies${end}`,
  );
}

export const sourceOf = (origin: Uid | null, document: DesiredVolume | null): AgentVolume["source"] => {
  if (origin !== null) return { kind: "overlay" };
  return document?.origin.kind === "image" ? document.origin : { kind: "empty" };
};

/** Of a file, as a size that its server takes back: what it says is any number. Null: there is none, or not yet. */
export const sizeOf = ({ sizeMiB }: Pick<AgentVolumeActual, "sizeMiB">): number | null =>
  sizeMiB === null ? null : Math.min(Math.max(Math.ceil(sizeMiB), fileSizes.leastMiB), fileSizes.mostMiB);

/** Takes an adopted volume's origins into the records, also those for which nobody desires: their cells may have left them. */
export function adoptOrigins(state: ManagerState, copy: VolumeRecord): void {
  for (let origin = copy.origin; origin !== null && !state.volumes.has(origin); ) {
    const at: Uid = origin;
    const [agent] = placesOf(state, at);
    const actual = agent?.volumes.get(at);
    const sizeMiB = actual === undefined ? null : sizeOf(actual);
    if (agent === undefined || actual?.about === undefined || sizeMiB === null) return;
    const { cell, path, origin: next } = actual.about;
    const wanted = state.wantedVolumes.get(at);
    const own = wanted?.document.cell === cell ? wanted : null;
    const controller = peerName(`controller.${cell}`);
    // What its cell has taken back is told to that one until it is gone.
    const isEnded = state.ended.get(controller)?.has(at) === true;
    const isUnheard = own === null && !isEnded && !state.saidAll.has(controller);
    const record: VolumeRecord = {
      ...(isUnheard ? { found: true as const } : {}),

      client: own?.client ?? (isEnded ? controller : provider),
      cell,
      path,
      agent: agent.name,
      origin: next,
      sizeMiB,
      source: sourceOf(next, own?.document ?? null),
      frozen: true,
      made: true,
    };
    adopt(state, at, record);
    // So that they can be taken back with the last copy.
    desire(state.outbox, agent.name, `volume/${at}`, {
      uid: at,
      source: record.source,
      sizeMiB: record.sizeMiB,
      made: true,
      about: actual.about,
    });
    desire(state.outbox, agent.name, `readers/${at}`, { volume: at });
    origin = next;
  }
}

/**
 * A cell has said all that it desires, or an operator says of one of its volumes that nobody does. What was found under a copy
 * alone goes with its last one from now on; until then the silence of its cell is no reason to remove it.
 */
export function saidAll(state: ManagerState, client: PeerName, only?: readonly string[]): void {
  if (only === undefined) state.saidAll.add(client);
  for (const [volume, record] of state.volumes) {
    if (record.found !== true || client !== `controller.${record.cell}`) continue;
    if (only?.includes(`volume/${volume}`) === false) continue;
    const { found: _found, ...known } = record;
    write(state.outbox, `volume/${volume}`, known);
    keepVolume(state, volume, known);
    mark(state, volume);
  }
}

export function adopt(state: ManagerState, volume: Uid, record: VolumeRecord): void {
  write(state.outbox, `volume/${volume}`, record);
  keepVolume(state, volume, record);
  log(state.outbox, "volume/adopted", { volume, path: record.path, agent: record.agent });
  markChains(state, [volume]);
  // One that is to go waited for a copy of which nothing was known.
  if (record.origin !== null) mark(state, record.origin);
}
