import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName, uid } from "../../../../model/cell/identifiers.ts";
import type { ActualFence } from "../../../documents/ha.ts";
import { connection, StorageWorld, shop, volume } from "../manager.testing.ts";

const ha = peerName("ha-manager");
const fence = (incarnation: number, cell = "shop") => ({ vm: uid("a-1"), cell: cellName(cell), incarnation });
const saidOf = (made: StorageWorld): ActualFence | undefined =>
  made.published.get("ha-manager/fence/a-1") as unknown as ActualFence | undefined;
/** A VM has two volumes, on two servers or on one. */
const world = (): StorageWorld => {
  const made = new StorageWorld({ s1: { freeMiB: 1000 }, s2: { freeMiB: 1000 } });
  for (const each of ["v-1", "v-2"]) made.want(`volume/${each}`, volume(each, { kind: "empty" }, 10));
  made.settle();
  for (const each of ["v-1", "v-2"]) made.want(`connection/c${each}`, connection(`c${each}`, each, "a-1", 1, "h1"));
  made.settle();
  for (const each of ["v-1", "v-2"]) assert.equal(made.connection(`c${each}`)?.phase, "ready");
  return made;
};
const holders = (made: StorageWorld) =>
  ["v-1", "v-2"].map((each) => [...made.agents.values()].map(({ leases }) => leases.get(each)?.holder).find(Boolean));

test("every lease of a fenced incarnation ends, at the servers' own word, and it is given none any more", () => {
  const made = world();
  made.want("fence/a-1", fence(1), ha);
  assert.equal(saidOf(made)?.complete, false, "nothing was said by any server yet");
  made.settle();
  assert.deepEqual(holders(made), [undefined, undefined]);
  assert.deepEqual(saidOf(made), {
    incarnation: 1,
    complete: true,
    reason: null,
    volumes: [
      { volume: "v-1", epoch: 2 },
      { volume: "v-2", epoch: 2 },
    ],
  });
  assert.equal(made.connection("cv-1")?.attachment, null);
  assert.match(made.connection("cv-1")?.reason ?? "", /fenced/);
  // The next incarnation has them, while the fence stands.
  for (const each of ["v-1", "v-2"]) made.want(`connection/c${each}`, connection(`c${each}`, each, "a-1", 2, "h2"));
  made.settle();
  assert.deepEqual(holders(made)[0], { vm: "a-1", incarnation: 2, host: "h2" });
  made.want("fence/a-1", null, ha);
  assert.equal(saidOf(made), undefined);
});

test("a server that does not answer: the fence is not complete, and says what it waits for", () => {
  const made = world();
  const away = [...made.agents.values()].find(({ leases }) => leases.has(uid("v-1"))) ?? assert.fail();
  made.cut(away);
  made.want("fence/a-1", fence(1), ha);
  made.settle();
  assert.equal(saidOf(made)?.complete, false);
  assert.match(saidOf(made)?.reason ?? "", /is not reachable/);
  // Nor does a start forget what it may have: what was asked for is no answer.
  made.restart();
  made.settle();
  assert.equal(saidOf(made)?.complete, false);
  made.connect(away);
  made.settle();
  assert.equal(saidOf(made)?.complete, true);
});

test("a fence counts for one cell's connections alone", () => {
  const made = world();
  made.want("fence/a-1", fence(1, "bank"), ha);
  made.settle();
  assert.equal(saidOf(made)?.complete, false);
  assert.equal(made.connection("cv-1", shop)?.phase, "ready");
});

test("an incarnation without volumes has nothing to fence", () => {
  const made = new StorageWorld({ s1: { freeMiB: 1000 } });
  made.want("fence/a-1", fence(1), ha);
  made.settle();
  assert.deepEqual(saidOf(made), { incarnation: 1, complete: true, volumes: [], reason: null });
});

test("the root controller's own VM is never fenced", () => {
  const made = new StorageWorld({ s1: { freeMiB: 1000 } });
  const root = peerName("controller.root");
  made.want("volume/v-1", { ...volume("v-1", { kind: "empty" }, 10, "root") }, root);
  made.settle();
  const desire = { ...connection("c-1", "v-1", "a-1", 1, "h1"), cell: cellName("root"), succession: true };
  made.want("connection/c-1", desire, root);
  made.settle();
  made.want("fence/a-1", fence(1, "root"), ha);
  made.settle();
  assert.equal(made.connection("c-1", root)?.phase, "ready");
  assert.equal(saidOf(made)?.complete, false);
});

test("what other machines have, or had, is no part of a fence", () => {
  const made = new StorageWorld({ s1: { freeMiB: 1000 } });
  for (const each of ["v-1", "v-2", "v-3"]) made.want(`volume/${each}`, volume(each, { kind: "empty" }, 10));
  made.settle();
  const write = (of: string, vm: string) => made.want(`connection/c${of}`, connection(`c${of}`, of, vm, 1, "h1"));
  for (const [of, vm] of [
    ["v-1", "a-1"],
    ["v-2", "b-1"],
    ["v-3", "b-1"],
  ] as const)
    write(of, vm);
  made.settle();
  for (const each of ["v-2", "v-3"]) made.want(`connection/c${each}`, null);
  made.settle();
  // Another machine reads the one that it wrote before.
  made.want("volume/v-2", { ...volume("v-2", { kind: "empty" }, 10), access: "ro" });
  made.want("connection/reads", connection("reads", "v-2", "b-1", 2, "h1"));
  made.want("fence/a-1", fence(1), ha);
  made.settle();
  assert.equal(made.connection("reads")?.phase, "ready");
  assert.deepEqual(
    saidOf(made)?.volumes.map((each) => each.volume),
    ["v-1"],
  );
});

