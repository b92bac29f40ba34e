import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { originsIn, readVolume, roomIn, type StoredVolume, versionIn } from "./layout.ts";
import { type Asker, domainOf } from "./rights.ts";
import { domainUnderRoot, type Others, type Weight, weightOf } from "./room.ts";

/**
 * Where volumes are looked for: by words (FTS5), tags, owner, size and age, and only among those that somebody may see, so that
 * what he may not see costs him nothing and tells him nothing. All of it is made from the model of the primary cell, and made
 * anew whenever it is lost.
 */
export interface Question {
  readonly text?: string | undefined;
  readonly tag?: readonly string[] | undefined;
  readonly name?: string | undefined;
  readonly account?: string | undefined;
  /** UID of that: of volumes whose owner's is known. */
  readonly owner?: string | undefined;
  readonly leastMiB?: number | undefined;
  readonly mostMiB?: number | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** UID behind which it goes on. */
  readonly behind?: string | undefined;
  readonly limit: number;
}
export interface VolumeIndex {
  /** Version of the model that it is of; null: of none yet. */
  readonly version: string | null;
  /** All of them, in place of those before. */
  fill(version: string, groups: Json): void;
  /** One of them as it is now; null: it is gone. */
  set(version: string, uid: string, group: Json | null): void;
  find(asker: Asker, question: Question): readonly StoredVolume[];
  /** Others of which a version is a clone of one of it. */
  clonesOf(uid: string): readonly Json[];
  /** What there is beside that volume of the account. */
  others(account: string, owner: string | null, but: string): Others;
  close(): void;
}

const schema = `
  CREATE TABLE volume (uid TEXT PRIMARY KEY, row INTEGER NOT NULL, called TEXT NOT NULL, account TEXT NOT NULL, owner TEXT NOT NULL, size INTEGER, made TEXT NOT NULL, bytes INTEGER NOT NULL, elements INTEGER NOT NULL, storage INTEGER NOT NULL, room TEXT NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX volume_account ON volume (account, owner, bytes, elements, storage);
  CREATE INDEX volume_room ON volume (room, bytes, elements, storage);
  CREATE TABLE share (kind TEXT NOT NULL, path TEXT NOT NULL, holder TEXT NOT NULL, uid TEXT NOT NULL, PRIMARY KEY (kind, path, holder, uid)) WITHOUT ROWID;
  CREATE INDEX share_uid ON share (uid);
  CREATE TABLE tag (tag TEXT NOT NULL, uid TEXT NOT NULL, PRIMARY KEY (tag, uid)) WITHOUT ROWID;
  CREATE INDEX tag_uid ON tag (uid);
  CREATE TABLE origin (origin TEXT NOT NULL, uid TEXT NOT NULL, PRIMARY KEY (origin, uid)) WITHOUT ROWID;
  CREATE INDEX origin_uid ON origin (uid);
  CREATE VIRTUAL TABLE words USING fts5 (called, tags, text, tokenize = 'unicode61', content = '', contentless_delete = 1);
`;
/** Of the operator's own. No account has such a path. */
const noAccount = "";
/** More words than these narrow nothing down. */
const mostWords = 16;

/*
 * A word that a tenth of all volumes have is in ten thousand rows: what is found by words are numbers of rows alone, since to look each of them up for
 * its UID took most of such a search. The texts themselves are in `json`.
 */
/** What FTS5 takes literally: each word as text, of which there may be more. */
const matchOf = (text: string): string =>
  (text.match(/[\p{L}\p{N}]+/gu) ?? [])
    .slice(0, mostWords)
    .map((word) => `"${word}"*`)
    .join(" AND ");

