import type { Cell } from "../../../model/cell/cell.ts";
import { cellName, type HostName, hostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import { rootCell } from "../../documents/cells.ts";
import { type ActualCellOwner, claimKey, type DesiredClaim } from "../../documents/pools.ts";
import { actualClaim } from "../../documents/readers/pools.ts";
import { cellOwnerKey } from "../../documents/tenancy.ts";
import { publishValue, write } from "../../outbox.ts";
import { actualOf, addDesire, type ControllerState } from "../state.ts";
import { placesOf } from "./dedications.ts";
import { hostElements, hostOf, isRoot, placersOf } from "./hosts.ts";
import { pooledAt } from "./pools/given.ts";
import type { ClaimRecord } from "./pools/pooled-record.ts";

/*
 * A claim says to a host itself whose it is, by dedication or as a pool's, and since when: its epoch grows with each change and stands in what Placers
 * hear as well. So a VM that was placed by an earlier word is refused there, and one that was placed by a later one waits for it. Hosts that were
 * never anybody's hear nothing. The epochs are records; a host that has taken a higher one than this store knows says so, and is claimed above it.
 */
const recordPrefix = "claim/";
export function readClaim({ claims }: ControllerState, key: string, value: unknown): boolean {
  if (!key.startsWith(recordPrefix)) return false;
  claims.set(hostName(key.slice(recordPrefix.length)), value as ClaimRecord);
  return true;
}

const claimed = (state: ControllerState, cell: Cell): ReadonlyMap<HostName, Omit<DesiredClaim, "host" | "epoch">> => {
  const { rules } = placesOf(cell);
  const pooled = pooledAt(state, cell);
  return new Map(
    [...new Set([...rules.keys(), ...pooled.keys()])].map((host) => [
      host,
      { rule: rules.get(host) ?? null, pooled: pooled.get(host) ?? null },
    ]),
  );
};

/**
 * Gives each host of which something else is to be said the next epoch, before anybody hears of it. What is to be said follows from the model and
 * the pools, and is looked at again when one of these has changed; what a host says it has taken, by that host.
 */
export function advanceClaims(state: ControllerState): void {
  if (!isRoot(state)) return;
  state.pass.whole("claims-change", () => followModel(state));
  state.pass.each("claims-taken", state.claims, ({ epoch, what }, host) => {
    const said = actualOf(actualClaim, state, hostPeer(host), claimKey(host))?.epoch ?? 0;
    if (said > epoch && said - epoch <= mostAhead) save(state, host, { epoch: said + 1, what });
  });
}
/**
 * A host is believed to have taken a word of a store that was newer, by so many changes at most: one that lies cannot have the next epoch be
 * none any more. If it goes on to say so it refuses its claims, and has nobody's VMs that were placed by one.
 */
const mostAhead = 2 ** 20;

function followModel(state: ControllerState): void {
  const { cell, claims } = state;
  if (cell === null) return;
  const now = claimed(state, cell);
  const kept = new Set<HostName>([...now.keys(), ...hostElements(cell).map(hostOf)]);
  for (const host of [...claims.keys()]) if (!kept.has(host)) save(state, host, null);
  const placers = [...placersOf(cell)];
  for (const host of new Set([...now.keys(), ...claims.keys(), ...kept])) {
    const { epoch = 0, what = null } = claims.get(host) ?? {};
    const claim = now.get(host);
    const text = claim === undefined ? null : JSON.stringify(claim);
    // By a claim that this store does not know VMs were placed there: else they would wait for it.
    const promised = Math.max(0, ...placers.map((peer) => promisedAt(state, peer, host)));
    const isLater = promised > epoch && promised - epoch <= mostAhead;
    if (text !== what || isLater) save(state, host, { epoch: (isLater ? promised : epoch) + 1, what: text });
  }
}
const promisedAt = (state: ControllerState, placer: PeerName, host: HostName): number =>
  actualOf(actualClaim, state, placer, claimKey(host))?.epoch ?? 0;
function save({ claims, outbox }: ControllerState, host: HostName, record: ClaimRecord | null): void {
  if (record === null) claims.delete(host);
  else claims.set(host, record);
  write(outbox, `${recordPrefix}${host}`, record);
}

/**
 * A host that was somebody's once and is everybody's now hears that as well, with its epoch: else one that was away while it was claimed would not know that
 * the claim by which a VM was placed is over, and the VM would wait there for it.
 */
export function desireClaims(state: ControllerState): void {
  if (!isRoot(state)) return;
  state.pass.each("claims", state.claims, ({ epoch, what }, host, desires) => {
    if (state.cell !== null) addDesire(desires, hostPeer(host), claimKey(host), { host, epoch, ...claimIn(what) });
  });
}
const claimIn = (what: string | null): Omit<DesiredClaim, "host" | "epoch"> =>
  what === null ? { rule: null, pooled: null } : JSON.parse(what);

/** A word of a store that was lost, which a Placer keeps. @returns whether it is later than what is known here, and is no lie */
export function takeKeptClaim(state: ControllerState, host: HostName, kept: Omit<DesiredClaim, "host">): boolean {
  const { epoch, ...what } = kept;
  const known = state.claims.get(host)?.epoch ?? -1;
  if (epoch <= known || epoch - known > mostAhead) return false;
  save(state, host, { epoch, what: JSON.stringify(what) });
  return true;
}
/** Of which flavour it is by its claim; null: of none. While a store is whole that is what the model says. */
export const claimedFlavor = ({ claims }: ControllerState, host: HostName): string | null =>
  claimIn(claims.get(host)?.what ?? null).pooled?.flavor ?? null;

/** Keys under which something is said to this model's hosts. */
export const claimKeys = ({ claims }: ControllerState): readonly string[] => [...claims.keys()].map(claimKey);
/** Hosts that say which epoch they have taken. */
export const claimedHosts = ({ claims }: ControllerState): readonly PeerName[] => [...claims.keys()].map(hostPeer);

/** To hosts: whose the cells are. Of those that have no account as well, so that nobody waits for a word. */
export function publishOwners(
  state: ControllerState,
  owners: (state: ControllerState) => Iterable<readonly [cell: string, account: string | null]>,
): void {
  const { outbox, options } = state;
  if (options.cell !== rootCell || state.cell === null) return;
  // That of the root cell says that there will be a word of each cell.
  const said = new Set([cellOwnerKey(cellName(rootCell))]);
  publishValue(outbox, cellOwnerKey(cellName(rootCell)), {
    cell: cellName(rootCell),
    account: null,
  } satisfies ActualCellOwner);
  for (const [name, account] of owners(state)) {
    const cell = cellName(name);
    said.add(cellOwnerKey(cell));
    publishValue(outbox, cellOwnerKey(cell), { cell, account } satisfies ActualCellOwner);
  }
  for (const key of [...outbox.published.keys()])
    if (key.startsWith(ownerPrefix) && !said.has(key)) publishValue(outbox, key, null);
}
const ownerPrefix = cellOwnerKey(cellName(""));
