import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4, mac } from "../../../model/cell/identifiers.ts";
import type { ActualHost } from "../../documents/vocabulary.ts";
import { offersOf } from "./offers.ts";

const host = (name: string): ActualHost => ({
  host: hostName(name),
  state: "up",
  address: ipv4("10.0.1.1"),
  mac: mac("02:00:0a:00:01:01"),
  memoryMiB: 4096,
  reservedMiB: 1024,
  cpus: 2,
  cpuSpeedMHz: 2400,
  accelerator: "tcg",
});
const ratios = { cpu: 16, memory: 1 };

test("an offer leaves out the management's share and counts overcommitment in, reachable or not", () => {
  const views = ["h2", "h1"].map((name) => ({ host: hostName(name), reachable: name === "h1", actual: host(name) }));
  assert.deepEqual(offersOf(views, ratios), {
    hosts: ["h1", "h2"].map((name) => ({ host: name, memoryMiB: 3072, cpus: 32, cpuSpeedMHz: 2400 })),
    complete: true,
    marks: { places: [], tags: [], properties: [] },
  });
});

test("one host that was never heard of makes the list incomplete", () => {
  const views = [
    { host: hostName("h1"), reachable: true, actual: host("h1") },
    { host: hostName("h2"), reachable: false, actual: null },
  ];
  assert.equal(offersOf(views, ratios).complete, false);
});

test("an offer says which places, tags and properties there are", () => {
  const [h1, h2] = ["h1", "h2"].map((name) => ({ host: hostName(name), reachable: true, actual: host(name) }));
  assert.ok(h1 !== undefined && h2 !== undefined);
  const views = [
    { ...h1, marks: { cluster: "z1/p1/c1", tags: ["ssd", "gpu"] } },
    { ...h2, marks: { tags: ["gpu"], properties: { sriov: 8 } } },
  ];
  assert.deepEqual(offersOf(views, ratios).marks, {
    places: ["z1/p1/c1"],
    tags: ["gpu", "ssd"],
    properties: ["sriov"],
  });
});
