import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ElementState } from "../../model/api.ts";
import { type Asked, csvOf, listed, listingOf, type Row } from "./listing.ts";

const state = (more: Partial<ElementState> = {}): ElementState => ({
  phase: "ready",
  reason: null,
  since: "2026-01-01T00:00:00Z",
  uid: "1",
  ...more,
});
const row = (path: string, type: string, more: Partial<ElementState> = {}): Row => ({
  path,
  type,
  cell: path.split("/")[0] ?? "",
  state: state(more),
});
const rows = [
  row("shop/web/vm", "VM", { host: "h10" }),
  row("shop/db/vm", "VM", { host: "h2", phase: "waiting", reason: "no room, says the Placer" }),
  row("lab/vm", "VM", { phase: "failed" }),
  row("lab/data", "Volume", { server: "s1", sizeMiB: 100 }),
  row("lab/big", "Volume", { server: "s1", sizeMiB: 20_000 }),
];
const read = (asked: Partial<Asked>) => listingOf({ filters: [], columns: "path", sort: "path", ...asked });
const paths = (asked: Partial<Asked>): readonly string[] => {
  const listing = read(asked);
  if (!listing.ok) assert.fail(listing.error);
  return listed(rows, listing.value).map(({ path }) => path);
};

test("filters are all met; commas are between alternatives, and * stands for any text", () => {
  assert.deepEqual(paths({ filters: ["type=VM", "phase=waiting,failed"] }), ["lab/vm", "shop/db/vm"]);
  assert.deepEqual(paths({ filters: ["type=vm", "cell!=lab"] }), ["shop/db/vm", "shop/web/vm"]);
  assert.deepEqual(paths({ filters: ["path=*d*"] }), ["lab/data", "shop/db/vm"]);
  assert.deepEqual(paths({ filters: ["host="] }), ["lab/big", "lab/data", "lab/vm"], "empty is a value");
  assert.deepEqual(paths({ filters: ["path=l.b/vm"] }), [], "a dot is a dot");
});

test("numbers count as such, - turns an order round, and what is empty comes last", () => {
  assert.deepEqual(paths({ sort: "host,path" }), ["shop/db/vm", "shop/web/vm", "lab/big", "lab/data", "lab/vm"]);
  assert.deepEqual(paths({ sort: "-host,path" }), ["shop/web/vm", "shop/db/vm", "lab/big", "lab/data", "lab/vm"]);
  assert.deepEqual(paths({ filters: ["type=Volume"], sort: "-size" }), ["lab/big", "lab/data"]);
});

test("what is asked for wrongly is said with what there is", () => {
  const said = (asked: Partial<Asked>): string => {
    const listing = read(asked);
    return listing.ok ? assert.fail() : listing.error;
  };
  assert.match(said({ columns: "path,hosts" }), /no column `hosts`; there are path, cell, type/);
  assert.match(said({ sort: "-" }), /no column ``/);
  assert.match(said({ filters: ["colour=red"] }), /no column `colour`/);
  assert.match(said({ filters: ["waiting"] }), /`waiting` is no filter: write COLUMN=VALUE/);
});

test("CSV is that of RFC 4180", () => {
  assert.equal(
    csvOf(rows.slice(0, 2), ["path", "reason"]),
    'path,reason\r\nshop/web/vm,\r\nshop/db/vm,"no room, says the Placer"\r\n',
  );
  const odd = row('a"b', "VM", { reason: "one\ntwo" });
  assert.equal(csvOf([odd], ["path", "reason"]).split("\r\n")[1]?.startsWith('"a""b",'), true);
});

test("property: a list is some of the rows, each once, whatever the order", () => {
  const sorts = fc.constantFrom("path", "-path", "host,-size", "-reason,type", "phase");
  fc.assert(
    fc.property(sorts, fc.subarray(["type=V*", "phase!=failed", "host=*"]), (sort, filters) => {
      const found = paths({ sort, filters });
      assert.equal(new Set(found).size, found.length);
      assert.ok(found.every((path) => rows.some((each) => each.path === path)));
      if (filters.length === 0) assert.equal(found.length, rows.length);
    }),
  );
});
