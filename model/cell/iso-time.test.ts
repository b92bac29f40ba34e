import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isoTime, wallMsOf } from "./iso-time.ts";

test("times are what the platform's own calendar says", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (wallMs) => {
      assert.equal(isoTime(wallMs), new Date(wallMs).toISOString());
    }),
  );
});

test("a text is read back as the time that it is of, and one of no time is none", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799 }), (seconds) => {
      assert.equal(wallMsOf(new Date(seconds * 1000).toISOString().slice(0, 19)), seconds * 1000);
    }),
  );
  for (const text of ["2026-02-29T00:00:00", "2026-13-01T00:00:00", "2026-01-01T24:00:00", "2026-01-01", "x", ""])
    assert.equal(wallMsOf(text), null, text);
  assert.equal(wallMsOf("2024-02-29T00:00:00"), Date.UTC(2024, 1, 29));
});
