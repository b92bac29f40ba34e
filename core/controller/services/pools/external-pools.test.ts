import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import { addressOfferOf } from "../../../address/manager.ts";
import { toJson } from "../../../outbox.ts";
import { Root, rootMeans } from "../../model/root.testing.ts";

const manager = peerName("address-manager");
const pool = "198.18.0.0/15";
const model = (attributes: JsonObject): JsonObject => ({ root: { "x.type": "Cell", ...attributes } });
const declared = (...pools: readonly string[]): JsonObject => ({ "x.pools.external": [...pools] });

const grown = (hosts: readonly string[] = ["h1", "h2"]): Root => {
  const root = new Root(rootMeans);
  const offers = hosts.map((host) => ({ host, memoryMiB: 4096, cpus: 4, cpuSpeedMHz: 0 }));
  root.step({
    kind: "actual",
    from: peerName("placer"),
    key: "hosts",
    value: toJson({ hosts: offers, complete: true }),
  });
  const addresses = addressOfferOf({ internalPool: "10.64.0.0/10", externalPool: pool, reserved: ["10.0.0.0/16"] });
  root.step({ kind: "actual", from: manager, key: "addresses", value: toJson(addresses) });
  return root;
};
const says = (root: Root, more: { readonly [key: string]: Json }): void => {
  const value = { external: [pool], otherwise: pool, used: [], kept: [], inside: [], ...more };
  root.step({ kind: "actual", from: manager, key: "controller.root/pools", value });
};
const saysNothing = (root: Root): void => {
  root.step({ kind: "actual", from: manager, key: "controller.root/pools", value: null });
};
const put = (root: Root, attributes: JsonObject) => root.put("", model(attributes));
const at = (root: Root, peer: string): Json | undefined => root.desired.get(peerName(peer))?.get("pools");
const atHosts = (root: Root): readonly (Json | undefined)[] => ["host.h1", "host.h2"].map((host) => at(root, host));

test("an installation that declares no pools asks nobody for any", () => {
  const root = grown();
  assert.equal(put(root, {}).status, 200);
  says(root, { used: ["198.18.0.0/29"] });
  assert.deepEqual([at(root, "address-manager"), ...atHosts(root)], [undefined, undefined, undefined]);
});

test("declared pools go to the IP Address Manager, and to every host as it has them in force, with what machines still have", () => {
  const root = grown();
  assert.equal(put(root, declared("203.0.113.0/24", "192.168.4.0/24")).status, 200);
  assert.deepEqual(at(root, "address-manager"), { external: ["203.0.113.0/24", "192.168.4.0/24"] });
  assert.deepEqual(atHosts(root), [undefined, undefined], "before it has said so");
  says(root, { external: ["203.0.113.0/24"], kept: ["198.18.0.0/29"] });
  const external = ["203.0.113.0/24", "198.18.0.0/29"];
  assert.deepEqual(atHosts(root), [{ external }, { external }]);
  root.crash();
  assert.deepEqual(atHosts(root), [{ external }, { external }], "while nothing is known they keep what they have");
  says(root, { external: ["203.0.113.0/24"] });
  assert.deepEqual(atHosts(root)[1], { external: ["203.0.113.0/24"] });
  assert.equal(put(root, {}).status, 200);
  const had = (...networks: readonly string[]): Json => ({ external: [], had: [...networks] });
  assert.deepEqual(at(root, "address-manager"), had("203.0.113.0/24"));
  assert.deepEqual(atHosts(root)[1], { external: ["203.0.113.0/24"] }, "until the IP Address Manager has heard it");
  says(root, { kept: ["203.0.113.0/29"] });
  assert.deepEqual(atHosts(root)[1], { external: [pool, "203.0.113.0/29"] });
  assert.deepEqual(at(root, "address-manager"), had("203.0.113.0/29"));
  saysNothing(root);
  assert.deepEqual(atHosts(root)[1], { external: [pool, "203.0.113.0/29"] }, "it has lost its store");
  assert.deepEqual(at(root, "address-manager"), had("203.0.113.0/29"));
  says(root, {});
  assert.deepEqual([at(root, "address-manager"), ...atHosts(root)], [undefined, undefined, undefined]);
});

test("what was declared while the IP Address Manager said nothing is not all that it may have given", () => {
  const root = grown();
  assert.equal(put(root, declared("203.0.113.0/24", "192.0.2.0/24")).status, 200);
  assert.equal(put(root, declared("192.0.2.0/24")).status, 200);
  assert.deepEqual(at(root, "address-manager"), { external: ["192.0.2.0/24"], had: ["203.0.113.0/24"] });
  says(root, { external: ["192.0.2.0/24"], kept: ["203.0.113.8/29"] });
  assert.deepEqual(at(root, "address-manager"), { external: ["192.0.2.0/24"], had: ["203.0.113.8/29"] });
  says(root, { external: ["192.0.2.0/24"] });
  assert.deepEqual(at(root, "address-manager"), { external: ["192.0.2.0/24"] });
});

