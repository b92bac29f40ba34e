import assert from "node:assert/strict";
import { test } from "node:test";
import { findAll, olderThan } from "./find.ts";

test("what a console has said is found from the newest row to the oldest, and then from the newest again", () => {
  const said = ["Booting", "eth0: Link up", "login:", "eth0: link DOWN", ""];
  const kept = { rows: said.length, textAt: (row: number) => said[row] ?? "" };
  const found = findAll(kept, "link");
  assert.deepEqual(found, [
    { row: 3, column: 6 },
    { row: 1, column: 6 },
  ]);
  assert.deepEqual(
    [null, 3, 1].map((row) => olderThan(found, row)?.row),
    [3, 1, 3],
  );
  assert.deepEqual([findAll(kept, ""), findAll(kept, "no such"), olderThan([], null)], [[], [], null]);
});
