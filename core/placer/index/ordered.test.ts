import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import { below, seedOf } from "../../random.ts";
import { Ordered, type Roomy } from "./ordered.ts";

test("hosts stand by free memory and then by name, whatever comes and goes, in short buckets of which none is empty", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chance = { random: seedOf(seed) };
  const [all, ordered] = [new Map<HostName, Roomy>(), new Ordered<Roomy>()];
  let most = 0;
  for (let step = 0; step < 20_000; step += 1) {
    const host = hostName(`h${below(chance, 1000)}`);
    const before = all.get(host);
    if (before !== undefined) ordered.remove(before);
    all.delete(host);
    const entry: Roomy = { host, freeMiB: below(chance, 40) };
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
