import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Uid, uid } from "../../../model/cell/identifiers.ts";
import { machineFiles } from "./launch.ts";
import { type ProcessIdentity, statFields } from "./process/process.ts";

/** What one machine's process has used since it began. */
export interface MachineUsage {
  readonly vm: Uid;
  readonly cpuSeconds: number;
  readonly residentBytes: number;
}

/** Linux counts a process' time in ticks of 1/100 s for everyone outside the kernel (USER_HZ), and memory in pages. */
const ticksPerSecond = 100;
const pageBytes = 4096;

/**
 * Usage of every machine that runs, as /proc has it. Only reads: unlike the driver's `list` it takes nothing over, so it
 * may be asked at any time, also while a machine is being started.
 */
export const machineUsages = async (runDirectory: string): Promise<readonly MachineUsage[]> => {
  const machines = join(runDirectory, "vms");
  const names = await readdir(machines).catch(() => []);
  const usages = await Promise.all(names.map((name) => machineUsage(machines, uid(name))));
  return usages.filter((usage) => usage !== null);
};

const machineUsage = async (machines: string, vm: Uid): Promise<MachineUsage | null> => {
  try {
    const record = JSON.parse(await readFile(machineFiles(machines, vm).record, "utf8")) as {
      readonly process?: Partial<ProcessIdentity> | null;
    };
    const { pid, startTime } = record.process ?? {};
    const fields = pid === undefined ? null : statFields(pid);
    // Fields 14, 15 and 24 of proc(5), counted from the third.
    if (fields === null || fields[19] !== startTime) return null;
    return {
      vm,
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
      residentBytes: Number(fields[21]) * pageBytes,
    };
  } catch {
    return null;
  }
};
