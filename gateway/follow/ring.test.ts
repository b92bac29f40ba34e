import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type FollowEvent, positionsIn, positionsText, type Rows } from "../../model/contract/follow/follow.ts";
import { deltaOf, type Followed, nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { keptDeltas, Ring } from "./ring.ts";

const time = "2026-11-27T10:00:00.000Z";
const key = fc.constantFrom("a", "b", "c", "__proto__", "toString");
const rowsOf: fc.Arbitrary<Rows> = fc
  .dictionary(key, fc.oneof(fc.integer({ min: 0, max: 2 }), fc.constant({ x: [1] })), { maxKeys: 4 })
  .map((rows) => JSON.parse(JSON.stringify(rows)));
const change = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("rows" as const), rows: rowsOf, of: fc.constantFrom(null, 0, 1, 2) }),
  },
  fc.constantFrom(
    { kind: "stale" as const },
    { kind: "repeat" as const },
    { kind: "resume" as const },
    { kind: "cut" as const },
    { kind: "lose" as const },
    { kind: "anew" as const },
  ),
);

test("whatever is repeated, lost or cut off, who follows comes to the rows as they are", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      let runs = 0;
      const make = (): Ring => {
        runs += 1;
        return new Ring("cells", `r${runs}`);
      };
      let ring = make();
      let followed: Followed = nothingFollowed;
      let isCut = true;
      let isLosing = false;
      const seen: FollowEvent[] = [];
      const was = new Map<string, readonly [Rows, number | null]>();
      const note = (): void =>
        void was.set(`${ring.run}.${ring.position.n}`, [ring.rows, ring.since(undefined, time)[0]?.version ?? null]);
      const hear = (event: FollowEvent): void => {
        seen.push(event);
        const next = reduced(followed, event);
        followed = next.followed;
        const topic = followed.topics.get("cells");
        if (topic !== undefined)
          assert.deepEqual([topic.rows, topic.version], was.get(`${topic.run}.${topic.n}`), "it was so");
        if (next.isGap) resume();
      };
      const resume = (): void => {
        const positions = positionsIn(positionsText(followed.topics));
        for (const event of ring.since(positions.get("cells"), time)) hear(event);
        isCut = false;
      };
      note();
      resume();
      for (const each of changes) {
        if (each.kind === "resume" && isCut) resume();
        if (each.kind === "repeat") for (const event of seen.slice(-5)) if (event.kind === "delta") hear(event);
        if (each.kind === "cut") isCut = true;
        if (each.kind === "lose") isLosing = true;
        if (each.kind === "anew") ring = make();
        if (each.kind === "anew") isCut = true;
        const event =
          each.kind === "rows"
            ? ring.take({ rows: each.rows, ...(each.of === null ? {} : { version: each.of }) }, undefined, time)
            : each.kind === "stale"
              ? ring.take(null, "nobody answers", time)
              : null;
        note();
        if (event !== null && !isCut && !isLosing) hear(event);
        if (event !== null) isLosing = false;
      }
      resume();
      const { rows, ...now } = followed.topics.get("cells") ?? assert.fail("it is followed");
      assert.deepEqual(rows, ring.rows);
      assert.deepEqual({ run: now.run, n: now.n }, ring.position);
    }),
    { numRuns: 1500 },
  );
});

test("another version is told though no row is another one", () => {
  const ring = new Ring("cell:shop", "r1");
  ring.take({ rows: { a: 1 }, version: 3 }, undefined, time);
  assert.equal(ring.take({ rows: { a: 1 }, version: 3 }, undefined, time), null);
  const { rows, version } =
    ring.take({ rows: { a: 1 }, version: 4 }, undefined, time) ?? assert.fail("nothing was told");
  assert.deepEqual([rows, version], [{}, 4]);
  assert.equal(ring.take(null, "nobody answers", time)?.version, 4, "what is shown is of that one still");
});

test("deltas name what changed alone, and nothing where nothing did", () => {
  assert.deepEqual(deltaOf({ a: 1, b: { x: 1 } }, { b: { x: 1 }, c: 2 }), { rows: { c: 2 }, gone: ["a"] });
  assert.equal(deltaOf({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } }), null);
});

test("who was away for longer than deltas are kept, or followed another run, gets all rows", () => {
  const ring = new Ring("cells", "r1");
  for (let n = 1; n <= keptDeltas.most + 5; n += 1) ring.take({ rows: { a: n } }, undefined, time);
  const kinds = (run: string, n: number) => ring.since({ run, n }, time).map(({ kind }) => kind);
  assert.deepEqual(kinds("r1", keptDeltas.most + 4), ["delta"]);
  assert.deepEqual(kinds("r1", keptDeltas.most + 5), []);
  assert.deepEqual(kinds("r1", 5).length, keptDeltas.most);
  for (const [run, n] of [
    ["r1", 4],
    ["r1", 999],
    ["r0", 69],
  ] as const)
    assert.deepEqual(kinds(run, n), ["snapshot"]);
  ring.take({ rows: { a: "x".repeat(keptDeltas.characters) } }, undefined, time);
  assert.deepEqual(kinds("r1", keptDeltas.most + 5), ["snapshot"], "one that is too long is not kept");
});

test("what stands in an id that nobody gave is no position", () => {
  for (const written of ["", "cells", "cells=r1", "cells=r1.x", "cells=R 1.2", `cells=${"r".repeat(41)}.1`])
    assert.equal(positionsIn(written).size, 0, written);
  assert.equal(positionsIn(`${"x".repeat(10_000)},cells=r1.1`).size, 0, "and it is read up to a bound");
  assert.deepEqual(positionsIn("cell:shop=r1.7,cells=r-2.0").get("cell:shop"), { run: "r1", n: 7 });
});
