import { copyFile, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GoneHosts } from "../../core/env.ts";
import { renameDurably, synchronize } from "../process/durable-files.ts";
import { noteRestored } from "../process/store.ts";
import type { UnpackedPart } from "./unpack.ts";

/** Where what was there before lies, below the same directory, until the next restore. */
export const asideDirectory = "before-restore";
/** A store of the authority's was put in, and the authority has not said yet that it knows. Holds the id of this taking. */
export const unconfirmedFile = "put-back.unconfirmed";

/**
 * Puts the files of a part where their process keeps them, which must not run. What was there is kept aside, as a whole: its
 * journal belongs to it. Each file is renamed into place when it is durable; broken off, the same again completes it. A store
 * has a note with it, so that its service says so at its next start; by its history each peer that has seen later things of
 * it knows that it is older, and lets it take nothing back.
 * @param goneHosts as in `noteRestored`
 */
export const putBack = async (
  { manifest, files }: UnpackedPart,
  directory: string,
  goneHosts: GoneHosts | null = null,
): Promise<void> => {
  await mkdir(directory, { recursive: true });
  const aside = join(directory, asideDirectory);
  await rm(aside, { recursive: true, force: true });
  await mkdir(aside, { mode: 0o700 });
  for (const { path, kind } of manifest.files) {
    const to = join(directory, path);
    const from = files.get(path);
    if (from === undefined) throw new Error(`"${path}" of "${manifest.name}" was not unpacked`);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const draft = `${to}.restored`;
    await rm(draft, { force: true });
    await copyFile(from, draft);
    if (kind === "store") noteRestored(draft, `the backup of ${manifest.taken}`, Date.now(), { goneHosts });
    await synchronize(draft);
    for (const ending of kind === "file" ? [""] : ["-wal", "-shm", ""])
      await renameDurably(`${to}${ending}`, join(aside, `${path.replaceAll("/", "+")}${ending}`)).catch(ignoreAbsent);
    await renameDurably(draft, to);
  }
};

const ignoreAbsent = (error: NodeJS.ErrnoException): void => {
  if (error.code !== "ENOENT") throw error;
};
