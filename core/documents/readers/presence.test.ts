import assert from "node:assert/strict";
import { test } from "node:test";
import { greatestBoot, greatestGeneration, greatestIncarnation } from "../life-numbers.ts";
import { ownPresence } from "./presence.ts";

test("a life's numbers are read up to the last that has a next one", () => {
  const life = { host: "h1", generation: 1, incarnation: 0, boot: 0 };
  const isRead = (more: object): boolean => ownPresence.of({ ...life, ...more }) !== null;
  assert.ok(isRead({}));
  for (const [name, greatest] of [
    ["generation", greatestGeneration - 1],
    ["boot", greatestBoot - 1],
    ["incarnation", greatestIncarnation],
  ] as const) {
    assert.ok(isRead({ [name]: greatest }), name);
    assert.ok(!isRead({ [name]: greatest + 1 }), name);
    assert.ok(!isRead({ [name]: -1 }), name);
  }
});
