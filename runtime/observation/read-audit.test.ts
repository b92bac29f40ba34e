import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry, AuditPart, AuditRecord } from "../../model/contract/audit/audit.ts";
import { emptyChain, linked } from "../../model/contract/audit/chain.ts";
import { readAudit, type Seen } from "./read-audit.ts";

/** A chain of what these have done, each of them one thing after the other. */
class Book {
  readonly records: AuditRecord[] = [];
  #chain = emptyChain;
  add(who: string, more: Partial<AuditEntry> = {}): void {
    const entry: AuditEntry = { who, door: "gateway", verb: "addUser", target: "x", outcome: "done", ...more };
    const { chain, record } = linked(this.#chain, entry, 1000 * this.records.length);
    this.#chain = chain;
    this.records.push(record);
  }
  read(seen: Seen, query: Parameters<typeof readAudit>[2] = {}): Promise<AuditPart> {
    const { first, next, hash } = this.#chain;
    const of = (from: number, most: number) => this.records.slice(from - 1, from - 1 + most);
    return readAudit(of, { first, next, hash }, query, seen);
  }
}
const ann: Seen = ({ who }) => who === "ann";

test("whoever sees a part of the records learns nothing of the others, neither how many nor which", async () => {
  const [alone, among] = [new Book(), new Book()];
  for (let count = 0; count < 600; count += 1) {
    const time = 1000 * among.records.length;
    if (count % 3 === 0) {
      alone.add("ann", { target: `${count}` });
      among.add("ann", { target: `${count}`, leftOut: count });
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
  ])
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
  for (let count = 0; count < 700; count += 1) book.add(count % 2 === 0 ? "ann" : "eve", { target: `${count}` });
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

test("whoever sees all has the chain as it is", async () => {
  const book = new Book();
  for (let count = 0; count < 300; count += 1) book.add("eve", { leftOut: 1 });
  const { records, next } = await book.read("all", { after: 0, limit: 1000 });
  assert.deepEqual([records, next], [book.records, 301]);
});
