import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject } from "../../core/outbox.ts";
import { desiredVm, policy, Room, shop } from "./manager.testing.ts";

const said = (room: Room): unknown => {
  const document = room.published.get(`${shop}/policy/shop`);
  if (!isObject(document)) return document;
  const { slices, ...rest } = document;
  assert.equal(slices, true);
  return rest;
};

test("a host says of a cell's rules what is in force, not what it was told", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  assert.deepEqual(said(room), { version: null, phase: "working", reason: null });
  room.settle();
  assert.deepEqual(said(room), { version: 1, phase: "ready", reason: null });
  room.desire("vm/a", desiredVm("a", 1));
  room.settle();
  room.fails = (action) => (action.kind === "implement-network" ? "the map is full" : null);
  room.desire("policy/shop", { ...policy(), version: 2 });
  room.settle();
  assert.deepEqual(said(room), { version: 1, phase: "failed", reason: "the map is full" });
  room.fails = () => null;
  room.input({ kind: "timer", name: "retry/network" });
  room.settle();
  assert.deepEqual(said(room), { version: 2, phase: "ready", reason: null });
  // What is in force outlives the Host Manager.
  room.boot();
  assert.deepEqual(said(room), { version: 2, phase: "ready", reason: null });
  room.desire("policy/shop", { ...policy(), version: 3 });
  assert.deepEqual(said(room), { version: 2, phase: "working", reason: null });
  room.found();
  room.settle();
  assert.deepEqual(said(room), { version: 3, phase: "ready", reason: null });
  room.desire("policy/shop", null);
  room.settle();
  assert.equal(said(room), undefined);
  assert.equal(room.durable.has("in-force/shop"), false);
});
