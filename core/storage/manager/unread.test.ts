import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { connection, copyOf, StorageWorld, volume } from "./manager.testing.ts";

test("a volume whose stored desire cannot be read stays, and so does its lease, until it is readable or taken back", () => {
  for (const key of ["volume/a-1", "connection/c-1"]) {
    const world = new StorageWorld({ s1: { freeMiB: 9000 } });
    world.want("volume/a-1", volume("a-1", { kind: "empty" }, 100));
    world.want("connection/c-1", connection("c-1", "a-1", "v-1"));
    world.settle();
    const records = [...world.records.keys()].filter((record) => /^(volume|lease|connection)\//.test(record));
    assert.equal(records.length, 3, String(records));
    const [stored] = [...world.wanted].filter(([, document]) => document.key === key);
    const [at = "", document] = stored ?? [];
    assert.ok(document !== undefined);
    world.wanted.set(at, { ...document, value: { form: "of another version" } });
    const desired = JSON.stringify([...world.desiredAt].map(([agent, documents]) => [agent, [...documents]]));
    world.restart();
    world.settle();
    assert.equal(
      JSON.stringify([...world.desiredAt].map(([agent, documents]) => [agent, [...documents]])),
      desired,
      key,
    );
    assert.deepEqual(
      records.filter((record) => !world.records.has(record)),
      [],
    );
    world.want("connection/c-1", null);
    world.want("volume/a-1", null);
    world.settle();
    assert.ok(!world.records.has("volume/a-1"), "a tombstone ends it");
  }
});

/** What a Storage Manager without its store finds under copies, while the cell that it is of is silent. */
const empty = { kind: "empty" } as const;
const bank = peerName("controller.bank");
const shop = peerName("controller.shop");
const lose = (of: StorageWorld): void => {
  of.records.clear();
  for (const documents of of.desiredAt.values()) documents.clear();
};

/** Bank has a copy of what shop has; the Storage Manager has lost its store, and shop is silent since. */
const copiedByBank = (): { readonly one: StorageWorld; readonly desires: readonly Desire[] } => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.want("grant/g-1", { uid: "g-1", volume: "a-1", to: { domain: "bank.cells.internal" }, grant: "copy" });
  one.want("volume/b-1", { ...volume("b-1", copyOf("a-1")), cell: "bank" }, bank);
  one.settle();
  const desires = [...one.wanted.values()].filter(({ from }) => from === shop);
  for (const { from, key } of desires) one.wanted.delete(`${from}/${key}`);
  return { one, desires };
};
type Desire = StorageWorld["wanted"] extends Map<string, infer Value> ? Value : never;
const has = (of: StorageWorld, name: string): boolean =>
  [...of.agents.values()].some(({ actual }) => actual.has(`volume/${name}`));

test("what was found under another cell's copy stays when that goes, until its own cell has said all that it desires", () => {
  const { one, desires } = copiedByBank();
  lose(one);
  one.restart();
  one.settle();
  one.input({ kind: "complete", peer: bank });
  one.want("volume/b-1", null, bank);
  one.settle();
  assert.deepEqual([has(one, "b-1"), has(one, "a-1")], [false, true]);
  one.restart();
  one.settle();
  assert.ok(has(one, "a-1"), "nor after a restart");
  for (const { key, value } of desires) one.want(key, value as object);
  one.input({ kind: "complete", peer: shop });
  one.settle();
  assert.ok(has(one, "a-1"));
  assert.equal((one.records.get("volume/a-1") as { readonly client: string }).client, shop);
});

test("what was found of a cell that is gone is named, and goes with its last copy once an operator says so", () => {
  const { one } = copiedByBank();
  lose(one);
  one.restart();
  one.settle();
  one.want("volume/b-1", null, bank);
  one.settle();
  assert.deepEqual([...(one.service.unclaimed?.(one.state) ?? [])], [[shop, ["volume/a-1"]]]);
  one.input({ kind: "ended", peer: shop, keys: ["volume/a-9"] });
  one.settle();
  assert.ok(has(one, "a-1"));
  one.input({ kind: "ended", peer: shop, keys: ["volume/a-1"] });
  one.settle();
  assert.ok(!has(one, "a-1"));
});

test("what a server has a copy of stays, though nobody has named the copy here since the store was lost", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.settle();
  one.want("volume/a-2", volume("a-2", copyOf("a-1")));
  one.want("volume/a-3", volume("a-3", copyOf("a-1")));
  one.settle();
  lose(one);
  for (const key of ["volume/a-1", "volume/a-2"]) one.wanted.delete(`${shop}/${key}`);
  one.restart();
  one.settle();
  one.input({ kind: "complete", peer: shop });
  one.want("volume/a-3", null);
  one.settle();
  assert.deepEqual([has(one, "a-3"), has(one, "a-2"), has(one, "a-1")], [false, true, true]);
});
