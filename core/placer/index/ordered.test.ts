import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import { mostMemoryMiB } from "../../documents/readers/values.ts";
import { below, seedOf } from "../../random.ts";
import { Ordered, orderOf } from "./ordered.ts";

interface Host {
  readonly host: HostName;
  readonly freeMiB: number;
  readonly order: number;
}

test("hosts stand by free memory and then by name, whatever comes and goes, in short buckets of which none is empty", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chance = { random: seedOf(seed) };
  const names = Array.from({ length: 1000 }, (_, at) => hostName(`h${at}`)).sort();
  const [all, ordered] = [new Map<HostName, Host>(), new Ordered<Host>()];
  let most = 0;
  for (let step = 0; step < 20_000; step += 1) {
    const rank = below(chance, names.length);
    const host = names[rank] ?? assert.fail();
    const before = all.get(host);
    if (before !== undefined) ordered.remove(before);
    all.delete(host);
    const freeMiB = below(chance, 40) - 5;
    const entry: Host = { host, freeMiB, order: orderOf(freeMiB, rank) };
    // Of what is not there nothing goes.
    ordered.remove(entry);
    if (below(chance, 3) > 0 || step < 5000) {
      ordered.add(entry);
      all.set(host, entry);
    }
    for (const { length } of ordered.buckets) most = Math.max(most, length);
    if (step % 500 !== 0) continue;
    const right = [...all.values()].sort((a, b) => b.freeMiB - a.freeMiB || (a.host < b.host ? -1 : 1));
    assert.deepEqual(ordered.buckets.flat(), right, `seed ${seed}, step ${step}`);
    assert.ok(ordered.buckets.every((bucket) => bucket.length > 0));
  }
  assert.ok(most > 64 && most <= 128, `${most}`);
});

test("of hosts that stand by the same number each goes for itself alone, whichever bucket it is in", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chance = { random: seedOf(seed) };
  // A host that says fractions of a MiB stands where another does, and from 2^33 MiB on neighbours by name do.
  const lies = [orderOf(2000, 0), orderOf(2000 + 2 ** -21, 1), orderOf(2 ** 33, 0), orderOf(2 ** 33, 1)];
  assert.deepEqual([lies[0], lies[2]], [lies[1], lies[3]]);
  const [all, ordered] = [new Map<HostName, Host>(), new Ordered<Host>()];
  for (let step = 0; step < 3000; step += 1) {
    const host = hostName(`h${below(chance, 600)}`);
    const before = all.get(host);
    if (before !== undefined) ordered.remove(before);
    all.delete(host);
    const entry: Host = { host, freeMiB: 0, order: lies[below(chance, lies.length)] ?? assert.fail() };
    // Of what is not there nothing goes, though others stand by its number.
    ordered.remove(entry);
    if (below(chance, 3) > 0) {
      ordered.add(entry);
      all.set(host, entry);
    }
    if (step % 100 !== 0 && step < 2900) continue;
    const there = ordered.buckets.flat();
    const said = `seed ${seed}, step ${step}`;
    assert.equal(there.length, all.size, said);
    assert.deepEqual(new Set(there), new Set(all.values()), said);
    assert.ok(
      there.every(({ order }, at) => at === 0 || order <= (there[at - 1] as Host).order),
      said,
    );
  }
  assert.ok(ordered.buckets.length > 3);
});

test("of hosts with as much free memory as there can be the first by name still comes first", () => {
  const most = mostMemoryMiB;
  for (const freeMiB of [-most, -1, 0, most]) {
    const [first, second] = [orderOf(freeMiB, 1_999_998), orderOf(freeMiB, 1_999_999)];
    assert.ok(first > second && second > orderOf(freeMiB - 1, 0), `${freeMiB}`);
  }
});
