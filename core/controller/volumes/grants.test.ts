import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredGrant } from "../../documents/vocabulary.ts";
import { World } from "../world.testing.ts";

test("a grant says at the Storage Manager whom it is for: a cell, an account, or a domain of accounts", () => {
  const world = new World();
  const grant = (to: JsonObject): JsonObject => ({
    "x.type": "VolumeGrant",
    "x.volume": "<ref:/shop/disk>",
    "x.grant": "copy",
    ...to,
  });
  const disk = { "x.type": "Volume", "x.size": 64 };
  const said = (to: JsonObject): readonly DesiredGrant["to"][] => {
    world.put({ shop: { "x.type": "Cell", disk, grant: grant(to) } });
    return world.documents<DesiredGrant>("storage-manager", "grant").map((each) => each.to);
  };
  assert.deepEqual(said({ "x.cell": "<ref://other.cells.internal/>" }), [{ domain: "other.cells.internal" }]);
  assert.deepEqual(said({ "x.account": "ROOT/acme/dev" }), [{ account: "ROOT/acme/dev" }]);
  assert.deepEqual(said({ "x.domain": "ROOT/acme" }), [{ tenants: "ROOT/acme" }]);
  said({ "x.account": "ROOT/acme/dev", "x.holder": "u-dev" });
  const [first] = world.documents<DesiredGrant>("storage-manager", "grant");
  assert.equal(first?.holder, "u-dev", "by its UID as well");
});
