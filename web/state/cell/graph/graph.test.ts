import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../../../model/json/json.ts";
import { folded, foldedId, type Graph, graphOf, mostNodes, targetOf, withoutVolumes } from "./graph.ts";
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
    far: { "x.type": "NetworkRule", "x.address1": "<ref:/shop/web>", "x.address2": "<ref://bank.cells/bank/vault>" },
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
      ["//bank.cells", "cell", "cells"],
    ],
  );
  assert.deepEqual(
    edges.map(({ path, from, to, there, says, isOneWay }) => [path, from, to, there, says, isOneWay]),
    [
      ["shop/in", "internet", "shop/net", null, "anything", true],
      ["shop/toDb", "shop/web", "shop/db", null, "tcp, to port 5432", false],
      ["shop/far", "shop/web", "//bank.cells", "bank/vault", "anything", false],
    ],
  );
  assert.equal(machineOf.get("shop/webCard"), "shop/web");
  assert.deepEqual(
    ["<ref:../a/b>", "<ref:/a>", "10.0.0.0/8", "<ref:../../x>"].map((each) => targetOf(each, "shop/r")),
    ["shop/a/b", "a", "10.0.0.0/8", "x"],
  );
  assert.deepEqual(graphOf({}), { nodes: [], edges: [], machineOf: new Map() });
});

const withVolumes: JsonObject = {
  shop: {
    net: { "x.type": "Subnet" },
    back: { "x.type": "Subnet" },
    web: vm,
    webCard: card("web"),
    webBack: card("web", "back"),
    data: { "x.type": "Volume" },
    daily: { "x.type": "VolumeCopy", "x.image": "<ref:../data>" },
    theirs: { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells/bank/gold>" },
    disk: { "x.type": "VolumeConnection", "x.vm": "<ref:../web>", "x.volume": "<ref:../data>" },
    toBank: {
      "x.type": "VolumeGrant",
      "x.volume": "<ref:../data>",
      "x.cell": "<ref://bank.cells/>",
      "x.grant": "copy",
    },
    toOne: {
      "x.type": "VolumeGrant",
      "x.volume": "<ref:../data>",
      "x.vm": "<ref://bank.cells/bank/vm>",
      "x.grant": "connect",
    },
    toUs: { "x.type": "VolumeGrant", "x.volume": "<ref:../data>", "x.account": "ROOT/acme", "x.grant": "copy" },
  },
};
test("links and grants are edges: to volumes, to a second subnet, to other cells and to whom volumes are opened", () => {
  const graph = graphOf(withVolumes);
  assert.deepEqual(
    graph.nodes.map(({ id, kind, lane }) => [id, kind, lane]),
    [
      ["shop/net", "Subnet", "shop/net"],
      ["shop/back", "Subnet", "shop/back"],
      ["shop/web", "VM", "shop/net"],
      ["shop/data", "Volume", "volumes"],
      ["shop/daily", "Volume", "volumes"],
      ["shop/theirs", "Volume", "volumes"],
      ["//bank.cells", "cell", "cells"],
      ["account ROOT/acme", "outside", "outside"],
    ],
  );
  assert.deepEqual(
    graph.edges.map(({ path, kind, from, to, there, says }) => [path, kind, from, to, there, says]),
    [
      ["shop/webBack", "link", "shop/web", "shop/back", null, "card"],
      ["shop/daily", "link", "shop/daily", "shop/data", null, "copy"],
      ["shop/theirs", "link", "shop/theirs", "//bank.cells", "bank/gold", "copy"],
      ["shop/disk", "link", "shop/web", "shop/data", null, "disk"],
      ["shop/toBank", "grant", "shop/data", "//bank.cells", "", "may copy"],
      ["shop/toOne", "grant", "shop/data", "//bank.cells", "bank/vm", "may connect"],
      ["shop/toUs", "grant", "shop/data", "account ROOT/acme", null, "may copy"],
    ],
  );
  const fewer = withoutVolumes(graph);
  assert.deepEqual(
    [fewer.nodes.map(({ kind }) => kind), fewer.edges.map(({ path }) => path)],
    [["Subnet", "Subnet", "VM", "cell", "outside"], ["shop/webBack"]],
  );
});

test("volumes and other cells are folded as well where there are very many", () => {
  const many = <T>(make: (at: number) => T) =>
    Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`n${at}`, make(at)]));
  const copies = many((at) => ({ "x.type": "VolumeCopy", "x.image": `<ref://c${at}.cells/c/v>` }));
  const few = folded(graphOf({ shop: { copies } }), new Set());
  assert.deepEqual(
    few.nodes.filter(({ kind }) => kind === "folded").map(({ id, machines }) => [id, machines]),
    [[foldedId("cells", ""), 100]],
    "one group was enough",
  );
  const fewer = folded(graphOf({ shop: { copies } }), new Set(), 50);
  assert.deepEqual(
    fewer.nodes.map(({ id }) => id),
    [foldedId("cells", ""), foldedId("volumes", "shop/copies")],
  );
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

/** What may become of a graph, one thing after the other: machines, volumes and other cells come and go, machines change their subnet. */
const change = fc.record({ name: fc.integer({ min: 0, max: 12 }), lane: fc.option(fc.integer({ min: 0, max: 3 })) });
const kinds: Readonly<Record<string, "Volume" | "cell">> = { volumes: "Volume", cells: "cell" };
const graphsOf = (changes: readonly { readonly name: number; readonly lane: number | null }[]): readonly Graph[] => {
  const there = new Map<string, string>();
  return changes.map(({ name, lane }) => {
    if (lane === null) there.delete(`m${name}`);
    else there.set(`m${name}`, ["volumes", "cells"][lane - 2] ?? `net${lane}`);
    const lanes = [...new Set(there.values())].filter((each) => each.startsWith("net"));
    const nodes = [
      ...lanes.map((id) => ({ id, kind: "Subnet" as const, lane: id, machines: 0 })),
      ...[...there].map(([id, of]) => ({ id, kind: kinds[of] ?? ("VM" as const), lane: of, machines: 1 })),
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
