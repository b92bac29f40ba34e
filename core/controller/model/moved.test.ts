import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";

test("a group that is renamed keeps what it has, and each element says its new path", () => {
  const world = new World();
  const inside = { net: { "x.type": "Subnet", "x.size": 16 }, data: { "x.type": "Volume", "x.size": 8 } };
  const model = (groups: JsonObject): JsonObject => ({ shop: { "x.type": "Cell", ...groups } });
  world.put(model({ web: inside }));
  const uids = ["shop/web/net", "shop/web/data"].map((path) => world.uidOf(path));
  const effects: unknown[] = [];
  const step = world.step.bind(world);
  world.step = (input) => {
    const told = step(input);
    effects.push(...told);
    return told;
  };
  world.put(model({ front: { "x.movedFrom": "shop/web", ...inside } }));
  assert.deepEqual(
    ["shop/front/net", "shop/front/data"].map((path) => world.uidOf(path)),
    uids,
  );
  const moved = (effects as readonly { readonly kind: string; readonly event?: string; readonly fields?: JsonObject }[])
    .filter(({ event }) => event === "element/moved")
    .map(({ fields }) => [fields?.uid, fields?.from, fields?.path]);
  assert.deepEqual(moved, [
    [uids[0], "shop/web/net", "shop/front/net"],
    [uids[1], "shop/web/data", "shop/front/data"],
  ]);
});
