import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistory } from "../run.ts";
import { parseHistory } from "../world/history.ts";

/*
 * A volume is harvested, and its cell deleted at once, while whoever has a part in it dies at some step of it. In the end the
 * copy is there, over the file of then (invariant 79), and nothing is left of the cell.
 */
const steps = (name: string, point: string, atMs: number): string => `hosts 2
servers 1
cells 2
seed ${atMs}
at 100 apply c1 vm:a1:64:data
at 100 apply c2 vm:b1:64
at 6000 apply c2 vm:b1:64 keep:kept:c1/a1Data
at 6050 apply c1 vm:a1:64:data hold:a1Data:c2/kept
at ${atMs} crash ${name} ${point} for 1500
at 6100 delete c1
until 12000`;

const moments = { "before-commit": 6099, "between-sends": 6051, "after-commit": 6099 };
for (const name of ["controller.c1", "controller.c2", "storage-manager", "agent.s1"])
  for (const [point, atMs] of Object.entries(moments))
    test(`a harvest loses nothing though ${name} crashes, ${point}`, async () => {
      const { faults, checked } = await runHistory(parseHistory(steps(name, point, atMs)));
      assert.deepEqual(faults, []);
      const held = checked.find(({ number }) => number === 79)?.held ?? 0;
      assert.notEqual(held, 0, "a volume was held, and its copy is there");
    });
