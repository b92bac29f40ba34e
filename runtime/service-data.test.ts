import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Json } from "../model/json.ts";
import { configureRole, type RolePlaces, readServiceData, readServiceSeed } from "./service-data.ts";

const certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
const issued = { kind: "issued", certificate, key };
const controller = {
  ...{ cell: "shop", cellUid: "c1-1", cellNumber: 1, domain: "cells.internal" },
  credentialHashes: ["0".repeat(64)],
};
const whole = (): Record<string, Json> => ({
  format: 1,
  authority: certificate,
  peers: { "host.h1": "10.0.1.1", "agent.s1": "10.0.2.1:7100:7101" },
  roles: {
    placer: { name: "placer", identity: issued },
    "dns-manager": {
      ...{ name: "dns-manager", distributionPort: 7200, httpPort: 7201 },
      identity: { kind: "enrolment", token: "t", issuer: "controller.root" },
    },
    controller: { name: "controller.shop", identity: issued, address: "10.0.3.1", controller },
  },
});
const seed = {
  ...{ vm: "c1-9", incarnation: 2, hostName: "core", domain: null, data: whole() },
  interfaces: [
    { mac: "02:00:0a:00:00:0d", address: "10.0.0.13", prefixLength: 16 },
    { mac: "02:00:0a:00:03:01", address: "10.0.3.1", prefixLength: 16 },
  ],
};
const places: RolePlaces = {
  ...{ directory: "/d", runDirectory: "/r", peersFile: "/r/peers.json" },
  certificate: { certFile: "/r/c", keyFile: "/r/k", caFile: "/r/a" },
};

/** A copy with another value at the place, or without it. */
const changed = (place: readonly string[], value: Json | undefined): Json => {
  const copy = structuredClone(whole());
  let at: Record<string, Json> = copy;
  for (const name of place.slice(0, -1)) at = at[name] as Record<string, Json>;
  const last = place.at(-1) ?? "";
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
};

test("what a service VM is told is read as it was written", () => {
  const read = readServiceData(whole());
  assert.ok(read.ok, JSON.stringify(read));
  assert.deepEqual(read.value, whole());
});

test("every role is configured with its own address, and a controller with its card", () => {
  const read = readServiceSeed(seed);
  assert.ok(read.ok, JSON.stringify(read));
  const placer = configureRole(read.value, "placer", places);
  assert.ok(placer.ok);
  assert.deepEqual(placer.value, { name: "placer", role: "placer", address: "10.0.0.13", ...places });
  const shop = configureRole(read.value, "controller", places);
  assert.ok(shop.ok);
  assert.equal(shop.value.address, "10.0.3.1");
  assert.deepEqual(shop.value.controller, { ...controller, mac: "02:00:0a:00:03:01" });
  const other = configureRole(read.value, "storage-manager", places);
  assert.ok(!other.ok && /does not name "storage-manager"; it names placer/.test(other.error));
});

test("an address that no card has is refused with those that there are", () => {
  const data = changed(["roles", "placer", "address"], "10.0.0.99");
  const read = readServiceSeed({ ...seed, data });
  assert.ok(read.ok);
  const placer = configureRole(read.value, "placer", places);
  assert.ok(!placer.ok && /10\.0\.0\.99.*10\.0\.0\.13, 10\.0\.3\.1/.test(placer.error), JSON.stringify(placer));
  const none = readServiceSeed({ ...seed, interfaces: [] });
  assert.ok(!none.ok && /names no network card/.test(none.error));
});

test("whatever is wrong is said with its place, and no secret with it", () => {
  const secret = "-----BEGIN RSA PRIVATE KEY-----\nhidden";
  const wrong: readonly (readonly [readonly string[], Json | undefined, RegExp])[] = [
    [["format"], 2, /^x\.data:format is 2; this image reads format 1/],
    [["roles"], {}, /^x\.data:roles is empty; name at least one of controller, /],
    [["roles", "placre"], {}, /^x\.data:roles has "placre", which is not known there/],
    [["roles", "placer", "controller"], controller, /^x\.data:roles:placer has "controller"/],
    [["roles", "placer", "name"], "a b", /^x\.data:roles:placer:name is no name of a peer/],
    [["roles", "placer", "name"], "dns-manager", /^x\.data:roles gives two roles the name "dns-manager"/],
    [["roles", "placer", "identity"], undefined, /^x\.data:roles:placer:identity is missing/],
    [["roles", "placer", "identity", "kind"], "key", /^x\.data:roles:placer:identity:kind says neither/],
    [["roles", "placer", "identity", "key"], secret, /^x\.data:roles:placer:identity:key does not begin with/],
    [["roles", "controller", "controller"], undefined, /^x\.data:roles:controller:controller is missing/],
    [["roles", "controller", "controller", "cellNumber"], 0, /cellNumber is no whole number from 1 upward/],
    [["roles", "controller", "controller", "credentialHashes"], ["x"], /credentialHashes:0 is no SHA-256/],
    [["peers", "host.h1"], "10.0.1.1:x", /^x\.data:peers:host\.h1 "10\.0\.1\.1:x" is no address/],
    [["roles", "dns-manager", "httpPort"], 7101, /^x\.data:roles has two roles listen at port 7101; give each/],
    [["roles", "dns-manager", "httpPort"], 65_536, /^x\.data:roles:dns-manager:httpPort is no port/],
    [["authority"], "x".repeat(20_000), /^x\.data:authority is longer than/],
  ];
  for (const [place, value, words] of wrong) {
    const read = readServiceData(changed(place, value));
    assert.ok(!read.ok, place.join(":"));
    assert.match(read.error, words);
    assert.doesNotMatch(read.error, /hidden/);
  }
});

test("anything at all is read or refused with a sentence", () => {
  const seedNumber = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const property = fc.property(fc.jsonValue(), fc.constantFrom(...Object.keys(whole())), (value, name) => {
    for (const json of [value as Json, changed([name], value as Json)]) {
      const read = readServiceData(json);
      assert.ok(read.ok || /^x\.data/.test(read.error));
    }
  });
  fc.assert(property, { seed: seedNumber, numRuns: 300 });
});
