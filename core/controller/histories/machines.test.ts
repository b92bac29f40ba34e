import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { shop, World } from "../world.testing.ts";
import { machinesOf } from "./machines.ts";

test("names of machines are known after a start, before anybody has been heard, and also of machines that are gone", () => {
  const world = new World();
  world.put(shop());
  world.settle();
  world.step({ kind: "reachable", peer: peerName("host.gone"), reachable: true });
  world.step({ kind: "reachable", peer: peerName("host.gone"), reachable: false });
  world.step({ kind: "reachable", peer: peerName("presence.2"), reachable: true });
  const known = machinesOf(world.state);
  assert.ok(!known.includes("2"), "a member of Presence is no machine");
  for (const name of ["h1", "s1", "gone"]) assert.ok(known.includes(name), `${name} of ${known.join(", ")}`);
  world.crash();
  const after = machinesOf(world.state);
  assert.deepEqual([...known].sort(), [...after].sort());
});
