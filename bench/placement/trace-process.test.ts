import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { reportOf } from "../measure.ts";
import type { BestFitReport } from "./compared/best-fit-process.ts";
import type { NoTrace, TraceReport } from "./trace-process.ts";
import { seeded } from "./traces/read.ts";
import { withFiles } from "./traces/traces.testing.ts";

const program = join(import.meta.dirname, "trace-process.ts");

test("the Placer has a trace's VMs wait where there is no room, and gives them the room of those that end", () =>
  withFiles(
    {
      "t.txt": "0 d,d,|,d,d,|,\n300 a,|,\n",
      "t-durations.txt": "0 U1,C,|,C,C,|,\n300 C,|,\n",
      "flavours.txt": "1,1 a\n16,84 d\n",
      "duration-bins.txt": "0 0\n300 1\n",
    },
    async (folder) => {
      const report = await reportOf<TraceReport>(program, join(folder, "t.txt"), 1);
      const { arrivals, ended, groups, most, mostWaiting, unlawful, idle, differ, inUse } = report;
      // Three of 84 GiB would fill a host of 256 GiB, less what is kept, and have no room for what each machine takes besides.
      assert.deepEqual(
        { arrivals, ended, groups, most, mostWaiting, unlawful, idle, differ },
        { arrivals: 5, ended: 1, groups: 3, most: 4, mostWaiting: 2, unlawful: 0, idle: 0, differ: 0 },
      );
      assert.deepEqual(inUse, { mean: 1, most: 1, arrivals: 5 });
    },
  ));

test("2,000 seeded VMs stand lawfully, at hardly more hosts than exhaustive best fit has in use", async () => {
  for (const [wish, hosts] of [
    ["spread", 100],
    ["none", 60],
  ] as const) {
    const ours = await reportOf<TraceReport>(program, seeded(2000), hosts, 2000, wish, 50);
    assert.deepEqual(
      [ours.arrivals, ours.unlawful, ours.idle, ours.differ, ours.inUse.arrivals],
      [2000, 0, 0, 0, 2000],
    );
    const fit = await reportOf<BestFitReport>(
      join(import.meta.dirname, "compared/best-fit-process.ts"),
      seeded(2000),
      hosts,
      2000,
      wish,
    );
    const above = ours.inUse.mean / fit.inUse.mean - 1;
    assert.ok(above <= 0.03, `${wish}: ${100 * above} % above best fit`);
  }
});

test("a trace that cannot be read is refused with a sentence", async () => {
  const report = await reportOf<NoTrace>(program, "/nowhere/t.csv", 1);
  assert.match(report.refused, /no such file/);
});
