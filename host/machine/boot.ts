import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "../../model/json/json.ts";

/**
 * Whether the machine has started since a Host Manager ran here last. Its run directory does not outlive the machine, nor
 * do the machines whose sockets are in it; where it would, as on a disk, the kernel's own name for its start tells.
 */
export interface BootMark {
  readonly booted: boolean;
  /** Before anything is started in it. `request`: of the Host Manager, which answers once the boot's number is durable. */
  remember(request: (request: Json) => Promise<Json>): Promise<void>;
}

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
