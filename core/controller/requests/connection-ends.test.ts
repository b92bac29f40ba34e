import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";

const subnet = (addressRange: string): JsonObject => ({
  "x.type": "Subnet",
  "x.size": 8,
  "x.addressRange": addressRange,
});
const card = (vm: string, net: string): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": `<ref:/shop/${vm}>`,
  "x.subnet": `<ref:/shop/${net}>`,
});
const cell: JsonObject = {
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: subnet("internal"),
    front: subnet("external"),
    egress: { "x.type": "VM", "x.memory": 64 },
    worker: { "x.type": "VM", "x.memory": 64 },
    inside: card("egress", "net"),
    outside: card("egress", "front"),
    workerCard: card("worker", "net"),
  },
};

test("a VM with two interfaces stands for the external one towards the outside, and for its first one otherwise", () => {
  const world = new World();
  world.put(cell);
  const pathOf = (from: string, to: string, end: "from" | "to"): unknown => {
    const { status, body } = world.ask({ method: "WHY-ENDS", from, to });
    assert.equal(status, 200, JSON.stringify(body));
    return ((body as JsonObject)[end] as JsonObject).address;
  };
  const addressOf = (path: string): unknown => world.state.elements.get(world.uidOf(path))?.allocation?.address;
  const [inside, outside, worker] = ["inside", "outside", "workerCard"].map((name) => addressOf(`shop/${name}`));
  assert.ok(inside !== outside && typeof worker === "string");
  for (const somebody of ["203.0.113.9", "internet"]) {
    assert.equal(pathOf(somebody, "shop/egress", "to"), outside, somebody);
    assert.equal(pathOf("shop/egress", somebody, "from"), outside, somebody);
    assert.equal(pathOf(somebody, "shop/worker", "to"), worker, `${somebody}: it has no other`);
  }
  for (const neighbour of ["shop/worker", worker, "controller"])
    assert.equal(pathOf(neighbour, "shop/egress", "to"), inside, neighbour);
  assert.equal(pathOf("203.0.113.9", "shop/inside", "to"), inside, "an interface is what it is");
});
