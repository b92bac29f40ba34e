import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState, InstallationStatus } from "../../model/api.ts";
import type { Element } from "./known.ts";
import { firstView, machinesOf, sortedBy, viewed, windowOf } from "./machines.ts";

const element = (path: string, more: Partial<ElementState> = {}, type = "VM"): Element => ({
  cell: path.split("/")[0] ?? "",
  path,
  type,
  state: { phase: "ready", reason: null, since: "2026-01-01T00:00:00Z", uid: path, ...more },
});
const status = {
  services: [],
  servers: [],
  hosts: [
    {
      host: "h1",
      machines: [
        { path: "shop/web10", cell: "shop", stage: "running", memoryMiB: 256, cpus: 1, residentMiB: 1, load: 0.5 },
      ],
    },
  ],
} as unknown as InstallationStatus;

test("a machine has its state from its cell, and its load from its host", () => {
  const all = machinesOf(
    [element("shop/web10", { host: "h1" }), element("shop/disk", {}, "Volume"), element("shop/web2")],
    status,
  );
  assert.deepEqual(
    all.map(({ path, host, load, memoryMiB }) => [path, host, load, memoryMiB]),
    [
      ["shop/web10", "h1", 0.5, 256],
      ["shop/web2", null, null, null],
    ],
  );
  assert.equal(machinesOf([element("shop/web10")], null)[0]?.load, null, "who is no operator hears of no loads");
});

test("the list is filtered and sorted, numbers as numbers, what is not known last", () => {
  const all = machinesOf(
    [
      element("shop/web10", { host: "h1" }),
      element("shop/web2", { phase: "waiting", reason: "No room" }),
      element("bank/db"),
    ],
    status,
  );
  const paths = (change: object): readonly string[] => viewed(all, { ...firstView, ...change }).map(({ path }) => path);
  assert.deepEqual(paths({}), ["bank/db", "shop/web2", "shop/web10"]);
  assert.deepEqual(paths({ descending: true }), ["shop/web10", "shop/web2", "bank/db"]);
  assert.deepEqual(paths({ by: "load" }), ["shop/web10", "bank/db", "shop/web2"]);
  assert.deepEqual(paths({ text: " no ROOM" }), ["shop/web2"]);
  assert.deepEqual(paths({ text: "h1" }), ["shop/web10"]);
  assert.deepEqual(paths({ phase: "waiting" }), ["shop/web2"]);
  assert.deepEqual(paths({ cell: "bank" }), ["bank/db"]);
  assert.deepEqual(sortedBy(sortedBy(firstView, "host"), "host"), { ...firstView, by: "host", descending: true });
});

test("of a long list at most 80 rows are drawn, with those in it that can be seen", () => {
  for (const count of [0, 1, 79, 1000, 100_000])
    for (const topPx of [0, 55, 5_600, 55_999, 10_000_000])
      for (const heightPx of [0, 500, 100_000]) {
        const { first, last } = windowOf(count, { topPx, heightPx, rowPx: 56 });
        assert.ok(
          first >= 0 && last <= count && last - first <= 80 && (count === 0 || last > first),
          `${count} ${topPx} ${first} ${last}`,
        );
      }
  assert.deepEqual(windowOf(1000, { topPx: 5600, heightPx: 560, rowPx: 56 }), { first: 92, last: 118 });
});
