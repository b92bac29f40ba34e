import assert from "node:assert/strict";
import { test } from "node:test";
import { destroysDataRefusal } from "./data-loss.ts";
import type { PlanStep } from "./plan-types.ts";

const step = (path: string): PlanStep =>
  ({ path, type: "Volume", action: "delete", losesData: true, causes: [], waitsFor: [] }) as unknown as PlanStep;

test("a refusal says of how many volumes the data would be lost, and what permits it", () => {
  const one = destroysDataRefusal([step("shop/a")]).message;
  assert.match(one, /destroy the data of a volume that was not named; nothing was changed/);
  const two = destroysDataRefusal([step("shop/a"), step("shop/b")]);
  assert.match(two.message, /destroy the data of 2 volumes that were not named/);
  assert.match(two.message, /allowDestroy=shop\/a&allowDestroy=shop\/b/);
  assert.deepEqual(
    two.diagnostics.map(({ path }) => path),
    ["shop/a", "shop/b"],
  );
});
