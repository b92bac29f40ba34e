import { type ActualGrant, actualKey, type DesiredGrant } from "../../../documents/vocabulary.ts";
import { progress, publish } from "../../../outbox.ts";
import type { ManagerState, Wanted } from "../state.ts";

/*
 * Grants, and what is said of them. One that holds its volume for a copy (`x.hold`) says when that copy is made: its server
 * has said so, and from then on the volume stays for as long as the copy does, whoever forgets what. Whether a volume is held
 * is for its own cell's controller alone: it goes on desiring it (`core/controller/volumes/holds.ts`).
 */

/** Takes it in, or (null) away. `of`: its client and UID. */
export function keepGrant({ grants, holds }: ManagerState, of: string, grant: Wanted<DesiredGrant> | null): void {
  const before = grants.get(of)?.document;
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
function isCopied(
  { volumes, wantedVolumes, copiesOf, domain }: ManagerState,
  { volume, to, hold }: DesiredGrant,
): boolean {
  if (hold === undefined || !("domain" in to)) return false;
  return [...(copiesOf.get(volume) ?? [])].some((copy) => {
    const record = volumes.get(copy);
    // One that goes was taken back by whoever had it made.
    if (wantedVolumes.get(copy)?.client !== record?.client) return false;
    return record?.made === true && record.path === hold && `${record.cell}.${domain}` === to.domain;
  });
}
