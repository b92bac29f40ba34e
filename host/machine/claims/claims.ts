import type { DesiredClaim } from "../../../core/documents/pools.ts";
import { actualCellOwner, desiredClaim } from "../../../core/documents/readers/pools.ts";
import type { Effect } from "../../../core/env.ts";
import { toJson } from "../../../core/outbox.ts";
import { type CellName, cellName, type HostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";

/*
 * Whose this host is, and whose the cells are whose VMs it has: both say the root controller alone, and no controller of its own cell. An epoch that was
 * taken once is durable: the word of a root controller with an older store, and a VM that was placed by such a word, count for nothing.
 */
export interface ClaimState {
  /** What holds now; null: it is everybody's. */
  claim: DesiredClaim | null;
  /** The highest that was ever taken; 0: none. Record `claim`. */
  epoch: number;
  /** By child cell of the root cell, the path of its account; null: no account's. Records `owner/<cell>`. */
  readonly owners: Map<CellName, string | null>;
  /** Of these, what has not been repeated since this start. */
  readonly unconfirmed: Set<CellName>;
  /** The root controller is listened to, and has said all: a cell of which it says nothing is no account's. */
  follows: boolean;
  heard: boolean;
}
const [epochRecord, ownerRecord] = ["claim", "owner/"];
export const rootController: PeerName = peerName("controller.root");

export function restoreClaims(records: ReadonlyMap<string, Json>): ClaimState {
  const owners = new Map<CellName, string | null>();
  for (const [key, value] of records)
    if (key.startsWith(ownerRecord))
      owners.set(cellName(key.slice(ownerRecord.length)), (value as { readonly account: string | null }).account);
  const epoch = Number(records.get(epochRecord) ?? 0);
  return { claim: null, epoch, owners, unconfirmed: new Set(owners.keys()), follows: false, heard: false };
}

/** @returns whether something changed, or why the document is refused */
export function takeClaim(state: ClaimState, host: HostName, value: Json, effects: Effect[]): boolean | string {
  if (value === null) {
    const before = state.claim;
    state.claim = null;
    return before !== null;
  }
  const claim = desiredClaim.of(value, host);
  if (claim === null) {
    // Stored by another version: whose it is nobody can say here, so nobody's VM comes.
    state.claim ??= { host, epoch: state.epoch, rule: null, pooled: { flavor: "?", pool: null } };
    return "it is malformed, or about another host than its key";
  }
  if (claim.epoch < state.epoch)
    return `its epoch is ${claim.epoch}, and ${state.epoch} was taken before: it is the word of an older store`;
  if (claim.epoch > state.epoch) effects.push({ kind: "write", key: epochRecord, value: claim.epoch });
  state.epoch = claim.epoch;
  state.claim = claim.rule === null && claim.pooled === null ? null : claim;
  return true;
}

/** What the root controller says of a cell; true: it is news. */
export function hearOwner(state: ClaimState, key: string, value: Json, effects: Effect[]): boolean {
  if (!key.startsWith(ownerRecord)) return false;
  const cell = cellName(key.slice(ownerRecord.length));
  const said = value === null ? null : actualCellOwner.of(value, cell);
  if (value !== null && said === null) return false;
  state.unconfirmed.delete(cell);
  return setOwner(state, cell, said === null ? undefined : said.account, effects);
}
function setOwner({ owners }: ClaimState, cell: CellName, account: string | null | undefined, effects: Effect[]) {
  if (owners.get(cell) === account) return false;
  if (account === undefined) owners.delete(cell);
  else owners.set(cell, account);
  const value = account === undefined ? null : toJson({ account });
  effects.push({ kind: "write", key: `${ownerRecord}${cell}`, value });
  return true;
}

/** In step with the root controller: what it did not repeat is over. True when that is news. */
export function confirmOwners(state: ClaimState, effects: Effect[]): boolean {
  const gone = [...state.unconfirmed];
  const isNews = gone.length > 0 || !state.heard;
  state.heard = true;
  state.unconfirmed.clear();
  for (const cell of gone) setOwner(state, cell, undefined, effects);
  return isNews;
}

/** Where nobody is kept apart from anybody, and the host is everybody's, nothing need be known of accounts. */
export function followOwners(state: ClaimState, isNeeded: () => boolean, effects: Effect[]): void {
  if (state.follows || (state.claim === null && !isNeeded())) return;
  state.follows = true;
  effects.push({ kind: "subscribe", to: rootController, prefix: ownerRecord });
}
