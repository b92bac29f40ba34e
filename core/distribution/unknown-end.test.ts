import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import {
  cause,
  copyOf,
  createNetwork,
  desire,
  halt,
  machineOf,
  type Network,
  putBack,
  settle,
  stateOf,
} from "./network.testing.ts";

/** Tombstones of documents that their receiver does not have, since it lost its store. */
const toldAt = (network: Network, name: string): readonly string[] =>
  stateOf(network, name).inputs.flatMap((input) =>
    input.kind === "unknown-end" ? [`${input.from} ${input.key}`] : [],
  );
const tombstone = (network: Network, again: { readonly again?: true }): void =>
  cause(network, "controller.c", { kind: "desire", to: peerName("b"), key: "v1", value: null, ...again });

test("a receiver without its store is told of the end of what it does not know", () => {
  const network = createNetwork(["controller.c", "b"]);
  desire(network, "controller.c", "b", "v1", 1);
  settle(network);
  halt(network, machineOf(network, "b"));
  desire(network, "controller.c", "b", "v1", null);
  putBack(network, "b", null);
  settle(network);
  assert.deepEqual(toldAt(network, "b"), ["controller.c v1"]);
});

test("an end that it has taken and forgotten is said once more where the client says so, and taken for done then", () => {
  for (const again of [{}, { again: true }] as const) {
    const network = createNetwork(["controller.c", "b"]);
    desire(network, "controller.c", "b", "v1", 1);
    settle(network);
    desire(network, "controller.c", "b", "v1", null);
    settle(network);
    putBack(network, "b", null);
    settle(network);
    const before = stateOf(network, "controller.c").inputs.length;
    tombstone(network, again);
    settle(network);
    assert.deepEqual(toldAt(network, "b"), again.again ? ["controller.c v1"] : []);
    const released = stateOf(network, "controller.c").inputs.slice(before);
    assert.equal(released.filter(({ kind }) => kind === "released").length, again.again ? 1 : 0);
  }
});

test("what a client with an older store takes back is none of that", () => {
  const network = createNetwork(["controller.c", "b"]);
  desire(network, "controller.c", "b", "v2", 1);
  settle(network);
  const copy = copyOf(network, "controller.c");
  desire(network, "controller.c", "b", "v2", 2);
  settle(network);
  putBack(network, "controller.c", copy);
  settle(network);
  tombstone(network, { again: true });
  settle(network);
  assert.deepEqual(toldAt(network, "b"), []);
});
