import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { ControllerState } from "../state.ts";
import { shop, World } from "../world.testing.ts";
import { holdersOfForgotten } from "./forgotten.ts";

test("only a cell that ends, has lost its store and has nothing more itself looks for who holds something of it", () => {
  const { state } = new World();
  const full = new World();
  full.put(shop());
  assert.ok(full.state.elements.size > 0);
  const ends: object = { ...state, hasLost: true, life: { ending: true } };
  const is = (more: object): boolean => holdersOfForgotten({ ...ends, ...more } as ControllerState) !== null;
  assert.equal(state.model.document, null);
  assert.ok(is({}));
  assert.ok(!is({ hasLost: false }));
  assert.ok(!is({ life: { ending: false } }));
  assert.ok(!is({ life: null }));
  assert.ok(!is({ elements: full.state.elements }), "what it has ends by itself");
  assert.ok(!is({ model: full.state.model }));
});

test("in a cell on a mode the Network View Manager is one of them: addresses of machines that nobody knows stayed there for good", () => {
  const holders = (networkMode?: "EDGE"): boolean => {
    const { state } = new World(networkMode === undefined ? {} : { networkMode });
    const ends = { ...state, hasLost: true, life: { ending: true } } as unknown as ControllerState;
    return holdersOfForgotten(ends)?.has(peerName("network-view-manager")) === true;
  };
  assert.deepEqual([holders("EDGE"), holders()], [true, false]);
});
