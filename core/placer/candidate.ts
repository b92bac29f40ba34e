import type { CellName, ElementPath, HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ActualHost, ActualTaken, DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
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
  /** `ActualHost.boot` when it was made. */
  readonly boot?: number;
  readonly apartFrom: readonly string[];
  /** `x.placement.spread`; absent: none. */
  readonly spread?: string;
}

/**
 * What is taken of one host: by this Placer's reservations, and by the VMs that the host says it has, which may be another
 * Placer's. A VM that is both counts once, with the larger of the two.
 */
export interface HostUse {
  memoryMiB: number;
  cpus: number;
  /** How often their machines count (`machineShares`). */
  shares: number;
  readonly reservations: Map<Uid, Reservation>;
  readonly taken: Map<Uid, ActualTaken>;
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

/** Virtual CPUs per processor: they share it in time. The host holds to it too, whichever Placer sends it a VM. */
export const cpuRatio = 16;
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
) => Required<Omit<HostRefusal, "host">> | null;

export const noUse = (): HostUse => ({
  ...{ memoryMiB: 0, cpus: 0, shares: 0 },
  ...{ reservations: new Map(), taken: new Map() },
});
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

const shareOf = (use: HostUse, vm: Uid): ActualTaken & { readonly shares: number } => {
  const [reserved, taken] = [use.reservations.get(vm), use.taken.get(vm)];
  const larger = (of: (share: ActualTaken) => number): number =>
    Math.max(reserved === undefined ? 0 : of(reserved), taken === undefined ? 0 : of(taken));
  const memoryMiB = larger((share) => share.memoryMiB);
  return {
    memoryMiB,
    cpus: larger(({ cpus }) => cpus),
    shares: reserved === undefined && taken === undefined ? 0 : machineShares(memoryMiB),
  };
};
/** Changes what is known of one VM at a host, and the sums with it. */
function change(usage: Map<HostName, HostUse>, host: HostName, vm: Uid, work: (use: HostUse) => void): void {
  const use = usage.get(host) ?? noUse();
  usage.set(host, use);
  const before = shareOf(use, vm);
  work(use);
  const after = shareOf(use, vm);
  use.memoryMiB += after.memoryMiB - before.memoryMiB;
  use.cpus += after.cpus - before.cpus;
  use.shares += after.shares - before.shares;
}
export const reserve = (usage: Map<HostName, HostUse>, reservation: Reservation): void =>
  change(usage, reservation.host, reservation.vm, ({ reservations }) => reservations.set(reservation.vm, reservation));
export const release = (usage: Map<HostName, HostUse>, { host, vm }: Reservation): void =>
  change(usage, host, vm, ({ reservations }) => reservations.delete(vm));
/** What a host says that it has of a VM; null: nothing any more. */
export const noteTaken = (usage: Map<HostName, HostUse>, host: HostName, vm: Uid, taken: ActualTaken | null): void =>
  change(usage, host, vm, (use) => {
    if (taken === null) use.taken.delete(vm);
    else use.taken.set(vm, taken);
  });

/** The same without what one VM takes: its own last incarnation may still be on its way out there. */
export function useWithout(use: HostUse, vm: Uid): HostUse {
  const { memoryMiB, cpus, shares } = shareOf(use, vm);
  return shares === 0
    ? use
    : { ...use, memoryMiB: use.memoryMiB - memoryMiB, cpus: use.cpus - cpus, shares: use.shares - shares };
}

/** `x.placement.apartFrom`: one path or several, with or without the cell's own component in front. */
export function apartFrom(placement: Json): readonly string[] {
  const value = isObject(placement) ? placement.apartFrom : undefined;
  const all = Array.isArray(value) ? value : [value];
  return all.filter((path): path is string => typeof path === "string");
}

/** `x.placement.spread`: name of a group of its cell whose VMs go to different hosts; null: none. */
export function spreadOf(placement: Json): string | null {
  const group = isObject(placement) ? placement.spread : undefined;
  return typeof group === "string" ? group : null;
}
/** How many others of the request's group are at a host. */
export function besidesAt({ reservations }: HostUse, { vm, cell, placement }: DesiredPlacement): number {
  const group = spreadOf(placement);
  if (group === null) return 0;
  let besides = 0;
  for (const each of reservations.values())
    if (each.vm !== vm && each.cell === cell && each.spread === group) besides += 1;
  return besides;
}
