import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lastMadeMs, namesIn, readRecord, recordAfter, removable, writeRecord } from "./record.ts";

const now = Date.UTC(2026, 10, 22, 12);
const name = (day: number): string => `202611${String(day).padStart(2, "0")}T120000Z`;

test("names of a list count when they are of a time that was, and each once", () => {
  const listed = [name(22), name(3), name(3), "20261122T120001Z", "20991122T120000Z", "x", "20261399T120000Z", 7, null];
  assert.deepEqual(
    namesIn(
      listed.map((each) => ({ name: each, bytes: 1 })),
      now,
    ),
    [name(3), name(22)],
  );
  for (const list of [null, {}, "x", { length: 2 }]) assert.throws(() => namesIn(list, now), /no list of backups/);
  assert.deepEqual(namesIn([null, 1, [], {}], now), []);
});

test("when the last one was made is what is remembered, and without that what the server farthest behind has", () => {
  const lists = [[name(20), name(21)], [name(22)]];
  assert.equal(lastMadeMs({ madeMs: now - 5, newest: {} }, lists, now), now - 5);
  assert.equal(lastMadeMs(null, lists, now), Date.UTC(2026, 10, 21, 12));
  assert.equal(
    lastMadeMs({ madeMs: now + 5, newest: {} }, lists, now),
    Date.UTC(2026, 10, 21, 12),
    "a clock's mistake",
  );
  assert.equal(lastMadeMs(null, [...lists, []], now), 0);
  assert.equal(lastMadeMs(null, [], now), 0);
});

test("the newest part of a process that is missing stays, and no more than as many again as are kept", () => {
  const names = [1, 2, 3, 4, 5].map(name);
  const with6 = (...held: number[]) => ({ name: name(6), keep: 2, held: new Set(held.map(name)) });
  assert.deepEqual(removable(names, with6()), [1, 2, 3, 4].map(name));
  assert.deepEqual(removable(names, with6(2)), [1, 3, 4].map(name));
  assert.deepEqual(removable(names, with6(1, 2, 3, 4)), [1, 2].map(name));
  let record = recordAfter(null, { name: name(1), nowMs: 1, names: ["placer", "directory"], missing: ["host.h1"] });
  record = recordAfter(record, { name: name(2), nowMs: 2, names: ["placer"], missing: ["directory", "host.h1"] });
  assert.deepEqual(record, { madeMs: 2, newest: { directory: name(1), placer: name(2) } });
  record = recordAfter(record, { name: name(3), nowMs: 3, names: ["placer"], missing: [] });
  assert.deepEqual(record.newest, { placer: name(3) }, "who is not asked any more is forgotten");
});

test("what is remembered is there after a restart; what cannot be read is as if it were not", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-backup-record-"));
  try {
    assert.equal(await readRecord(directory), null);
    const record = { madeMs: 5, newest: { placer: name(1) } };
    await writeRecord(directory, record);
    assert.deepEqual(await readRecord(directory), record);
    for (const text of ["", "null", "7", '{"madeMs":"x","newest":{}}', '{"madeMs":1,"newest":null}']) {
      await writeFile(join(directory, "last-backup"), text);
      assert.equal(await readRecord(directory), null);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
