import type { CellName, PeerName, Uid } from "../../../../model/cell/identifiers.ts";
import type { Json } from "../../../../model/json/json.ts";
import { servicePeer } from "../../../documents/service-roles.ts";
import { type ActualConnection, type ActualVolume, actualKey } from "../../../documents/vocabulary.ts";
import { progress, publish, toJson } from "../../../outbox.ts";
import { type ManagerState, splitKey, type Wanted } from "../state.ts";

/*
 * Whose a UID is. Ordinarily the records say it, and whoever desires what another cell has is refused. A store that was
 * lost knows nobody, and then the first to desire a UID need not be its owner: a cell knows UIDs of others that it may
 * see, and they are counted through. So the evidence counts before the order: of a volume what its record says, else the
 * servers that have its file, also in a bin; of what has neither, whose other volumes begin with the same UID of a cell.
 *
 * What somebody else desires is kept and refused. It counts as soon as the evidence says so, or when nobody else desires that
 * UID any more: nobody has to desire again.
 *
 * Rejected: whoever came first, which lets a stranger fail an owner's volumes; and no one while two desire it, which does the same.
 */

/**
 * Somebody else's desire is kept, and said to be refused, as long as the UID is not that client's. @param before the desire that
 * counts so far @param has who has something under that UID without desiring for it any more
 */
export function isRefused(
  state: ManagerState,
  client: PeerName,
  key: string,
  value: Json,
  before: Wanted<object> | undefined,
  has: PeerName | undefined = before?.client,
): boolean {
  forgetRival(state, client, key);
  if (value === null && has === client) return false;
  // With the second desire it is in doubt, and the evidence is looked for everywhere.
  if (value !== null && has !== undefined && has !== client) keepRival(state, client, key, value);
  const owner = ownerOf(state, key) ?? has ?? client;
  if (owner === client && (value !== null || before === undefined)) {
    forgetRival(state, client, key);
    if (before !== undefined && before.client !== client) outrank(state, key, before);
    return false;
  }
  if (value === null) publish(state.outbox, actualKey(client, key), null);
  else outrank(state, key, { client, document: value as object });
  return true;
}

/** Looks at what is desired under this key: its owner's desire counts, and without evidence that of the first who still desires it. */
export function settleOwner(
  state: ManagerState,
  key: string,
  take: (state: ManagerState, client: PeerName, key: string, value: Json) => void,
): void {
  const [kind, id] = splitKey(key);
  const wanted: Wanted<object> | undefined = (kind === "volume" ? state.wantedVolumes : state.wantedConnections).get(
    id,
  );
  const others = state.rivals.get(key);
  if (wanted === undefined && others === undefined) return;
  const owner = ownerOf(state, key);
  if (wanted !== undefined && (owner === null || wanted.client === owner)) return;
  const [first] = others?.keys() ?? [];
  const next = owner ?? first;
  const value = next && others?.get(next);
  if (next !== undefined && value !== undefined) {
    take(state, next, key, value);
    return;
  }
  // Nothing is done to an owner's volume as a stranger would have it.
  const volume = kind === "volume" ? state.wantedVolumes.get(id) : undefined;
  if (volume === undefined) return;
  take(state, volume.client, key, null);
  outrank(state, key, volume);
}

/** What is known of servers' files has become more: of everything that two desire, the owner is looked for anew. */
export function lookAgain({ rivals, unsettled }: ManagerState): void {
  for (const key of rivals.keys()) unsettled.add(key);
}

function outrank(state: ManagerState, key: string, { client, document }: Wanted<object>): void {
  keepRival(state, client, key, toJson(document));
  refuse(state, client, key, `the UID ${splitKey(key)[1]} belongs to an element of another cell`);
}

export function refuse(state: ManagerState, client: PeerName, key: string, reason: string): void {
  const failed = progress("failed", reason);
  const actual: ActualVolume | ActualConnection = key.startsWith("volume/")
    ? { ...failed, server: null, sizeMiB: null }
    : { ...failed, incarnation: 0, attachment: null };
  publish(state.outbox, actualKey(client, key), actual);
}

function keepRival({ rivals }: ManagerState, client: PeerName, key: string, value: Json): void {
  const others = rivals.get(key) ?? new Map<PeerName, Json>();
  rivals.set(key, others.set(client, value));
}
function forgetRival({ rivals }: ManagerState, client: PeerName, key: string): void {
  const others = rivals.get(key);
  others?.delete(client);
  if (others?.size === 0) rivals.delete(key);
}

/** Who owns what is desired under this key, by evidence; null: there is none, and who came first has it. */
function ownerOf(state: ManagerState, key: string): PeerName | null {
  const [kind, id] = splitKey(key);
  if (kind === "volume") return ownerOfVolume(state, id) ?? ownerOfCell(state, key, id);
  const has = state.wantedConnections.get(id) ?? state.connections.get(id);
  return ownerOfCell(state, key, id) ?? has?.client ?? null;
}

function ownerOfVolume(state: ManagerState, volume: Uid): PeerName | null {
  const record = state.volumes.get(volume);
  if (record !== undefined) return controllerOf(record.cell);
  const cells = new Set<CellName | undefined>();
  for (const { volumes, bin } of state.agents.values()) {
    cells.add(volumes.get(volume)?.about?.cell);
    for (const binned of bin.values()) if (binned.volume === volume) cells.add(binned.about?.cell);
  }
  return onlyOne(cells);
}

/** By its other volumes: looked up only where two desire the same, since it goes through all of them. */
function ownerOfCell(state: ManagerState, key: string, id: Uid): PeerName | null {
  if (!state.rivals.has(key)) return null;
  const cell = cellUidOf(id);
  const cells = new Set<CellName | undefined>();
  for (const [volume, record] of state.volumes) if (cellUidOf(volume) === cell) cells.add(record.cell);
  for (const { volumes } of state.agents.values())
    for (const [volume, { about }] of volumes) if (cellUidOf(volume) === cell) cells.add(about?.cell);
  return onlyOne(cells);
}

/** Elements are counted through below the UID of their cell. */
export const cellUidOf = (element: Uid): Uid => element.slice(0, element.lastIndexOf("-")) as Uid;
export const controllerOf = (cell: CellName): PeerName => servicePeer("controller", cell);

/** Null: nobody, or not everybody says the same. */
function onlyOne(cells: Set<CellName | undefined>): PeerName | null {
  cells.delete(undefined);
  const [cell, ...more] = cells;
  return cell === undefined || more.length > 0 ? null : controllerOf(cell);
}
