import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cell, findAll, type Kept, olderThan } from "./find.ts";

/** As a terminal has it: letters of the East are two columns wide. */
const keptOf = (said: readonly string[]): Kept => ({
  rows: said.length,
  textAt: (row) => said[row] ?? "",
  cellsAt: (row) => {
    let column = 0;
    return [...(said[row] ?? "")].map((text): Cell => {
      const columns = /\p{Script=Han}/u.test(text) ? 2 : 1;
      column += columns;
      return { text, column: column - columns, columns };
    });
  },
});

test("what a console has said is found from the newest row to the oldest, and then from the newest again", () => {
  const said = ["Booting", "eth0: Link up", "login:", "eth0: link DOWN", ""];
  const kept = keptOf(said);
  const found = findAll(kept, "link");
  assert.deepEqual(found, [
    { row: 3, column: 6, columns: 4 },
    { row: 1, column: 6, columns: 4 },
  ]);
  assert.deepEqual(
    [null, 3, 1].map((row) => olderThan(found, row)?.row),
    [3, 1, 3],
  );
  assert.deepEqual([findAll(kept, ""), findAll(kept, "no such"), olderThan([], null)], [[], [], null]);
});

test("columns are those of the terminal, whatever letters stand before and within", () => {
  const found = (said: string, text: string) => findAll(keptOf([said]), text)[0];
  assert.deepEqual(found("启动 eth0 up", "ETH0"), { row: 0, column: 5, columns: 4 });
  assert.deepEqual(found("a 启动 b", "启动"), { row: 0, column: 2, columns: 4 });
  assert.deepEqual(found("İİ link", "link"), { row: 0, column: 3, columns: 4 });
  assert.deepEqual(found("𝛼𝛼 link", "link"), { row: 0, column: 3, columns: 4 });
});
