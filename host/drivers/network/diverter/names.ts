import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Uid, uid } from "../../../../model/cell/identifiers.ts";

/**
 * What numbers in the kernel are called, kept on disk so that counters and `why` speak after a restart too. Losing it costs
 * names, never enforcement. A change of names costs what has changed.
 */
export interface Names {
  readonly taps: ReadonlyMap<string, Uid>;
  setTaps(taps: ReadonlyMap<string, Uid>): void;
  /** Path of a rule's element; null: unknown. */
  rule(cell: number, rule: number): string | null;
  /** Every rule of a cell that has a name. */
  rules(cell: number): ReadonlyMap<number, string>;
  changeRules(cell: number, forget: Iterable<number>, name: Iterable<readonly [number, string]>): void;
  close(): void;
}

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS taps (tap TEXT PRIMARY KEY, interface TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS rules (cell INTEGER, rule INTEGER, path TEXT NOT NULL, PRIMARY KEY (cell, rule)) WITHOUT ROWID;
`;

function openDatabase(directory: string): DatabaseSync {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "names.sqlite");
  const open = (): DatabaseSync => {
    const database = new DatabaseSync(file, { timeout: 5000 });
    try {
      database.exec(schema);
    } catch (problem) {
      database.close();
      throw problem;
    }
    return database;
  };
  try {
    return open();
  } catch (problem) {
    const { errcode } = problem as { readonly errcode?: unknown };
    if (errcode !== corrupt && errcode !== noDatabase) throw problem;
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
    return open();
  }
}
const corrupt = 11;
const noDatabase = 26;

export function openNames(directory: string): Names {
  const database = openDatabase(directory);
  const found = database.prepare("SELECT tap, interface FROM taps").all() as { tap: string; interface: string }[];
  let taps: ReadonlyMap<string, Uid> = new Map(found.map((row) => [row.tap, uid(row.interface)]));
  const [putTap, dropTap] = [
    database.prepare("INSERT OR REPLACE INTO taps VALUES (?, ?)"),
    database.prepare("DELETE FROM taps WHERE tap = ?"),
  ];
  const [putRule, dropRule, oneRule, allRules] = [
    database.prepare("INSERT OR REPLACE INTO rules VALUES (?, ?, ?)"),
    database.prepare("DELETE FROM rules WHERE cell = ? AND rule = ?"),
    database.prepare("SELECT path FROM rules WHERE cell = ? AND rule = ?"),
    database.prepare("SELECT rule, path FROM rules WHERE cell = ?"),
  ];
  const atOnce = (work: () => void): void => {
    database.exec("BEGIN IMMEDIATE");
    try {
      work();
      database.exec("COMMIT");
    } catch (problem) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw problem;
    }
  };
  return {
    get taps() {
      return taps;
    },
    setTaps: (wanted) => {
      const put = [...wanted].filter(([tap, of]) => taps.get(tap) !== of);
      const drop = [...taps.keys()].filter((tap) => !wanted.has(tap));
      if (put.length + drop.length === 0) return;
      atOnce(() => {
        for (const tap of drop) dropTap.run(tap);
        for (const [tap, of] of put) putTap.run(tap, of);
      });
      taps = new Map(wanted);
    },
    rule: (cell, rule) => (oneRule.get(cell, rule) as { path: string } | undefined)?.path ?? null,
    rules: (cell) =>
      new Map((allRules.all(cell) as { rule: number; path: string }[]).map(({ rule, path }) => [rule, path])),
    changeRules: (cell, forget, name) => {
      const [gone, named] = [[...forget], [...name]];
      if (gone.length + named.length === 0) return;
      atOnce(() => {
        for (const rule of gone) dropRule.run(cell, rule);
        for (const [rule, path] of named) putRule.run(cell, rule, path);
      });
    },
    close: () => database.close(),
  };
}
