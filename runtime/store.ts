import { closeSync, openSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Json } from "../model/json.ts";

/** Named JSON values on disk. */
export interface Store {
  /** All of it. */
  load(): Map<string, Json>;
  /** All of these or none, durable when it returns; null deletes. Throws when the disk fails or is full. */
  commit(writes: ReadonlyMap<string, Json>): void;
  /** Size of its file, without the journal. */
  bytes(): number;
  close(): void;
}

/** How long a start waits for the former owner of the store to end. */
const lockTimeoutMs = 5000;

/**
 * Opens or creates a store. One process owns it: a second one gets an error "database is locked", because two lives of
 * one service would overwrite each other's generation. Documents may hold secrets, so the files are the owner's alone.
 */
export const openStore = (file: string): Store => {
  // SQLite gives its journal the mode of the database file.
  closeSync(openSync(file, "a", 0o600));
  const database = new DatabaseSync(file, { timeout: lockTimeoutMs });
  database.exec(`
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  `);
  const put = database.prepare(
    "INSERT INTO entries (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  );
  const remove = database.prepare("DELETE FROM entries WHERE key = ?");
  const all = database.prepare("SELECT key, value FROM entries");
  return {
    load: () => {
      const rows = all.all() as { key: string; value: string }[];
      return new Map(rows.map(({ key, value }) => [key, JSON.parse(value) as Json]));
    },
    commit: (writes) => {
      if (writes.size === 0) return;
      database.exec("BEGIN IMMEDIATE");
      try {
        for (const [key, value] of writes) {
          if (value === null) remove.run(key);
          else put.run(key, JSON.stringify(value));
        }
        database.exec("COMMIT");
      } catch (error) {
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
    },
    bytes: () => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
    close: () => database.close(),
  };
};
