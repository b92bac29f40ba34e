import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { connection, copyOf, StorageWorld, shop, volume } from "../manager.testing.ts";

/** Two cells desire the same UID, and the store that knew whose it was is lost: the owner's word counts when it comes. */
const empty = { kind: "empty" } as const;
const bank = peerName("controller.bank");
const foreign = /belongs to an element of another cell$/;

/** One volume that a machine writes, and one that a copy is made of; then the store is lost, and nobody has said anything. */
const blank = (): StorageWorld => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8999 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.want("connection/a-8", connection("a-8", "a-1", "a-9", 3));
  one.want("volume/a-2", volume("a-2", empty, 20));
  one.settle();
  one.want("volume/a-3", volume("a-3", copyOf("a-2")));
  one.settle();
  assert.equal(one.connection("a-8")?.phase, "ready");
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  return one;
};
const desires = (of: StorageWorld) => [...of.wanted.values()];
const epochs = (of: StorageWorld) => [...of.agents.values()].flatMap(({ leases }) => [...leases]).sort();

test("a stranger who desires first for a volume's UID harms nobody, whoever is heard first", () => {
  for (const serversFirst of [true, false]) {
    const one = blank();
    const owned = desires(one);
    const leases = epochs(one);
    one.wanted.clear();
    for (const agent of one.agents.values()) if (!serversFirst) one.cut(agent);
    one.restart();
    for (const id of ["a-1", "a-2", "a-3"]) one.want(`volume/${id}`, volume(id, empty, 999, "bank"), bank);
    one.settle();
    for (const { from, key, value } of owned) one.want(key, value as object, from);
    for (const agent of one.agents.values()) if (!serversFirst) one.connect(agent);
    one.settle();
    one.explain();
    one.settle();
    for (const id of ["a-1", "a-2", "a-3"]) {
      assert.equal(one.volume(id)?.phase, "ready", `${id}: ${one.volume(id)?.reason}`);
      assert.match(one.volume(id, bank)?.reason ?? "", foreign);
    }
    assert.equal(one.volume("a-1")?.sizeMiB, 10);
    assert.equal(one.connection("a-8")?.phase, "ready");
    assert.deepEqual(epochs(one), leases);
    // Nor later, when it goes.
    one.want("volume/a-1", null, bank);
    one.settle();
    assert.equal(one.volume("a-1")?.phase, "ready");
    assert.equal(one.volume("a-1", bank), undefined);
  }
});

test("an origin that a stranger desires is found with its copy, and is not as the stranger would have it", () => {
  const one = blank();
  one.wanted.delete("controller.shop/volume/a-2");
  one.wanted.set("controller.bank/volume/a-2", {
    from: bank,
    key: "volume/a-2",
    value: JSON.parse(JSON.stringify(volume("a-2", empty, 999, "bank"))),
  });
  one.restart();
  one.settle();
  const origin = one.records.get("volume/a-2") as { readonly client: string; readonly sizeMiB: number } | undefined;
  assert.deepEqual([origin?.client, origin?.sizeMiB], ["provider", 20]);
  assert.match(one.volume("a-2", bank)?.reason ?? "", foreign);
  one.want("volume/a-2", volume("a-2", empty, 20));
  one.settle();
  assert.equal(one.volume("a-2")?.phase, "ready");
});

test("what two desire and nobody has is the other's when the first does not want it any more", () => {
  const one = new StorageWorld({ s1: { freeMiB: 5 } });
  one.want("volume/x-1", volume("x-1", empty, 10, "bank"), bank);
  one.want("volume/x-1", volume("x-1", empty, 4));
  assert.match(one.volume("x-1")?.reason ?? "", foreign);
  one.want("volume/x-1", null, bank);
  one.settle();
  assert.equal(one.volume("x-1")?.phase, "ready", one.volume("x-1")?.reason ?? "");
});

