import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A control group for all processes of one sandbox: what limits per process add up to is bounded there. */
export interface ImageCgroup {
  /** To be entered by writing to `cgroup.procs`. */
  readonly directories: readonly string[];
  /** Once nothing is in it any more. */
  remove(): Promise<void>;
}
const prefix = "image-";
/** The page cache of what it reads and writes counts too, and gives way; the program's own memory does not. */
const cacheMiB = 64;

/** Makes one below each parent (v1: one per controller; v2: one). A parent that cannot have it is passed over. */
export async function createImageCgroup(
  parents: readonly string[],
  limits: { readonly memoryMiB: number; readonly processes: number },
): Promise<ImageCgroup> {
  const name = `${prefix}${randomBytes(6).toString("hex")}`;
  const bytes = String((limits.memoryMiB + cacheMiB) * 1024 * 1024);
  const values: readonly (readonly [string, string])[] = [
    ["memory.limit_in_bytes", bytes],
    ["memory.max", bytes],
    ["memory.swap.max", "0"],
    ["pids.max", String(limits.processes)],
    // One core; the machine has other work.
    ["cpu.cfs_quota_us", "100000"],
    ["cpu.max", "100000 100000"],
  ];
  const directories: string[] = [];
  for (const parent of parents) {
    const directory = join(parent, name);
    try {
      await mkdir(directory);
    } catch {
      continue;
    }
    directories.push(directory);
    for (const [file, value] of values)
      if (existsSync(join(directory, file))) await writeFile(join(directory, file), value).catch(() => undefined);
  }
  return { directories, remove: () => removeGroups(directories) };
}

/** Of an agent that was killed: its sandboxes died with it, their groups stay. */
export async function removeLeftGroups(parents: readonly string[]): Promise<void> {
  for (const parent of parents) {
    const names = await readdir(parent).catch(() => []);
    await removeGroups(names.filter((name) => name.startsWith(prefix)).map((name) => join(parent, name)));
  }
}

async function removeGroups(directories: readonly string[]): Promise<void> {
  for (const directory of directories)
    for (let tries = 0; tries < 50; tries += 1) {
      // Busy until the kernel has buried the last of its processes.
      const busy = await rmdir(directory).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === "EBUSY",
      );
      if (!busy) break;
      await sleep(20);
    }
}
