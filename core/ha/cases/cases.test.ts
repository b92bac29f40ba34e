import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { casesFrom } from "../../../model/testing/case-folders.testing.ts";
import { check, type Given, notHere, type Outcome, outcomeOf } from "./adapter.testing.ts";

/**
 * Decisions of an existing HA manager beside ours (`cases.json`; with CELLS_CASES another folder's `ha/cases.json`). An adapter makes
 * circumstances of what was given, and outcomes are compared, not words. What this manager does not have is told apart by what
 * was given, and counted.
 */
interface Case {
  readonly group: string;
  readonly name: string;
  readonly given: Given;
  readonly expected: Outcome;
}
const file = new URL("cases.json", casesFrom(new URL("./", import.meta.url), "ha"));
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { readonly cases: readonly Case[] };

for (const { group, name, given, expected } of cases)
  test(`${group}: ${name}`, (context) => {
    check(group, given);
    const why = notHere(group, given);
    if (why !== null) return context.skip(why);
    const outcome = outcomeOf(group, given);
    for (const [field, value] of Object.entries(expected)) {
      assert.ok(field in outcome, `the runner knows nothing of ${field} in what becomes of ${group}`);
      assert.deepEqual(outcome[field], value, field);
    }
  });

test("what there is to compare, and what this manager does not have", (context) => {
  const counts = Map.groupBy(cases, ({ group, given }) => notHere(group, given) ?? "compared");
  assert.ok(counts.has("compared"));
  for (const [why, all] of counts) context.diagnostic(`${all.length}: ${why}`);
});

test("what the adapter does not know it says", () => {
  assert.throws(() => outcomeOf("restarts", {}), /knows nothing of group restarts/);
  assert.throws(() => outcomeOf("restart", { weather: "rain" }), /knows nothing of weather in group restart/);
  assert.throws(() => outcomeOf("cancel", { host: "on fire" }), /knows nothing of host: "on fire"/);
});
