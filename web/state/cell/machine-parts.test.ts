import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState } from "../../../model/api.ts";
import type { Element } from "../known.ts";
import { addressesOf, lastEndOf, partsOf, placeOfData } from "./machine-parts.ts";

const model = {
  shop: {
    "x.type": "Cell",
    net: { "x.type": "Subnet", "x.size": 16 },
    web: { "x.type": "VM", "x.memory": 64, "x.desiredState": "off", "x.restart": 2 },
    db: {
      "x.type": "VM",
      "x.memory": 64,
      card: { "x.type": "VirtualInterface", "x.vm": "<ref:..>", "x.subnet": "<ref:/shop/net>" },
    },
    card: { "x.type": "VirtualInterface", "x.vm": "<ref:../web>", "x.subnet": "<ref:../net>" },
    data: { "x.type": "Volume", "x.size": 64 },
    one: { "x.type": "VolumeConnection", "x.vm": "<ref:../web>", "x.volume": "<ref:../data>" },
    two: { "x.type": "VolumeConnection", "x.vm": "<ref:../web>", "x.volume": "<ref://bank.cells.internal/golden>" },
  },
};
const state = (more: Partial<ElementState>): ElementState => ({
  phase: "ready",
  reason: null,
  since: "",
  uid: "1",
  ...more,
});
const elements: readonly Element[] = [
  {
    cell: "shop",
    path: "shop/card",
    type: "VirtualInterface",
    state: state({ address: "10.1.0.2", mac: "02:00:00:00:00:01", name: null }),
  },
  { cell: "shop", path: "shop/data", type: "Volume", state: state({ server: "s1", sizeMiB: 64 }) },
];

test("a machine has the cards and disks that name it, from wherever in the document, with what they lead to", () => {
  const web = partsOf(model, elements, "shop/web") ?? assert.fail();
  assert.deepEqual([web.wanted, web.counter], ["off", 2]);
  assert.deepEqual(
    web.cards.map((card) => [card.path, card.to, addressesOf(card)]),
    [["shop/card", "shop/net", "10.1.0.2 · 02:00:00:00:00:01"]],
  );
  assert.deepEqual(
    web.disks.map((disk) => [disk.path, disk.to, placeOfData(disk)]),
    [
      ["shop/one", "shop/data", "64 MiB · at s1"],
      ["shop/two", "//bank.cells.internal/golden", ""],
    ],
  );
  const db = partsOf(model, elements, "shop/db") ?? assert.fail();
  assert.deepEqual(
    [db.wanted, db.counter, db.cards.map(({ path }) => path), db.disks],
    ["on", 0, ["shop/db/card"], []],
  );
});

test("what is no machine of the document has no parts", () => {
  for (const path of ["shop/net", "shop/gone", "shop"]) assert.equal(partsOf(model, elements, path), null);
  assert.equal(partsOf(null, elements, "shop/web"), null);
});

test("how an incarnation ended is a sentence, of those that nobody asked to end", () => {
  assert.equal(lastEndOf(state({})), null);
  const crashed = { incarnation: 3, how: "crashed", reason: "signal 9" } as const;
  assert.equal(lastEndOf(state({ lastEnd: crashed })), "Incarnation 3 ended: it crashed, signal 9.");
  const died = { incarnation: 1, how: "host died", reason: null } as const;
  assert.equal(lastEndOf(state({ lastEnd: died })), "Incarnation 1 ended: its host was lost.");
});
