import { closeSync, openSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Json } from "../model/json.ts";

/** Named JSON values on disk. */
export interface Store {
  /** All of it. */
  load(): Map<string, Json>;
  /**
   * All of these or none, durable when it returns; null deletes. Throws when the disk fails, or is full and the store's
   * own reserve is used up.
   */
  commit(writes: ReadonlyMap<string, Json>): void;
  /** Size of its file, without the journal. */
  bytes(): number;
  close(): void;
}

/** How long a start waits for the former owner of the store to end. */
const lockTimeoutMs = 5000;

/**
 * A full disk must not stop a service from writing down what would empty it (a deletion, a fence). So a store keeps room
 * of its own: free pages in the database and a write-ahead log that was that long before; both are written in place.
 */
const reserveBytes = 1024 * 1024;
const reserveLowPages = 64;
/** So many commits may use it up before it is looked at again. */
const reserveEvery = 256;
const sqliteFull = 13;

const isFull = (error: unknown): boolean => (error as { readonly errcode?: unknown }).errcode === sqliteFull;

const startLogAnew = (database: DatabaseSync): void => database.exec("PRAGMA wal_checkpoint(RESTART)");

const isReserveLow = (database: DatabaseSync): boolean => {
  const { freelist_count: free } = database.prepare("PRAGMA freelist_count").get() as { freelist_count: number };
  return free < reserveLowPages;
};

/**
 * Writes as much as the reserve shall be, through the log into the database, and frees it there. Where there is no room
 * for that, what is left must do.
 */
const takeReserve = (database: DatabaseSync): void => {
  try {
    database.exec(
      `BEGIN; CREATE TABLE reserve (bytes BLOB); INSERT INTO reserve VALUES (zeroblob(${reserveBytes})); DROP TABLE reserve; COMMIT`,
    );
    startLogAnew(database);
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    if (!isFull(error)) throw error;
  }
};

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
  // Every time: an orderly end removes the log.
  takeReserve(database);
  const put = database.prepare(
    "INSERT INTO entries (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  );
  const remove = database.prepare("DELETE FROM entries WHERE key = ?");
  const all = database.prepare("SELECT key, value FROM entries");
  const write = (writes: ReadonlyMap<string, Json>): void => {
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
  };
  let commits = 0;
  return {
    load: () => {
      const rows = all.all() as { key: string; value: string }[];
      return new Map(rows.map(({ key, value }) => [key, JSON.parse(value) as Json]));
    },
    commit: (writes) => {
      if (writes.size === 0) return;
      try {
        write(writes);
      } catch (error) {
        if (!isFull(error)) throw error;
        // The log may grow no further: from its beginning there is room again.
        startLogAnew(database);
        write(writes);
      }
      commits += 1;
      if (commits % reserveEvery === 0 && isReserveLow(database)) takeReserve(database);
    },
    bytes: () => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
    close: () => database.close(),
  };
};
