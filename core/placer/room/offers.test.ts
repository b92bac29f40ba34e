import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4, mac, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { ActualHost, HostOffers } from "../../documents/vocabulary.ts";
import { host as said, world } from "../placer.testing.ts";
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
    offerings: [],
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

test("an offer says how long who was stopped counts, where the operator has said it, and hears nothing that is malformed", () => {
  const it = world(["h1"]);
  it.say("h1", said("h1"));
  const hear = (value: JsonObject | null): unknown => {
    it.input({ kind: "desired", from: peerName("controller.root"), key: "settings", value });
    const offered: unknown = it.published.get("hosts");
    return (offered as HostOffers).lastHostS;
  };
  assert.equal(hear({ settings: {} }), undefined);
  assert.equal(hear({ settings: { lastHostS: 60 } }), 60);
  // One of a later version is not known here.
  assert.equal(hear({ settings: { lastHostS: 0, laterS: 7 } }), 0);
  for (const lastHostS of [-1, 86_401, 1.5, "60"]) assert.equal(hear({ settings: { lastHostS } }), 0, "as it was");
  hear({ settings: { lastHostS: 60 } });
  assert.equal(hear(null), undefined);
});
