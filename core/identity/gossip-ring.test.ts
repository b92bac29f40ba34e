import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../model/cell/identifiers.ts";
import { epochsOf, firstRing, isLaterRing, isSettled, nextRing, type Ring, readRing } from "./gossip-ring.ts";

const hosts = ["host.h1", "host.h2", "host.h3"].map(peerName);
const ring = (oldest: number, send: number, newest: number): Ring => ({ oldest, send, newest });

test("a change goes on only when everybody who is awaited has done the step before", () => {
  const [one, two] = hosts.slice(0, 2);
  assert.ok(one && two);
  const spread = ring(0, 0, 1);
  assert.deepEqual(nextRing(spread, new Map(), [one]), { ring: spread, waitsFor: [one] });
  assert.deepEqual(nextRing(spread, new Map([[one, spread]]), [one, two]).waitsFor, [two]);
  const had = new Map([one, two].map((name) => [name, spread]));
  const sealing = nextRing(spread, had, [one, two]).ring;
  assert.deepEqual(sealing, ring(0, 1, 1));
  assert.deepEqual(nextRing(sealing, had, [one, two]).waitsFor, [one, two], "they read it, and do not seal with it");
  had.set(one, sealing).set(two, sealing);
  assert.deepEqual(nextRing(sealing, had, [one, two]).ring, ring(1, 1, 1));
  assert.equal(nextRing(firstRing, new Map(), [one]).ring, firstRing);
});

test("whatever the order in which hosts hear of it, each reads what any other seals", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 80, size: "max" }), (turns) => {
      let now: Ring = ring(0, 0, 1);
      const has = new Map(hosts.map((name) => [name, firstRing]));
      const said = new Map<(typeof hosts)[number], Ring>();
      for (const turn of turns) {
        const name = hosts[turn];
        if (name === undefined) now = nextRing(now, said, hosts).ring;
        else {
          // It asks, saying what it has, and takes the answer.
          said.set(name, has.get(name) ?? firstRing);
          has.set(name, now);
        }
        for (const one of has.values())
          for (const other of has.values()) assert.ok(epochsOf(other).includes(one.send), "a datagram is read");
      }
    }),
  );
});

test("rings have an order, and what is none is not read", () => {
  const rising = [ring(0, 0, 0), ring(0, 0, 1), ring(0, 1, 1), ring(1, 1, 1), ring(1, 1, 2)];
  rising.forEach((a, at) => {
    rising.forEach((b, other) => {
      assert.equal(isLaterRing(a, b), at > other);
    });
  });
  assert.deepEqual(rising.map(isSettled), [true, false, false, true, false]);
  assert.deepEqual(readRing({ oldest: 0, send: 1, newest: 1 }), ring(0, 1, 1));
  for (const bad of [null, undefined, {}, { ...ring(1, 0, 1) }, { ...ring(0, 1, 0) }, { ...ring(0, 0.5, 1) }])
    assert.equal(readRing(bad), null);
});
