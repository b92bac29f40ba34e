import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bucketOf, differing, digestBuckets, digestOf, RunningDigest } from "./digest.ts";

const pairs = fc.uniqueArray(fc.tuple(fc.string({ maxLength: 12 }), fc.maxSafeNat()), { selector: ([key]) => key });

test("a digest does not depend on the order, and names exactly the buckets that differ", () => {
  fc.assert(
    fc.property(pairs, fc.nat(), fc.integer({ min: 1, max: 1000 }), (set, pick, step) => {
      const digest = digestOf(set);
      assert.deepEqual(digestOf([...set].reverse()), digest);
      assert.deepEqual(differing(digest, digest), []);
      const changed = set[pick % Math.max(set.length, 1)];
      if (changed === undefined) return;
      const [key, sequence] = changed;
      const other = digestOf(set.map((pair) => (pair === changed ? [key, sequence + step] : pair)));
      assert.deepEqual(differing(digest, other), [bucketOf(key)]);
      assert.deepEqual(differing(digest, digestOf(set.filter((pair) => pair !== changed))), [bucketOf(key)]);
    }),
  );
});

test("what was put in and taken out again leaves nothing", () => {
  const digest = new RunningDigest();
  const empty = digest.value();
  for (const round of [1, 2]) {
    for (let at = 0; at < 500; at += 1) digest.toggle(`vm/${at}`, at + 7);
    assert.equal(differing(digest.value(), empty).length, round === 1 ? digestBuckets : 0);
  }
});

test("keys that look alike spread over all buckets, and no two of many pairs have the same digest", () => {
  const filled = new Map<number, number>();
  for (let at = 0; at < 6400; at += 1) {
    const bucket = bucketOf(`controller.shop/vm/${at}`);
    filled.set(bucket, (filled.get(bucket) ?? 0) + 1);
  }
  assert.equal(filled.size, digestBuckets);
  assert.ok(Math.max(...filled.values()) < 200, `evenly enough: ${Math.max(...filled.values())} of 6400 in one bucket`);
  const seen = new Set<string>();
  for (let at = 0; at < 2000; at += 1)
    for (const sequence of [1, 2, 3]) seen.add(digestOf([[`k${at}`, sequence]]).join());
  assert.equal(seen.size, 6000);
});
