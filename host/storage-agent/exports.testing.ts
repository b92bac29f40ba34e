import { rm } from "node:fs/promises";
import { join } from "node:path";
import { signal, waitGone } from "../drivers/hypervisor/process/process.ts";
import { findExports } from "./export-process.ts";

/** Ends the daemons of a test's `exports/`, and removes its directory. */
export async function endExports(base: string): Promise<void> {
  for (const { process } of findExports(join(base, "exports"))) {
    signal(process, "SIGKILL");
    await waitGone(process, 10_000);
  }
  await rm(base, { recursive: true, force: true });
}
