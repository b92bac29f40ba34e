import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import { connection, copyOf, StorageWorld, shop, volume } from "../manager.testing.ts";

/** What a cell's controller and the Storage Manager have both forgotten lies on a server, and nobody takes it back. */
const empty = { kind: "empty" } as const;
const bank = peerName("controller.bank");
const has = (of: StorageWorld, name: string): boolean =>
  [...of.agents.values()].some(({ actual }) => actual.has(`volume/${name}`));
const named = (of: StorageWorld): object => Object.fromEntries(of.service.unclaimed?.(of.state) ?? []);

/** An origin with two copies, of which a VM writes the first, and nobody knows of that one any more. */
const bothForgot = (): StorageWorld => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 100 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.settle();
  for (const name of ["a-2", "a-3"]) one.want(`volume/${name}`, volume(name, copyOf("a-1")));
  one.want("connection/c-1", connection("c-1", "a-2", "v-1"));
  one.settle();
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  for (const key of ["volume/a-2", "connection/c-1"]) one.wanted.delete(`${shop}/${key}`);
  one.restart();
  one.settle();
  one.input({ kind: "complete", peer: shop });
  return one;
};

test("a copy that nobody desires is named, with what waits for it, and goes by an operator's word alone: its writer first", () => {
  const one = bothForgot();
  assert.deepEqual(named(one), { [shop]: ["volume/a-2"] });
  for (const name of ["a-3", "a-1"]) one.want(`volume/${name}`, null);
  one.settle();
  assert.deepEqual([has(one, "a-1"), has(one, "a-2"), has(one, "a-3")], [true, true, false]);
  const { phase, reason } = one.volume("a-1") ?? {};
  assert.equal(phase, "deleting");
  for (const part of ['"shop/a-2"', "on s1", `cells orphans end storage-manager ${shop} volume/a-2`])
    assert.ok(reason?.includes(part), `${part} in: ${reason}`);
  const before = one.events.length;
  one.input({ kind: "ended", peer: bank, keys: ["volume/a-2"] });
  one.settle();
  assert.ok(has(one, "a-2"), "it is none of another cell's");
  one.input({ kind: "ended", peer: shop, keys: ["volume/a-2"] });
  one.settle();
  assert.deepEqual([has(one, "a-1"), has(one, "a-2")], [false, false]);
  const later = one.events.slice(before).filter((event) => event === "lease/asked" || event === "volume/removed");
  assert.deepEqual(later, ["lease/asked", "volume/removed", "volume/removed"]);
  assert.deepEqual(named(one), {});
  assert.equal(one.published.has(`${shop}/volume/a-1`), false);
});

for (const sizeMiB of [null, 0, 0.4, 1e12])
  test(`an operator also ends what its server has lost, or says is of ${sizeMiB} MiB`, () => {
    const one = bothForgot();
    const agent = one.agent("s1");
    const before = agent.actual.get("volume/a-2") as JsonObject;
    one.say(agent, "volume/a-2", { ...before, phase: "failed", reason: "there is no file of a-2", sizeMiB });
    one.input({ kind: "ended", peer: shop, keys: ["volume/a-2"] });
    one.settle();
    assert.equal(has(one, "a-2"), false);
    assert.deepEqual(named(one), {});
  });

test("what is desired once more is nobody's no longer, and stays whatever an operator says", () => {
  const one = bothForgot();
  one.want("volume/a-2", volume("a-2", copyOf("a-1")));
  one.settle();
  assert.deepEqual(named(one), {});
  one.input({ kind: "ended", peer: shop, keys: ["volume/a-2"] });
  one.settle();
  assert.ok(has(one, "a-2"));
});

test("a cell is not told what another one has over its volume", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.want("grant/g-1", { uid: "g-1", volume: "a-1", to: { domain: "bank.cells.internal" }, grant: "copy" });
  one.want("volume/b-1", { ...volume("b-1", copyOf("a-1")), cell: "bank", path: "bank/secret" }, bank);
  one.settle();
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  one.wanted.delete(`${bank}/volume/b-1`);
  one.restart();
  one.want("volume/a-1", null);
  one.settle();
  assert.match(one.volume("a-1")?.reason ?? "", /volume of another cell on s1.*`cells orphans list`/);
  assert.doesNotMatch(JSON.stringify(one.volume("a-1")), /bank|b-1/);
  assert.deepEqual(named(one), { [bank]: ["volume/b-1"] });
});

test("of two files of a volume that nobody desires both go, one after the other", () => {
  const one = bothForgot();
  const [first, second] = [one.agent("s1"), one.agent("s2")];
  one.say(second, "volume/a-2", first.actual.get("volume/a-2") ?? null);
  one.want("volume/a-2", null);
  one.settle();
  assert.ok(has(one, "a-2"), "its cell's word does not say which is right");
  one.input({ kind: "ended", peer: shop, keys: ["volume/a-2"] });
  one.settle();
  assert.deepEqual([first.actual.has("volume/a-2"), second.actual.has("volume/a-2")], [false, true]);
  assert.deepEqual(named(one), { [shop]: ["volume/a-2"] });
  one.input({ kind: "ended", peer: shop, keys: ["volume/a-2"] });
  one.settle();
  assert.ok(!has(one, "a-2"));
});

test("what an older server has is named once an operator has looked at that server", () => {
  const one = bothForgot();
  const fork = { kind: "forked", peer: one.agent("s1").name, forked: false } as const;
  one.input({ ...fork, itForked: true });
  assert.deepEqual(named(one), {});
  one.input({ ...fork, itForked: false });
  assert.deepEqual(named(one), { [shop]: ["volume/a-2"] });
});
