import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import type { Json } from "../../model/json/json.ts";
import { noteRestored, openStore } from "./store.ts";

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-store-${process.pid}-`));
});
after(() => rm(directory, { recursive: true, force: true }));

test("what was committed is there after it was opened again; null deletes", () => {
  const file = join(directory, "a.sqlite");
  const first = openStore(file);
  first.commit(
    new Map<string, Json>([
      ["a", { x: [1, null, "ä"] }],
      ["b", 2],
      ["c", false],
    ]),
  );
  first.commit(
    new Map<string, Json>([
      ["b", null],
      ["c", ""],
      ["never", null],
    ]),
  );
  first.close();
  const second = openStore(file);
  assert.deepEqual(
    second.load(),
    new Map<string, Json>([
      ["a", { x: [1, null, "ä"] }],
      ["c", ""],
    ]),
  );
  second.close();
});

test("of a commit that fails nothing is kept, and the next one works", () => {
  const store = openStore(join(directory, "b.sqlite"));
  const circular: Record<string, Json> = {};
  circular.self = circular;
  assert.throws(
    () =>
      store.commit(
        new Map<string, Json>([
          ["a", 1],
          ["b", circular],
        ]),
      ),
    /circular/i,
  );
  store.commit(new Map([["c", 3]]));
  assert.deepEqual([...store.load()], [["c", 3]]);
  store.close();
});

test("a full disk does not stop what would empty it", { skip: process.getuid?.() === 0 ? false : "needs root" }, () => {
  const inside = join(import.meta.dirname, "full-disk.testing.ts");
  const mounted = [
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-euc",
    'mount -t tmpfs -o size=8m tmpfs "$1"; exec "$2" "$3" "$1"',
  ];
  const { status, stderr } = spawnSync("unshare", [...mounted, "full-disk", directory, process.execPath, inside]);
  assert.equal(status, 0, String(stderr));
});

test("a store has one owner", { timeout: 60_000 }, () => {
  const file = join(directory, "c.sqlite");
  const store = openStore(file);
  store.commit(new Map([["a", 1]]));
  assert.throws(() => openStore(file), /locked/);
  store.close();
});

test("histories are kept where a version that knows none does not meet them", () => {
  const file = join(directory, "history.sqlite");
  const store = openStore(file);
  store.commit(
    new Map<string, Json>([
      ["own/a", 1],
      ["history/start/1", { start: "s", count: 1 }],
    ]),
  );
  assert.deepEqual([...store.load().keys()], ["own/a", "history/start/1"]);
  store.close();
  noteRestored(file, "backup of today", 5);
  const database = new DatabaseSync(file);
  assert.deepEqual(
    database
      .prepare("SELECT key FROM entries")
      .all()
      .map((row) => row.key),
    ["own/a"],
  );
  database.close();
  const again = openStore(file);
  assert.deepEqual(again.load().get("history/restored"), { from: "backup of today", wallMs: 5 });
  again.commit(
    new Map<string, Json>([
      ["history/start/1", null],
      ["history/peer/host.h1", { at: null }],
      ["history/peer/storage-manager", { at: null }],
    ]),
  );
  const kept = ["history/peer/storage-manager", "history/restored", "own/a"];
  assert.deepEqual([...again.load().keys()].sort(), ["history/peer/host.h1", ...kept]);
  again.close();
  // Machines under the names of hosts that are gone are others.
  noteRestored(file, "backup of today", 5, { goneHosts: "all" });
  const anew = openStore(file);
  assert.deepEqual([...anew.load().keys()].sort(), kept);
  assert.deepEqual(anew.load().get("history/restored"), { from: "backup of today", wallMs: 5, hosts: "gone" });
  anew.close();
  assert.throws(() => noteRestored(join(directory, "none.sqlite"), "x", 0), /entries/);
});

test("records of changes and of refusals are kept apart, and a version that knows no refusals has its own records and only those", () => {
  const file = join(directory, "audit.sqlite");
  const before = new DatabaseSync(file);
  before.exec(`CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE audit (n INTEGER PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO audit VALUES (1, '"changed"'), (2, '"refused"')`);
  before.close();
  const store = openStore(file);
  store.commit(
    new Map<string, Json>([
      ["own/audit/3", "changed again"],
      ["own/audit", { next: 4 }],
      ["own/audit-refusals/1", "refused again"],
      ["own/audit-refusals/2", "and again"],
      ["own/audit-refusals", { next: 3 }],
    ]),
  );
  store.commit(new Map<string, Json>([["own/audit-refusals/1", null]]));
  assert.deepEqual(store.audit("changes", 1, 9), ["changed", "refused", "changed again"]);
  assert.deepEqual(store.audit("refusals", 1, 9), ["and again"]);
  assert.deepEqual([...store.load().keys()].sort(), ["own/audit", "own/audit-refusals"]);
  store.close();
  const back = new DatabaseSync(file);
  const rows = back.prepare("SELECT n FROM audit WHERE n >= 1 ORDER BY n").all();
  assert.deepEqual(
    rows.map(({ n }) => n),
    [1, 2, 3],
  );
  back.close();
});

test("a copy that begins in the middle of a commit is taken after it", async () => {
  const file = join(directory, "busy.sqlite");
  const store = openStore(file);
  const rows = new Map<string, Json>(Array.from({ length: 10_000 }, (_, i) => [`row/${i}`, "x".repeat(200)]));
  // The first may be quicker than the commit; of the others one would meet it.
  for (const n of [1, 2, 3, 4, 5]) {
    const to = join(directory, `busy-${n}.sqlite`);
    const copying = store.copyTo(to);
    store.commit(rows);
    await copying;
    const copy = openStore(to);
    const found = copy.load().size;
    copy.close();
    assert.ok(found === rows.size || (n === 1 && found === 0), `${found} rows`);
  }
  store.close();
});
