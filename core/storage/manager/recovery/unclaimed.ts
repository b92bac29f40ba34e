import type { CellName, PeerName, Uid } from "../../../../model/cell/identifiers.ts";
import { hasOnlyBinned } from "../binned.ts";
import { type AgentView, type ManagerState, placesOf, serverOf } from "../state.ts";
import { controllerOf } from "./owner.ts";

/*
 * What servers have of cells that nobody desires. A controller that lost its store does not know of it, and a Storage Manager that lost
 * its own has no document of it: nobody would ever take it back, and where it is a copy its origin would wait for its end, and the cell
 * that the origin is of. It stays, and is named to an operator (`cells orphans list`), whose word alone ends it (`ended.ts`): as
 * any other volume, whoever writes it first.
 *
 * Rejected: the servers' own lists of what was not repeated, which name it as well. They have also what a cell that is cut off has
 * yet to desire; here it counts once its cell has said all, or is gone.
 */

/** By the controllers of their cells, as documents of theirs. */
export function unclaimedVolumes(state: ManagerState): ReadonlyMap<PeerName, readonly string[]> {
  const named = new Map<PeerName, Set<string>>();
  const name = (cell: CellName, volume: Uid): void => {
    const client = controllerOf(cell);
    named.set(client, (named.get(client) ?? new Set()).add(`volume/${volume}`));
  };
  for (const [volume, { found, cell }] of state.volumes) if (found === true) name(cell, volume);
  for (const agent of state.agents.values())
    for (const [volume, { about }] of agent.volumes)
      if (about !== undefined && isUnclaimed(state, agent, about.cell, volume)) name(about.cell, volume);
  return new Map([...named].map(([client, keys]) => [client, [...keys]]));
}

/** What an older server has counts once an operator has looked at it; and of what a bin alone has something another verb decides. */
function isUnclaimed(state: ManagerState, agent: AgentView, cell: CellName, volume: Uid): boolean {
  if (state.volumes.has(volume) || state.wantedVolumes.has(volume) || state.unread.has(volume)) return false;
  if (agent.older || hasOnlyBinned(agent, volume)) return false;
  return state.ended.get(controllerOf(cell))?.has(volume) !== true;
}

/**
 * Which server has a copy of the volume that this store does not know, and how that ends; null: none has. What another cell has is not
 * this one's to read.
 */
export function heldCopy(
  state: ManagerState,
  volume: Uid,
  cell: CellName,
): { readonly name: string; readonly end: string } | null {
  for (const copy of state.copiesHeldOf.get(volume) ?? []) {
    const [agent] = placesOf(state, copy);
    if (agent === undefined) continue;
    const about = agent.volumes.get(copy)?.about;
    const server = serverOf(agent.name);
    if (about?.cell !== cell)
      return {
        name: `a volume of another cell on ${server}`,
        end: "if nobody wants that any more, `cells orphans list` names it to an operator",
      };
    const verb = `\`cells orphans end ${state.self} ${controllerOf(cell)} volume/${copy}\``;
    const end = isUnclaimed(state, agent, cell, copy)
      ? `its cell does not ask for that here, and if nobody wants it, ${verb} ends it`
      : "";
    return { name: `"${about.path}" on ${server}`, end };
  }
  return null;
}
