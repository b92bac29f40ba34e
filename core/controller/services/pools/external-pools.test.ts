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
  assert.equal(at(root, "address-manager"), undefined);
  assert.deepEqual(atHosts(root)[1], { external: ["203.0.113.0/24"] }, "until the IP Address Manager has heard it");
  says(root, { kept: ["203.0.113.0/29"] });
  assert.deepEqual(atHosts(root)[1], { external: [pool, "203.0.113.0/29"] });
  says(root, {});
  assert.deepEqual(atHosts(root), [undefined, undefined]);
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
    routers: [{ address: "192.0.2.1", mac: null, answers: false }],
  };
  root.step({ kind: "actual", from: peerName("host.h2"), key: "host", value: host });
  refused(declared("203.0.113.0/24", "198.18.0.0/24", "192.0.2.0/24"), /192\.0\.2\.1 is the upstream router of h2/);
  assert.equal(put(root, declared("203.0.113.0/24", "198.18.0.0/24", "192.0.2.128/25")).status, 200);
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
});
