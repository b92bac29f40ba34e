import { closeSync, openSync, statSync } from "node:fs";
import { backup, DatabaseSync, type StatementSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { storeKey } from "../../core/distribution/node/stored.ts";
import type { GoneHosts } from "../../core/env.ts";
import { auditKeys } from "../../core/outbox.ts";
import { type AuditActor, type Ring, rings } from "../../model/contract/audit/audit.ts";
import type { Json } from "../../model/json/json.ts";

/** Named JSON values on disk. */
export interface Store {
  /** All of it. */
  load(): Map<string, Json>;
  /**
   * All of these or none, durable when it returns; null deletes. Throws when the disk fails, or is full and the store's
   * own reserve is used up.
   */
  commit(writes: ReadonlyMap<string, Json>): void;
  /** Records of a chain of the audit from this number on, in their order; they are no part of `load`. */
  audit(ring: Ring, from: number, most: number): readonly Json[];
  /** Size of its file, without the journal. */
  bytes(): number;
  /**
   * A copy of one moment as one file, which must not be there yet. Commits go on meanwhile and are in it if they end before it
   * does. Rejects when there is no room.
   */
  copyTo(file: string): Promise<void>;
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

/** Some pages at a time: commits go on in between. */
const pagesAtOnce = 256;

/** A copy begins between two commits; whoever commits all the time leaves one of these moments soon. */
const copyAttempts = 200;
const copyPauseMs = 5;
/**
 * The first step of a copy is taken by another thread. Where this one is in the middle of a commit just then, that step finds
 * the database busy, and Node ends the copy with the error that SQLite has noted: none.
 */
const beganInACommit = (error: unknown): boolean => (error as { readonly errcode?: unknown }).errcode === 0;

const copyPages = async (source: DatabaseSync, to: string, attempt = 1): Promise<void> => {
  try {
    await backup(source, to, { rate: pagesAtOnce });
  } catch (error) {
    if (!beganInACommit(error)) throw error;
    if (attempt === copyAttempts)
      throw new Error(`the store was in the middle of a commit at each of ${attempt} looks`);
    await setTimeout(copyPauseMs);
    await copyPages(source, to, attempt + 1);
  }
};

/** Copies a database that may be in use, by SQLite's online backup (https://www.sqlite.org/backup.html). */
export const copyDatabase = async (source: DatabaseSync, to: string): Promise<void> => {
  closeSync(openSync(to, "ax", 0o600));
  await copyPages(source, to);
  const copy = new DatabaseSync(to);
  try {
    // One file, with nothing beside it that would have to travel as well.
    copy.exec("PRAGMA journal_mode = DELETE");
  } finally {
    copy.close();
  }
};

/**
 * What state distribution keeps of the histories of stores (`core/distribution/node/history.ts`). It is a table of its own: an
 * earlier version, to which an upgrade may go back, knows no such keys and leaves this table as it is.
 */
const historyPrefix = "history/";
const createHistory = "CREATE TABLE IF NOT EXISTS history (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID";

/**
 * Who changed what (`audit` of `core/outbox.ts`), by number: many, and none of them is of use to the service itself. What was refused has a
 * table of its own, which an earlier version leaves as it is.
 */
const audits = { changes: "audit", refusals: "audit_refusals" } as const;
const prefixes = rings.map((ring) => [ring, storeKey.own(`${auditKeys[ring]}/`)] as const);
const createAudit = rings
  .map((ring) => `CREATE TABLE IF NOT EXISTS ${audits[ring]} (n INTEGER PRIMARY KEY, value TEXT NOT NULL)`)
  .join("; ");

const ofEach = <Value>(of: (ring: Ring) => Value): { readonly [R in Ring]: Value } => ({
  changes: of("changes"),
  refusals: of("refusals"),
});

interface Statements {
  readonly put: StatementSync;
  readonly remove: StatementSync;
  readonly all: StatementSync;
}
const statementsOf = (database: DatabaseSync, table: "entries" | "history" | (typeof audits)[Ring]): Statements => {
  const key = table === "entries" || table === "history" ? "key" : "n";
  return {
    put: database.prepare(
      `INSERT INTO ${table} (${key}, value) VALUES (?, ?) ON CONFLICT (${key}) DO UPDATE SET value = excluded.value`,
    ),
    remove: database.prepare(`DELETE FROM ${table} WHERE ${key} = ?`),
    all: database.prepare(`SELECT ${key}, value FROM ${table}`),
  };
};

/**
 * Notes in a store that it was just put back from a copy, so that its service's next start says so (`store/restored`, with
 * this note) and is told by `Restored.wasRestored`. To be called once, on the file at its place, before the service starts;
 * nothing else may have it open. Throws where the file is no store.
 *
 * Nothing else is needed of a restore: the copy brings its history along, its next start draws a mark of its own behind it,
 * and every peer that has seen later marks knows thereby that this store is older than what it has.
 *
 * @param from where the copy is from, for people: the name of a backup and the time at which it was made
 * @param wallMs when it was put back, milliseconds since 1970
 * @param goneHosts whoever puts it back is sure that nothing runs any more on these hosts of then: machines under their names
 *   are others, of which the service has seen nothing (`Restored.goneHosts`); null: nothing is known
 */
export const noteRestored = (
  file: string,
  from: string,
  wallMs: number,
  { goneHosts = null, by }: { readonly goneHosts?: GoneHosts | null; readonly by?: AuditActor } = {},
): void => {
  const database = new DatabaseSync(file, { timeout: lockTimeoutMs });
  try {
    // Throws where there is no such table.
    database.prepare("SELECT count(*) FROM entries").get();
    database.exec(createHistory);
    const put = database.prepare("INSERT OR REPLACE INTO history (key, value) VALUES ('history/restored', ?)");
    const hosts = goneHosts === "all" ? "gone" : goneHosts;
    const more = { ...(hosts === null ? {} : { hosts }), ...(by === undefined ? {} : { by }) };
    put.run(JSON.stringify({ from, wallMs, ...more }));
    if (goneHosts === "all") database.exec("DELETE FROM history WHERE key LIKE 'history/peer/host.%'");
    const forget = database.prepare("DELETE FROM history WHERE key = ?");
    for (const host of goneHosts === "all" ? [] : (goneHosts ?? [])) forget.run(`history/peer/host.${host}`);
  } finally {
    database.close();
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
    ${createHistory};
    ${createAudit};
  `);
  // Every time: an orderly end removes the log.
  takeReserve(database);
  const entries = statementsOf(database, "entries");
  const history = statementsOf(database, "history");
  const audit = ofEach((ring) => statementsOf(database, audits[ring]));
  const audited = ofEach((ring) =>
    database.prepare(`SELECT value FROM ${audits[ring]} WHERE n >= ? ORDER BY n LIMIT ?`),
  );
  const write = (writes: ReadonlyMap<string, Json>): void => {
    database.exec("BEGIN IMMEDIATE");
    try {
      for (const [name, value] of writes) {
        const [ring, prefix] = prefixes.find((each) => name.startsWith(each[1])) ?? [];
        const table = ring !== undefined ? audit[ring] : name.startsWith(historyPrefix) ? history : entries;
        const key = prefix !== undefined ? Number(name.slice(prefix.length)) : name;
        if (value === null) table.remove.run(key);
        else table.put.run(key, JSON.stringify(value));
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
      // Row by row: what a process once needed at its start it never gives back.
      const content = new Map<string, Json>();
      for (const table of [entries, history])
        for (const row of table.all.iterate()) {
          const { key, value } = row as { readonly key: string; readonly value: string };
          content.set(key, JSON.parse(value) as Json);
        }
      return content;
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
    audit: (ring, from, most) =>
      (audited[ring].all(from, most) as { value: string }[]).map(({ value }) => JSON.parse(value) as Json),
    copyTo: (to) => copyDatabase(database, to),
    bytes: () => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
    close: () => database.close(),
  };
};
