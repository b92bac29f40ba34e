import { entrancePrefix } from "../../core/documents/cells.ts";
import type { Effect } from "../../core/env.ts";
import { isObject } from "../../core/outbox.ts";
import { type Ipv4, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";

/**
 * Which cells the authority says are the way in, as one host knows it (decision 38). Kept over a restart (records
 * `entrance/<controller>`), so that what runs goes on while the authority is away.
 */
export interface EntranceState {
  readonly known: Map<PeerName, Ipv4>;
  /** Of these, what the authority has not repeated since this start. */
  readonly unconfirmed: Set<PeerName>;
  /** The authority has spoken since this start, or there is none: what it does not say is not so. */
  heard: boolean;
}
const recordKey = "entrance/";

export const restoreEntrances = (records: ReadonlyMap<string, Json>): EntranceState => {
  const known = new Map<PeerName, Ipv4>();
  for (const [key, value] of records)
    if (key.startsWith(recordKey)) known.set(peerName(key.slice(recordKey.length)), value as Ipv4);
  return { known, unconfirmed: new Set(known.keys()), heard: false };
};

const set = ({ known }: EntranceState, controller: PeerName, address: Ipv4 | null, effects: Effect[]): void => {
  if (address === null) known.delete(controller);
  else known.set(controller, address);
  effects.push({ kind: "write", key: `${recordKey}${controller}`, value: address });
};

/** A publication of the authority's; null, or without an address: that is over. True when it is news. */
export const takeEntrance = (state: EntranceState, key: string, value: Json, effects: Effect[]): boolean => {
  if (!key.startsWith(entrancePrefix)) return false;
  const controller = peerName(`controller.${key.slice(entrancePrefix.length)}`);
  const address = isObject(value) && typeof value.address === "string" ? (value.address as Ipv4) : null;
  state.unconfirmed.delete(controller);
  if (state.known.get(controller) === (address ?? undefined)) return false;
  set(state, controller, address, effects);
  return true;
};

/** In step with the authority: what it did not repeat is over. True when that is news. */
export const confirmEntrances = (state: EntranceState, effects: Effect[]): boolean => {
  const gone = [...state.unconfirmed];
  const isNews = gone.length > 0 || !state.heard;
  state.heard = true;
  state.unconfirmed.clear();
  for (const controller of gone) set(state, controller, null, effects);
  return isNews;
};
