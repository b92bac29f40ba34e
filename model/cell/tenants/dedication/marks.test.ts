import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../json/json.ts";
import { type Marks, mayStandTagged, missingMark, readProperties } from "./marks.ts";

const host: Marks = { cluster: "z1/p1/c1", tags: ["ssd", "rack-7"], properties: { gpu: "a100", sriov: 8 } };

test("a VM stands where the place, the tags and the properties are that it asks for", () => {
  const rows: readonly (readonly [JsonObject, string | null])[] = [
    [{}, null],
    [{ zone: "z1", pod: "p1", cluster: "c1" }, null],
    [{ pod: "z1/p1", cluster: "z1/p1/c1" }, null],
    [{ zone: "z2" }, "zone z2"],
    [{ pod: "z2/p1" }, "pod z2/p1"],
    [{ cluster: "p1" }, "cluster p1"],
    [{ tags: "ssd" }, null],
    [{ tags: ["ssd", "rack-7"] }, null],
    [{ tags: ["ssd", "gpu"] }, "tags gpu"],
    [{ properties: { gpu: "a100", sriov: 8 } }, null],
    [{ properties: { sriov: 7 } }, null],
    [{ properties: { sriov: 9 } }, "properties sriov 9"],
    [{ properties: { gpu: "h100" } }, 'properties gpu "h100"'],
    [{ properties: { gpu: 1 } }, "properties gpu 1"],
    [{ properties: { fpga: 0 } }, "properties fpga 0"],
  ];
  for (const [placement, missing] of rows) {
    const found = missingMark(host, placement);
    assert.equal(found === null ? null : `${found.wish} ${found.of}`, missing, JSON.stringify(placement));
  }
  assert.deepEqual(
    missingMark(undefined, { zone: "z1" }),
    { wish: "zone", of: "z1" },
    "of a host of which nothing is said",
  );
});

test("properties are texts and whole numbers, by names", () => {
  assert.deepEqual(readProperties({ gpu: "a100", sriov: 8 }), { gpu: "a100", sriov: 8 });
  for (const wrong of [
    null,
    "a",
    ["a"],
    { gpu: true },
    { gpu: 1.5 },
    { gpu: -1 },
    { "": 1 },
    { "a b": 1 },
    { gpu: "" },
    { gpu: { a: 1 } },
  ])
    assert.equal(readProperties(wrong), null, JSON.stringify(wrong));
});

test("tagged hosts: implicit stands at its own or an empty one, explicit at a dedicated one, none at what is neither", () => {
  const asks = { isDedicated: false, isExplicit: false, isImplicit: false };
  for (const [wish, standing, may] of [
    [{ isImplicit: true }, "own", true],
    [{ isImplicit: true }, "empty", true],
    [{ isImplicit: true }, "mixed", false],
    [{ isExplicit: true, isDedicated: true }, "mixed", true],
    [{}, "mixed", true],
    [{}, "empty", true],
    [{}, "own", false],
    [{ isDedicated: true }, "empty", false],
  ] as const)
    assert.equal(mayStandTagged({ ...asks, ...wish, standing }), may, JSON.stringify([wish, standing]));
});
