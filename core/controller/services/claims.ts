import type { Cell } from "../../../model/cell/cell.ts";
import { cellName, type HostName, hostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import { rootCell } from "../../documents/cells.ts";
import { type ActualCellOwner, claimKey, type DesiredClaim } from "../../documents/pools.ts";
import { actualClaim } from "../../documents/readers/pools.ts";
import { cellOwnerKey } from "../../documents/tenancy.ts";
import { publishValue, write } from "../../outbox.ts";
import type { Desires } from "../changes/desires.ts";
import { actualOf, addDesire, type ControllerState } from "../state.ts";
import { placesOf } from "./dedications.ts";
import { hostElements, hostOf, isRoot } from "./hosts.ts";
import { pooledAt } from "./pools/given.ts";
import type { ClaimRecord } from "./pools/pooled-record.ts";

/*
 * A claim says to a host itself whose it is, by dedication or as a pool's, and since when: its epoch grows with each change and stands in what Placers
 * hear as well. So a VM that was placed by an earlier word is refused there, and one that was placed by a later one waits for it. Hosts that are
 * everybody's hear nothing. The epochs are records; a host that has taken a higher one than this store knows says so, and is claimed above it.
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

/** Gives each host of which something else is to be said the next epoch, before anybody hears of it. */
export function advanceClaims(state: ControllerState): void {
  const { cell, claims } = state;
  if (!isRoot(state) || cell === null) return;
  const now = claimed(state, cell);
  const kept = new Set<HostName>([...now.keys(), ...hostElements(cell).map(hostOf)]);
  for (const host of [...claims.keys()])
    if (!kept.has(host)) {
      claims.delete(host);
      write(state.outbox, `${recordPrefix}${host}`, null);
    }
  for (const host of new Set([...now.keys(), ...claims.keys()])) {
    const { epoch = 0, what = null } = claims.get(host) ?? {};
    const claim = now.get(host);
    const text = claim === undefined ? null : JSON.stringify(claim);
    const said = actualOf(actualClaim, state, hostPeer(host), claimKey(host))?.epoch ?? 0;
    if (text === what && said <= epoch) continue;
    const record: ClaimRecord = { epoch: Math.max(epoch, said) + 1, what: text };
    claims.set(host, record);
    write(state.outbox, `${recordPrefix}${host}`, record);
  }
}

export function desireClaims(state: ControllerState, desires: Desires): void {
  const { cell, claims } = state;
  if (!isRoot(state) || cell === null) return;
  for (const [host, claim] of claimed(state, cell)) {
    const { epoch } = claims.get(host) ?? {};
    if (epoch !== undefined)
      addDesire(desires, hostPeer(host), claimKey(host), { host, epoch, ...claim } satisfies DesiredClaim);
  }
}
/** Keys under which something is said to this model's hosts. */
export const claimKeys = (state: ControllerState, cell: Cell): readonly string[] =>
  [...claimed(state, cell).keys()].map(claimKey);
/** Hosts that say which epoch they have taken. */
export const claimedHosts = ({ claims }: ControllerState): readonly PeerName[] => [...claims.keys()].map(hostPeer);

/** To hosts: whose the cells are. Of those that have no account as well, so that nobody waits for a word. */
export function publishOwners(
  state: ControllerState,
  owners: (state: ControllerState) => Iterable<readonly [cell: string, account: string | null]>,
): void {
  const { outbox, options } = state;
  if (options.cell !== rootCell || state.cell === null) return;
  const said = new Set<string>();
  for (const [name, account] of owners(state)) {
    const cell = cellName(name);
    said.add(cellOwnerKey(cell));
    publishValue(outbox, cellOwnerKey(cell), { cell, account } satisfies ActualCellOwner);
  }
  for (const key of [...outbox.published.keys()])
    if (key.startsWith(ownerPrefix) && !said.has(key)) publishValue(outbox, key, null);
}
const ownerPrefix = cellOwnerKey(cellName(""));
