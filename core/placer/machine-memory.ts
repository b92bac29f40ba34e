/**
 * What a machine takes of its host beside its guest's memory, counted alike by the host that runs it and by whoever places
 * machines there (`ActualHost.machineMiB`; its value is `overheadMiB` in `host/service/planner.ts`). A guest with more memory runs more code, and where processors are emulated the
 * translated code is kept in the host's memory: a larger machine has more room for it, and counts twice.
 */
export const largeMachineMiB = 256;

/** How often `ActualHost.machineMiB` a machine with a guest of this memory, in MiB, counts. */
export const machineShares = (memoryMiB: number): 1 | 2 => (memoryMiB < largeMachineMiB ? 1 : 2);

/** The largest guest that fits, machine and all, into that much memory; 0 for none. All in MiB. */
export const roomFor = (freeMiB: number, machineMiB: number): number => {
  const large = freeMiB - 2 * machineMiB;
  return large >= largeMachineMiB ? large : Math.max(0, Math.min(freeMiB - machineMiB, largeMachineMiB - 1));
};
