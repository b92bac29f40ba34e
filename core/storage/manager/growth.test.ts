import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentVolume } from "../../documents/vocabulary.ts";
import { connection, copyOf, StorageWorld, volume } from "./manager.testing.ts";

/** A server that makes a volume at once and grows it when it is told to (`grows`). */
const worldOf = (freeMiB: number): StorageWorld => {
  const world = new StorageWorld({ s1: { freeMiB } });
  world.want("volume/v", volume("v", { kind: "empty" }, 64));
  world.settle();
  return world;
};
const askedOf = (world: StorageWorld): number | null | undefined =>
  (world.agent("s1").desired.get("volume/v") as unknown as AgentVolume | undefined)?.sizeMiB;
const is = (world: StorageWorld, sizeMiB: number, roomMiB?: number): void => {
  const told = world.agent("s1").actual.get("volume/v") as object;
  const room = roomMiB === undefined ? {} : { roomMiB };
  world.say(world.agent("s1"), "volume/v", { ...told, sizeMiB, ...room });
};

test("more is promised durably before its server hears of it; what its disk has is said until it is there", () => {
  const world = worldOf(1000);
  world.want("volume/v", volume("v", { kind: "empty" }, 200));
  is(world, 64, 900);
  assert.equal((world.records.get("volume/v") as { sizeMiB: number }).sizeMiB, 200);
  assert.deepEqual(
    [world.volume("v")?.phase, world.volume("v")?.sizeMiB, world.volume("v")?.smallerMiB, world.volume("v")?.roomMiB],
    ["ready", 200, 64, 900],
  );
  world.restart();
  world.settle();
  assert.equal(askedOf(world), 200);
  assert.equal(world.volume("v")?.smallerMiB, undefined);
  assert.equal(world.volume("v")?.owes, undefined);
});

test("a host is told to make the disk grow under the lease that it has, if there is room", () => {
  for (const [roomMiB, growToMiB] of [
    [900, 200],
    [100, undefined],
    [undefined, undefined],
  ] as const) {
    const world = worldOf(1000);
    world.want("connection/c", connection("c", "v", "vm"));
    world.settle();
    const before = world.connection("c")?.attachment;
    assert.ok(before);
    world.want("volume/v", volume("v", { kind: "empty" }, 200));
    world.settle();
    is(world, 64, roomMiB);
    const { attachment } = world.connection("c") ?? {};
    assert.equal(attachment?.growToMiB, growToMiB);
    assert.deepEqual([attachment?.epoch, attachment?.layers], [before.epoch, before.layers], "the same lease");
  }
});

test("no more is promised than its server can hold; what shrank and what is an origin says what it owes", () => {
  const world = worldOf(1000);
  world.want("volume/v", volume("v", { kind: "empty" }, 1_000_000));
  world.settle();
  assert.equal(askedOf(world), 64);
  assert.equal(world.volume("v")?.owes?.phase, "waiting");
  assert.match(world.volume("v")?.owes?.reason ?? "", /stays at 64 MiB: storage server s1, where it lies, has 64 of/);
  world.want("volume/v", volume("v", { kind: "empty" }, 32));
  assert.match(world.volume("v")?.owes?.reason ?? "", /cannot be made smaller: write `x.size 64` back/);
  world.want("volume/v", volume("v", { kind: "empty" }, 64));
  assert.equal(world.volume("v")?.owes, undefined);
  world.want("volume/copy", volume("copy", copyOf("v")));
  world.settle();
  world.want("volume/v", volume("v", { kind: "empty" }, 100));
  assert.equal(world.volume("v")?.owes?.phase, "failed");
  assert.equal(world.volume("v")?.frozen, true);
  assert.equal(askedOf(world), 64);
});

test("a copy waits until its origin has grown, which it never can afterwards", () => {
  const world = worldOf(1000);
  world.want("volume/v", volume("v", { kind: "empty" }, 200));
  world.settle();
  is(world, 64, 900);
  world.want("volume/copy", volume("copy", copyOf("v")));
  world.settle();
  assert.match(world.volume("copy")?.reason ?? "", /"shop\/v" still grows to 200 MiB/);
  is(world, 200, 900);
  world.settle();
  assert.deepEqual([world.volume("copy")?.phase, world.volume("copy")?.sizeMiB], ["ready", 200]);
});

test("a volume that is to be read alone has grown first: it never can afterwards", () => {
  const world = worldOf(1000);
  world.want("volume/v", { ...volume("v", { kind: "empty" }, 200), access: "ro" });
  world.want("connection/c", connection("c", "v", "vm"));
  is(world, 64, 900);
  assert.equal(world.connection("c")?.attachment, null);
  assert.match(world.connection("c")?.reason ?? "", /"shop\/v" still grows to 200 MiB/);
  assert.equal(world.volume("v")?.frozen, undefined);
  is(world, 200, 900);
  world.settle();
  assert.equal(world.connection("c")?.phase, "ready");
});

test("a copy has all of an origin that is larger than an older store knows", () => {
  for (const frozen of [false, true]) {
    const world = worldOf(1000);
    if (frozen) world.want("volume/first", volume("first", copyOf("v")));
    world.settle();
    is(world, 200, 900);
    world.want("volume/copy", volume("copy", copyOf("v")));
    world.settle();
    assert.equal(world.volume("copy")?.sizeMiB, 200);
    world.want("volume/small", volume("small", copyOf("v"), 100));
    assert.match(world.volume("small")?.reason ?? "", /needs at least its size of 200 MiB/);
  }
});
