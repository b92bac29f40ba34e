import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type MissingPart, type Opener, type ReaderTrust, readContainer } from "./container.ts";
import { BackupFault } from "./frames.ts";
import type { PartManifest, PartSink } from "./part.ts";

/**
 * A backup opened into a directory of its own, everything in it checked: seals, signatures, lengths, digests, and by SQLite
 * each database. Whoever only verifies removes it again; whoever restores takes the files from there.
 */
export interface UnpackedPart {
  readonly manifest: PartManifest;
  /** By path in the manifest. */
  readonly files: ReadonlyMap<string, string>;
}
export interface Unpacked {
  /** When it was ordered, ISO 8601. */
  readonly issued: string;
  /** SHA-256 (hexadecimal) of the authority's public key. */
  readonly fingerprint: string;
  /** PEM of the authority whose word it is. */
  readonly authority: string;
  readonly parts: readonly UnpackedPart[];
  /** Of whom nothing is there, with why if whoever made it knew. */
  readonly missing: readonly MissingPart[];
  remove(): Promise<void>;
}

/** Holds a file at a time; their names are numbers, whatever a manifest says. */
class DirectorySink implements PartSink {
  readonly files = new Map<string, string>();
  readonly #directory: string;
  readonly #prefix: string;
  readonly #handles: FileHandle[] = [];

  constructor(directory: string, prefix: string) {
    this.#directory = directory;
    this.#prefix = prefix;
  }

  async begin({ files }: PartManifest): Promise<void> {
    for (const [index, { path }] of files.entries()) {
      const file = join(this.#directory, `${this.#prefix}-${index}`);
      this.#handles.push(await open(file, "wx", 0o600));
      this.files.set(path, file);
    }
  }

  async write(index: number, bytes: Buffer): Promise<void> {
    await this.#handles[index]?.writeFile(bytes);
  }

  async close(): Promise<void> {
    for (const handle of this.#handles.splice(0)) await handle.close();
  }
}

/** Throws a `BackupFault` for a database that SQLite does not find whole. */
export const checkDatabase = (file: string, what: string): void => {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true });
    // The form of the file comes from outside: nothing in its schema may run.
    database.exec("PRAGMA trusted_schema = OFF");
    const found = database.prepare("PRAGMA integrity_check(1)").get() as { integrity_check?: unknown };
    if (found.integrity_check !== "ok")
      throw new BackupFault(null, `${what} is damaged: ${String(found.integrity_check)}`);
  } catch (error) {
    if (error instanceof BackupFault) throw error;
    throw new BackupFault(null, `${what} is no database that SQLite can read: ${(error as Error).message}`);
  } finally {
    database?.close();
  }
};

/** @param parent the directory's own; default: the system's temporary one */
export const unpackBackup = async (
  file: string,
  trust: ReaderTrust,
  opener: Opener,
  parent = tmpdir(),
): Promise<Unpacked> => {
  const directory = await mkdtemp(join(parent, "cells-backup-"));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  const sinks: DirectorySink[] = [];
  try {
    const read = await readContainer(file, trust, opener, (index) => {
      const sink = new DirectorySink(directory, String(index));
      sinks.push(sink);
      return sink;
    });
    for (const sink of sinks) await sink.close();
    const parts = read.parts.map(({ manifest, header }, index) => {
      if (manifest === null) throw new BackupFault(null, `the part of "${header.name}" was not opened`);
      return { manifest, files: sinks[index]?.files ?? new Map<string, string>() };
    });
    for (const { manifest, files } of parts)
      for (const { path, kind } of manifest.files)
        if (kind !== "file") checkDatabase(files.get(path) ?? "", `"${path}" of "${manifest.name}"`);
    const why = new Map(read.missing.map((each) => [each.name, each.why]));
    return {
      issued: read.order.issued,
      fingerprint: read.fingerprint,
      authority: read.authority.toString(),
      parts,
      missing: read.absent.map((name) => ({ name, why: why.get(name) ?? "it is not in the file" })),
      remove,
    };
  } catch (error) {
    for (const sink of sinks) await sink.close().catch(() => undefined);
    await remove();
    throw error;
  }
};
