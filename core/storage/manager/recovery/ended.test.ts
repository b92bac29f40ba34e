import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { connection, copyOf, StorageWorld, shop, volume } from "../manager.testing.ts";

/** A cell takes volumes back while the Storage Manager is without its store: it says so once, to one that knows nothing of them. */
const empty = { kind: "empty" } as const;
const stranger = peerName("controller.bank");
const has = (of: StorageWorld, name: string): boolean =>
  [...of.agents.values()].some(({ actual }) => actual.has(`volume/${name}`));

/** An origin with two copies, of which a VM writes the first; then the store is lost, and the first copy is desired no more. */
const lostWithCopies = (): StorageWorld => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.settle();
  for (const name of ["a-2", "a-3"]) one.want(`volume/${name}`, volume(name, copyOf("a-1")));
  one.want("connection/c-1", connection("c-1", "a-2", "v-1"));
  one.settle();
  assert.ok(one.agents.get(peerName("agent.s1"))?.leases.get("a-2")?.holder, "it is written");
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  for (const key of ["volume/a-2", "connection/c-1"]) one.wanted.delete(`${shop}/${key}`);
  return one;
};

test("what its cell takes back at a store that does not know it goes as any other, and its origin behind it", () => {
  const one = lostWithCopies();
  one.restart();
  one.settle();
  const before = one.events.length;
  one.want("volume/a-2", null);
  one.settle();
  one.input({ kind: "complete", peer: shop });
  assert.deepEqual([has(one, "a-1"), has(one, "a-2"), has(one, "a-3")], [true, false, true]);
  const later = one.events.slice(before).filter((event) => event === "lease/asked" || event === "volume/removed");
  assert.deepEqual(later, ["lease/asked", "volume/removed"], "who writes it is fenced first");
  assert.equal(one.published.has(`${shop}/volume/a-2`), false, "it is said to be gone");
  for (const name of ["a-3", "a-1"]) one.want(`volume/${name}`, null);
  one.settle();
  assert.deepEqual([has(one, "a-1"), has(one, "a-3")], [false, false]);
  assert.deepEqual(
    [...one.records.keys()].filter((key) => /^(volume|lease|ended)\//.test(key)),
    [],
  );
});

test("while its server is silent that is remembered, over restarts, and said", () => {
  const one = lostWithCopies();
  const agent = one.agent("s1");
  agent.connected = false;
  one.restart();
  one.want("volume/a-2", null);
  assert.match(JSON.stringify(one.published.get(`${shop}/volume/a-2`)), /deleting.*has yet to hear what is on s1/);
  one.restart();
  assert.match(JSON.stringify(one.published.get(`${shop}/volume/a-2`)), /deleting/);
  one.connect(agent);
  one.settle();
  assert.deepEqual([has(one, "a-1"), has(one, "a-2"), has(one, "a-3")], [true, false, true]);
  assert.equal(one.published.has(`${shop}/volume/a-2`), false);
});

test("what is desired once more meanwhile is found, and stays", () => {
  const one = lostWithCopies();
  const agent = one.agent("s1");
  agent.connected = false;
  one.restart();
  one.want("volume/a-2", null);
  one.want("volume/a-2", volume("a-2", copyOf("a-1")));
  one.connect(agent);
  one.settle();
  assert.ok(has(one, "a-2"));
  assert.ok(![...one.records.keys()].some((key) => key.startsWith("ended/")));
});

test("another cell takes nothing back that is not its own, whichever server is heard when", () => {
  const one = lostWithCopies();
  const agent = one.agent("s1");
  agent.connected = false;
  one.restart();
  one.want("volume/a-2", null, stranger);
  one.connect(agent);
  one.settle();
  one.want("volume/a-2", null, stranger);
  one.settle();
  assert.ok(has(one, "a-2"));
  assert.equal(one.published.has(`${stranger}/volume/a-2`), false, "it is told nothing of it");
});

test("what a cell makes up meanwhile fills no store", () => {
  const one = lostWithCopies();
  one.agent("s1").connected = false;
  one.restart();
  for (let number = 0; number < 4200; number += 1) one.want(`volume/z-${number}`, null, stranger);
  assert.equal([...one.records.keys()].filter((key) => key.startsWith("ended/")).length, 4096);
  one.want("volume/a-2", null);
  one.connect(one.agent("s1"));
  one.settle();
  assert.ok(!has(one, "a-2"), "nor does it keep anybody's word out");
  assert.ok(![...one.records.keys()].some((key) => key.startsWith("ended/")));
});

test("where nothing was lost what nobody has is gone at once", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.settle();
  one.cut(one.agent("s1"));
  one.want("volume/a-2", null);
  assert.deepEqual([...one.published.keys()], []);
  assert.ok(![...one.records.keys()].some((key) => key.startsWith("ended/")));
});

test("an origin that its cell takes back with its copy, and whose server is heard later, is said to be gone", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8000 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.settle();
  const origins = one.agent(one.agent("s1").actual.has("volume/a-1") ? "s1" : "s2");
  const copies = one.agent(origins.name === "agent.s1" ? "s2" : "s1");
  // A server that is full takes no copy.
  one.say(origins, "server", { ...(origins.actual.get("server") as object), freeMiB: 0 });
  one.want("volume/a-2", volume("a-2", copyOf("a-1")));
  one.settle();
  assert.ok(copies.actual.has("volume/a-2"), "it is elsewhere than its origin");
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  one.wanted.clear();
  for (const agent of [origins, copies]) agent.connected = false;
  one.restart();
  for (const name of ["a-1", "a-2"]) one.want(`volume/${name}`, null);
  one.input({ kind: "complete", peer: shop });
  // The copy is still being removed when the origin is found.
  for (const agent of [copies, origins]) one.connect(agent);
  one.settle();
  assert.deepEqual([has(one, "a-1"), has(one, "a-2")], [false, false]);
  for (const name of ["a-1", "a-2"]) assert.equal(one.published.has(`${shop}/volume/${name}`), false, name);
});

test("an origin that its cell takes back goes to whoever has a copy of it, also when that one is heard later", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.want("grant/g-1", { uid: "g-1", volume: "a-1", to: { domain: "bank.cells.internal" }, grant: "copy" });
  one.settle();
  const copy = volume("b-1", copyOf("a-1"), null, "bank");
  one.want("volume/b-1", copy, stranger);
  one.settle();
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  one.wanted.clear();
  one.restart();
  one.settle();
  one.want("volume/a-1", null);
  one.want("grant/g-1", null);
  one.input({ kind: "complete", peer: shop });
  one.settle();
  assert.match(one.volume("a-1")?.reason ?? "", /^it is the origin of a volume of another cell on s1/);
  one.want("volume/b-1", copy, stranger);
  one.settle();
  assert.equal(one.volume("b-1", stranger)?.phase, "ready");
  assert.equal(one.volume("a-1"), undefined, "the cell that had it is rid of it");
  one.want("volume/b-1", null, stranger);
  one.settle();
  assert.deepEqual([has(one, "a-1"), has(one, "b-1")], [false, false]);
});
