import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { AgentMark, Mark } from "../../documents/bin.ts";
import { rootCell } from "../../documents/cells.ts";
import type { Effect } from "../../env.ts";
import { newOrigin, noLease } from "./lease.ts";
import type { AgentState, Marks } from "./records.ts";
import { doubted } from "./volume.ts";
import type { AgentReport, LeaseRecord, OriginRecord, VolumeRecord } from "./work.ts";

/*
 * Is this server still what others know, or was it put back from a copy? Its store holds the names and keys of exports: one
 * that is older would start them again, and guests that had paused would go on over disks that have gone back under them.
 *
 * Each start of the agent draws an id and counts minutes. The mark (start, count) is in its store, beside the volumes' files,
 * and with each Storage Manager, which says at every start what it saw last. The server is older where
 *  - the mark beside the files is not that of the store: one of the two was put back. The store's comes first, and goes
 *    on only once the files' has followed, so a disk without room is at most one behind;
 *  - a Storage Manager has seen a mark that the store does not contain: both were;
 *  - a lease is asked for that skips an epoch, which nobody asks who has seen the present one.
 * Then nothing starts, is fenced, granted or removed; what runs goes on, since its file is open. An operator adopts what there
 * is: every lease ends, and the next epochs are above all that anybody has seen.
 *
 * Until the Manager of a volume has answered, no export that others know starts again, except for the root cell, in whose
 * machines the Manager runs. A Manager that never said what it saw is of an earlier version, and is not waited for; nor is one
 * that has gone back to such a version, or is in no peers file any more.
 */

/** Whoever has not heard of a server during so many of its starts takes it for another one. */
const mostStarts = 256;

export const restoredMarks = (record: Json | undefined): Marks => {
  const stored = (record ?? {}) as unknown as Partial<Pick<Marks, "starts" | "accepted" | "finds" | "adopted">>;
  const { starts = [], accepted = null, finds = false, adopted = null } = stored;
  return {
    starts,
    accepted,
    finds,
    adopted,
    found: null,
    start: null,
    tick: 0,
    foreign: null,
    seen: new Map(),
    behind: new Set(),
    older: null,
  };
};

const same = (one: Mark | null, other: Mark | null): boolean =>
  one?.start === other?.start && one?.tick === other?.tick;
const contains = (starts: readonly Mark[], { start, tick }: Mark): boolean =>
  starts.some((mark) => mark.start === start && mark.tick >= tick);

/** The executor begins, and has found this mark beside the files. */
export function beginMarks(marks: Marks, start: string, found: Mark | null): void {
  marks.start = start;
  marks.found = found;
  const [before, last] = [marks.starts.at(-2), marks.starts.at(-1)];
  if (marks.accepted !== null && same(marks.accepted.found, found)) marks.foreign = null;
  else if (last === undefined)
    marks.foreign =
      found === null ? null : "its store was lost or put back from a copy: the volumes' files are of a later one";
  else if (found === null)
    // The first one is written a moment after the store's.
    marks.foreign =
      marks.starts.length === 1 && last.tick === 1
        ? null
        : "its volumes' files are not those of its store: is its disk mounted?";
  else if (found.start === last.start && found.tick > last.tick) marks.foreign = "its store was put back from a copy";
  else {
    const isLast = found.start === last.start && found.tick >= last.tick - 1;
    const isBefore = last.tick === 1 && found.start === before?.start && found.tick >= before.tick - 1;
    const isKnown = contains(marks.starts, found);
    if (isLast || isBefore) marks.foreign = null;
    else
      marks.foreign = isKnown ? "its volumes' files were put back from a copy" : "its store was put back from a copy";
  }
}

/** Why this server is older than others know it; null: nothing says so. */
export function whyOlder({ start, starts, foreign, seen, behind }: Marks): string | null {
  if (foreign !== null) return foreign;
  const [uid] = behind;
  if (uid !== undefined)
    return `its store was put back from a copy: a later epoch of volume ${uid} is known than it has`;
  if (start === null) return null;
  for (const [manager, said] of seen)
    if (said.start === start && said.last !== null && !contains(starts, said.last))
      return `it was put back from a copy: ${manager} has seen a later state of it`;
  return null;
}

/** May an export that others know start again? */
export const isConfirmed = ({ start, seen }: Marks, manager: PeerName): boolean => {
  const said = seen.get(manager);
  return start === null || said === undefined || said.start === start;
};

/** These Managers say no more what they have seen. What they said to this start counts. @returns those waited for until now */
export function forgetSeen(marks: Marks, isGone: (manager: PeerName) => boolean): readonly PeerName[] {
  const forgotten = [...marks.seen.keys()].filter((manager) => isGone(manager) && !isConfirmed(marks, manager));
  // Before this start has an id, all that is known was said to an earlier one.
  if (marks.start === null) forgotten.push(...[...marks.seen.keys()].filter(isGone));
  for (const manager of forgotten) marks.seen.delete(manager);
  return forgotten;
}