/** @param file `:memory:`, or where it is: it may be deleted at any moment */
export function openIndex(file: string): VolumeIndex {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; ${schema}`);
  const insert = {
    volume: database.prepare("INSERT INTO volume VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    share: database.prepare("INSERT OR IGNORE INTO share VALUES (?, ?, ?, ?)"),
    tag: database.prepare("INSERT OR IGNORE INTO tag VALUES (?, ?)"),
    origin: database.prepare("INSERT OR IGNORE INTO origin VALUES (?, ?)"),
    words: database.prepare("INSERT INTO words VALUES (?, ?, ?)"),
  };
  const tables = ["volume", "share", "tag", "origin"] as const;
  const remove = tables.map((table) => database.prepare(`DELETE FROM ${table} WHERE uid = ?`));
  const rowOf = database.prepare("SELECT row FROM volume WHERE uid = ?");
  const clones = database.prepare(
    "SELECT json FROM volume WHERE uid IN (SELECT uid FROM origin WHERE origin = ?) AND uid <> ?",
  );
  const removeWords = database.prepare("DELETE FROM words WHERE rowid = ?");
  let version: string | null = null;

  const take = (uid: string): void => {
    const { row } = (rowOf.get(uid) ?? {}) as { readonly row?: number };
    for (const statement of remove) statement.run(uid);
    if (row !== undefined) removeWords.run(row);
  };
  const add = (uid: string, json: Json): void => {
    const volume = readVolume(uid, json);
    if (volume === null) return;
    const { name, account, owner, made, tags, text, shares } = volume;
    const size = versionIn(volume, volume.version)?.sizeMiB ?? null;
    const { bytes, elements, storageMiB } = weightOf(json);
    const whose = [account ?? noAccount, owner ?? noAccount] as const;
    const { lastInsertRowid: row } = insert.words.run(name, tags.join(" "), text);
    const weighs = [bytes, elements, storageMiB, roomIn(json) ?? noAccount] as const;
    insert.volume.run(uid, row, name, ...whose, size, made, ...weighs, JSON.stringify(json));
    for (const { kind, path = "", holder = noAccount } of shares) insert.share.run(kind, path, holder, uid);
    for (const tag of tags) insert.tag.run(tag, uid);
    for (const origin of originsIn(json)) insert.origin.run(origin, uid);
  };
  const atOnce = (work: () => void): void => {
    database.exec("BEGIN");
    try {
      work();
    } finally {
      database.exec("COMMIT");
    }
  };
  return {
    get version() {
      return version;
    },
    fill: (of, groups) =>
      atOnce(() => {
        for (const table of [...tables, "words"]) database.exec(`DELETE FROM ${table}`);
        for (const [uid, json] of Object.entries((groups ?? {}) as JsonObject)) add(uid, json);
        version = of;
      }),
    set: (of, uid, group) =>
      atOnce(() => {
        take(uid);
        if (group !== null) add(uid, group);
        version = of;
      }),
    find: (asker, question) => {
      const { sql, values } = selectOf(asker, question);
      const rows = database.prepare(sql).all(...values) as unknown as readonly { uid: string; json: string }[];
      return rows.flatMap(({ uid, json }) => readVolume(uid, JSON.parse(json) as Json) ?? []);
    },
    clonesOf: (uid) => clones.all(uid, uid).map(({ json }) => JSON.parse(String(json)) as Json),
    others: createWeighing(database),
    close: () => database.close(),
  };
}

function createWeighing(database: DatabaseSync): VolumeIndex["others"] {
  const weighing = (which: string) =>
    database.prepare(
      `SELECT total(bytes) AS bytes, total(elements) AS elements, total(storage) AS storageMiB FROM volume WHERE uid <> ?${which}`,
    );
  const ofAccount = weighing(" AND account = ? AND owner IN ('', ifnull(?, owner))");
  const ofDomain = weighing(" AND (room = ? OR room > ? AND room < ?)");
  const ofAll = weighing("");
  return (account, owner, but) => {
    const domain = domainUnderRoot(account);
    return {
      account: weightIn(ofAccount.get(but, account, owner)),
      domain: weightIn(ofDomain.get(but, domain, `${domain}/`, `${domain}0`)),
      all: weightIn(ofAll.get(but)),
    };
  };
}
const weightIn = (row: unknown): Weight => {
  const { bytes, elements, storageMiB } = row as Weight;
  return { bytes, elements, storageMiB };
};
interface Condition {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}
function selectOf(asker: Asker, question: Question): Condition {
  const { text, tag = [], name, account, owner, leastMiB, mostMiB, since, until, behind, limit } = question;
  const match = text === undefined ? "" : matchOf(text);
  const all: Condition[] = [
    visibleTo(asker),
    ...(match === "" ? [] : [{ sql: "row IN (SELECT rowid FROM words WHERE words MATCH ?)", values: [match] }]),
    ...tag.map((each) => ({
      sql: "EXISTS (SELECT 1 FROM tag WHERE tag = ? AND tag.uid = volume.uid)",
      values: [each],
    })),
    ...(name === undefined ? [] : [{ sql: "called = ?", values: [name] }]),
    ...(account === undefined ? [] : [{ sql: "account = ?", values: [account] }]),
    ...(owner === undefined ? [] : [{ sql: "owner IN ('', ?)", values: [owner] }]),
    ...(leastMiB === undefined ? [] : [{ sql: "size >= ?", values: [leastMiB] }]),
    ...(mostMiB === undefined ? [] : [{ sql: "size <= ?", values: [mostMiB] }]),
    ...(since === undefined ? [] : [{ sql: "made >= ?", values: [new Date(since).toISOString()] }]),
    ...(until === undefined ? [] : [{ sql: "made < ?", values: [new Date(until).toISOString()] }]),
    ...(behind === undefined ? [] : [{ sql: "uid > ?", values: [behind] }]),
  ];
  return {
    sql: `SELECT uid, json FROM volume WHERE ${all.map(({ sql }) => `(${sql})`).join(" AND ")} ORDER BY uid LIMIT ?`,
    values: [...all.flatMap(({ values }) => values), limit],
  };
}

/** The same as `rightsOf`, which decides: of what is found here nothing is shown that it does not show. */
function visibleTo({ account, reach, mayRead, accounts, domains, cells }: Asker): Condition {
  if (!mayRead) return { sql: "0", values: [] };
  if (account === null || reach === "installation") return { sql: "1", values: [] };
  const domain = domainOf(account);
  const own =
    reach === "domain"
      ? { sql: "account > ? AND account < ?", values: [`${domain}/`, `${domain}0`] }
      : { sql: "account = ?", values: [account] };
  const above = account
    .split("/")
    .map((_part, at, parts) => parts.slice(0, at).join("/"))
    .filter((path) => path !== "");
  const uidsAbove = Object.fromEntries(above.map((path) => [path, domains.get(path) ?? noAccount]));
  const isOwner =
    "(owner = '' OR EXISTS (SELECT 1 FROM json_each(?) WHERE key = volume.account AND value = volume.owner))";
  const his = accounts.get(account) ?? noAccount;
  const shared: readonly Condition[] = [
    { sql: "kind = 'all'", values: [] },
    { sql: "kind = 'account' AND path = ? AND holder IN ('', ?)", values: [account, his] },
    {
      sql: "kind = 'domain' AND path IN (SELECT value FROM json_each(?)) AND holder IN ('', (SELECT value FROM json_each(?) WHERE key = share.path))",
      values: [JSON.stringify(above), JSON.stringify(uidsAbove)],
    },
    {
      sql: "kind = 'cell' AND path IN (SELECT value FROM json_each(?)) AND holder IN ('', ?)",
      values: [JSON.stringify([...cells]), his],
    },
  ];
  // As one set, which their indexes give: with `OR` between them each volume of all accounts would be looked at.
  const sets = [
    `SELECT uid FROM volume WHERE (${own.sql}) AND ${isOwner}`,
    ...shared.map(({ sql }) => `SELECT uid FROM share WHERE ${sql}`),
  ];
  return {
    sql: `uid IN (${sets.join(" UNION ALL ")})`,
    values: [...own.values, JSON.stringify(Object.fromEntries(accounts)), ...shared.flatMap(({ values }) => values)],
  };
}
