import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { elementPath } from "../../model/cell/identifiers.ts";
import type { ListedElement } from "../../model/contract/tenancy/listed-element.ts";
import { cursorIn } from "../../model/contract/tenancy/pages.ts";
import { pageOver, type Walk } from "./elements.ts";

/** How many elements each cell has; null: its controller says nothing. */
type Cells = Readonly<Record<string, number | null>>;
const element = (cell: string, number: number): ListedElement => ({
  cell,
  path: elementPath(`${cell}/vm${number}`),
  type: "VM",
  uid: `${cell}-${number}`,
  name: `vm${number}`,
  phase: "ready",
  reason: null,
  since: "2026-01-01T00:00:00.000Z",
});
const positionOf = (cursor: string): Walk["position"] => {
  const [cell = "", uid = ""] = cursorIn("listAllElements", cursor)?.split(" ") ?? [];
  return { cell, uid };
};

async function walked(
  cells: Cells,
  limit: number,
): Promise<{ readonly seen: readonly string[]; readonly most: number; readonly missing: readonly string[] }> {
  const seen: string[] = [];
  const missing: string[] = [];
  let position: Walk["position"] = null;
  let most = 0;
  const ask: Walk["ask"] = async (cell, { limit: wanted, after }) => {
    const count = cells[cell] ?? null;
    if (count === null) return null;
    const from = after === undefined ? 0 : Number(cursorIn("listElements", after)?.split("-")[1]);
    const items = Array.from({ length: Math.min(wanted, count - from) }, (_, at) => element(cell, from + at + 1));
    return { items, isMore: from + items.length < count };
  };
  for (let turn = 0; turn < 1000; turn += 1) {
    const page = await pageOver({ cells: Object.keys(cells), limit, position, ask });
    most = Math.max(most, page.items.length);
    seen.push(...page.items.map(({ uid }) => uid));
    missing.push(...page.missing);
    if (page.next === null) return { seen, most, missing };
    position = positionOf(page.next);
  }
  throw new Error("it does not end");
}

test("pages over cells have each element once, in order, and no more than was asked for", async () => {
  const name = fc.stringMatching(/^[a-z]{1,3}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(name, fc.option(fc.integer({ min: 0, max: 9 })), { maxKeys: 60 }),
      fc.integer({ min: 1, max: 12 }),
      async (cells, limit) => {
        const { seen, most, missing } = await walked(cells, limit);
        const expected = Object.keys(cells)
          .sort()
          .flatMap((cell) => Array.from({ length: cells[cell] ?? 0 }, (_, at) => `${cell}-${at + 1}`));
        assert.deepEqual(seen, expected);
        assert.ok(most <= limit);
        // A cell is told to be missing wherever its elements would be; none that answers is.
        assert.ok(missing.every((cell) => cells[cell] === null));
      },
    ),
    { numRuns: 200 },
  );
});

test("a controller that says more than it was asked for gets no more into a page, and the cells behind it are there", async () => {
  const ask: Walk["ask"] = async (cell) => ({
    items: [1, 2, 3, 4, 5].map((number) => element(cell, number)),
    isMore: false,
  });
  const first = await pageOver({ cells: ["b", "a"], limit: 3, position: null, ask });
  assert.deepEqual(
    first.items.map(({ uid }) => uid),
    ["a-1", "a-2", "a-3"],
  );
  assert.deepEqual(positionOf(first.next ?? ""), { cell: "a", uid: "a-3" });
});

test("a cell that is gone since the last page is passed over", async () => {
  const ask: Walk["ask"] = async (cell) => ({ items: [element(cell, 1)], isMore: false });
  const page = await pageOver({ cells: ["a", "c"], limit: 3, position: { cell: "b", uid: "b-7" }, ask });
  assert.deepEqual(
    page.items.map(({ uid }) => uid),
    ["c-1"],
  );
});