/** One minute more, unless the last one is yet to be written beside the files. Null: not now. */
export function tickMarks(marks: Marks, written: Mark | null, effects: Effect[]): Mark | null {
  if (marks.start === null || whyOlder(marks) !== null) return null;
  if ([...marks.seen.keys()].some((manager) => !isConfirmed(marks, manager))) return null;
  const last = marks.starts.at(-1);
  if (last !== undefined && !same(last, written)) return last;
  marks.accepted = null;
  marks.tick += 1;
  const mark = { start: marks.start, tick: marks.tick };
  keepStarts(marks, [...marks.starts.filter(({ start }) => start !== mark.start), mark], effects);
  return mark;
}

function keepStarts(marks: Marks, starts: readonly Mark[], effects: Effect[]): void {
  marks.starts = starts.slice(-mostStarts);
  const { accepted, finds, adopted } = marks;
  const value = {
    starts: marks.starts,
    ...(accepted === null ? {} : { accepted }),
    ...(finds ? { finds } : {}),
    ...(adopted === null ? {} : { adopted }),
  };
  effects.push({ kind: "write", key: "mark", value: value as unknown as Json });
}

export const markOf = ({ start, tick, adopted }: Marks): { readonly mark?: AgentMark } =>
  start === null
    ? {}
    : { mark: { start, tick, ...(adopted === null ? {} : { adopted: true as const, adoption: adopted }) } };

export interface AdoptedLease {
  readonly volume: Uid;
  readonly path: string | null;
  /** What the store had, and what was asked for; it goes on above both. */
  readonly epoch: number;
  readonly known: number;
}

/** An operator takes what there is: who held a lease holds none, and no export of then ever listens again. */
export function adoptOlder(state: AgentState, write: RecordWriters, effects: Effect[]): readonly AdoptedLease[] {
  const { marks, desired, leases, volumes } = state;
  const adopted: AdoptedLease[] = [];
  for (const [uid, volume] of doubted(state)) write.volume(uid, volume);
  for (const volume of new Set([...leases.keys(), ...desired.lease.keys()])) {
    const [epoch, known] = [leases.get(volume)?.epoch ?? 0, desired.lease.get(volume)?.epoch ?? 0];
    if (epoch === 0 && known === 0) continue;
    write.lease(volume, adoptedLease(Math.max(epoch, known)));
    adopted.push({ volume, path: volumes.get(volume)?.about?.path ?? null, epoch, known });
  }
  const last = [...marks.seen.values()].flatMap((said) => (said.last === null ? [] : [said.last]));
  const rest = marks.starts.filter(({ start }) => !last.some((mark) => mark.start === start));
  marks.foreign = null;
  marks.accepted = { found: marks.found };
  marks.finds = true;
  marks.behind.clear();
  marks.tick += 1;
  const now = marks.start === null ? [] : [{ start: marks.start, tick: marks.tick }];
  marks.adopted = now[0] ?? marks.adopted;
  keepStarts(marks, [...rest, ...last, ...now], effects);
  return adopted;
}

const adoptedLease = (known: number): LeaseRecord => ({ ...noLease, epoch: known + 1, fencing: true, adopted: true });

/**
 * A lease is asked for that skips an epoch. Where an operator has adopted it, what was known then may have been of a Manager whose
 * documents did not count: that word is for these epochs as well. @returns the lease as it is then; null: the store is older
 */
export function adoptedSince({ adopted, start }: Marks, lease: LeaseRecord, epoch: number): LeaseRecord | null {
  const isNewHere = lease.epoch === 0 && adopted !== null && adopted.start === start;
  return lease.adopted === true || isNewHere ? adoptedLease(epoch) : null;
}

export interface RecordWriters {
  readonly volume: (uid: Uid, value: VolumeRecord) => void;
  readonly lease: (uid: Uid, value: LeaseRecord) => void;
  readonly origin: (uid: Uid, value: OriginRecord) => void;
}

/** Null: it is no report about this server's mark. */
export function markAnswer(
  state: AgentState,
  report: AgentReport,
  write: RecordWriters,
  effects: Effect[],
): JsonObject | null {
  const { marks, options, origins } = state;
  if (report.kind === "begin") {
    beginMarks(marks, report.start, report.found);
    return { ok: true };
  }
  if (report.kind === "tick") return { ok: true, mark: tickMarks(marks, report.written, effects) as unknown as Json };
  if (report.kind !== "adopt") return null;
  if (whyOlder(marks) === null) return { adopted: null };
  const adopted = adoptOlder(state, write, effects);
  for (const [uid, { access }] of origins) if (access !== null) write.origin(uid, { ...newOrigin, fencing: true });
  const fields = { server: options.server, leases: adopted.length };
  effects.push({ kind: "counts-again" }, { kind: "log", event: "recovery/adopted", fields });
  return { adopted: adopted as unknown as Json };
}

/** An export that others know starts again only where the volume's Manager has seen nothing later of this server. */
export function mayServe(
  { marks, owners, leases, origins }: AgentState,
  uid: Uid,
  volume: VolumeRecord | undefined,
): boolean {
  const isKnown = leases.get(uid)?.confirmed === true || origins.get(uid)?.confirmed === true;
  const owner = owners.get(uid)?.manager;
  if (!isKnown || owner === undefined || volume?.about === undefined || volume.about.cell === rootCell) return true;
  return isConfirmed(marks, owner);
}