test("a fence counts if it is wanted by the HA Manager that the cell's controller names, and by no other", () => {
  const made = world();
  const second = peerName("ha-manager.2");
  const saidTo = (who: string) => made.published.get(`${who}/fence/a-1`) as unknown as ActualFence | undefined;
  made.want("fence/a-1", fence(1), second);
  made.settle();
  assert.equal(saidTo("ha-manager.2")?.complete, false, "nobody has named it: the first looks after all");
  assert.match(saidTo("ha-manager.2")?.reason ?? "", /shop is looked after by ha-manager$/);
  assert.equal(made.connection("cv-1", shop)?.phase, "ready");
  // Nor does a stranger's word stand in the way of that of the right one.
  made.want("guard", { cell: "shop", haManager: "ha-manager.2" }, peerName("controller.bank"));
  made.settle();
  assert.match(
    saidTo("ha-manager.2")?.reason ?? "",
    /looked after by ha-manager$/,
    "another cell's controller says so",
  );
  made.want("guard", { cell: "shop", haManager: "controller.bank" }, shop);
  made.settle();
  assert.equal(saidTo("ha-manager.2")?.complete, false, "that is no HA Manager");
  made.want("guard", { cell: "shop", haManager: "ha-manager.2" }, shop);
  made.want("fence/a-1", fence(9), ha);
  made.settle();
  assert.deepEqual(holders(made), [undefined, undefined]);
  assert.equal(saidTo("ha-manager.2")?.complete, true);
  assert.equal(saidOf(made)?.complete, false, "the first has handed it on");
  made.restart();
  made.settle();
  assert.equal(saidTo("ha-manager.2")?.complete, true);
  assert.equal(saidOf(made)?.complete, false);
  made.want("fence/a-1", null, second);
  assert.equal(saidTo("ha-manager.2"), undefined);
});

test("an HA Manager that a cell comes back to fences by what it wants since, and by nothing that it wanted before", () => {
  const made = world();
  const second = peerName("ha-manager.2");
  const said = (): ActualFence | undefined =>
    made.published.get("ha-manager.2/fence/a-1") as unknown as ActualFence | undefined;
  const guard = (haManager: string, boundAt: number) => made.want("guard", { cell: "shop", haManager, boundAt }, shop);
  guard("ha-manager.2", 5);
  made.want("fence/a-1", { ...fence(1), boundAt: 5 }, second);
  made.settle();
  assert.deepEqual([holders(made), said()?.complete, said()?.boundAt], [[undefined, undefined], true, 5]);
  // The cell has another one, whom nobody has asked for anything: its machine goes on, and has its volumes again.
  guard("ha-manager", 7);
  made.settle();
  assert.deepEqual([holders(made)[0]?.incarnation, said()?.complete], [1, false]);
  guard("ha-manager.2", 9);
  made.settle();
  assert.deepEqual([holders(made)[0]?.incarnation, said()?.complete], [1, false], "that is what it wanted before");
  made.restart();
  made.settle();
  assert.deepEqual([holders(made)[0]?.incarnation, said()?.complete], [1, false]);
  made.want("fence/a-1", { ...fence(1), boundAt: 9 }, second);
  made.settle();
  assert.deepEqual([holders(made), said()?.complete, said()?.boundAt], [[undefined, undefined], true, 9]);
});

test("a guard of an earlier version, and one with more in it, is read; of one that cannot be read nobody fences until it is", () => {
  const made = world();
  const second = peerName("ha-manager.2");
  const saidTo = (who: string) => made.published.get(`${who}/fence/a-1`) as unknown as ActualFence | undefined;
  const guard = (value: object | null) => made.want("guard", value, shop);
  // The first version of it knew no `boundAt`, and neither did the fence.
  guard({ cell: "shop", haManager: "ha-manager.2", since: "a later version" });
  made.want("fence/a-1", fence(1), second);
  made.settle();
  assert.equal(saidTo("ha-manager.2")?.complete, true);
  guard({ cell: "shop", managers: ["ha-manager.2", "ha-manager.3"] });
  made.settle();
  assert.equal(saidTo("ha-manager.2")?.complete, true, "whom it had it has");
  // After a start nothing is left of that.
  made.restart();
  made.settle();
  made.want("fence/a-1", fence(1), ha);
  made.settle();
  for (const who of ["ha-manager", "ha-manager.2"]) {
    assert.equal(saidTo(who)?.complete, false, who);
    assert.match(saidTo(who)?.reason ?? "", /who looks after shop cannot be read: .* upgrade the Storage Manager/);
  }
  guard(null);
  made.settle();
  assert.equal(saidTo("ha-manager")?.complete, true, "it has been taken back: the first one has it");
});
