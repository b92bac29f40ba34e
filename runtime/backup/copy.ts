import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pipeline } from "node:stream/promises";
import type { ProcessConfiguration } from "../installation.ts";
import { copyDirectory, removeLeftCopy } from "../process/left-copy.ts";
import { copyDatabase, type Store } from "../process/store.ts";
import type { HistoryMark, PartFile, PartManifest } from "./part.ts";
import { besides, storeFile } from "./what-is-kept.ts";

/**
 * A copy of what one process keeps, all of one moment as far as that matters: databases by SQLite's own online backup, which
 * takes along what is committed meanwhile and never stops whoever commits; what lies beside is written once and replaced as a
 * whole. The copy is in the process's own directory, for as long as it is sent: it is worth what the store is worth.
 */
export interface Copy {
  readonly manifest: PartManifest;
  /** Of the copied files, in the manifest's order. */
  readonly files: readonly string[];
  remove(): Promise<void>;
}

const copyOther = async (from: string, to: string, kind: PartFile["kind"]): Promise<void> => {
  if (kind === "file") return copyFile(from, to);
  const source = new DatabaseSync(from, { readOnly: true });
  try {
    await copyDatabase(source, to);
  } finally {
    source.close();
  }
};

const described = async (path: string, kind: PartFile["kind"], file: string): Promise<PartFile> => {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return { path, kind, bytes: (await stat(file)).size, sha256: hash.digest("hex") };
};

/** How far the store is in its history (`core/distribution/node/history.ts`); null where it keeps none. */
const historyIn = (file: string): HistoryMark | null => {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const numberOf = (key: unknown): number => Number(String(key).slice("history/start/".length));
    const [last] = database
      .prepare("SELECT key, value FROM history WHERE key LIKE 'history/start/%'")
      .all()
      .sort((one, other) => numberOf(other.key) - numberOf(one.key));
    if (last === undefined) return null;
    const { start, count } = JSON.parse(String(last.value)) as HistoryMark;
    return { start, count };
  } catch {
    // An earlier version's has no such table.
    return null;
  } finally {
    database.close();
  }
};

/** Rejects when there is no room, or a file cannot be read. */
export const copyProcess = async (
  configuration: Pick<ProcessConfiguration, "directory" | "name" | "role">,
  store: Pick<Store, "copyTo">,
): Promise<Copy> => {
  const { directory, name, role } = configuration;
  const own = copyDirectory(configuration);
  removeLeftCopy(configuration);
  await mkdir(own, { mode: 0o700 });
  const remove = (): Promise<void> => rm(own, { recursive: true, force: true });
  try {
    const files: string[] = [];
    const found: PartFile[] = [];
    const add = async (path: string, kind: PartFile["kind"], make: (to: string) => Promise<void>): Promise<void> => {
      const to = join(own, path.replaceAll("/", "+"));
      await make(to);
      found.push(await described(path, kind, to));
      files.push(to);
    };
    const taken = new Date().toISOString();
    await add(storeFile, "store", (to) => store.copyTo(to));
    for (const [path, kind] of besides) {
      const from = join(directory, path);
      const there = await stat(from).catch(() => null);
      if (there?.isFile()) await add(path, kind, (to) => copyOther(from, to, kind));
    }
    const history = historyIn(files[0] ?? "");
    return { manifest: { format: 1, name, role, taken, history, files: found }, files, remove };
  } catch (error) {
    await remove();
    throw error;
  }
};
