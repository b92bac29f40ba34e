import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ProcessConfiguration } from "../installation.ts";

/** Where a process has the copy that it is sending. It is worth what the store is worth. */
export const copyDirectory = ({ directory }: Pick<ProcessConfiguration, "directory">): string =>
  join(directory, "backup-copy");

/** Removes what an earlier life left. */
export const removeLeftCopy = (configuration: Pick<ProcessConfiguration, "directory">): void =>
  rmSync(copyDirectory(configuration), { recursive: true, force: true });