test("a file in the bin comes back to its own cell alone", () => {
  const one = blank();
  const agent = one.agent("s1");
  const about = { cell: "shop", path: "shop/a-5", origin: null };
  const binned = { file: "a-5.1", volume: "a-5", overlay: false, about, sizeMiB: 10, usedMiB: 1, offered: true };
  one.restart();
  one.settle();
  one.say(agent, `bin/${binned.file}`, { ...binned, deleted: "2026-01-01T00:00:00.000Z" });
  one.want("volume/a-5", volume("a-5", empty, 10, "bank"), bank);
  one.settle();
  assert.match(one.volume("a-5", bank)?.reason ?? "", foreign);
  one.want("volume/a-5", volume("a-5", empty, 10));
  one.settle();
  assert.equal(one.volume("a-5")?.phase, "ready");
  const asked = one.desiredAt.get(agent.name)?.get("volume/a-5") as { readonly about?: object } | undefined;
  assert.deepEqual(asked?.about, about);
});

test("a stranger who desires first for a connection's UID neither has it nor ends the lease under it", () => {
  for (const with_ of ["a-1", "t-1"]) {
    const one = blank();
    const owned = desires(one);
    const leases = epochs(one).filter(([id]) => id === "a-1");
    one.wanted.clear();
    one.restart();
    one.want("volume/t-1", volume("t-1", empty, 10, "bank"), bank);
    one.want("connection/a-8", { ...connection("a-8", with_, "t-9"), cell: "bank" }, bank);
    one.settle();
    for (const { from, key, value } of owned) one.want(key, value as object, from);
    one.settle();
    one.explain();
    one.settle();
    assert.equal(one.connection("a-8")?.phase, "ready", one.connection("a-8")?.reason ?? "");
    assert.match(one.connection("a-8", bank)?.reason ?? "", foreign);
    assert.deepEqual(
      epochs(one).filter(([id]) => id === "a-1"),
      leases,
    );
    assert.equal(one.agent("s1").leases.get("t-1")?.holder ?? null, null);
    one.restart();
    one.settle();
    assert.equal(one.connection("a-8")?.phase, "ready");
  }
});

test("a stranger's grant takes no other's place", () => {
  for (const strangerFirst of [true, false]) {
    const one = new StorageWorld({ s1: { freeMiB: 9000 } });
    const grant = (of: string, cell: string) => ({
      uid: "g-1",
      volume: of,
      grant: "copy",
      to: { domain: `${cell}.cells.internal` },
    });
    one.want("volume/a-1", volume("a-1", empty, 10));
    if (strangerFirst) one.want("grant/g-1", grant("t-1", "x"), bank);
    one.want("grant/g-1", grant("a-1", "lab"), shop);
    if (!strangerFirst) one.want("grant/g-1", grant("t-1", "x"), bank);
    const lab = peerName("controller.lab");
    one.want("volume/l-1", volume("l-1", copyOf("a-1"), null, "lab"), lab);
    one.settle();
    assert.equal(one.volume("l-1", lab)?.phase, "ready", one.volume("l-1", lab)?.reason ?? "");
  }
});

test("a UID of which servers say different things is given to nobody", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8999 } });
  const about = (cell: string) => ({ cell, path: `${cell}/c-1`, origin: null });
  const binned = { file: "c-1.1", volume: "c-1", overlay: false, sizeMiB: 10, usedMiB: 1, offered: true };
  one.say(one.agent("s2"), "bin/c-1.1", { ...binned, about: about("shop"), deleted: "2026-01-01T00:00:00.000Z" });
  const file = { phase: "ready", reason: null, sizeMiB: 10, usedMiB: 1, boot: null, about: about("bank") };
  one.say(one.agent("s1"), "volume/c-1", file);
  one.want("volume/c-1", volume("c-1", empty, 10));
  one.settle();
  assert.match(one.volume("c-1")?.reason ?? "", foreign);
  assert.ok(!one.records.has("volume/c-1"));
});
