import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { KeptBackup } from "../../../model/api.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { renameDurably } from "../../../runtime/process/durable-files.ts";
import { createTurns } from "../../../runtime/process/one-at-a-time.ts";

/**
 * Backups of the management that this server keeps for the root cell's controller: files that nobody here can open, below
 * `<directory>/backups`. They are bounded, and leave the disk to volumes.
 */
export const backupLimits = {
  files: 128,
  fileBytes: 512 * 1024 ** 2,
  allBytes: 4 * 1024 ** 3,
  freeBytes: 1024 ** 3,
} as const;
export type BackupLimits = { readonly [name in keyof typeof backupLimits]: number };

/** When it was ordered, in a form that sorts: `20261122T172010Z`. */
export const isBackupName = (name: string): boolean => /^\d{8}T\d{6}Z$/.test(name);

export interface BackupRefusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}
const refusal = (status: number, code: string, message: string): Result<never, BackupRefusal> =>
  fail({ status, code: `backup/${code}`, message });

export class BackupStore {
  readonly #directory: string;
  readonly #limits: BackupLimits;
  /** One at a time: what there is room for is counted before. */
  readonly #inTurn = createTurns();

  constructor(directory: string, limits: BackupLimits = backupLimits) {
    this.#directory = join(directory, "backups");
    this.#limits = limits;
  }

  /** Oldest first. */
  async list(): Promise<readonly KeptBackup[]> {
    const names = (await readdir(this.#directory).catch(() => [])).filter(isBackupName).sort();
    const sizes = await Promise.all(names.map((name) => stat(join(this.#directory, name)).catch(() => null)));
    return names.flatMap((name, index) => {
      const found = sizes[index];
      return found === null || found === undefined ? [] : [{ name, bytes: found.size }];
    });
  }

  /** Null: there is none of that name. */
  async read(name: string): Promise<{ readonly bytes: number; readonly body: Readable } | null> {
    if (!isBackupName(name)) return null;
    const file = join(this.#directory, name);
    const found = await stat(file).catch(() => null);
    return found === null ? null : { bytes: found.size, body: createReadStream(file) };
  }

  /** Durable when it resolves. Whoever breaks off leaves nothing. */
  keep(name: string, bytes: number, body: Readable): Promise<Result<KeptBackup, BackupRefusal>> {
    return this.#inTurn(() => this.#keep(name, bytes, body));
  }

  async remove(name: string): Promise<void> {
    if (isBackupName(name)) await this.#inTurn(() => rm(join(this.#directory, name), { force: true }));
  }

  async #keep(name: string, bytes: number, body: Readable): Promise<Result<KeptBackup, BackupRefusal>> {
    if (!isBackupName(name)) return refusal(400, "name", "a backup is called by its time: 20261122T172010Z");
    const { files, fileBytes, allBytes, freeBytes } = this.#limits;
    if (!Number.isSafeInteger(bytes) || bytes < 1 || bytes > fileBytes)
      return refusal(413, "size", `a backup announces its length, of at most ${fileBytes} bytes`);
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    for (const left of await readdir(this.#directory))
      if (left.endsWith(".new")) await rm(join(this.#directory, left), { force: true });
    const kept = (await this.list()).filter((each) => each.name !== name);
    const all = kept.reduce((sum, each) => sum + each.bytes, bytes);
    if (kept.length >= files) return refusal(409, "full", `this server keeps ${files} backups at most`);
    if (all > allBytes) return refusal(409, "full", `the backups here would take ${all} of at most ${allBytes} bytes`);
    const disk = await statfs(this.#directory);
    if (disk.bavail * disk.bsize < bytes + freeBytes)
      return refusal(507, "disk", `less than ${freeBytes} bytes of this server's disk would be left for volumes`);
    const draft = join(this.#directory, `${name}.new`);
    try {
      const handle = await open(draft, "wx", 0o600);
      try {
        let written = 0;
        for await (const chunk of body as AsyncIterable<Buffer>) {
          written += chunk.length;
          if (written > bytes) break;
          await handle.writeFile(chunk);
        }
        if (written !== bytes) return refusal(400, "size", `${bytes} bytes were announced, and others came`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await renameDurably(draft, join(this.#directory, name));
      return ok({ name, bytes });
    } finally {
      await rm(draft, { force: true });
    }
  }
}
