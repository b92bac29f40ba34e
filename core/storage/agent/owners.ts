import { type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { AgentServer, AgentVolume } from "../../documents/vocabulary.ts";
import type { AgentState, Owner } from "./records.ts";
import type { VolumeRecord } from "./work.ts";

/*
 * Which of several Storage Managers decides for a volume (decisions/0037): the one that wanted it first, as long as anything
 * of the volume is wanted or there. No other may say anything of it, or hears of it: the next epoch of a lease is for one
 * alone to ask for. The file's record says it durably.
 */

const firstManager = peerName("storage-manager");

/** In the records of an earlier version there was one manager alone. */
export const restoredOwners = (volumes: ReadonlyMap<Uid, VolumeRecord>): Map<Uid, Owner> =>
  new Map([...volumes].map(([uid, { manager = firstManager }]) => [uid, { manager, countedMiB: 0 }]));

/** May this manager say something of the volume? One that is nobody's, and that it wants, is its own from now on. */
export function claim({ owners }: AgentState, uid: Uid, manager: PeerName, isWanted: boolean): boolean {
  const owner = owners.get(uid);
  if (owner === undefined && isWanted) owners.set(uid, { manager, countedMiB: 0 });
  return owner === undefined || owner.manager === manager;
}

/** The record of a volume that is not there yet, or whose file is to be found. */
export const newVolume = (owners: ReadonlyMap<Uid, Owner>, uid: Uid, desired: AgentVolume): VolumeRecord => {
  const manager = owners.get(uid)?.manager;
  const { source, about, from, made } = desired;
  return {
    source,
    sizeMiB: null,
    boot: null,
    removing: false,
    ...(manager === undefined ? {} : { manager }),
    ...(about === undefined ? {} : { about }),
    ...(from === undefined ? {} : { from }),
    ...(made === true ? { found: true as const } : {}),
  };
};

/** Whose the documents about a volume are to see. Another key has no UID that is owned. */
export function isOwnersToSee({ owners }: AgentState, peer: PeerName, key: string): boolean {
  const [kind = "", uid = ""] = key.split("/");
  if (kind !== "volume" && kind !== "lease" && kind !== "readers") return true;
  return (owners.get(uid as Uid)?.manager ?? peer) === peer;
}

/** Counts what one volume may become, and forgets whose it was when nothing of it is left. */
export function settleOwner(state: AgentState, uid: Uid): void {
  const owner = state.owners.get(uid);
  if (owner === undefined) return;
  const [wanted, there] = [state.desired.volume.get(uid), state.volumes.get(uid)];
  const mayBeMiB = Math.max(wanted?.sizeMiB ?? 0, there?.sizeMiB ?? 0);
  const sumMiB = (state.promisedMiB.get(owner.manager) ?? 0) + mayBeMiB - owner.countedMiB;
  owner.countedMiB = mayBeMiB;
  if (sumMiB === 0) state.promisedMiB.delete(owner.manager);
  else state.promisedMiB.set(owner.manager, sumMiB);
  const { lease, readers } = state.desired;
  if (wanted === undefined && there === undefined && !lease.has(uid) && !readers.has(uid)) state.owners.delete(uid);
}

/** What is promised to each manager; nothing as long as there is one alone, which knows it. */
export const promisedTo = ({ promisedMiB }: AgentState): Pick<AgentServer, "promisedMiB"> =>
  promisedMiB.size < 2 ? {} : { promisedMiB: Object.fromEntries(promisedMiB) };
