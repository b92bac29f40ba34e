import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../model/cell/identifiers.ts";
import { type CurrentKeys, mergeKeys, readCurrentKeys, supersededFault, writeCurrentKeys } from "./current-keys.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 10, 21);
const h1 = peerName("host.h1");
const certificate = (key: string, validFromMs: number, name = h1) => ({
  name,
  signed: true,
  key,
  validFromMs,
  validToMs: validFromMs + day,
});
const book = (key: string | null, sinceMs: number): CurrentKeys => new Map([[h1, { key, sinceMs }]]);
const refuses = (keys: CurrentKeys, key: string, validFromMs: number): boolean =>
  supersededFault(certificate(key, validFromMs), keys, now) !== null;

test("over another key, and issued before the name got its own: refused; each alone is not enough", () => {
  const keys = book("b", now - 1000);
  assert.deepEqual([refuses(keys, "a", now - 1000), refuses(keys, "a", now - 999)], [true, false]);
  assert.deepEqual([refuses(keys, "b", now - 1000), refuses(keys, "b", 0)], [false, false]);
  assert.equal(refuses(new Map(), "a", 0), false, "nobody has said");
  assert.equal(supersededFault(certificate("a", 0, peerName("host.h2")), keys, now), null);
  assert.equal(supersededFault(null, keys, now), null);
});

test("of a name that has ended every certificate of before is refused", () => {
  assert.equal(refuses(book(null, now), "a", now), true);
  assert.match(supersededFault(certificate("a", now), book(null, now), now) ?? "", /"host.h1" was taken out of the/);
});

test("what would be so in the future by this machine's clock counts for nothing", () => {
  const ahead = book("b", now + 1);
  assert.equal(refuses(ahead, "a", now), false);
  assert.deepEqual(mergeKeys(ahead, book("c", now - day), now), book("c", now - day));
});

test("of two books the later word about a name counts; what a book lacks is kept for some days", () => {
  const [older, newer] = [book("a", now - 2000), book("b", now - 1000)];
  assert.deepEqual(mergeKeys(older, newer, now), newer);
  assert.deepEqual(mergeKeys(newer, older, now), newer, "of an authority that was set back");
  assert.deepEqual(mergeKeys(newer, new Map(), now), newer, "of the previous version, or set back further");
  assert.deepEqual(mergeKeys(newer, new Map(), now + 400 * day), newer, "a pin has no end");
  const service: CurrentKeys = new Map([[peerName("placer"), { key: "b", sinceMs: now - 1000 }]]);
  assert.deepEqual(mergeKeys(service, new Map(), now), service);
  assert.deepEqual(mergeKeys(service, new Map(), now + 4 * day), new Map());
  assert.deepEqual(mergeKeys(newer, newer, now + 400 * day), newer, "as long as it is said");
});

test("whoever the authority issued to last is let in by every book that there ever was", () => {
  const lives = fc.array(fc.tuple(fc.constantFrom("a", "b", "c", null), fc.integer({ min: 1, max: day })), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(lives, fc.nat(), fc.nat(), (steps, one, other) => {
      // Each step: the name gets that key, or ends, some time later.
      let at = now - 10 * day;
      const books: CurrentKeys[] = [new Map()];
      for (const [key, after] of steps) {
        at += after;
        books.push(book(key, at));
      }
      const pick = (seed: number): CurrentKeys => books[seed % books.length] ?? assert.fail();
      const [last] = steps.at(-1) ?? assert.fail();
      const seen = mergeKeys(pick(one), pick(other), now);
      // Once the clock has gone on it gets a certificate.
      if (last !== null) assert.equal(refuses(seen, last, at + 1000), false);
    }),
  );
});

test("what is no table of keys is none; one that is absent says nothing", () => {
  const sha = "1".repeat(64);
  assert.deepEqual(readCurrentKeys(undefined), new Map());
  const keys = book(sha, now);
  assert.deepEqual(readCurrentKeys({ "host.h1": { key: sha, sinceMs: now } }), keys);
  assert.deepEqual(readCurrentKeys(JSON.parse(JSON.stringify(writeCurrentKeys(keys)))), keys);
  assert.deepEqual(readCurrentKeys({ "host.h1": { key: null, sinceMs: now } }), book(null, now));
  for (const bad of [
    null,
    [],
    1,
    { "host.h1": sha },
    { "host.h1": { key: "x", sinceMs: 1 } },
    { "../x": { key: sha } },
  ])
    assert.equal(readCurrentKeys(bad as never), null);
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`host.h${at}`, { key: null, sinceMs: at }]));
  assert.equal(readCurrentKeys(many), null);
  const half = (from: number): CurrentKeys =>
    new Map(Array.from({ length: 3000 }, (_, at) => [peerName(`host.h${from + at}`), { key: null, sinceMs: now - 1 }]));
  assert.equal(mergeKeys(half(0), half(3000), now).size, 4096);
});

test("names of cells that come and go make nobody forget a machine, nor do machines each and every name", () => {
  const cells: CurrentKeys = new Map(
    Array.from({ length: 5000 }, (_, n) => [peerName(`controller.c${n}.shop`), { key: null, sinceMs: now - 5000 + n }]),
  );
  const [h2, root] = [peerName("agent.h2"), peerName("controller.root")];
  const early = { key: null, sinceMs: now - day };
  const known: CurrentKeys = new Map([h1, h2, root].map((name) => [name, early]));
  const merged = mergeKeys(known, cells, now);
  assert.equal(merged.size, 4096);
  for (const name of [h1, h2, root]) assert.deepEqual(merged.get(name), early);
  assert.ok(merged.has(peerName("controller.c4999.shop")) && !merged.has(peerName("controller.c0.shop")));
  assert.deepEqual(readCurrentKeys(JSON.parse(JSON.stringify(writeCurrentKeys(merged)))), merged);

  const hosts: CurrentKeys = new Map(
    Array.from({ length: 5000 }, (_, n) => [peerName(`host.m${n}`), { key: null, sinceMs: now - 5000 + n }]),
  );
  const few: CurrentKeys = new Map([[peerName("placer"), early]]);
  const both = mergeKeys(few, hosts, now);
  assert.ok(both.has(peerName("placer")) && both.has(peerName("host.m4999")) && !both.has(peerName("host.m0")));
});
