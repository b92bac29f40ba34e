import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry, AuditPart, AuditRecord, Ring } from "./audit.ts";
import { differences, emptyChain, faultsIn, linked } from "./chain.ts";
import { type Chains, chainsOf, headOf, inOrder, otherRing, ringOf, takenInto, usualRoom } from "./rings.ts";

const entry = (target: string, outcome: AuditEntry["outcome"] = "done"): AuditEntry => ({
  who: "ann@ROOT/acme",
  door: "gateway",
  verb: "putModel",
  target,
  outcome,
});

/** As a store has it. */
class Kept {
  chains: Chains = chainsOf({ changes: undefined, refusals: undefined });
  readonly records = { changes: new Map<number, AuditRecord>(), refusals: new Map<number, AuditRecord>() };
  add(target: string, outcome: AuditEntry["outcome"], room = usualRoom, wallMs = 1000): void {
    const taken = takenInto(this.chains, entry(target, outcome), wallMs, room);
    this.chains = taken.chains;
    this.take(taken.ring, taken);
    for (const n of taken.oldOnes) assert.ok(this.records[otherRing(taken.ring)].delete(n), `${n} was there`);
  }
  take(ring: Ring, { record, dropped }: { readonly record: AuditRecord; readonly dropped: readonly number[] }): void {
    this.records[ring].set(record.n, record);
    for (const n of dropped) assert.ok(this.records[ring].delete(n), `${n} of the ${ring} was there`);
  }
  part(ring: Ring): AuditPart {
    const { refusals, ...changes } = headOf(this.chains);
    return { ...(ring === "changes" ? changes : (refusals ?? changes)), records: [...this.records[ring].values()] };
  }
  assertWhole(): void {
    assert.deepEqual([...faultsIn(this.part("changes")), ...faultsIn(this.part("refusals"))], []);
  }
  get targets(): readonly string[] {
    const all = [...this.records.changes.values(), ...this.records.refusals.values()];
    return all.sort(inOrder).map(({ target }) => target);
  }
}

test("however many are refused, no record of a change goes for that, nor one of a refusal for a change", () => {
  const kept = new Kept();
  for (let at = 0; at < 100; at += 1) kept.add(`change ${at}`, "done");
  for (let at = 0; at < 3 * usualRoom.refusals; at += 1) kept.add("refused", "refused");
  assert.equal(kept.records.changes.size, 100);
  assert.equal(kept.records.refusals.size, usualRoom.refusals);
  kept.assertWhole();
  for (let at = 0; at < 2 * usualRoom.changes; at += 1) kept.add("change", "done");
  assert.equal(kept.records.changes.size, usualRoom.changes);
  assert.equal(kept.records.refusals.size, usualRoom.refusals);
  kept.assertWhole();
});

test("changes and refusals have one order together, also where the beginning of either has gone", () => {
  const kept = new Kept();
  const said: string[] = [];
  for (let at = 0; at < 60; at += 1) {
    said.push(`${at}`);
    kept.add(`${at}`, at % 7 === 0 || at % 5 > 2 ? "refused" : "done");
  }
  assert.deepEqual(kept.targets, said);
  const few = { changes: 8, refusals: 20 };
  for (let at = 60; at < 200; at += 1) {
    said.push(`${at}`);
    kept.add(`${at}`, at % 7 === 0 || at % 5 > 2 ? "refused" : "done", few);
  }
  const { targets } = kept;
  assert.equal(targets.length, 28);
  assert.deepEqual(
    targets,
    said.filter((target) => targets.includes(target)),
  );
  kept.assertWhole();
});

test("one of the refusals that was altered, moved among the changes or taken out shows", () => {
  const kept = new Kept();
  for (let at = 0; at < 9; at += 1) kept.add(`${at}`, at % 2 === 0 ? "refused" : "done");
  const part = kept.part("refusals");
  for (const more of [{ behind: 7 }, { target: "else" }, { outcome: "done" as const }]) {
    const records = part.records.map((record) => (record.n === 3 ? { ...record, ...more } : record));
    assert.match(faultsIn({ ...part, records }).join("\n"), /record 3 was altered/);
  }
  const without = part.records.filter(({ n }) => n !== 3);
  assert.match(faultsIn({ ...part, records: without }).join("\n"), /record 3 is missing/);
  assert.deepEqual(differences(part.records, part), []);
});

test("what a version before has written goes on as the chain of changes, and so it does when that version was there again", () => {
  const kept = new Kept();
  /** One chain with refusals in it, which knows of no other. */
  const asBefore = (target: string, outcome: AuditEntry["outcome"]): void => {
    const next = linked(kept.chains.changes, entry(target, outcome), 1000);
    kept.chains = { ...kept.chains, changes: next.chain };
    kept.take("changes", next);
  };
  const said: string[] = [];
  for (let at = 0; at < 40; at += 1) {
    said.push(`${at}`);
    const isOfBefore = at < 10 || (at >= 20 && at < 30);
    const outcome = at % 3 === 0 ? "refused" : "done";
    if (isOfBefore) asBefore(`${at}`, outcome);
    else kept.add(`${at}`, outcome);
  }
  kept.assertWhole();
  assert.deepEqual(kept.targets, said);
  const mixed = [...kept.records.changes.values()].filter(({ outcome }) => outcome === "refused");
  assert.ok(mixed.length > 0 && mixed.every((record) => ringOf(record) === "changes"));
  // The first version with two found a chain that was there.
  const { changes } = kept.chains;
  assert.deepEqual(chainsOf({ changes, refusals: undefined }), { changes, refusals: emptyChain });
});

test("what is older than 400 days goes, also where its own ring takes nothing any more", () => {
  const dayMs = 86_400_000;
  for (const [quiet, busy] of [
    ["refused", "done"],
    ["done", "refused"],
  ] as const) {
    const kept = new Kept();
    for (let at = 0; at < 10; at += 1) kept.add(`old ${at}`, quiet);
    kept.add("of now", busy, usualRoom, 399 * dayMs);
    assert.equal(kept.targets.length, 11, "a positive control");
    for (let at = 0; at < 4; at += 1) kept.add("of now", busy, usualRoom, 420 * dayMs);
    assert.equal(kept.targets.filter((each) => each.startsWith("old")).length, 2, "two of them with each record");
    kept.assertWhole();
    for (let at = 0; at < 4; at += 1) kept.add("of now", busy, usualRoom, 420 * dayMs);
    assert.ok(kept.targets.every((each) => each === "of now"));
    kept.assertWhole();
    kept.add("after that", quiet, usualRoom, 421 * dayMs);
    assert.equal(kept.targets.at(-1), "after that");
    kept.assertWhole();
  }
});
