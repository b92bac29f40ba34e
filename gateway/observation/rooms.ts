import type { InstallationStatus } from "../../model/api.ts";
import type { HostName } from "../../model/cell/identifiers.ts";

type Host = InstallationStatus["hosts"][number];
/** What one Placer says of a host. */
export interface HostRooms {
  readonly host: HostName;
  readonly closed?: NonNullable<Host["administration"]>;
  readonly leaving: NonNullable<Host["leaving"]>;
}
export type Administered = Pick<Host, "administration" | "leaving">;

export const isPlacer = (peer: string): boolean => peer === "placer" || peer.startsWith("placer.");

/**
 * What the Placers together say of each host. All are told the same of a host that takes nothing new, one perhaps later than another;
 * of the VMs there each knows its own.
 */
export function mergeRooms(said: readonly HostRooms[]): ReadonlyMap<string, Administered> {
  const merged = new Map<string, Administered>();
  for (const { host, closed, leaving } of said) {
    const before = merged.get(host);
    const administration = before?.administration ?? closed;
    const all = [...(before?.leaving ?? []), ...leaving];
    merged.set(host, {
      ...(administration === undefined ? {} : { administration }),
      ...(all.length === 0 ? {} : { leaving: all }),
    });
  }
  return merged;
}

/** What one Placer says of the loss of the host that is fullest by it. */
export interface HostLoss {
  readonly host: HostName;
  readonly vms: number;
  readonly stranded: readonly { readonly cell: string; readonly path: string }[];
}
/** Of several the one that would strand most; null: none says anything. */
export function worstLoss(said: readonly HostLoss[]): NonNullable<InstallationStatus["loss"]> | null {
  const [worst] = [...said].sort((one, other) => other.stranded.length - one.stranded.length || other.vms - one.vms);
  if (worst === undefined) return null;
  const { host, vms, stranded } = worst;
  // The path begins with the cell's own name; a child's whole name says whose child it is.
  return { host, vms, stranded: stranded.map(({ cell, path }) => [cell, ...path.split("/").slice(1)].join("/")) };
}

/** Each counts all hosts, one perhaps later than another; null: there are as many as are to be. */
export function fewestLeft(
  said: readonly NonNullable<InstallationStatus["systemHosts"]>[],
): NonNullable<InstallationStatus["systemHosts"]> | null {
  const [fewest] = [...said].sort((one, other) => one.left - other.left);
  return fewest ?? null;
}

/** What one Placer says of the room that it keeps (`x.ha.spareHosts`); `lack` null: there is enough. */
export interface SpareRoom {
  readonly hosts: number;
  readonly lack: { readonly vms: number; readonly memoryMiB: number } | null;
}
/** Each knows of all VMs, one perhaps later than another; null: none keeps any. */
export function leastSpare(said: readonly SpareRoom[]): NonNullable<InstallationStatus["spare"]> | null {
  const lackOf = ({ lack }: SpareRoom): number => lack?.memoryMiB ?? 0;
  const [least] = [...said].sort((one, other) => lackOf(other) - lackOf(one));
  return least ?? null;
}
