import type { PeerName, Uid } from "../../../../model/cell/identifiers.ts";
import { servicePeer } from "../../../documents/service-roles.ts";
import { type ActualKept, actualKey } from "../../../documents/vocabulary.ts";
import { toJson } from "../../../outbox.ts";
import type { Counted, Kept, Left } from "../records.ts";
import { cellUidOf } from "../recovery/owner.ts";
import type { ManagerState } from "../state.ts";

/*
 * Space of deleted volumes that is still taken. An origin is deleted only with its last copy, and a volume that others have
 * connected only with its last connection. Until then it is in no model, and so it would be in no quota: two cells that copy
 * from each other in turn and delete their own parts would get all but the last copy for free. So such a volume counts in the
 * quota of the cell that deleted it and of each cell whose copies lie over it. Their controllers are told how much that is.
 *
 * Volumes change by the thousand, so sums are not computed anew each time: a change of one volume only updates the sums along
 * the chain of origins below it.
 */

export function publishKept(state: ManagerState): void {
  if (!state.started) return;
  const { kept } = state;
  for (const volume of kept.touched) recount(kept, volume, lookAt(state, volume));
  kept.touched.clear();
  for (const client of kept.unsaid) {
    const value = keptOf(kept, client);
    const text = JSON.stringify(value);
    if (text === (kept.said.get(client) ?? "null")) continue;
    if (value === null) kept.said.delete(client);
    else kept.said.set(client, text);
    state.outbox.effects.push({ kind: "publish", key: actualKey(client, "kept"), value: value && toJson(value) });
  }
  kept.unsaid.clear();
}

function keptOf({ sums }: Kept, client: PeerName): ActualKept | null {
  const own = sums.get(client);
  if (own === undefined) return null;
  const left = [...own].filter(([cell]) => cell !== "");
  const keptMiB = own.get("") ?? 0;
  return left.length === 0 ? { keptMiB } : { keptMiB, left: Object.fromEntries(left) };
}

function lookAt(state: ManagerState, volume: Uid): Counted {
  const client = state.wantedVolumes.get(volume)?.client ?? null;
  const record = state.volumes.get(volume);
  const origin = record?.origin ?? null;
  if (record === undefined || client !== null || state.unread.has(volume)) return { client, origin, left: null };
  const by = servicePeer("controller", record.cell);
  const inUse = [...(state.connectionsOf.get(volume) ?? [])].some(
    (id) => (state.connections.get(id)?.client ?? by) !== by,
  );
  return { client, origin, left: { sizeMiB: record.sizeMiB, by, inUse } };
}

const nothing: Counted = { client: null, origin: null, left: null };
const sameLeft = (a: Left | null, b: Left | null): boolean =>
  a?.sizeMiB === b?.sizeMiB && a?.by === b?.by && a?.inUse === b?.inUse;

function recount(kept: Kept, volume: Uid, now: Counted): void {
  const before = kept.counted.get(volume) ?? nothing;
  const isElsewhere = before.origin !== now.origin;
  if (!isElsewhere && before.client === now.client && sameLeft(before.left, now.left)) return;
  charge(kept, volume, -1);
  if (before.client !== null) below(kept, before.origin, before.client, -1);
  const over = isElsewhere ? [...(kept.over.get(volume) ?? [])] : [];
  for (const [client, count] of over) below(kept, before.origin, client, -count);
  if (now.client === null && now.origin === null && now.left === null) kept.counted.delete(volume);
  else kept.counted.set(volume, now);
  for (const [client, count] of over) below(kept, now.origin, client, count);
  if (now.client !== null) below(kept, now.origin, now.client, 1);
  charge(kept, volume, 1);
}

/** The client desires `more` more volumes (or fewer) that lie over this origin, and over each origin below it. */
function below(kept: Kept, origin: Uid | null, client: PeerName, more: number): void {
  const gone = new Set<Uid>();
  for (let at = origin; at !== null && !gone.has(at); at = kept.counted.get(at)?.origin ?? null) {
    gone.add(at);
    const over = kept.over.get(at) ?? new Map<PeerName, number>();
    const count = (over.get(client) ?? 0) + more;
    // What counts is whether it desires any, not how many.
    const isOther = count === 0 || !over.has(client);
    if (isOther) charge(kept, at, -1);
    if (count === 0) over.delete(client);
    else over.set(client, count);
    if (over.size === 0) kept.over.delete(at);
    else kept.over.set(at, over);
    if (isOther) charge(kept, at, 1);
  }
}

/** Adds the size of a deleted volume to every sum that it belongs to, or subtracts it. */
function charge(kept: Kept, volume: Uid, sign: 1 | -1): void {
  const left = kept.counted.get(volume)?.left ?? null;
  if (left === null) return;
  const over = kept.over.get(volume);
  for (const client of over?.keys() ?? []) add(kept, client, "", sign * left.sizeMiB);
  if ((left.inUse || over !== undefined) && over?.has(left.by) !== true)
    add(kept, left.by, cellUidOf(volume), sign * left.sizeMiB);
}

function add({ sums, unsaid }: Kept, client: PeerName, cell: Uid | "", MiB: number): void {
  const own = sums.get(client) ?? new Map<Uid | "", number>();
  const sum = (own.get(cell) ?? 0) + MiB;
  if (sum === 0) own.delete(cell);
  else own.set(cell, sum);
  if (own.size === 0) sums.delete(client);
  else sums.set(client, own);
  unsaid.add(client);
}
