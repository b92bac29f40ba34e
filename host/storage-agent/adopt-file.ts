import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { synchronize } from "../../runtime/process/durable-files.ts";

const adoptFile = "adopt";

/**
 * Root of a storage server says beside the agent's store that what the server has is to be adopted. That needs no gateway,
 * which may itself wait for this server's disks. The file is gone before anything is adopted: it counts once. One of
 * another user, or that is no plain file, says nothing.
 * @returns whether it was there. Rejects where it cannot be removed
 */
export const takeAdoptFile = async (directory: string): Promise<boolean> => {
  const file = join(directory, adoptFile);
  const found = await lstat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (found === null || !found.isFile() || found.uid !== process.getuid?.()) return false;
  await rm(file);
  await synchronize(directory);
  return true;
};
