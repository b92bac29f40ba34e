import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "../kernel/random.ts";
import { runHistory } from "../run.ts";
import { managedHistory } from "./generate-managed.ts";
import { withModes } from "./generate-modes.ts";

/** `CELLS_SEEDS=FIRST-LAST`: those in place of a few, in which each premise holds. */
const [first = 19, last = 21] = (process.env.CELLS_SEEDS ?? "19-21").split("-").map(Number);

test("on MANAGED no address has two owners and none is lost, whichever hosts are lost, fenced and used again", async () => {
  const counted = { carried: 0, takeovers: 0, fenced: 0, reused: 0, moved: 0, addresses: 0 };
  const began = performance.now();
  for (let seed = first; seed <= last; seed += 1) {
    const { faults, checked, log } = await runHistory(managedHistory(seed), { keepLog: true });
    assert.deepEqual(faults, [], `seed ${seed}`);
    const times = (text: string): number => log.split(text).length - 1;
    counted.addresses += checked.find(({ number }) => number === 81)?.held ?? 0;
    counted.takeovers += checked.find(({ number }) => number === 83)?.held ?? 0;
    counted.carried += times(" carries ");
    counted.fenced += times("network/host-fenced");
    counted.reused += times("reused-after-a-fence");
    counted.moved += times("vm/moves");
  }
  if (last - first > 20)
    console.log(JSON.stringify({ ...counted, anHour: ((last - first + 1) * 3_600_000) / (performance.now() - began) }));
  for (const [premise, count] of Object.entries(counted)) assert.ok(count > 0, `${premise}: ${count}`);
});

test("some of the random histories with a mode have network hosts, as long as three hosts are nodes", () => {
  const drawn = (hosts: number): readonly number[] =>
    Array.from({ length: 400 }, (_, seed) => {
      const { edge, carriers = 0 } = withModes([], createRandom(seed, "modes"), {
        hosts,
        cells: 2,
        untilMs: 1,
        faults: [],
      });
      assert.ok(edge !== undefined || carriers === 0);
      return carriers;
    });
  assert.deepEqual([...new Set(drawn(3))], [0]);
  assert.deepEqual([...new Set(drawn(4))].sort(), [0, 1]);
  assert.deepEqual([...new Set(drawn(10))].sort(), [0, 1, 2]);
});
