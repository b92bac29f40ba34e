import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { synchronize } from "../../runtime/process/durable-files.ts";

const adoptFile = "adopt";

/**
 * The file with which root of a storage server orders that what the server has is adopted. A file, as the gateway may
 * itself wait for this server's disks. It is removed before anything is adopted, so that it counts once. One of another user,
 * or that is no plain file, is ignored.
 * @returns whether it was there. Rejects if it cannot be removed
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
