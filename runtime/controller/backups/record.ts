import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "../../../model/json/json.ts";
import { renameDurably } from "../../process/durable-files.ts";

/**
 * What the root cell's controller remembers of the backups that it made, in `last-backup` beside its store: when, and where
 * each process's newest part is. Storage servers are asked only where it does not know, and believed as little as possible.
 */
export interface BackupRecord {
  /** Wall clock, of the last one that a server took. */
  readonly madeMs: number;
  /** Process → name of the newest backup that has its part. */
  readonly newest: { readonly [process: string]: string };
}
const fileName = "last-backup";

/** `20261122T172010Z`. */
export const backupNameAt = (iso: string): string => `${iso.replace(/[-:]/g, "").slice(0, 15)}Z`;
/** Null: no backup is called so. */
const timeOf = (name: string): number | null => {
  const ms = Date.parse(name.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  return Number.isNaN(ms) || backupNameAt(new Date(ms).toISOString()) !== name ? null : ms;
};

/**
 * The names in a server's list, oldest first, each once. What is no name of a backup, or is of a time that is yet to come, is
 * not counted: by a clock's mistake or a lie it would make good ones the oldest. Throws when it is no list.
 */
export const namesIn = (list: Json, nowMs: number): readonly string[] => {
  if (!Array.isArray(list)) throw new Error("what it lists is no list of backups");
  const names = list.map((each) => ((each ?? {}) as { readonly name?: unknown }).name);
  const read = names.filter((name) => typeof name === "string" && (timeOf(name) ?? Number.NaN) <= nowMs) as string[];
  return [...new Set(read)].sort();
};

/**
 * When the last one was made, in milliseconds of the wall clock; 0: never. Where nothing is remembered, as after the
 * controller's store was lost, it is when the server that is farthest behind got one: a server that lies then brings about one
 * backup more, and holds up none.
 */
export const lastMadeMs = (
  record: BackupRecord | null,
  lists: readonly (readonly string[])[],
  nowMs: number,
): number => {
  // A time that is yet to come is a clock's mistake, and may not end all backups.
  if (record !== null && record.madeMs <= nowMs) return record.madeMs;
  return lists.length === 0 ? 0 : Math.min(...lists.map((names) => timeOf(names.at(-1) ?? "") ?? 0));
};

/**
 * Which ones a server may remove once it has `name`: all but the newest `keep`, and but those that hold the newest part of a
 * process that `name` lacks. So neither a process that is missing nor one that keeps others out lets the last good copy be
 * replaced by ones without it. As many again as `keep` are kept for that at most, since a server's room is bounded.
 */
export const removable = (
  names: readonly string[],
  { name, keep, held }: { readonly name: string; readonly keep: number; readonly held: ReadonlySet<string> },
): readonly string[] => {
  const older = names.filter((each) => each !== name);
  const surplus = older.slice(0, Math.max(0, older.length + 1 - keep));
  const spared = new Set(surplus.filter((each) => held.has(each)).slice(-keep));
  return surplus.filter((each) => !spared.has(each));
};

/** After a backup with the parts of `names` and without those of `missing`; who was not asked any more is forgotten. */
export const recordAfter = (
  before: BackupRecord | null,
  made: {
    readonly name: string;
    readonly nowMs: number;
    readonly names: readonly string[];
    readonly missing: readonly string[];
  },
): BackupRecord => {
  const kept = made.missing.flatMap((process) => {
    const name = before?.newest[process];
    return name === undefined ? [] : [[process, name] as const];
  });
  const newest = Object.fromEntries([...kept, ...made.names.map((process) => [process, made.name] as const)]);
  return { madeMs: made.nowMs, newest };
};

/** Null: there is none that can be read. */
export const readRecord = async (directory: string): Promise<BackupRecord | null> => {
  try {
    const { madeMs, newest } = JSON.parse(await readFile(join(directory, fileName), "utf8")) as Record<string, Json>;
    if (typeof madeMs !== "number" || typeof newest !== "object" || newest === null) return null;
    const named = Object.entries(newest).filter(([, name]) => typeof name === "string");
    return { madeMs, newest: Object.fromEntries(named) as { readonly [process: string]: string } };
  } catch {
    return null;
  }
};

export const writeRecord = async (directory: string, record: BackupRecord): Promise<void> => {
  const draft = join(directory, `.${fileName}.new`);
  await writeFile(draft, JSON.stringify(record), { mode: 0o600, flush: true });
  await renameDurably(draft, join(directory, fileName));
};
