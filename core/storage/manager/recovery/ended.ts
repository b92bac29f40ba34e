import type { PeerName, Uid } from "../../../../model/cell/identifiers.ts";
import { fileSizes } from "../../../documents/readers/storage.ts";
import { actualKey } from "../../../documents/vocabulary.ts";
import { cellOfController, desire, progress, publish, toJson, write } from "../../../outbox.ts";
import { hasOnlyBinned } from "../binned.ts";
import { type ManagerState, mark, placesOf, serverOf, splitKey } from "../state.ts";
import { publishVolume } from "../volumes.ts";
import { adopt, saidAll, sizeOf, sourceOf } from "./recovery.ts";

/*
 * A cell takes a volume back that this store does not know, since it was lost. The cell says so once: whoever takes its word for
 * done leaves the file to nobody, and, if it is a copy, its origin with a copy that never goes. So the volume is found where it
 * is, and deleted as any other, fence included. While servers are silent the word is remembered, durably (`ended/<client>/<uid>`).
 */
const record = (client: PeerName, volume: Uid): string => `ended/${client}/${volume}`;
/** Of one client: whatever it makes up fills no store. Of what is more its file stays, for an operator. */
const mostOfClient = 4096;

/**
 * Of a volume without a record: finds what its cell takes back, or says that it is gone. @param byOperator who says of two files
 * of one volume that they go, one after the other
 */
export function endUnknown(state: ManagerState, client: PeerName, volume: Uid, byOperator = false): void {
  const having = placesOf(state, volume).filter((agent) => !hasOnlyBinned(agent, volume));
  const [agent] = having;
  const silent = having.length === 0 ? unheard(state, client) : having.filter(({ inStep }) => !inStep);
  if (silent.length > 0 && remember(state, client, volume)) {
    const names = silent.map(({ name }) => serverOf(name)).join(", ");
    const reason = `this Storage Manager has lost what it knew and has yet to hear what is on ${names}`;
    publishVolume(state, client, volume, progress("deleting", reason), null);
    return;
  }
  forgetEnded(state, client, volume);
  publish(state.outbox, actualKey(client, `volume/${volume}`), null);
  const actual = agent?.volumes.get(volume);
  // Of two files of one volume an operator says which is right.
  if (agent === undefined || (having.length > 1 && !byOperator) || actual?.about === undefined) return;
  const { cell, path, origin } = actual.about;
  if (cell !== cellOfController(client)) return;
  const source = sourceOf(origin, null);
  // It goes, and nothing is made of it: of what its server has lost any size will do.
  const sizeMiB = sizeOf(actual) ?? fileSizes.leastMiB;
  const frozen = agent.readers.has(volume);
  adopt(state, volume, { client, cell, path, agent: agent.name, origin, sizeMiB, source, frozen, made: true });
  // A tombstone is of what is desired; and whoever writes it is fenced first.
  desire(state.outbox, agent.name, `volume/${volume}`, {
    uid: volume,
    source,
    sizeMiB,
    made: true,
    about: actual.about,
  });
  if (frozen) desire(state.outbox, agent.name, `readers/${volume}`, { volume });
  const lease = agent.leases.get(volume);
  if (lease === undefined) return;
  const known = { epoch: lease.epoch, holder: lease.holder, connection: null };
  write(state.outbox, `lease/${volume}`, toJson(known) as object);
  state.leases.set(volume, known);
}

/** An operator says of what was named to him (`unclaimed.ts`) that nobody desires it. */
export function endUnclaimed(state: ManagerState, client: PeerName, keys: readonly string[]): void {
  saidAll(state, client, keys);
  for (const key of keys) takeUnknownEnd(state, client, key, true);
}

/** Another's desire under that UID is none of this client's. */
export function takeUnknownEnd(state: ManagerState, client: PeerName, key: string, byOperator = false): void {
  const [kind, volume] = splitKey(key);
  if (kind !== "volume" || state.volumes.has(volume) || state.wantedVolumes.has(volume)) return;
  endUnknown(state, client, volume, byOperator);
  mark(state, volume);
}

/** It is desired once more, or what became of it is known. */
export function forgetEnded({ ended, outbox }: ManagerState, client: PeerName, volume: Uid): void {
  if (ended.get(client)?.delete(volume) === true) write(outbox, record(client, volume), null);
}

function remember({ ended, outbox }: ManagerState, client: PeerName, volume: Uid): boolean {
  const own = ended.get(client) ?? new Set<Uid>();
  if (own.has(volume)) return true;
  if (own.size >= mostOfClient) return false;
  ended.set(client, own.add(volume));
  write(outbox, record(client, volume), {});
  return true;
}

/** A server has said all that it has. */
export function lookForEnded(state: ManagerState): void {
  for (const [client, volumes] of state.ended)
    for (const volume of [...volumes]) {
      if (state.volumes.has(volume)) forgetEnded(state, client, volume);
      else endUnknown(state, client, volume);
      mark(state, volume);
    }
}

/** Servers on which it may be. */
const unheard = ({ recovery, agents }: ManagerState, client: PeerName) => {
  const names = new Set([...(recovery?.waitsFor ?? []), ...(recovery?.behind?.[client] ?? [])]);
  return [...agents.values()].filter(({ name }) => names.has(name));
};
