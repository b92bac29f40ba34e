import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { Room } from "../service/manager.testing.ts";

const root = peerName("controller.root");
const external = (room: Room): readonly string[] | null | undefined => {
  const [action] = room.next().filter(({ kind }) => kind === "implement-network");
  return action?.kind === "implement-network" ? (action.global.external ?? null) : undefined;
};

test("a host has the pools of external addresses in force that the root controller names, and its own where it names none", () => {
  const room = new Room();
  room.found();
  assert.equal(external(room), null);
  const again = new Room();
  again.found();
  again.settle();
  again.desire("pools", { external: ["203.0.113.0/24", "198.18.0.0/29"] }, root);
  assert.deepEqual(external(again), ["203.0.113.0/24", "198.18.0.0/29"]);
  again.boot();
  again.found();
  assert.deepEqual(external(again), ["203.0.113.0/24", "198.18.0.0/29"], "after a restart as well");
});

test("a word of pools that cannot be read takes nothing away, and only the root controller has one", () => {
  const room = new Room();
  room.found();
  room.desire("pools", { external: ["203.0.113.0/24"] }, root);
  room.settle();
  room.desire("pools", { external: ["everything"] }, root);
  assert.equal(external(room), undefined, "nothing is to do");
  room.desire("pools", null, root);
  assert.equal(external(room), null);
  for (const other of ["controller.shop", "host.h2", "address-manager"])
    assert.equal(room.service.accepts(peerName(other), "pools"), false, other);
});
