import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4 } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";

const resolver = ipv4("10.0.0.9");
const model = (rule: JsonObject | null, policy: JsonObject = {}): JsonObject => ({
  shop: {
    ...{ "x.type": "Cell", "x.name": "shop", ...policy },
    net: { "x.type": "Subnet", "x.size": 8 },
    ...(rule === null ? {} : { rule: { "x.type": "NetworkRule", ...rule } }),
  },
});
const net = "<ref:../net>";
const askedBy = (world: World): unknown => world.ask({ method: "RESOLVERS" });

test("a cell asks outside for names as long as a rule of its own opens something towards the internet", () => {
  const world = new World({ resolvers: [resolver] });
  assert.deepEqual(askedBy(world), [], "before there is a model");
  const asks = (document: JsonObject): unknown => {
    assert.equal(world.put(document).status, 200);
    return askedBy(world);
  };
  const end = (one: string, two: string, direction: string): JsonObject => ({
    ...{ "x.address1": one, "x.address2": two, "x.direction": direction },
  });
  assert.deepEqual(asks(model(null)), []);
  assert.deepEqual(asks(model(end(net, "internet", "1to2"))), [resolver]);
  assert.deepEqual(asks(model(end("internet", net, "1to2"))), [], "that lets in alone");
  assert.deepEqual(asks(model(end("internet", net, "both"))), [resolver]);
  assert.deepEqual(asks(model(end(net, "203.0.113.0/24", "1to2"))), []);
  assert.deepEqual(asks(model(null, { "x.policy.internet": "out" })), [resolver]);
  assert.deepEqual(asks(model(null)), [], "the rule is gone");
  assert.deepEqual(askedBy(new World({})), [], "no resolver is declared");
});