test("pools that a store has forgotten are taken back, at hosts once it is known that nothing of them is in use", () => {
  const root = grown();
  const old = { external: ["203.0.113.0/24"] };
  for (const peer of ["address-manager", "host.h1", "host.h2"]) {
    root.desired.set(peerName(peer), new Map([["pools", old]]));
    root.step({ kind: "kept", peer: peerName(peer), key: "pools", value: old });
  }
  assert.equal(put(root, {}).status, 200);
  assert.deepEqual(at(root, "address-manager"), { external: [], had: [] });
  assert.deepEqual(atHosts(root), [old, old], "they may be in use");
  says(root, { kept: ["203.0.113.0/29"] });
  assert.deepEqual(atHosts(root)[0], { external: [pool, "203.0.113.0/29"] });
  says(root, {});
  assert.deepEqual(atHosts(root), [undefined, undefined]);
});

test("hosts that keep what a store has forgotten are let go when nothing of it was in use", () => {
  const root = grown();
  const old = { external: ["203.0.113.0/24"] };
  root.desired.set(peerName("host.h1"), new Map([["pools", old]]));
  root.step({ kind: "kept", peer: peerName("host.h1"), key: "pools", value: old });
  assert.equal(put(root, {}).status, 200);
  assert.deepEqual(atHosts(root)[0], old);
  assert.deepEqual(at(root, "address-manager"), { external: [], had: [] }, "it has to say so");
  says(root, {});
  assert.deepEqual([at(root, "address-manager"), atHosts(root)[0]], [undefined, undefined]);
});

test("a pool in use is not taken away, nor one declared with a router or an internal subnet in it", () => {
  const root = grown();
  assert.equal(put(root, {}).status, 200);
  says(root, { used: ["198.18.0.0/29"], inside: ["192.168.4.0/29"] });
  const refused = (attributes: JsonObject, why: RegExp): void => {
    const { status, body } = put(root, attributes);
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), why);
  };
  refused(declared("203.0.113.0/24"), /leaves out 198\.18\.0\.0\/29, where subnets have addresses/);
  refused(declared("192.168.4.0/24", pool), /192\.168\.4\.0\/29 is an internal subnet's/);
  refused(declared("10.65.0.0/24", pool), /overlaps 10\.64\.0\.0\/10/);
  assert.equal(at(root, "address-manager"), undefined, "nothing was touched");
  assert.equal(put(root, declared("203.0.113.0/24", "198.18.0.0/24")).status, 200);
  const host = {
    host: "h2",
    state: "up",
    address: "10.0.1.2",
    mac: "02:00:00:00:01:02",
    memoryMiB: 4096,
    reservedMiB: 1,
    cpus: 4,
    cpuSpeedMHz: 0,
    accelerator: "tcg",
    routers: [{ address: "192.0.2.1", mac: null, answers: false, from: "192.0.2.9" }],
  };
  root.step({ kind: "actual", from: peerName("host.h2"), key: "host", value: host });
  refused(declared("203.0.113.0/24", "198.18.0.0/24", "192.0.2.0/24"), /192\.0\.2\.1 is the upstream router of h2/);
  refused(declared("203.0.113.0/24", "198.18.0.0/24", "192.0.2.8/29"), /192\.0\.2\.9 is h2's own on the way outside/);
  assert.equal(put(root, declared("203.0.113.0/24", "198.18.0.0/24", "192.0.2.128/25")).status, 200);
});

test("every host is heard of what it has on its way outside, before it is told anything of pools", () => {
  const root = new Root(rootMeans);
  const hosts = ["h1", "h2"].map((host) => ({ host, memoryMiB: 4096, cpus: 4, cpuSpeedMHz: 0 }));
  const value = toJson({ hosts, complete: true });
  const heard = root
    .step({ kind: "actual", from: peerName("placer"), key: "hosts", value })
    .flatMap((effect) => (effect.kind === "subscribe" && effect.prefix === "host" ? [effect.to] : []));
  assert.deepEqual(heard, ["host.h1", "host.h2"]);
});

test("names by address are handed out of the pools that are in force", () => {
  const root = grown();
  const zone = {
    "x.zone.name": "cloud.example.org",
    "x.zone.servers": "ns1.example.org",
    "x.zone.secondaries": ["10.0.0.9"],
  };
  const zonePools = (): Json | undefined => root.at<{ readonly pools?: Json }>("dns-manager", "zone")[0]?.pools;
  put(root, zone);
  assert.equal(zonePools(), undefined);
  put(root, { ...zone, ...declared("203.0.113.0/24") });
  assert.deepEqual(zonePools(), ["203.0.113.0/24"]);
  says(root, { external: ["203.0.113.0/24"], kept: ["198.18.0.0/29"] });
  assert.deepEqual(zonePools(), ["203.0.113.0/24", "198.18.0.0/29"]);
  saysNothing(root);
  assert.deepEqual(zonePools(), ["203.0.113.0/24", "198.18.0.0/29"], "it has lost its store");
  put(root, { ...zone, ...declared("192.0.2.0/24") });
  assert.deepEqual(zonePools(), ["192.0.2.0/24", "203.0.113.0/24", "198.18.0.0/29"]);
  says(root, { external: ["192.0.2.0/24"], kept: ["203.0.113.8/29"] });
  assert.deepEqual(zonePools(), ["192.0.2.0/24", "203.0.113.0/24"], "the zone that is delegated");
  says(root, { external: ["192.0.2.0/24"] });
  assert.deepEqual(zonePools(), ["192.0.2.0/24"]);
  put(root, zone);
  says(root, {});
  assert.equal(zonePools(), undefined);
});
