import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry, AuditPart, AuditRecord, Ring } from "../../model/contract/audit/audit.ts";
import { chainsOf, headOf, takenInto } from "../../model/contract/audit/rings.ts";
import { readAudit, type Seen } from "./read-audit.ts";

/** A chain of what these have done, each of them one thing after the other. */
class Book {
  readonly records: AuditRecord[] = [];
  readonly of = { changes: [] as AuditRecord[], refusals: [] as AuditRecord[] };
  #chains = chainsOf({ changes: undefined, refusals: undefined });
  add(who: string, more: Partial<AuditEntry> = {}): void {
    const entry: AuditEntry = { who, door: "gateway", verb: "addUser", target: "x", outcome: "done", ...more };
    const { chains, ring, record } = takenInto(this.#chains, entry, 1000 * this.records.length);
    this.#chains = chains;
    this.of[ring].push(record);
    this.records.push(record);
  }
  read(seen: Seen, query: Parameters<typeof readAudit>[2] = {}): Promise<AuditPart> {
    const of = (ring: Ring, from: number, most: number) => this.of[ring].slice(from - 1, from - 1 + most);
    return readAudit(of, headOf(this.#chains), query, seen);
  }
}
const ann: Seen = ({ who }) => who === "ann";

test("whoever sees a part of the records learns nothing of the others, neither how many nor which", async () => {
  const [alone, among] = [new Book(), new Book()];
  for (let count = 0; count < 600; count += 1) {
    const time = 1000 * among.records.length;
    if (count % 3 === 0) {
      const outcome = count % 4 === 0 ? "refused" : "done";
      alone.add("ann", { target: `${count}`, outcome });
      among.add("ann", { target: `${count}`, outcome, leftOut: count });
    } else among.add("eve", { what: `${time}` });
  }
  const untimed = ({ records, ...head }: AuditPart) => ({
    ...head,
    records: records.map(({ time: _, ...more }) => more),
  });
  for (const query of [
    {},
    { limit: 7 },
    { after: 0, limit: 1000 },
    { after: 150, limit: 20 },
    { target: "300" },
    { after: 900 },
    { outcome: "refused" },
    { chain: "refusals" },
  ] as const)
    assert.deepEqual(
      untimed(await among.read(ann, query)),
      untimed(await alone.read(ann, query)),
      JSON.stringify(query),
    );
  const before = await among.read(ann);
  for (let count = 0; count < 300; count += 1) among.add("eve", { outcome: "refused", leftOut: count });
  assert.deepEqual(await among.read(ann), before);
  const said = JSON.stringify(before);
  for (const { hash, who } of among.records) assert.ok(!said.includes(hash), who);
});

test("by his own count a user has each of his records once, however many he asks for", async () => {
  const book = new Book();
  for (let count = 0; count < 700; count += 1) {
    const outcome = count % 10 < 4 || count > 600 ? "refused" : "done";
    book.add(count % 2 === 0 ? "ann" : "eve", { target: `${count}`, outcome });
  }
  const all: AuditRecord[] = [];
  for (;;) {
    const { records, first, next } = await book.read(ann, { after: all.at(-1)?.n ?? 0, limit: 33 });
    assert.deepEqual([first, next], [1, 351]);
    all.push(...records);
    if (records.length < 33) break;
  }
  assert.deepEqual(
    all.map(({ n, target }) => `${n} ${target}`),
    Array.from({ length: 350 }, (_, index) => `${index + 1} ${2 * index}`),
  );
  assert.deepEqual(
    (await book.read(ann, { limit: 2 })).records.map(({ target }) => target),
    ["696", "698"],
  );
});

test("whoever sees all has each chain as it is, and the newest of both in their order", async () => {
  const book = new Book();
  for (let count = 0; count < 900; count += 1)
    book.add("eve", { target: `${count}`, leftOut: 1, outcome: count % 3 === 0 && count < 600 ? "refused" : "done" });
  const { records, next, refusals } = await book.read("all", { after: 0, limit: 1000 });
  assert.deepEqual([records, next, refusals?.next], [book.of.changes, 701, 201]);
  const refused = await book.read("all", { after: 0, chain: "refusals", limit: 1000 });
  assert.deepEqual([refused.records, refused.next], [book.of.refusals, 701]);
  const onward = await book.read("all", { after: 150, chain: "refusals", limit: 10 });
  assert.deepEqual(onward.records, book.of.refusals.slice(150, 160));
  assert.deepEqual((await book.read("all", { limit: 1000 })).records, book.records);
  assert.deepEqual((await book.read("all", { limit: 320 })).records, book.records.slice(-320));
  assert.deepEqual((await book.read("all", { limit: 20, outcome: "refused" })).records, book.of.refusals.slice(-20));
  assert.deepEqual((await book.read("all", { limit: 20, chain: "changes" })).records, book.of.changes.slice(-20));
});

test("what a service of a version before has, in one chain, is read as it was", async () => {
  const book = new Book();
  for (let count = 0; count < 30; count += 1) book.add(count % 2 === 0 ? "ann" : "eve");
  const read = (ring: Ring, from: number, most: number) =>
    ring === "changes" ? book.of.changes.slice(from - 1, from - 1 + most) : [];
  const head = { first: 1, next: 31, hash: "of the last one" };
  assert.deepEqual((await readAudit(read, head, {}, "all")).records, book.records);
  assert.deepEqual((await readAudit(read, head, { after: 10 }, "all")).records, book.records.slice(10));
  assert.equal((await readAudit(read, head, {}, ann)).records.length, 15);
});

test("times are compared as such, however they are written", async () => {
  const book = new Book();
  for (let count = 0; count < 100; count += 1) book.add("eve", { target: `${count}` });
  const since = async (asked: string, until?: string): Promise<number> =>
    (await book.read("all", { since: asked, ...(until === undefined ? {} : { until }) })).records.length;
  // Each is a second behind the one before, from 1970 on.
  assert.equal(await since("1970-01-01"), 100);
  for (const half of ["1970-01-01T00:00:50Z", "1970-01-01T00:00:49.5Z", "1970-01-01T02:00:50+02:00"])
    assert.equal(await since(half), 50, half);
  assert.equal(await since("1970-01-01T00:01Z"), 40);
  assert.equal(await since("1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z"), 10);
  assert.equal(await since("1970-01-02"), 0);
});
