import type { PeerName, Uid } from "../../../../model/cell/identifiers.ts";
import { type ActualGrant, actualKey, type DesiredGrant, type DesiredVolume } from "../../../documents/vocabulary.ts";
import type { HeldFor } from "../../../documents/volumes.ts";
import { progress, publish, sameJson, toJson, write } from "../../../outbox.ts";
import { addTo, keepVolume, type ManagerState, mark, removeFrom, type VolumeRecord, type Wanted } from "../state.ts";

/*
 * Grants, and what is said of them. One that holds its volume for a copy (`x.hold`) says when that copy is made: its server
 * has said so, and from then on the volume stays for as long as the copy does, whoever forgets what. Whether a volume is held
 * is for its own cell's controller to say: it goes on desiring it (`core/controller/volumes/holds.ts`).
 *
 * A controller of a version before does not know of holds, and takes back what is held: an upgrade that is tried goes back to one. So
 * what a volume is held for stands in the desire for it, and is kept here with the volume. What is held is destroyed for nobody's silence,
 * only once that copy is made, or its controller says that it is given up (`let-go/<uid>`).
 */

/** Takes it in, or (null) away. `of`: its client and UID. */
export function keepGrant(
  { grants, grantsOf, holds }: ManagerState,
  of: string,
  grant: Wanted<DesiredGrant> | null,
): void {
  const before = grants.get(of)?.document;
  if (before !== undefined) removeFrom(grantsOf, before.volume, of);
  if (grant !== null) addTo(grantsOf, grant.document.volume, of);
  if (before?.hold !== undefined) {
    const others = holds.of.get(before.volume);
    others?.delete(of);
    if (others?.size === 0) holds.of.delete(before.volume);
  }
  if (grant === null) grants.delete(of);
  else grants.set(of, grant);
  const { hold, volume } = grant?.document ?? {};
  if (hold !== undefined && volume !== undefined) holds.of.set(volume, (holds.of.get(volume) ?? new Set()).add(of));
}

export function sayGrant(state: ManagerState, { client, document }: Wanted<DesiredGrant>): void {
  const { uid, ...grants } = document;
  const copied = isCopied(state, document) ? { copied: true as const } : {};
  const said: ActualGrant = { ...progress("ready"), grants, ...copied };
  publish(state.outbox, actualKey(client, `grant/${uid}`), said);
}

/** Says of volumes of which a copy came or went whether those are there for which they are held. */
export function sayHolds(state: ManagerState): void {
  const { touched, of } = state.holds;
  if (!state.started) return;
  for (const volume of touched)
    for (const id of of.get(volume) ?? []) {
      const grant = state.grants.get(id);
      if (grant !== undefined) sayGrant(state, grant);
    }
  touched.clear();
}

/** The copy is the one at that path of that cell, which its controller wants, and no other that was ever made for whomever it is. */
function isCopied(state: ManagerState, { volume, to, hold }: DesiredGrant): boolean {
  return hold !== undefined && "domain" in to && isMade(state, volume, { domain: to.domain, path: hold });
}
function isMade({ volumes, wantedVolumes, copiesOf, domain }: ManagerState, volume: Uid, held: HeldFor): boolean {
  return [...(copiesOf.get(volume) ?? [])].some((copy) => {
    const record = volumes.get(copy);
    // One that goes was taken back by whoever had it made.
    if (wantedVolumes.get(copy)?.client !== record?.client) return false;
    return record?.made === true && record.path === held.path && `${record.cell}.${domain}` === held.domain;
  });
}

/** What the desire for it says that it is held for, durable before anything else is done about the volume. */
export function noteHeldFor(
  state: ManagerState,
  volume: Uid,
  record: VolumeRecord,
  { heldFor = [] }: DesiredVolume,
): VolumeRecord {
  return keepHeldFor(state, volume, record, state.letGo.has(letGoOf(record.client, volume)) ? [] : heldFor);
}
/** What is still waited for before it may be destroyed; what is over is forgotten. */
export function stillHeldFor(state: ManagerState, volume: Uid, record: VolumeRecord): VolumeRecord {
  const { client, heldFor = [] } = record;
  return keepHeldFor(state, volume, record, state.letGo.has(letGoOf(client, volume)) ? [] : heldFor);
}
function keepHeldFor(state: ManagerState, volume: Uid, record: VolumeRecord, wanted: readonly HeldFor[]): VolumeRecord {
  const { heldFor: before = [], ...rest } = record;
  const heldFor = wanted.filter((each) => !isMade(state, volume, each));
  if (sameJson(toJson(before), toJson(heldFor))) return record;
  const kept: VolumeRecord = heldFor.length === 0 ? rest : { ...rest, heldFor };
  write(state.outbox, `volume/${volume}`, kept);
  keepVolume(state, volume, kept);
  return kept;
}
/** Is it held for this copy? Then it may be made: whoever does not know of holds takes the grant back with the volume. */
export const isHeldFor = (
  { domain }: ManagerState,
  record: VolumeRecord | undefined,
  { cell, path }: DesiredVolume,
): boolean => record?.heldFor?.some((held) => held.path === path && held.domain === `${cell}.${domain}`) === true;
export const letGoOf = (client: PeerName, volume: Uid): string => `${client}/${volume}`;

/** Volumes of which a copy came: what they were held for may be there, and they are looked at again. @returns whether there are any */
export function lookAtHeld(state: ManagerState): boolean {
  for (const volume of [...state.holds.touched]) {
    const record = state.volumes.get(volume);
    if (record?.heldFor?.some((each) => isMade(state, volume, each)) === true) mark(state, volume);
  }
  return state.dirty.size > 0;
}

export const heldSentence = ([first]: readonly HeldFor[]): string =>
  `it is held for the copy "${first?.path}" of ${first?.domain}, and its cell has not said that it is given up`;
