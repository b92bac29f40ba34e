import assert from "node:assert/strict";
import { test } from "node:test";
import { copyOf, createNetwork, desire, desiredAt, putBack, release, restart, settle } from "./network.testing.ts";

test("of what an older store says that its receiver does not have nothing begins before it counts", () => {
  const network = createNetwork(["controller.c", "h1", "h2"]);
  desire(network, "controller.c", "h1", "vm", 1);
  desire(network, "controller.c", "h1", "rules", 1);
  settle(network);
  const copy = copyOf(network, "controller.c");
  // It moves.
  desire(network, "controller.c", "h1", "vm", null);
  desire(network, "controller.c", "h2", "vm", 2);
  desire(network, "controller.c", "h1", "rules", 2);
  settle(network);
  putBack(network, "controller.c", copy);
  for (const name of ["h1", "controller.c", "h1"]) {
    settle(network);
    assert.deepEqual(desiredAt(network, "h1"), { "controller.c rules": 2 }, "the machine has left this host");
    restart(network, name);
  }
  settle(network);
  desire(network, "controller.c", "h1", "later", 1);
  settle(network);
  assert.deepEqual(desiredAt(network, "h1"), { "controller.c rules": 2, "controller.c later": 1 });
  release(network, "controller.c", "controller.c");
  release(network, "h1", "controller.c");
  settle(network);
  const then = { "controller.c vm": 1, "controller.c rules": 1, "controller.c later": 1 };
  assert.deepEqual(desiredAt(network, "h1"), then, "it counts now, and says all of it");
});
