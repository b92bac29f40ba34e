import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isoTime } from "./iso-time.ts";

test("times are what the platform's own calendar says", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (wallMs) => {
      assert.equal(isoTime(wallMs), new Date(wallMs).toISOString());
    }),
  );
});
