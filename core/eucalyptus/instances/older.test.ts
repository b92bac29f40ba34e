import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "../../env.ts";
import { bank, h1, h2, shop, started, world } from "./hosts.testing.ts";

/* A store that is an older one, which nobody has told this service: others have seen a later one. */

const signs: Readonly<Record<string, Input>> = {
  "a host keeps a later view": { kind: "forked", peer: h1, forked: true, itForked: false },
  "a cell has seen more of it": { kind: "behind", peer: shop },
  "a host has seen more of it, and holds nothing": { kind: "seen-later", peer: h1 },
};
/** The store of before one machine ended, and another one got its address. */
const olderStore = () => {
  const before = started();
  before.want(shop, "web");
  before.apply(h1);
  const copy = new Map(before.records);
  before.want(shop, "web", null);
  before.apply(h1);
  before.want(shop, "api", { elastic: undefined });
  before.apply(h1);
  assert.equal(before.said(shop, "api").address, "10.9.0.10");
  const { id } = before.said(shop, "api");
  const older = world(copy);
  older.send({ kind: "start" });
  return { ...older, has: [{ id: id ?? "", private: { address: "10.9.0.10", state: "assigned" } }] };
};

test("without a sign of it an older store is the one that there is", () => {
  const { group, hear, want, said } = olderStore();
  group(shop, "shop-net");
  hear(h2, 0, []);
  want(shop, "db", { host: "h2" });
  assert.equal(said(shop, "db").address, "10.9.0.11");
});

for (const [title, sign] of Object.entries(signs))
  test(`${title}: nothing is given out before all hosts were heard, and what they have stays whose it is`, () => {
    const { send, group, hear, want, said, has } = olderStore();
    send(sign);
    group(shop, "shop-net");
    hear(h2, 0, []);
    want(shop, "db", { host: "h2" });
    want(shop, "api", { elastic: undefined });
    assert.deepEqual([said(shop, "db").address, said(shop, "api").address], [null, null]);
    assert.match(said(shop, "db").reason ?? "", /h1 has yet to say what is in place there/);
    hear(h1, 40, has);
    assert.deepEqual([said(shop, "db").address, said(shop, "api").address], ["10.9.0.11", "10.9.0.10"]);
    // Another word of the kind is about the same store.
    send(sign);
    want(shop, "more", { host: "h2" });
    assert.equal(said(shop, "more").address, "10.9.0.12");
  });

test("after a loss a cell that never speaks here holds nothing up, and the one whose an address is by its host's word does", () => {
  for (const cell of ["shop", undefined]) {
    const { send, configure, hear, group, want, said } = world();
    send({ kind: "start" });
    const left = { id: "i-00000007", ...(cell === undefined ? {} : { cell }) };
    hear(h1, 40, [{ ...left, private: { address: "10.9.0.10", state: "assigned" } }]);
    hear(h2, 0, []);
    configure();
    group(shop, "shop-net");
    want(shop, "api", { host: "h2", elastic: undefined });
    assert.equal(said(shop, "api").address, null, "its cell may name it yet");
    send({ kind: "complete", peer: shop });
    // The other cell has its networks from Diverter.
    assert.equal(said(shop, "api").address, cell === undefined ? null : "10.9.0.11");
    send({ kind: "complete", peer: bank });
    assert.equal(said(shop, "api").address, "10.9.0.11");
    hear(h1, 50, []);
    want(shop, "db", { elastic: undefined });
    assert.equal(said(shop, "db").address, "10.9.0.10", "what nobody named is free once it is gone");
  }
});

test("after a loss nobody is waited for because of what its host has let go since it was heard", () => {
  const { send, configure, hear, group, want, said } = world();
  send({ kind: "start" });
  // Its cell has taken it back: the view that has come does not say any more whose it was.
  hear(h1, 40, [{ id: "i-00000007", private: { address: "10.9.0.10", state: "assigned" } }]);
  hear(h2, 0, []);
  configure();
  group(shop, "shop-net");
  want(shop, "api", { host: "h2", elastic: undefined });
  send({ kind: "complete", peer: shop });
  assert.equal(said(shop, "api").address, null, "the other cell may name it yet");
  hear(h1, 0, null);
  assert.equal(said(shop, "api").address, null, "h1 has started, and does not know yet what it has");
  hear(h1, 41, []);
  assert.equal(said(shop, "api").address, "10.9.0.10");
});

test("after a loss one host's word of whose an instance is takes it from nobody of whom another host says so", () => {
  const { send, configure, hear, group, want, said } = world();
  send({ kind: "start" });
  const placed = { id: "i-00000007", private: { address: "10.9.0.10", state: "assigned" } };
  hear(h1, 40, [{ ...placed, cell: "bank" }]);
  hear(h2, 40, [{ ...placed, cell: "shop" }]);
  configure();
  group(shop, "shop-net");
  want(shop, "api", { host: "h2", elastic: undefined });
  send({ kind: "complete", peer: shop });
  assert.equal(said(shop, "api").address, null);
  send({ kind: "complete", peer: bank });
  assert.equal(said(shop, "api").address, "10.9.0.11");
});
