import assert from "node:assert/strict";
import { test } from "node:test";
import { openApi } from "../../model/contract/openapi.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { type Answered, clientOf } from "../shared/by-openapi.testing.ts";
import { CaasWorld } from "./volumes/caas.testing.ts";

/* Users work with persistent volumes by a client of the OpenAPI document alone. */
const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: ["bank"] },
} as const;
const disk = { "x.type": "Volume", "x.size": 64 };

test("users make, find, change, share, harvest and delete persistent volumes by a client of the document alone", async () => {
  const world = new CaasWorld(people, "shop", "bank");
  world.cell("shop").put({ shop: { "x.type": "Cell", "x.name": "shop", db: { disk } } });
  const id = "0123456789abcdef0123456789abcdef";
  world.uploads.set("ROOT/acme/dev", [
    { id, sha256: "a".repeat(64), sizeMiB: 8, image: `upload-0011223344556677-${id}` },
  ]);
  try {
    const as = (who: string) => clientOf(openApi(), (line, body, headers) => world.ask(who, line, body, headers));
    const [ann, bob] = [as("ann"), as("bob")];
    const ok = async (answer: Promise<Answered>): Promise<Answered> => {
      const got = await answer;
      assert.ok(got.status < 300, JSON.stringify(got.json));
      return got;
    };
    const key = { "Idempotency-Key": "k1" };
    const data = await ok(
      ann("addVolume", { ...key, body: { name: "data", sizeMiB: 64, tags: ["db"], text: "first" } }),
    );
    const again = await ok(
      ann("addVolume", { ...key, body: { name: "data", sizeMiB: 64, tags: ["db"], text: "first" } }),
    );
    assert.equal(again.json.uid, data.json.uid);
    const uid = String(data.json.uid);
    const found = await ok(ann("listVolumes", { text: "fir", tag: ["db"], leastMiB: 64, limit: 1 }));
    assert.deepEqual(
      found.list.map((each) => each.uid),
      [uid],
    );
    const changed = await ok(ann("changeVolume", { uid, body: { name: "base", sizeMiB: 128 } }));
    assert.deepEqual([changed.json.name, changed.json.sizeMiB], ["base", 128]);
    await ok(ann("addVolumeVersion", { uid, body: { upload: id } }));
    assert.equal((await bob("readVolume", { uid })).status, 404);
    const shared = await ok(
      ann("shareVolume", { uid, body: { kind: "account", path: "ROOT/bank/core", right: "copy" } }),
    );
    const clone = await ok(bob("addVolume", { body: { name: "mine", from: { volume: uid, version: 1 } } }));
    const [share] = shared.json.shares as readonly JsonObject[];
    await ok(ann("unshareVolume", { uid, id: String(share?.id) }));
    assert.equal((await bob("readVolume", { uid })).status, 404);
    await ok(bob("readVolume", { uid: String(clone.json.uid) }));
    const kept = await ok(ann("addVolume", { body: { name: "kept", from: { cell: "shop", path: "shop/db/disk" } } }));
    assert.equal(world.cell("shop").ask({ method: "DELETE", path: "" }).status, 200);
    const read = await ok(ann("readVolume", { uid: String(kept.json.uid) }));
    assert.deepEqual(
      (read.json.versions as readonly JsonObject[]).map(({ number }) => number),
      [1],
    );
    const asked = await ok(ann("deleteVolume", { uid, dryRun: true }));
    assert.deepEqual(asked.json.versions, [1, 2]);
    assert.equal((await ann("deleteVolume", { uid })).status, 409);
    const needed = await ok(ann("deleteVolume", { uid, allowDestroy: "base" }));
    assert.equal(needed.json.stays, true, "its clone needs it");
    assert.doesNotMatch(JSON.stringify(needed.json), new RegExp(String(clone.json.uid)));
    assert.equal((await ann("readVolume", { uid })).status, 404);
    await ok(bob("deleteVolume", { uid: String(clone.json.uid), allowDestroy: "mine" }));
    const left = (await ok(ann("listVolumes"))).list.map((each) => each.name);
    assert.deepEqual(left, ["kept"]);
  } finally {
    await world.end();
  }
});
