import { createWriteStream, existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { AuditActor } from "../../model/contract/audit/audit.ts";
import { renameDurably, synchronize } from "../process/durable-files.ts";
import { noteRestored } from "../process/store.ts";
import { BackupFault } from "./frames.ts";
import { cellUidIn } from "./kept-parts.ts";
import { asideDirectory } from "./put-back.ts";
import { checkDatabase } from "./unpack.ts";

/**
 * A controller that has lost its store is given a copy by the operator (`cells management return`) while it runs: where it is
 * a service VM, nobody else reaches its files. The copy is checked and laid beside the store; the process ends, and its next
 * start puts the copy in the store's place before it opens it.
 */
const store = "state.sqlite";
const returned = `${store}.returned`;
/** What the gateway takes. */
export const longestStore = 16 * 1024 * 1024;

/**
 * Lays a copy beside the store. Throws a `BackupFault` with a sentence for what is no store of this cell's controller; then
 * nothing of it stays.
 * @param from where the copy is from, for people
 * @param by who had it given back: the controller records that with its next start
 */
export const keepReturned = async (
  directory: string,
  copy: Readable,
  { cellUid, from, by }: { readonly cellUid: string; readonly from: string; readonly by: AuditActor },
): Promise<void> => {
  const draft = join(directory, `${returned}.new`);
  try {
    let bytes = 0;
    const bounded = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        bytes += chunk.length;
        done(bytes > longestStore ? new BackupFault(null, `it is longer than ${longestStore} bytes`) : null, chunk);
      },
    });
    await pipeline(copy, bounded, createWriteStream(draft, { mode: 0o600 }));
    checkDatabase(draft, "it");
    const found = cellIn(draft);
    if (found === null) throw new BackupFault(null, "it has no element that says of which cell it is");
    if (found !== cellUid) throw new BackupFault(null, `it is of another cell, ${found}, and this one is ${cellUid}`);
    noteRestored(draft, from, Date.now(), { by });
    await synchronize(draft);
    await renameDurably(draft, join(directory, returned));
  } finally {
    for (const ending of ["", "-wal", "-shm"]) await rm(`${draft}${ending}`, { force: true });
  }
};

const cellIn = (file: string): string | null => {
  try {
    return cellUidIn(file);
  } catch (error) {
    throw new BackupFault(null, `it is no store of a service: ${(error as Error).message}`);
  }
};

/** At a start, before the store is opened. What was there is kept aside until the next time; broken off, the same again completes it. */
export const placeReturned = async (directory: string): Promise<void> => {
  if (!existsSync(join(directory, returned))) return;
  const aside = join(directory, asideDirectory);
  if (existsSync(join(directory, store))) await rm(aside, { recursive: true, force: true });
  await mkdir(aside, { recursive: true, mode: 0o700 });
  for (const name of [`${store}-wal`, `${store}-shm`, store])
    if (existsSync(join(directory, name))) await renameDurably(join(directory, name), join(aside, name));
  await renameDurably(join(directory, returned), join(directory, store));
};
