import type { CellName, ElementPath, HostName } from "../../../model/cell/identifiers.ts";
import { rootCell } from "../../documents/cells.ts";
import { noteTaken, noUse, type Reservation, reserve, takenMiB, UsageTable } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import { place } from "../place.ts";
import type { PlacerState, Wanted } from "../state.ts";

/*
 * Whether a host may be lost now: the VMs of the fullest one are placed once more in thought, in the order in which they would be started
 * again, on what the others have left. Other Placers' VMs take room as hosts say they do; whether those would find a place is theirs to say.
 */
export interface Loss {
  readonly host: HostName;
  /** How many of this Placer's VMs are there. */
  readonly vms: number;
  /** Those for which there would be no place. */
  readonly stranded: readonly { readonly cell: CellName; readonly path: ElementPath }[];
}

/** Null: there is nothing anywhere. */
export function lossOf(state: PlacerState): Loss | null {
  const host = fullest(state);
  if (host === null) return null;
  const usage = new UsageTable();
  for (const [other, { reservations, taken }] of state.usage) {
    if (other === host) continue;
    for (const reservation of reservations.values()) reserve(usage, reservation);
    for (const [vm, share] of taken) noteTaken(usage, other, vm, share);
  }
  const hosts = [...state.hosts.values()].filter((view) => view.host !== host);
  const there = placedAt(state, host);
  const stranded: Reservation[] = [];
  for (const { reservation, wanted } of inOrderOfStart(state, [host])) {
    const { client, document } = wanted;
    const placed = place(hosts, usage, { ...document, restart: true }, state.ratios, askerOf(state, client));
    if ("refusals" in placed) stranded.push(reservation);
    else reserve(usage, { ...reservation, ...placed });
  }
  return { host, vms: there.length, stranded: stranded.map(({ cell, path }) => ({ cell, path })) };
}

const placedAt = (state: PlacerState, host: HostName): readonly Reservation[] =>
  [...(state.usage.get(host)?.reservations.values() ?? [])].filter(
    ({ vm, off }) => off !== true && isPlaced(state, vm),
  );

/** This Placer's VMs at hosts that look for others if these are lost, as they would be started again. */
export function inOrderOfStart(
  state: PlacerState,
  hosts: readonly HostName[],
): readonly { readonly reservation: Reservation; readonly wanted: Wanted }[] {
  return hosts
    .flatMap((host) => placedAt(state, host))
    .sort((one, other) => compare(state, one, other))
    .flatMap((reservation) => {
      const wanted = state.wanted.get(reservation.vm);
      // Room that is kept for one that leaves is its own already.
      return wanted === undefined || state.next.has(reservation.vm) ? [] : [{ reservation, wanted }];
    });
}

/** The root controller's VM is placed by nobody: hosts start it (decision 35). */
const isPlaced = ({ wanted }: PlacerState, vm: Reservation["vm"]): boolean => wanted.get(vm)?.document.on === undefined;

function fullest({ hosts, usage }: PlacerState): HostName | null {
  let found: { readonly host: HostName; readonly usedMiB: number } | null = null;
  for (const { host, reachable, actual } of hosts.values()) {
    const use = usage.get(host) ?? noUse();
    if (!reachable || actual === null || use.reservations.size === 0) continue;
    const usedMiB = takenMiB(actual, use);
    if (found === null || usedMiB > found.usedMiB || (usedMiB === found.usedMiB && host < found.host))
      found = { host, usedMiB };
  }
  return found?.host ?? null;
}

/** The root cell's first, then by priority, the larger first. */
function compare({ wanted }: PlacerState, one: Reservation, other: Reservation): number {
  const rank = ({ cell, vm }: Reservation): number =>
    cell === rootCell ? Number.MAX_SAFE_INTEGER : (wanted.get(vm)?.document.priority ?? 0);
  return rank(other) - rank(one) || other.memoryMiB - one.memoryMiB || (one.vm < other.vm ? -1 : 1);
}
