import type { Uid } from "../../../model/cell/identifiers.ts";
import type { AgentState } from "./records.ts";

/**
 * Files are sparse and servers promise more than they have, so what is really used has a bound of its own. Without one a
 * single tenant fills a server, and the guests of all stand still. When less than the reserve is free, the writable exports of
 * cells that use more than their equal share of the server end, as where its disk is full: their guests stand still and
 * lose nothing, their leases stay, and the same exports come back when there is room. What is left is for all others.
 *
 * A cell shares with the cells below it what its ancestor right below the root cell has: whoever makes child cells makes
 * nobody else's share smaller.
 *
 * The root cell is never held back: what would make room is run by it.
 */
export const reserveMiB = (totalMiB: number): number => Math.min(8192, Math.floor(totalMiB / 20));
/** Free again before anybody goes on: as much more, or one would be held back and let go by turns. */
const enoughMiB = (totalMiB: number): number => 2 * reserveMiB(totalMiB);
const management = "root";
/** `shop` of `web.shop` and of `shop`: names go from a cell up to the one right below the root cell (`childName`). */
const topCellOf = (cell: string): string => cell.slice(cell.lastIndexOf(".") + 1);

/**
 * Who is held back, as of what the executor measured last.
 * @returns the volumes of cells with which it has become otherwise, and what to say of each cell
 */
export function updateHeldBack(state: AgentState): {
  readonly volumes: readonly Uid[];
  readonly changes: readonly { readonly cell: string; readonly held: boolean; readonly usedMiB: number }[];
} {
  const { space, heldBack } = state;
  if (space === null) return { volumes: [], changes: [] };
  const used = new Map<string, number>();
  for (const [volume, { about }] of state.volumes)
    if (about !== undefined) {
      const cell = topCellOf(about.cell);
      used.set(cell, (used.get(cell) ?? 0) + (state.usedMiB.get(volume) ?? 0));
    }
  const shareMiB = space.totalMiB / Math.max(2, used.size);
  const isScarce = space.freeMiB < reserveMiB(space.totalMiB);
  const isEnough = space.freeMiB >= enoughMiB(space.totalMiB);
  const changes: { cell: string; held: boolean; usedMiB: number }[] = [];
  for (const cell of new Set([...used.keys(), ...heldBack])) {
    const usedMiB = used.get(cell) ?? 0;
    const before = heldBack.has(cell);
    const held = cell !== management && usedMiB > shareMiB && (isScarce || (before && !isEnough));
    if (held === before) continue;
    if (held) heldBack.add(cell);
    else heldBack.delete(cell);
    changes.push({ cell, held, usedMiB });
  }
  const changed = new Set(changes.map(({ cell }) => cell));
  const volumes = [...state.volumes].filter(([, { about }]) => changed.has(topCellOf(about?.cell ?? "")));
  return { volumes: volumes.map(([volume]) => volume), changes };
}

/** Why a volume's writer has to wait, a sentence; null: it has not. */
export function heldBackReason({ volumes, heldBack, space, options }: AgentState, volume: Uid): string | null {
  const cell = topCellOf(volumes.get(volume)?.about?.cell ?? "");
  if (!heldBack.has(cell)) return null;
  const reserve = reserveMiB(space?.totalMiB ?? 0);
  return `storage server ${options.server} has ${space?.freeMiB ?? 0} MiB left, of which it keeps ${reserve} MiB for others than cell ${cell} with the cells below it, which uses more than its share: its volumes there wait until something is deleted or moved`;
}
