import { isWithin } from "../../../../model/addresses/pools.ts";
import { type Cidr, hostPeer, type PeerName } from "../../../../model/cell/identifiers.ts";
import { type DesiredPools, mostHad, poolsKey } from "../../../documents/network/network.ts";
import { desiredPools } from "../../../documents/readers/network.ts";
import type { Desires } from "../../changes/desires.ts";
import { poolsInForce, poolsSaid } from "../../network/pools.ts";
import { addDesire, addressManager, type ControllerState, desiredNow, keepDesire } from "../../state.ts";
import { isRoot } from "../hosts.ts";
import { hostsWith } from "../succession.ts";

/**
 * What the IP Address Manager is told. What it said to be kept it is told as well, for when it has lost its store; while it says nothing, so is what
 * it may have given of pools that were declared last. As long as hosts were told of anything it has to say what there is. Null: nothing of that is.
 */
function askedOf(state: ControllerState, declared: readonly Cidr[] | undefined, isOther: boolean): DesiredPools | null {
  const said = poolsSaid(state);
  const before = desiredPools.of(desiredNow(state, addressManager, poolsKey));
  const known = said === undefined ? [before?.had, before?.external] : [said.kept, said.external];
  const others = [...(declared ?? []), ...(said === undefined ? [] : [said.otherwise])];
  const had = known.flatMap((networks = []) => networks.filter((text) => !isWithin(text, others))).slice(0, mostHad);
  const isTold = isOther && [...hostsWith(state, poolsKey)].some((host) => hasPools(state, hostPeer(host)));
  if (declared === undefined && had.length === 0 && !isTold) return null;
  return { external: declared ?? [], ...(had.length === 0 && declared !== undefined ? {} : { had }) };
}
/** It was told, by this store or one before. */
const hasPools = (state: ControllerState, host: PeerName): boolean =>
  desiredNow(state, host, poolsKey) !== undefined || state.forgotten.get(host)?.has(poolsKey) === true;

/**
 * The external pools that the root cell declares. The IP Address Manager has them first, and what it says is in force goes on to every host: so an address
 * that machines still have is external there for as long as they have it, whatever is declared meanwhile.
 */
export function desirePools(state: ControllerState, desires: Desires): void {
  const { cell } = state;
  if (!isRoot(state) || cell === null) return;
  const external = poolsInForce(state);
  const asked = askedOf(state, cell.externalPools, external !== null);
  if (asked !== null) addDesire(desires, addressManager, poolsKey, asked);
  // Each host has that by itself.
  if (external === null) return;
  for (const host of hostsWith(state, poolsKey)) {
    if (external === undefined) keepDesire(state, desires, hostPeer(host), poolsKey);
    else addDesire(desires, hostPeer(host), poolsKey, { external } satisfies DesiredPools);
  }
}

/**
 * Pools that a lost store has forgotten, and that no text declares, count no more: at the IP Address Manager at once, since what machines have
 * stays theirs there, and at a host once that manager says that they have nothing else.
 */
export const isPoolsForgotten = (state: ControllerState, peer: PeerName): boolean =>
  desiredNow(state, peer, poolsKey) === undefined && (peer === addressManager || poolsInForce(state) === null);
