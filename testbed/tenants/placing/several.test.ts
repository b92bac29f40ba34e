import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { CellSummary } from "../../../model/api.ts";
import { type Testbed, withTestbed } from "../../harness.ts";
import { cells, stateOf, until } from "../../lab.testing.ts";

/**
 * Two Placers and two Storage Managers over the same hosts and the same storage server (decisions/0037), with real guests: a
 * cell that is bound to the one pair does not notice that the other pair is dead.
 */
const specification = (cell: string, machines: readonly string[]): string => `
Machine extends {
  boot extends VolumeCopy { x.image "<ref:/${cell}/golden>"; }
  vm extends VM { x.memory 96; }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
}
${cell} extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  ${machines.map((name) => `${name} extends Machine {}`).join("\n  ")}
}
`;
const apply = async (t: Testbed, cell: string, machines: readonly string[]): Promise<void> => {
  const file = join(dirname(t.configFile), `${cell}.sf`);
  writeFileSync(file, specification(cell, machines));
  await cells(t, "apply", file, "--yes", "--no-wait");
};
const untilRuns = (t: Testbed, path: string) =>
  until(
    `${path} runs`,
    () => stateOf(t, path),
    (state) => state?.phase === "ready" && state.power === "on",
  );

const skip = process.getuid?.() === 0 ? false : "needs root";

describe("two Placers and two Storage Managers", { skip }, () => {
  test("cells that are bound to different ones run side by side, and one notices nothing of the other's death", async () => {
    await withTestbed({ hosts: 2, servers: 1, services: 2 }, async (t) => {
      await apply(t, "one", ["a"]);
      const first = await untilRuns(t, "one/a/vm");
      await apply(t, "two", ["a"]);
      const second = await untilRuns(t, "two/a/vm");
      const { url, credential } = t.client();
      const answer = await fetch(`${url}/cells`, { headers: { authorization: `Bearer ${credential}` } });
      const summaries = (await answer.json()) as readonly CellSummary[];
      assert.deepEqual(Object.fromEntries(summaries.map(({ cell, services }) => [cell, services])), {
        one: { placer: 1, storageManager: 1 },
        two: { placer: 2, storageManager: 2 },
      });
      assert.match(await cells(t, "status"), / two .*\(Placer 2, Storage Manager 2\)/);
      // The second Placer knew of the first one's VM, and spreads.
      assert.deepEqual([first?.host, second?.host].sort(), ["h1", "h2"]);

      for (const member of ["placer.2", "storage-manager.2"]) await t.stop(member);
      await apply(t, "two", ["a", "b"]);
      await apply(t, "one", ["a", "b"]);
      await untilRuns(t, "one/b/vm");
      const untouched = await stateOf(t, "two/a/vm");
      assert.deepEqual([untouched?.incarnation, untouched?.power, untouched?.host], [1, "on", second?.host]);
      const waiting = await until(
        "the other cell says whom it waits for",
        () => stateOf(t, "two/b/boot"),
        (state) => /Storage Manager 2 is not reachable/.test(state?.reason ?? ""),
      );
      assert.equal(waiting?.phase, "waiting");
      for (const member of ["placer.2", "storage-manager.2"]) await t.start(member);
      await untilRuns(t, "two/b/vm");
      const after = await Promise.all(["one/a/vm", "two/a/vm"].map((path) => stateOf(t, path)));
      assert.deepEqual(
        after.map((state) => state?.incarnation),
        [1, 1],
      );
    });
  });
});
