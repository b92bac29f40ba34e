import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry, AuditPart, AuditRecord } from "./audit.ts";
import { type Chain, differences, emptyChain, faultsIn, keptDays, lengths, linked } from "./chain.ts";

const dayMs = 86_400_000;
const entry = (target: string): AuditEntry => ({
  who: "ann@ROOT/acme",
  account: "ROOT/acme/dev",
  by: "session 0123456789ab",
  door: "gateway",
  source: "192.0.2.1",
  verb: "putModel",
  target,
  outcome: "done",
  before: 1,
  after: 2,
  within: ["u1"],
});

/** As a store has it. */
class Kept {
  chain: Chain = emptyChain;
  readonly records = new Map<number, AuditRecord>();
  add(target: string, wallMs: number, most?: number): number {
    const { chain, record, dropped } = linked(this.chain, entry(target), wallMs, most);
    this.chain = chain;
    this.records.set(record.n, record);
    for (const n of dropped) assert.ok(this.records.delete(n), `${n} was there`);
    return dropped.length;
  }
  get part(): AuditPart {
    const { first, next, hash } = this.chain;
    return { first, next, hash, records: [...this.records.values()] };
  }
}
const ten = (): Kept => {
  const kept = new Kept();
  for (let at = 1; at <= 10; at += 1) kept.add(`shop/${at}`, at * 1000);
  return kept;
};

test("a chain that nobody touched is whole, also when its beginning has gone", () => {
  assert.deepEqual(faultsIn(new Kept().part), []);
  const kept = ten();
  assert.deepEqual(faultsIn(kept.part), []);
  for (let at = 11; at <= 30; at += 1) kept.add(`shop/${at}`, at * 1000, 8);
  assert.equal(kept.records.size, 8);
  assert.deepEqual(faultsIn(kept.part), []);
});

test("a record that was altered in any field, taken out, put in or cut off shows", () => {
  const { part } = ten();
  const altered: { readonly [name: string]: unknown } = {
    who: "bob",
    account: "ROOT",
    by: "x",
    door: "x",
    source: "192.0.2.2",
    verb: "x",
    target: "x",
    outcome: "refused",

    before: 0,
    after: 7,
    within: [],
    n: 99,
    time: "2026-01-01T00:00:00.000Z",
    previous: "f".repeat(64),
    hash: "1".repeat(64),
    more: "a field that was not there",
  };
  for (const [name, value] of Object.entries(altered))
    for (const at of [0, 4, 9]) {
      const records = part.records.map((record, index) => (index === at ? { ...record, [name]: value } : record));
      assert.notDeepEqual(faultsIn({ ...part, records: records as AuditRecord[] }), [], `${name} of record ${at + 1}`);
    }
  for (const at of [0, 4, 9])
    assert.match(
      faultsIn({ ...part, records: part.records.filter((_record, index) => index !== at) }).join("\n"),
      new RegExp(`record ${at + 1} is missing`),
    );
  assert.match(faultsIn({ ...part, records: [] }).join("\n"), /records 1 to 10 are missing/);
  const [one, two, ...rest] = part.records;
  assert.ok(one !== undefined && two !== undefined);
  assert.notDeepEqual(faultsIn({ ...part, records: [two, one, ...rest] }), []);
  // Whoever writes one anew with a hash that fits has to write all that follow.
  const forged = linked(
    { ...emptyChain, first: 4, next: 5, hash: part.records[3]?.hash ?? "" },
    entry("forged"),
    1,
  ).record;
  assert.match(
    faultsIn({ ...part, records: part.records.map((record) => (record.n === 5 ? forged : record)) }).join("\n"),
    /record 6 does not follow/,
  );
});

test("a chain that was made anew, or is an older one, shows against an earlier export", () => {
  const kept = ten();
  const before = [...kept.part.records];
  kept.add("shop/11", 11_000);
  assert.deepEqual(differences(before, kept.part), []);
  const other = new Kept();
  for (let at = 1; at <= 12; at += 1) other.add(at === 5 ? "else" : `shop/${at}`, at * 1000);
  assert.deepEqual(faultsIn(other.part), []);
  assert.match(differences(before, other.part).join("\n"), /record 5 is another one than in the export/);
  const older = new Kept();
  for (let at = 1; at <= 8; at += 1) older.add(`shop/${at}`, at * 1000);
  assert.match(differences(before, older.part).join("\n"), /record 9 of the export is not there/);
  for (let at = 12; at <= 40; at += 1) kept.add(`shop/${at}`, at * 1000, 8);
  assert.deepEqual(differences(before, kept.part), [], "what is kept no longer is no difference");
});

test("what is kept is bounded by number and by age, and a clock that is wrong for a while takes little", () => {
  const kept = new Kept();
  for (let day = 0; day < 1000; day += 1) for (const each of ["a", "b"]) kept.add(each, day * dayMs);
  const [oldest] = kept.part.records;
  const days = (Date.parse("1970-01-01T00:00:00Z") + 999 * dayMs - Date.parse(oldest?.time ?? "")) / dayMs;
  assert.ok(days >= keptDays && days <= keptDays + 8, `the oldest is ${days} days old`);
  assert.ok(kept.chain.weeks.length <= keptDays / 7 + 3, `${kept.chain.weeks.length} weeks are noted`);
  assert.deepEqual(faultsIn(kept.part), []);
  const { size } = kept.records;
  assert.ok(kept.add("a year 3000", 376_000 * dayMs) <= 2);
  kept.add("and back", 1000 * dayMs);
  assert.ok(kept.records.size >= size - 2, `${size - kept.records.size} records went`);
  assert.deepEqual(faultsIn(kept.part), []);
  // Fewer are to be kept than there are: no step takes more than two.
  const before = kept.records.size;
  assert.equal(kept.add("less", 1001 * dayMs, 10), 2);
  assert.equal(kept.records.size, before - 1);
});

test("texts are as long as they may be", () => {
  const long = "x".repeat(10_000);
  const said = {
    who: long,
    account: long,
    by: long,
    door: long,
    source: long,
    verb: long,
    target: long,
    what: long,
    why: long,
  };
  const { record } = linked(emptyChain, { ...said, outcome: "refused" }, 0);
  for (const [name, most] of Object.entries(lengths))
    assert.equal(String(record[name as keyof AuditRecord]).length, most, name);
});
