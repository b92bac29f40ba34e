import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { World } from "../world.testing.ts";

test("what a cell left to others counts when it asks for more, and what a cell of its name left before does not", () => {
  const world = new World();
  const model = (sizeMiB: number) => ({
    shop: { "x.type": "Cell", "x.limits.storage": 100, disk: { "x.type": "Volume", "x.size": sizeMiB } },
  });
  assert.equal(world.put(model(40)).status, 200);
  const told = (left: { readonly [cell: string]: number }): void => {
    const key = actualKey(peerName("controller.shop"), "kept");
    world.step({ kind: "actual", from: peerName("storage-manager"), key, value: { keptMiB: 10, left } });
  };
  told({ another: 90 });
  assert.doesNotThrow(() => world.put(model(60)));
  told({ another: 90, c1: 30 });
  assert.throws(() => world.put(model(61)), /asks for 61 MiB of storage, 40 MiB of deleted volumes stay/);
  assert.equal(world.put(model(50)).status, 200, "less is no more");
});
