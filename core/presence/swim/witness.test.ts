import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import type { SwimState } from "./types.ts";
import { createWitnesses, isRipe, noteRumour, settleRumour } from "./witness.ts";

const h = (number: number): HostName => hostName(`h${number}`);
const fresh = (): SwimState => ({ witnesses: createWitnesses() }) as unknown as SwimState;

test("a hint is looked into after three seconds, and is forgotten after a minute, whenever it came", () => {
  const state = fresh();
  const since = 50_000;
  noteRumour(state, h(1), since);
  noteRumour(state, h(1), since + 2000);
  assert.ok(!isRipe(state, since + 2999));
  assert.ok(isRipe(state, since + 3000), "it counts from when it was heard first");
  assert.ok(isRipe(state, since + 60_000));
  assert.ok(!isRipe(state, since + 60_001));
  assert.equal(state.witnesses.rumours.size, 0);
});

test("so many hints are kept, and one that is settled makes room", () => {
  const state = fresh();
  for (let number = 1; number <= 300; number += 1) noteRumour(state, h(number), 0);
  assert.equal(state.witnesses.rumours.size, 256);
  settleRumour(state, h(1));
  noteRumour(state, h(300), 0);
  assert.ok(state.witnesses.rumours.has(h(300)));
  assert.equal(state.witnesses.rumours.size, 256);
});
