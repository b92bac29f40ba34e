import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../../../model/json/json.ts";
import { folded, foldedId, type Graph, graphOf, mostNodes, targetOf } from "./graph.ts";
import { type Layout, nothingPlaced, placed } from "./layout.ts";

const vm = { "x.type": "VM" };
const card = (machine: string, subnet = "net"): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": `<ref:../${machine}>`,
  "x.subnet": `<ref:/shop/${subnet}>`,
});
const shop = {
  shop: {
    "x.type": "Cell",
    net: { "x.type": "Subnet" },
    web: vm,
    webCard: card("web"),
    db: vm,
    dbCard: card("db"),
    alone: vm,
    in: { "x.type": "NetworkRule", "x.address1": "internet", "x.address2": "<ref:/shop/net>", "x.direction": "1to2" },
    toDb: {
      "x.type": "NetworkRule",
      "x.address1": "<ref:../webCard>",
      "x.address2": "<ref:/shop/db>",
      "x.protocol": "tcp",
      "x.port2": 5432,
    },
    far: { "x.type": "NetworkRule", "x.address1": "<ref:/shop/web>", "x.address2": "<ref://bank/vault>" },
  },
};

test("machines stand in their subnets, rules are edges between machines, subnets and what is outside", () => {
  const { nodes, edges, machineOf } = graphOf(shop);
  assert.deepEqual(
    nodes.map(({ id, kind, lane }) => [id, kind, lane]),
    [
      ["shop/net", "Subnet", "shop/net"],
      ["shop/web", "VM", "shop/net"],
      ["shop/db", "VM", "shop/net"],
      ["shop/alone", "VM", ""],
      ["internet", "outside", "outside"],
      ["//bank/vault", "outside", "outside"],
    ],
  );
  assert.deepEqual(
    edges.map(({ rule, from, to, says, isOneWay }) => [rule, from, to, says, isOneWay]),
    [
      ["shop/in", "internet", "shop/net", "anything", true],
      ["shop/toDb", "shop/web", "shop/db", "tcp, to port 5432", false],
      ["shop/far", "shop/web", "//bank/vault", "anything", false],
    ],
  );
  assert.equal(machineOf.get("shop/webCard"), "shop/web");
  assert.deepEqual(
    ["<ref:../a/b>", "<ref:/a>", "10.0.0.0/8", "<ref:../../x>"].map((each) => targetOf(each, "shop/r")),
    ["shop/a/b", "a", "10.0.0.0/8", "x"],
  );
  assert.deepEqual(graphOf({}), { nodes: [], edges: [], machineOf: new Map() });
});

test("of very many machines those of one component are one node, until somebody opens it", () => {
  const machines = Array.from({ length: mostNodes }, (_, at) => [`m${at}`, vm] as const);
  const rule = { "x.type": "NetworkRule", "x.address1": "<ref:/shop/few/a>", "x.address2": "<ref:/shop/many/m7>" };
  const graph = graphOf({ shop: { many: Object.fromEntries(machines), few: { a: vm, b: vm }, rule } });
  const few = folded(graph, new Set());
  const many = foldedId("", "shop/many");
  assert.deepEqual(
    few.nodes.map(({ id, machines }) => [id, machines]),
    [
      ["shop/few/a", 1],
      ["shop/few/b", 1],
      [many, mostNodes],
    ],
  );
  assert.deepEqual([few.edges[0]?.from, few.edges[0]?.to], ["shop/few/a", many]);
  assert.equal(folded(graph, new Set([many])).nodes.length, mostNodes + 1, "the other one is folded then");
});

test("very many ends outside of the cell are one node as well", () => {
  const rules = Array.from({ length: mostNodes }, (_, at) => [
    `r${at}`,
    { "x.type": "NetworkRule", "x.address1": `192.0.2.${at}/32`, "x.address2": "<ref:/shop/a>" },
  ]);
  const graph = graphOf({ shop: { a: vm, ...Object.fromEntries(rules) } });
  const few = folded(graph, new Set());
  const ends = foldedId("outside", "");
  assert.deepEqual(
    few.nodes.map(({ id, kind, machines }) => [id, kind, machines]),
    [
      ["shop/a", "VM", 1],
      [ends, "folded", mostNodes],
    ],
  );
  assert.deepEqual([few.edges.length, few.edges[0]?.from], [mostNodes, ends]);
  assert.equal(folded(graph, new Set([ends])).nodes.length, mostNodes + 1, "until somebody opens it");
});

/** What may become of a graph, one thing after the other: machines come, go, and change their subnet. */
const change = fc.record({ name: fc.integer({ min: 0, max: 12 }), lane: fc.option(fc.integer({ min: 0, max: 3 })) });
const graphsOf = (changes: readonly { readonly name: number; readonly lane: number | null }[]): readonly Graph[] => {
  const there = new Map<string, string>();
  return changes.map(({ name, lane }) => {
    if (lane === null) there.delete(`m${name}`);
    else there.set(`m${name}`, `net${lane}`);
    const lanes = [...new Set(there.values())];
    const nodes = [
      ...lanes.map((id) => ({ id, kind: "Subnet" as const, lane: id, machines: 0 })),
      ...[...there].map(([id, of]) => ({ id, kind: "VM" as const, lane: of, machines: 1 })),
    ];
    return { nodes, edges: [], machineOf: new Map() };
  });
};
test("a change moves nothing else, and no two stand at one place", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      let [before, nodes]: [Layout, Graph["nodes"]] = [nothingPlaced, []];
      for (const graph of graphsOf(changes)) {
        const after = placed(before, graph);
        assert.equal(after.places.size, graph.nodes.length);
        const taken = [...after.places.values()].map(({ column, row }) => `${column} ${row}`);
        assert.equal(new Set(taken).size, taken.length);
        for (const node of graph.nodes)
          if (nodes.some(({ id, lane }) => id === node.id && lane === node.lane))
            assert.deepEqual(after.places.get(node.id), before.places.get(node.id));
        assert.deepEqual(placed(after, graph), after);
        [before, nodes] = [after, graph.nodes];
      }
    }),
  );
});
