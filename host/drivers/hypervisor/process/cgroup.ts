import { existsSync, readdirSync } from "node:fs";
import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { displayShare } from "../../../../model/cell/attributes/display-memory.ts";
import { translationCacheMiB } from "./arguments.ts";

/**
 * Limits of machines by control groups, v1 (one hierarchy per controller) and v2 (one for all). A file that is not there
 * belongs to a controller that this parent does not have, so the same list serves both. v2 is proved in a guest, whose
 * kernel gives it all controllers (`cgroup-v2.test.ts`); the test machine itself has v1 only.
 */

/** Memory that QEMU itself needs beyond the guest's and its translation cache: block caches, its own code. */
const overheadMiB = 192;
/**
 * What QEMU's own threads may take of a processor beside the virtual ones: disks, TLS to the storage servers, consoles.
 * Without it a machine that computes on all its processors would starve its own disks.
 */
const ownPercent = 25;
/** Threads: virtual processors, the main loop and QEMU's pool for blocking calls, which has at most 64. */
const ownThreads = 128;
const periodUs = 100_000;

export interface MachineLimits {
  readonly memoryMiB: number;
  readonly cpus: number;
  /** It has a screen. */
  readonly display?: string | undefined;
}

export const cgroupName = (vm: string): string => `cells-${vm}`;

/** File → value, for whichever of the files the group has. */
export const limitFiles = ({ memoryMiB, cpus, display }: MachineLimits): readonly (readonly [string, string])[] => {
  const ownMiB = translationCacheMiB(memoryMiB) + overheadMiB + displayShare({ display });
  const bytes = String((memoryMiB + ownMiB) * 1024 * 1024);
  const quotaUs = (cpus * 100 + ownPercent) * (periodUs / 100);
  return [
    ["memory.max", bytes],
    ["memory.limit_in_bytes", bytes],
    // Weight per virtual CPU: v2's default is 100, v1's 1024. It counts while others want the processors too …
    ["cpu.weight", String(Math.min(10_000, 100 * cpus))],
    ["cpu.shares", String(Math.min(262_144, 1024 * cpus))],
    // … and the quota always: a guest never gets more than it was promised, so it is never missed later.
    ["cpu.max", `${quotaUs} ${periodUs}`],
    ["cpu.cfs_period_us", String(periodUs)],
    ["cpu.cfs_quota_us", String(quotaUs)],
    ["pids.max", String(ownThreads + cpus)],
  ];
};

/** Of all machines of a host together: what is left for the management is neither memory nor time that they may take. */
export const parentFiles = (machinesMiB: number): readonly (readonly [string, string])[] => {
  const bytes = String(machinesMiB * 1024 * 1024);
  return [
    ["memory.max", bytes],
    ["memory.limit_in_bytes", bytes],
    // Half of a default group's, such as the one that the management is in.
    ["cpu.weight", "50"],
    ["cpu.shares", "512"],
  ];
};

/** Makes a group for one VM below each given parent and limits it. Returns the directories; the parents stay the caller's. */
export const makeCgroups = async (
  parents: readonly string[],
  vm: string,
  limits: MachineLimits,
): Promise<readonly string[]> => {
  const directories: string[] = [];
  for (const parent of parents) {
    const directory = join(parent, cgroupName(vm));
    await mkdir(directory, { recursive: true });
    directories.push(directory);
    await writeLimits(directory, limitFiles(limits));
  }
  return directories;
};

/**
 * Keeps the management's share of a host free of its machines: limits their parents to `machinesMiB` of memory and to
 * less weight than the management has. Machines that run go on; a limit that they are above already stays as it was.
 */
export const limitParents = async (parents: readonly string[], machinesMiB: number): Promise<void> => {
  for (const parent of parents) await writeLimits(parent, parentFiles(machinesMiB)).catch(() => undefined);
};

const writeLimits = async (directory: string, files: readonly (readonly [string, string])[]): Promise<void> => {
  for (const [file, value] of files) {
    const path = join(directory, file);
    if (existsSync(path)) await writeFile(path, value);
  }
};

/** Removes the VM's groups, depth first; the kernel refuses while a process is in one, and then they stay. */
export const removeCgroups = async (parents: readonly string[], vm: string): Promise<void> => {
  const remove = async (directory: string): Promise<void> => {
    if (!existsSync(directory)) return;
    for (const entry of readdirSync(directory, { withFileTypes: true }))
      if (entry.isDirectory()) await remove(join(directory, entry.name));
    await rmdir(directory).catch(() => undefined);
  };
  for (const parent of parents) await remove(join(parent, cgroupName(vm)));
};
