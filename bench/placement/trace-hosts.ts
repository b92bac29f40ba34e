import type { HostOffer } from "./ledger.ts";
import type { Machine } from "./traces/azure-packing.ts";

/*
 * The hosts of a trace: all of one size, each of which keeps 4 GiB. What they offer is written here once more, as `x.cpuRatio` 16 and `x.memoryRatio` 1 say it, and what a machine
 * takes besides its guest's memory (60 MiB, and twice that with 256 MiB or more): what looks at a Placer's answers does not ask its code for it.
 */
export const hostSize = { memoryMiB: 262_144, cpus: 64, cpuSpeedMHz: 2400 } as const;
const [machineMiB, largeMiB] = [60, 256];
export const offer: HostOffer & Machine = {
  memoryMiB: 262_144 - 4096,
  cpus: 64 * 16,
  takes: (guestMiB) => guestMiB + (guestMiB < largeMiB ? machineMiB : 2 * machineMiB),
  guest: (memoryMiB) =>
    memoryMiB - 2 * machineMiB >= largeMiB
      ? memoryMiB - 2 * machineMiB
      : Math.min(memoryMiB - machineMiB, largeMiB - 1),
};
