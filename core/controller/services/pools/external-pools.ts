import { hostPeer } from "../../../../model/cell/identifiers.ts";
import { type DesiredPools, poolsKey } from "../../../documents/network/network.ts";
import type { Desires } from "../../changes/desires.ts";
import { poolsInForce } from "../../network/pools.ts";
import { addDesire, addressManager, type ControllerState, keepDesire } from "../../state.ts";
import { isRoot } from "../hosts.ts";
import { hostsWith } from "../succession.ts";

/**
 * The external pools that the root cell declares. The IP Address Manager has them first, and what it says is in force goes on to every host: so an address
 * that machines still have is external there for as long as they have it, whatever is declared meanwhile.
 */
export function desirePools(state: ControllerState, desires: Desires): void {
  const { cell } = state;
  if (!isRoot(state) || cell === null) return;
  if (cell.externalPools !== undefined)
    addDesire(desires, addressManager, poolsKey, { external: cell.externalPools } satisfies DesiredPools);
  const external = poolsInForce(state);
  // Each host has that by itself.
  if (external === null) return;
  for (const host of hostsWith(state, poolsKey)) {
    if (external === undefined) keepDesire(state, desires, hostPeer(host), poolsKey);
    else addDesire(desires, hostPeer(host), poolsKey, { external } satisfies DesiredPools);
  }
}
