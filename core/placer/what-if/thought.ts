import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { noteTaken, type Reservation, release, reserve, UsageTable } from "../candidate.ts";
import { createIndex } from "../index/classes.ts";
import type { PlacerState } from "../state.ts";
import { HostTable } from "../tables.ts";

/** The same hosts and places once more, to be changed in thought: nothing of it reaches the Placer itself. */
export function thought(state: PlacerState): PlacerState {
  const [hosts, usage] = [new HostTable(), new UsageTable()];
  for (const [peer, view] of state.hosts) hosts.set(peer, view);
  for (const [host, { reservations, taken }] of state.usage) {
    for (const reservation of reservations.values()) reserve(usage, reservation);
    for (const [vm, share] of taken) noteTaken(usage, host, vm, share);
  }
  return { ...state, hosts, usage, index: createIndex() };
}

/** What a VM asks for wherever it is now. */
export function anew({ avoid, on, at, moveTo, restart, off, ...wishes }: DesiredPlacement): DesiredPlacement {
  return wishes;
}

/** In thought, a VM has its place at another host. */
export function shift(usage: UsageTable, reservation: Reservation, to: HostName): Reservation {
  const { host, vm } = reservation;
  const taken = takenAt(usage, host, vm);
  const there = { ...reservation, host: to };
  release(usage, reservation);
  if (taken !== undefined) noteTaken(usage, host, vm, null);
  reserve(usage, there);
  if (taken !== undefined) noteTaken(usage, to, vm, taken);
  return there;
}
const takenAt = (usage: UsageTable, host: HostName, vm: Uid) => usage.get(host)?.taken.get(vm);
