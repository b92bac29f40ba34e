import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "../../model/json/json.ts";
import { stopAtSignals } from "../../runtime/life/signals.ts";
import { synchronize } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";

/**
 * Whether the machine has started since a Host Manager ran here last. Its run directory does not outlive the machine, nor
 * do the machines whose sockets are in it; where it would, as on a disk, the kernel's own name for its start tells.
 */
export interface BootMark {
  readonly booted: boolean;
  /** Before anything is started in it. `request`: of the Host Manager, which answers once the boot's number is durable. */
  remember(request: (request: Json) => Promise<Json>): Promise<void>;
}

/**
 * Whether the Host Manager that was here last was told to end. Then a machine that has started since was switched off in
 * order, or as good as that: the time between its service's end and its own is short. The mark counts once.
 */
export const takeLeaveMark = async (directory: string): Promise<boolean> => {
  const file = join(directory, "left");
  const left = (await readFile(file).catch(() => null)) !== null;
  if (!left) return false;
  await rm(file, { force: true });
  await synchronize(directory);
  return true;
};
export const writeLeaveMark = (directory: string): Promise<void> => replaceFile(join(directory, "left"), "");

/** How the machine has started, and that its end will be known: to be asked before anything else is to be done at the end. */
export const howItStarts = async (
  directory: string,
  { booted }: BootMark,
): Promise<{ readonly booted: boolean; readonly switchedOff?: true }> => {
  const left = await takeLeaveMark(directory);
  stopAtSignals(() => writeLeaveMark(directory));
  return left && booted ? { booted, switchedOff: true } : { booted };
};

/** @param runDirectory exists */
export const readBootMark = async (
  runDirectory: string,
  kernelBootFile = "/proc/sys/kernel/random/boot_id",
): Promise<BootMark> => {
  const file = join(runDirectory, "boot");
  const present = (await readFile(kernelBootFile, "utf8")).trim();
  const before = await readFile(file, "utf8").catch(() => "");
  return {
    booted: before.trim() !== present,
    remember: async (request) => {
      await request({ kind: "status" });
      await writeFile(file, `${present}\n`, { mode: 0o600 });
    },
  };
};
