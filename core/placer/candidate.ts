import type { CellName, ElementPath, HostName, PeerName, Uid } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import type { ActualHost, DesiredPlacement, HostRefusal } from "../documents.ts";
import { machineShares, roomFor } from "../machine-memory.ts";
import { isObject } from "../outbox.ts";

/** Room for one VM incarnation on one host; durable until its wish goes or asks for another incarnation. */
export interface Reservation {
  readonly client: PeerName;
  readonly vm: Uid;
  readonly path: ElementPath;
  readonly cell: CellName;
  readonly incarnation: number;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly host: HostName;
  readonly apartFrom: readonly string[];
}

/** What all reservations of one host take together. */
export interface HostUse {
  memoryMiB: number;
  cpus: number;
  /** How often their machines count (`machineShares`). */
  shares: number;
  readonly reservations: Map<Uid, Reservation>;
}
export type Usage = ReadonlyMap<HostName, HostUse>;

export interface HostView {
  readonly host: HostName;
  readonly reachable: boolean;
  /** When it was declared dead, for people; null or absent: it was not, or it is back. */
  readonly died?: string | null;
  /** null: never heard of it. */
  readonly actual: ActualHost | null;
}

/** A reachable host with all that a filter may look at. */
export interface Candidate {
  readonly actual: ActualHost;
  readonly use: HostUse;
}

/** How much of a resource may be promised for each unit that is there. */
export interface Ratios {
  readonly cpu: number;
  readonly memory: number;
}

/** One rule: null if the host passes, otherwise why it does not and what would lift that. */
export type Filter = (
  candidate: Candidate,
  request: DesiredPlacement,
  ratios: Ratios,
) => Omit<HostRefusal, "host"> | null;

export const noUse = (): HostUse => ({ memoryMiB: 0, cpus: 0, shares: 0, reservations: new Map() });
/** MiB that VMs may have on a host, taken or not. */
export const memoryFor = (actual: ActualHost, ratios: Ratios): number =>
  Math.max(0, Math.floor((actual.memoryMiB - actual.reservedMiB) * ratios.memory));
/** What is promised already, each machine's own need included. */
export const takenMiB = (actual: ActualHost, use: HostUse): number =>
  use.memoryMiB + use.shares * (actual.machineMiB ?? 0);
/** The most memory that one more guest could have now. */
export const freeMiB = (actual: ActualHost, use: HostUse, ratios: Ratios): number =>
  roomFor(memoryFor(actual, ratios) - takenMiB(actual, use), actual.machineMiB ?? 0);
export const cpusFor = (actual: ActualHost, ratios: Ratios): number => Math.floor(actual.cpus * ratios.cpu);

export function reserve(usage: Map<HostName, HostUse>, reservation: Reservation): void {
  const use = usage.get(reservation.host) ?? noUse();
  usage.set(reservation.host, use);
  use.memoryMiB += reservation.memoryMiB;
  use.cpus += reservation.cpus;
  use.shares += machineShares(reservation.memoryMiB);
  use.reservations.set(reservation.vm, reservation);
}
export function release(usage: Map<HostName, HostUse>, reservation: Reservation): void {
  const use = usage.get(reservation.host);
  if (use?.reservations.delete(reservation.vm) !== true) return;
  use.memoryMiB -= reservation.memoryMiB;
  use.cpus -= reservation.cpus;
  use.shares -= machineShares(reservation.memoryMiB);
}

/** `x.placement.apartFrom`: one path or several, with or without the cell's own component in front. */
export function apartFrom(placement: Json): readonly string[] {
  const value = isObject(placement) ? placement.apartFrom : undefined;
  const all = Array.isArray(value) ? value : [value];
  return all.filter((path): path is string => typeof path === "string");
}
