import assert from "node:assert/strict";
import { test } from "node:test";
import { list } from "./list.ts";
import { scene } from "./scene.testing.ts";

const state = (more: object = {}) => ({
  phase: "ready",
  reason: null,
  since: "2026-01-01T00:00:00Z",
  uid: "1",
  ...more,
});
const card = (address: string | null) => ({
  "x.type": "VirtualInterface",
  "x.vm": "<ref:/shop/web>",
  "x.subnet": "<ref:/shop/net>",
  $state: state({ address }),
});
const model = {
  shop: {
    "x.type": "Cell",
    net: { "x.type": "Subnet", "x.size": 16, $state: state({ cidr: "10.1.0.0/28" }) },
    web: { "x.type": "VM", "x.memory": 64, $state: state({ host: "h1" }) },
    db: { "x.type": "VM", "x.memory": 64, $state: state() },
    front: { one: card("10.1.0.2") },
    two: card("10.1.0.3"),
    waiting: card(null),
  },
};

test("a VM is listed with the addresses of its interfaces, wherever in the model these stand", async (t) => {
  const { context, printed } = await scene(t, ({ url }) => ({
    status: 200,
    body:
      url.startsWith("/cells?") || url === "/cells" ? [{ cell: "shop", version: 1, phases: {}, elements: 5 }] : model,
  }));
  const asked = { type: "VM", filters: [], columns: "path,host,address", sort: "path" };
  await list(context, asked);
  assert.deepEqual(
    printed.map((line) => line.trimEnd().replace(/ {2,}/g, " | ")),
    ["PATH | HOST | ADDRESS", "shop/db", "shop/web | h1 | 10.1.0.2 10.1.0.3"],
  );
  printed.length = 0;
  await list(context, { ...asked, filters: ["address=*10.1.0.3*"] });
  assert.equal(printed.length, 2, "one that has it among others is found by it");
});
