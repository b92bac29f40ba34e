import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4, mac, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { ActualHost, HostOffers } from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { host as said, shop, world } from "../placer.testing.ts";
import { createPlacer } from "../placer.ts";
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

test("of many hosts that are heard after a start what they offer is said once, when all have been, and then of each that offers another thing", () => {
  const names = Array.from({ length: 50 }, (_, at) => `h${at}`);
  const peers = names.map((name) => peerName(`host.${name}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const offers: HostOffers[] = [];
  const input = (what: Input): void => {
    for (const effect of service.step(state, what, { ms: 0, wallMs: 0 }).effects)
      if (effect.kind === "publish" && effect.key === "hosts") offers.push(effect.value as unknown as HostOffers);
  };
  input({ kind: "start" });
  assert.deepEqual([offers.length, offers[0]?.complete], [1, false], "until then nothing is impossible");
  for (const [at, peer] of peers.entries()) {
    input({ kind: "actual", from: peer, key: "host", value: said(names[at] ?? "") });
    input({ kind: "reachable", peer, reachable: true });
  }
  assert.deepEqual([offers.length, offers.at(-1)?.complete, offers.at(-1)?.hosts.length], [2, true, 50]);
  const [peer = assert.fail()] = peers;
  input({ kind: "actual", from: peer, key: "host", value: said("h0", 4000, { state: "draining" }) });
  assert.equal(offers.length, 2, "what it could hold is the same");
  input({ kind: "actual", from: peer, key: "host", value: said("h0", 9000) });
  assert.deepEqual([offers.length, offers.at(-1)?.hosts[0]?.memoryMiB], [3, 8000]);
});

test("who waits for many hosts after a start is told of few by name, and how many more there are", () => {
  const peers = Array.from({ length: 11 }, (_, at) => peerName(`host.h${at + 10}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const reasonAfter = (what: Input): unknown => {
    for (const effect of service.step(state, what, { ms: 0, wallMs: 0 }).effects)
      if (effect.kind === "publish" && effect.key.endsWith("placement/v1")) return (effect.value as JsonObject).reason;
    return null;
  };
  service.step(state, { kind: "start" }, { ms: 0, wallMs: 0 });
  const about = { path: "shop/v1", cell: "shop", incarnation: 1, memoryMiB: 100, cpus: 1, cpuSpeedMHz: 0 };
  const value = { vm: "v1", ...about, placement: {} };
  const first = reasonAfter({ kind: "desired", from: shop, key: "placement/v1", value });
  assert.match(String(first), /hear from h10, h11, h12, h13, h14, h15, h16, h17 and 3 more$/);
  const heard = (at: number): unknown =>
    reasonAfter({ kind: "reachable", peer: peers[at] ?? assert.fail(), reachable: true });
  [0, 1].map(heard);
  assert.match(String(heard(2)), /hear from h13, h14, h15, h16, h17, h18, h19, h20$/);
});
