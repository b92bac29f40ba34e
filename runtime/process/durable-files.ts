import { link, mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Files that a power cut must not take. The bytes of a file and the entry by which a directory names it are two things on a disk:
 * a file that was written, synchronized and renamed into place is there under its new name only once the directory is
 * synchronized as well (fsync(2), rename(2)). Whoever tells others before that may have told of what is gone afterwards.
 */
export interface FileOperations {
  /** A new file, its bytes on the disk. */
  readonly write: (path: string, text: string, mode: number) => Promise<void>;
  readonly rename: (from: string, to: string) => Promise<void>;
  /** Rejects with EEXIST where there is one. */
  readonly link: (from: string, to: string) => Promise<void>;
  /** Also where there is none. */
  readonly remove: (path: string) => Promise<void>;
  /** Resolves when the file's bytes, or the directory's entries, would survive a power cut. */
  readonly synchronize: (path: string) => Promise<void>;
}

/** Resolves when the file's bytes, or the directory's entries, would survive a power cut. */
export async function synchronize(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

export const realFiles: FileOperations = {
  write: (path, text, mode) => writeFile(path, text, { mode, flush: true }),
  rename,
  link,
  remove: (path) => rm(path, { force: true }),
  synchronize,
};

/** Resolves when what lies at `from`, which is on the disk already, would be found at `to` after a power cut. */
export async function renameDurably(from: string, to: string, files: FileOperations = realFiles): Promise<void> {
  await files.rename(from, to);
  await files.synchronize(dirname(to));
  // Last, or it could be found at neither place.
  if (dirname(from) !== dirname(to)) await files.synchronize(dirname(from));
}

/** The same under a second name. Rejects with EEXIST where there is one, which then is on the disk as well. */
export async function linkDurably(from: string, to: string, files: FileOperations = realFiles): Promise<void> {
  try {
    await files.link(from, to);
  } finally {
    await files.synchronize(dirname(to));
  }
}

/** A directory and those above it, as far as they are missing; resolves when what was made would survive a power cut. */
export async function makeDirectoryDurably(path: string, mode: number): Promise<void> {
  // Its own entry also where it is there: it may have been made a moment before a crash.
  const first = (await mkdir(path, { recursive: true, mode })) ?? path;
  for (let made = path; made.length >= first.length; made = dirname(made)) await synchronize(dirname(made));
}
