import assert from "node:assert/strict";
import { test } from "node:test";
import { uid } from "../../model/cell/identifiers.ts";
import { desiredVm, policy, Room } from "./manager.testing.ts";

test("after a change of the network that failed an interface counts as in place only where it was to stay there", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  for (const name of ["a", "b"]) room.desire(`vm/${name}`, desiredVm(name, 1));
  room.settle();
  // The tap is taken away before something of the same change fails.
  room.fails = (action) => {
    if (action.kind !== "implement-network") return null;
    room.taps = action.global.interfaces.map(({ desired }) => desired.uid);
    return "the driver has trouble";
  };
  room.desire("vm/a", null);
  for (let round = 0; round < 5; round += 1)
    for (const action of room.next()) room.ask({ kind: "done", outcome: room.carryOut(action) });
  assert.equal(room.machines.has(uid("a")), false);
  assert.equal(room.vm("b")?.power, "on");
  assert.ok(
    [...room.published.keys()].some((key) => key.startsWith("location/")),
    "b is still where it was",
  );
  room.log.length = 0;
  room.desire("vm/a", desiredVm("a", 2));
  for (let round = 0; round < 5; round += 1) {
    for (const action of room.next()) room.ask({ kind: "done", outcome: room.carryOut(action) });
    room.input({ kind: "timer", name: "retry/network" });
    room.fails = () => "the driver has trouble";
  }
  assert.deepEqual([...new Set(room.log)], ["implement-network"]);
  room.fails = () => null;
  room.input({ kind: "timer", name: "retry/network" });
  room.settle();
  assert.equal(room.machines.get(uid("a")), 2);
});
