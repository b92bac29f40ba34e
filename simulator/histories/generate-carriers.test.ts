import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistory } from "../run.ts";
import { carrierHistory } from "./generate-carriers.ts";

/** `CELLS_SEEDS=FIRST-LAST`: those in place of a few. */
const [first = 1, last = 12] = (process.env.CELLS_SEEDS ?? "1-12").split("-").map(Number);

test("two network hosts never carry one cluster, whichever of them is killed, cut off or stands still", async () => {
  const counted = { takeovers: 0, byTheMachine: 0, byItsView: 0 };
  for (let seed = first; seed <= last; seed += 1) {
    const { faults, checked, log } = await runHistory(carrierHistory(seed), { keepLog: true });
    assert.deepEqual(faults, [], `seed ${seed}`);
    counted.takeovers += checked.find(({ number }) => number === 83)?.held ?? 0;
    counted.byTheMachine += log.split('"by the machine"').length - 1;
    counted.byItsView += log.split('"by its view"').length - 1;
  }
  // Each way in which one lets go, and another one that takes over.
  for (const [premise, count] of Object.entries(counted)) assert.ok(count > 2, `${premise}: ${count}`);
  if (last - first > 20) console.log(JSON.stringify(counted));
});
