import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Kept, KeptConsoles, keptLimits, tooMany } from "./kept-consoles.ts";

const hour = 3_600_000;
const kept = (cell: string, vm: string, incarnation: number, endedMs: number): Kept => ({
  cell,
  vm,
  incarnation,
  endedMs,
  name: `${vm}.${incarnation}`,
});
const names = (all: readonly Kept[]): readonly string[] => all.map(({ name }) => name).sort();

test("of a VM the last few are kept, for a day", () => {
  const all = [1, 2, 3, 4, 5].map((incarnation) => kept("shop", "c1-1", incarnation, incarnation * hour));
  assert.deepEqual(names(tooMany(all, 6 * hour)), ["c1-1.1", "c1-1.2"]);
  assert.deepEqual(names(tooMany(all, 28 * hour)), ["c1-1.1", "c1-1.2", "c1-1.3"]);
  assert.equal(tooMany(all, 30 * hour).length, 5);
  const lied = [6, 7, 8].map((incarnation) => ({ ...kept("flood", "c1-1", incarnation, 5 * hour), name: "lied" }));
  assert.deepEqual(names(tooMany([...all, ...lied], 6 * hour)), ["c1-1.1", "c1-1.2"], "whoever else names one so");
});

test("a cell that fills the room of a host loses its own, and no other one's", () => {
  const full = Array.from({ length: 20 }, (_, at) => kept("full", `c2-${at}`, 1, 100 + at));
  const all = [kept("shop", "c1-1", 1, 1), ...full, kept("mail", "c3-1", 1, 2)];
  const gone = tooMany(all, 200, { ...keptLimits, perHost: 12 });
  assert.equal(gone.length, 10);
  assert.ok(gone.every(({ cell }) => cell === "full"));
  assert.deepEqual(names(gone), names(full.slice(0, 10)), "its oldest");
});

const directoryOf = (t: TestContext): string => {
  const directory = mkdtempSync(join(tmpdir(), "cells-kept-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "consoles");
};

test("what was said last is read by its cell alone, also by the next process, and goes after a day", async (t) => {
  const directory = directoryOf(t);
  let nowMs = Date.now();
  const before = new KeptConsoles(directory, () => nowMs);
  t.after(() => before.close());
  const of = { cell: "shop", vm: "c1-1", incarnation: 3 };
  await before.keep(of, Buffer.from(`${"x".repeat(20_000)}the end`));
  await before.keep({ ...of, incarnation: 4 }, Buffer.alloc(0));
  const later = new KeptConsoles(directory, () => nowMs);
  t.after(() => later.close());
  const said = await later.read(of);
  assert.equal(said?.length, 16 * 1024);
  assert.match(String(said), /the end$/);
  for (const other of [
    { ...of, cell: "shop2" },
    { ...of, cell: "" },
    { ...of, incarnation: 2 },
    { ...of, incarnation: 4 },
    { ...of, vm: "c1-2" },
    { ...of, vm: "../c1-1" },
    { ...of, vm: "c1-1", cell: "../shop" },
  ])
    assert.equal(await later.read(other), null, JSON.stringify(other));
  const child = { cell: "b.7.shop", vm: "c2-1", incarnation: 1 };
  await later.keep(child, Buffer.from("a child's"));
  assert.equal(String(await later.read(child)), "a child's");
  assert.equal(await later.read({ cell: "shop", vm: "c2-1.1.b", incarnation: 7 }), null, "no VM has such a UID");
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory, readdirSync(directory)[0] ?? "")).mode & 0o777, 0o600);
  nowMs += keptLimits.ageMs + 1000;
  assert.equal(await later.read(of), null);
  assert.deepEqual(readdirSync(directory), []);
});

test("what is not a record of ours there is neither read nor in the way", async (t) => {
  const directory = directoryOf(t);
  const consoles = new KeptConsoles(directory);
  t.after(() => consoles.close());
  const of = { cell: "a/b", vm: "c1-1", incarnation: 1 };
  await consoles.keep(of, Buffer.from("said"));
  assert.equal(String(await consoles.read(of)), "said");
  const secret = join(directory, "secret");
  writeFileSync(secret, "secret");
  symlinkSync(secret, join(directory, "c1-1.2.shop"));
  writeFileSync(join(directory, "c1-1.9.%"), "x");
  utimesSync(secret, 0, 0);
  assert.equal(await consoles.read({ cell: "shop", vm: "c1-1", incarnation: 2 }), null);
  assert.equal(String(await consoles.read(of)), "said");
});
