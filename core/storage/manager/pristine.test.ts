import assert from "node:assert/strict";
import { test } from "node:test";
import { connection, copyOf, StorageWorld, volume } from "./manager.testing.ts";

/**
 * The saved memory of an image belongs to its disk as it is unwritten. Whoever could ever have written a layer, a lease
 * says; where there is doubt, the disk is not called pristine, and its machine boots.
 */
const saved = {
  memoryMiB: 128,
  cpus: 1,
  diskMiB: 100,
  engine: "e",
  form: "f",
  memorySha256: "a".repeat(64),
  stateSha256: "b".repeat(64),
};
const worldWithImage = (): StorageWorld => {
  const world = new StorageWorld({ s1: { freeMiB: 9000, images: { tiny: 100 } } });
  world.want("volume/a-1", volume("a-1", { kind: "image", image: "tiny" }));
  world.settle();
  const boot = { digest: "b", address: "10.0.2.1", port: 1, commandLine: "", saved };
  world.say(world.agent("s1"), "volume/a-1", { phase: "ready", reason: null, sizeMiB: 100, usedMiB: 1, boot });
  return world;
};
const pristine = (world: StorageWorld, of: string): boolean | undefined =>
  world.connection(of)?.attachment === undefined ? undefined : world.connection(of)?.attachment?.pristine === true;

test("a copy of an image is pristine under its first lease, and under no other", () => {
  const world = worldWithImage();
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.want("connection/a-9", connection("a-9", "a-2", "a-8"));
  world.settle();
  assert.equal(world.connection("a-9")?.attachment?.epoch, 1);
  assert.equal(pristine(world, "a-9"), true);
  assert.deepEqual(world.connection("a-9")?.attachment?.boot?.saved, saved);
  // Asked again by a manager that starts anew, the answer is the same as long as the lease is.
  world.restart();
  world.settle();
  assert.equal(pristine(world, "a-9"), true);
  world.want("connection/a-9", connection("a-9", "a-2", "a-8", 2));
  world.settle();
  assert.ok((world.connection("a-9")?.attachment?.epoch ?? 0) > 1);
  assert.equal(pristine(world, "a-9"), false);
});

test("a copy of what somebody has written is not pristine, also after the Manager lost its store", () => {
  const world = worldWithImage();
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.want("connection/a-9", connection("a-9", "a-2", "a-8"));
  world.settle();
  world.want("connection/a-9", null);
  world.settle();
  world.want("volume/a-3", volume("a-3", copyOf("a-2")));
  world.want("connection/a-10", connection("a-10", "a-3", "a-7"));
  world.settle();
  assert.equal(world.connection("a-10")?.attachment?.epoch, 1);
  assert.equal(pristine(world, "a-10"), false);
  for (const key of [...world.records.keys()]) if (key.startsWith("lease/")) world.records.delete(key);
  world.restart();
  world.settle();
  assert.equal(pristine(world, "a-10"), false, "the agent remembers the epochs of what is copied");
});

test("an image without a saved state, and a disk that is only read, are never called pristine", () => {
  const plain = new StorageWorld({ s1: { freeMiB: 9000, images: { tiny: 100 } } });
  plain.want("volume/a-1", volume("a-1", { kind: "image", image: "tiny" }));
  plain.want("volume/a-2", volume("a-2", copyOf("a-1")));
  plain.want("connection/a-9", connection("a-9", "a-2", "a-8"));
  plain.settle();
  assert.equal(pristine(plain, "a-9"), false);
  const world = worldWithImage();
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.settle();
  world.want("connection/a-9", connection("a-9", "a-1", "a-8"));
  world.settle();
  assert.equal(world.connection("a-9")?.attachment?.epoch, 0);
  assert.equal(pristine(world, "a-9"), false);
});
