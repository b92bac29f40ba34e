import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
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

test("of hosts with as much free memory as there can be the first by name still comes first", () => {
  const most = 2 ** 30;
  for (const freeMiB of [-most, -1, 0, most]) {
    const [first, second] = [orderOf(freeMiB, 1_999_998), orderOf(freeMiB, 1_999_999)];
    assert.ok(first > second && second > orderOf(freeMiB - 1, 0), `${freeMiB}`);
  }
});
