import assert from "node:assert/strict";
import { test } from "node:test";
import { createNetwork, desire, publish, settle, stateOf, subscribe } from "../network.testing.ts";

const released = (network: ReturnType<typeof createNetwork>): readonly string[] =>
  stateOf(network, "a").inputs.flatMap((input) => (input.kind === "released" ? [`${input.peer} ${input.key}`] : []));

test("a client hears that its tombstone was taken, once and not before, and of no other document", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  desire(network, "a", "b", "vm/2", 1);
  settle(network);
  assert.deepEqual(released(network), []);
  desire(network, "a", "b", "vm/1", null);
  assert.deepEqual(released(network), [], "it is still on its way");
  settle(network);
  assert.deepEqual(released(network), ["b vm/1"]);
  desire(network, "a", "b", "vm/2", 2);
  settle(network);
  assert.deepEqual(released(network), ["b vm/1"]);
});

test("what a source has said by then is known before that: the acknowledgement comes behind it", () => {
  const network = createNetwork(["a", "b"]);
  subscribe(network, "a", "b", "a/");
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  desire(network, "a", "b", "vm/1", null);
  publish(network, "b", "a/vm/1", "stopping");
  settle(network);
  const inputs = stateOf(network, "a").inputs;
  const told = inputs.findIndex((input) => input.kind === "actual" && input.value === "stopping");
  const free = inputs.findIndex((input) => input.kind === "released");
  assert.ok(told >= 0 && free > told, `told at ${told}, released at ${free}`);
});
