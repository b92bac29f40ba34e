import { type CellName, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import { rootCell } from "../documents/cells.ts";
import { sameJson, toJson } from "../outbox.ts";
import { type CellRecord, servicesOf } from "./record.ts";
import type { FoundController } from "./work.ts";

/**
 * A Cell Manager that has lost its store, or has an older one, knows nothing of some cells that live. What it gave each of them
 * for good stands where their controllers are made: in the root cell's model, which has a store and a backup of its own. So
 * at each start it hears first which controllers there are, takes over what it does not know, and makes no cell before that: a
 * cell would get another number, which its running controller and its machines do not have, or one that somebody else has.
 *
 * Rejected: each parent repeats the numbers of its children. Whoever commands one controller could so give its child the
 * number of another cell, for whose machines the dataplane would then take the child's.
 */
export interface Adoption {
  readonly saved: readonly CellRecord[];
  /** Older cells of names that by now are others': their controllers are gone. */
  readonly replaced: readonly CellRecord[];
  readonly nextNumber: number;
}

/** Cells may have ended since the store was lost, of which nothing tells any more: so many numbers are left out. */
const leftOut = 256;

export function adopt(
  cells: ReadonlyMap<Uid, CellRecord>,
  nextNumber: number,
  found: readonly FoundController[],
): Adoption {
  const saved = found.flatMap((each) => adopted(cells.get(each.uid), each) ?? []);
  const present = new Map(found.map(({ cell, uid }) => [cell, uid]));
  const replaced = [...cells.values()].filter(({ cell, uid }) => (present.get(cell) ?? uid) !== uid);
  const newest = found.reduce((most, { cellNumber }) => Math.max(most, cellNumber), nextNumber - 1);
  const isBehind = saved.length > 0 || replaced.length > 0;
  return { saved, replaced, nextNumber: newest + 1 + (isBehind ? leftOut : 0) };
}

/** Null: nothing new. What runs is right: its number is told to hosts, and nobody changes it there. */
function adopted(known: CellRecord | undefined, found: FoundController): CellRecord | null {
  const { uid, cell, cellNumber: number, services } = found;
  if (known === undefined)
    return { uid, client: parentOf(cell), cell, number, stage: "living", address: null, services, unclaimed: true };
  const isSame = known.number === number && sameJson(toJson(servicesOf(known)), toJson(services));
  return isSame ? null : { ...known, number, services };
}

/** `web.shop` is a child of `shop`, and `shop` one of the root cell. */
function parentOf(cell: CellName): PeerName {
  const [, ...above] = cell.split(".");
  return peerName(`controller.${above.length === 0 ? rootCell : above.join(".")}`);
}
