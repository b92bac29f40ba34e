import { existsSync, readdirSync } from "node:fs";
import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Memory that QEMU itself needs beyond the guest's: translation cache, block caches, its own code. */
const overheadMiB = 256;

export const cgroupName = (vm: string): string => `cells-${vm}`;

/**
 * Makes a group for one VM below each given parent (v1: one per controller; v2: one) and sets the limits that the parent's
 * controllers know. Returns the directories; the parents stay the caller's.
 */
export const makeCgroups = async (
  parents: readonly string[],
  vm: string,
  limits: { readonly memoryMiB: number; readonly cpus: number },
): Promise<readonly string[]> => {
  const bytes = String((limits.memoryMiB + overheadMiB) * 1024 * 1024);
  const values: readonly (readonly [string, string])[] = [
    ["memory.max", bytes],
    ["memory.limit_in_bytes", bytes],
    // Weight per virtual CPU: v2's default is 100, v1's 1024.
    ["cpu.weight", String(Math.min(10_000, 100 * limits.cpus))],
    ["cpu.shares", String(1024 * limits.cpus)],
  ];
  const directories: string[] = [];
  for (const parent of parents) {
    const directory = join(parent, cgroupName(vm));
    await mkdir(directory, { recursive: true });
    directories.push(directory);
    for (const [file, value] of values) {
      const path = join(directory, file);
      if (existsSync(path)) await writeFile(path, value);
    }
  }
  return directories;
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
