import assert from "node:assert/strict";
import { test } from "node:test";
import { afterEnd } from "./again.ts";

test("what passes is tried again, ever less often; what is not allowed, or was left alone for long, is not", () => {
  const refused = (status: number) => afterEnd({ kind: "refused", status, sentence: "no" }, 0).afterMs !== null;
  assert.deepEqual([0, 400, 401, 403, 404, 409, 429, 502, 503].filter(refused), [0, 409, 429, 502, 503]);
  const ended = (cause: "machine-ended" | "closing" | "failed" | "idle" | "timeout" | "protocol") =>
    afterEnd({ kind: "ended", cause, sentence: "it has ended" }, 0).afterMs !== null;
  assert.deepEqual((["machine-ended", "closing", "failed", "idle", "timeout", "protocol"] as const).map(ended), [
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  const waits = [0, 1, 2, 3, 4, 11, 12, 50].map((tries) => afterEnd({ kind: "broken" }, tries).afterMs);
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 5000, 5000, 300_000, 300_000]);
});
