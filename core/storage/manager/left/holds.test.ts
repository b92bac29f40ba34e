import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { copyOf, StorageWorld, volume } from "../manager.testing.ts";

const [primary, bank] = ["primary", "bank"].map((cell) => peerName(`controller.${cell}`)) as [never, never];
const oneServer = () => new StorageWorld({ s1: { freeMiB: 10_000, images: { tiny: 100 } } });
const image = (name: string) => ({ kind: "image", image: name }) as const;
const granted = {
  volume: "a-1",
  to: { domain: "primary.cells.internal" },
  grant: "copy",
  hold: "primary/volumes/b-1",
};

test("of a volume that is held it says when that copy is made, and no other", () => {
  const world = oneServer();
  const said = () => world.published.get("controller.shop/grant/a-2") as unknown;
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.want("grant/a-2", { uid: "a-2", ...granted });
  world.want("grant/a-3", { uid: "a-3", ...granted, to: { domain: "bank.cells.internal" }, hold: "bank/b-1" });
  world.settle();
  const ready = { phase: "ready", reason: null, grants: granted };
  assert.deepEqual(said(), ready);
  const copy = (id: string, cell: string, path: string) => ({ ...volume(id, copyOf("a-1"), null, cell), path });
  world.want("volume/b-9", copy("b-9", "primary", "primary/volumes/b-9"), primary);
  world.want("volume/b-8", copy("b-8", "bank", "primary/volumes/b-1"), bank);
  world.settle();
  assert.equal(world.volume("b-9", primary)?.phase, "ready");
  assert.equal(world.volume("b-8", bank)?.phase, "ready");
  assert.deepEqual(said(), ready, "another copy of that cell, and one at that path of another cell");
  world.want("volume/b-1", copy("b-1", "primary", "primary/volumes/b-1"), primary);
  assert.deepEqual(said(), ready, "it has a place, and its server has not made it");
  world.settle();
  assert.deepEqual(said(), { ...ready, copied: true });
  world.restart();
  assert.deepEqual(said(), { ...ready, copied: true }, "after a restart as well");
  world.want("volume/b-1", null, primary);
  world.settle();
  assert.deepEqual(said(), ready, "and says so no more when it is gone");
});

test("a copy that its cell gives up while its server is away ends no hold", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.want("grant/a-2", { uid: "a-2", ...granted });
  world.want("volume/b-1", { ...volume("b-1", copyOf("a-1"), null, "primary"), path: "primary/volumes/b-1" }, primary);
  world.settle();
  const isCopied = () => (world.published.get("controller.shop/grant/a-2") as { copied?: true }).copied === true;
  assert.ok(isCopied());
  const [server] = world.agents.values();
  assert.ok(server !== undefined);
  world.cut(server);
  world.want("volume/b-1", null, primary);
  assert.ok(!isCopied(), "it is still at its server, and goes when that is back");
});

const heldVolume = {
  ...volume("a-1", image("tiny")),
  heldFor: [{ domain: "primary.cells.internal", path: granted.hold }],
};
const theCopy = { ...volume("b-1", copyOf("a-1"), null, "primary"), path: "primary/volumes/b-1" };

/** A controller of the version before takes back all that has left its model: the volume, its grant, in either order. */
for (const order of [
  ["volume/a-1", "grant/a-2"],
  ["grant/a-2", "volume/a-1"],
])
  test(`what is held is destroyed for nobody who does not know of holds: it takes back ${order.join(", then ")}`, () => {
    const world = oneServer();
    const [server] = world.agents.values();
    const isThere = () => server?.desired.has("volume/a-1") === true;
    world.want("volume/a-1", heldVolume);
    world.want("grant/a-2", { uid: "a-2", ...granted });
    world.settle();
    const { held, heldFor } = world.volume("a-1") ?? {};
    assert.deepEqual([held, heldFor], [true, heldVolume.heldFor]);
    for (const key of order) world.want(key, null);
    world.settle();
    world.restart();
    world.settle();
    assert.ok(isThere(), "it is kept");
    assert.match(
      world.volume("a-1")?.reason ?? "",
      /held for the copy "primary\/volumes\/b-1" of primary\.cells\.internal/,
    );
    // The later version is back, and knows of it: the copy is made, and it goes with that.
    world.want("grant/a-2", { uid: "a-2", ...granted });
    world.want("volume/b-1", theCopy, primary);
    world.settle();
    assert.equal(world.volume("b-1", primary)?.phase, "ready");
    assert.equal((world.published.get("controller.shop/grant/a-2") as { copied?: true }).copied, true);
    assert.equal(world.volume("a-1"), undefined, "it is the provider's");
    world.want("volume/b-1", null, primary);
    world.settle();
    assert.ok(!isThere(), "nothing is held for a copy that was made and is gone");
  });

test("what is held is copied by the copy for which it is, and no other, though its grant was taken back with it", () => {
  const world = oneServer();
  world.want("volume/a-1", heldVolume);
  world.want("grant/a-2", { uid: "a-2", ...granted });
  world.settle();
  for (const key of ["grant/a-2", "volume/a-1"]) world.want(key, null);
  world.settle();
  world.want("volume/b-2", { ...theCopy, uid: "b-2", path: "primary/volumes/b-2" }, primary);
  world.want("volume/b-3", { ...theCopy, uid: "b-3", cell: "bank" }, bank);
  world.want("volume/b-1", theCopy, primary);
  world.settle();
  assert.equal(world.volume("b-2", primary)?.hidden, true);
  assert.equal(world.volume("b-3", bank)?.hidden, true);
  assert.equal(world.volume("b-1", primary)?.phase, "ready");
});

test("what its controller gives up is destroyed, whatever it hears of that first, and nothing for another's word", () => {
  for (const isFirst of [true, false]) {
    const world = oneServer();
    const [server] = world.agents.values();
    world.want("volume/a-1", heldVolume);
    world.settle();
    world.want("let-go/a-1", { uid: "a-1" }, bank);
    if (isFirst) world.want("let-go/a-1", { uid: "a-1" });
    world.want("volume/a-1", null);
    world.settle();
    assert.equal(server?.desired.has("volume/a-1"), !isFirst);
    world.restart();
    world.want("let-go/a-1", { uid: "a-1" });
    world.settle();
    assert.equal(server?.desired.has("volume/a-1"), false);
    assert.equal(world.volume("a-1"), undefined);
    world.want("let-go/a-1", null);
  }
  // A hold that the model takes back is over with the next desire for the volume.
  const world = oneServer();
  world.want("volume/a-1", heldVolume);
  world.settle();
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.want("volume/a-1", null);
  world.settle();
  assert.equal(world.volume("a-1"), undefined);
});
