import assert from "node:assert/strict";
import { test } from "node:test";
import type { Figure } from "./bench.ts";
import { benches } from "./main.ts";
import { interleave, median, percentile, ratios } from "./measure.ts";
import { formatNumber, renderProvenance, renderTable } from "./table.ts";

test("percentiles are values that were measured", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(percentile([1, 2, 3, 4], 0.99), 4);
  assert.equal(percentile([5], 0), 5);
  assert.throws(() => median([]), /nothing was measured/);
});

test("variants take turns, and their order turns around", async () => {
  const order: string[] = [];
  const variant = (name: string) => async (round: number) => {
    order.push(name);
    return round;
  };
  const measured = await interleave(3, { a: variant("a"), b: variant("b") });
  assert.deepEqual(order, ["a", "b", "b", "a", "a", "b"]);
  assert.deepEqual(measured, { a: [0, 1, 2], b: [0, 1, 2] });
  assert.deepEqual(ratios([2, 9, 3], [1, 3, 0]), [2, 3]);
});

test("a table says goal, figure and whether it holds", () => {
  const figure: Figure = { what: "x", unit: "×", value: 1.049, range: [1, 1.2], atMost: 1.1 };
  const [, , holds = "", missed = "", only = ""] = renderTable([
    figure,
    { ...figure, value: 1.2 },
    { ...figure, unit: "ms", range: null, atMost: null, note: "of all" },
  ]).split("\n");
  assert.equal(holds, "| x | ≤ 1.10 × | 1.05 × | 1.00 – 1.20 | holds |");
  assert.match(missed, /\*\*missed\*\*/);
  assert.equal(only, "| x (of all) |  | 1.05 ms |  |  |");
  assert.deepEqual([0.1234, 12.345, 1234.5].map(formatNumber), ["0.12", "12.3", "1235"]);
});

test("figures from a busy machine say so", () => {
  const from = { commit: "abc", time: "2026-01-01T00:00Z", machine: "2 × CPU", load: 1, others: 0.5 };
  assert.match(renderProvenance(from, false), /others used 50 % of the CPUs just before: provisional/);
  assert.doesNotMatch(renderProvenance({ ...from, others: 0.01 }, false), /provisional|quick/);
  assert.match(renderProvenance(from, true), /quick run/);
});

/** Those that need no booted guests, so that the test stays short; `./cells bench --quick` tries the others. */
for (const name of [
  "clone",
  "dataplane",
  "eucalyptus-packets",
  "eucalyptus-view",
  "ha",
  "neighbour",
  "placement",
  "rules",
  "plan",
  "roles",
  "simulator",
  "subscribers",
  "tenancy",
  "ways",
])
  test(`bench ${name} measures what it says`, { skip: process.getuid?.() === 0 ? false : "needs root" }, async () => {
    const load = benches[name];
    assert.ok(load, name);
    const bench = await load();
    const figures = await bench.run({ quick: true, say: () => undefined });
    assert.ok(figures.length > 0 && bench.method.length > 20);
    for (const { what, value, range, atMost } of figures) {
      // What should not happen at all is counted, and none is a count.
      const isMeasured = Number.isFinite(value) && (value > 0 || (value === 0 && atMost === 0));
      assert.ok(isMeasured, `${what}: ${value}`);
      if (range !== null) assert.ok(range[0] <= range[1], what);
    }
  });
