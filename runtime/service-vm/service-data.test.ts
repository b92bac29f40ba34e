import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { serviceRoles } from "../../core/documents/service-roles.ts";
import { configureRole, firstPeers, type RolePlaces, readServiceSeed } from "./service-data.ts";

const fingerprint = "ab".repeat(32);
const token = "t".repeat(43);
const hashes = ["0".repeat(64), "1".repeat(64)];
const common = {
  interfaces: "02:00:0a:00:00:1f 10.0.0.31 255.255.0.0 0.0.0.0 10.0.0.31 root.cells.internal\n",
  "data/format": "2\n",
  "data/domain": "cells.internal\n",
  "data/authority/address": "10.0.0.31\n",
  "data/authority/fingerprint": `${fingerprint}\n`,
};
const cell = {
  "role/controller/cell": "shop\n",
  "role/controller/cellUid": "c1-1\n",
  "role/controller/cellNumber": "7\n",
  "role/controller/domain": "cells.internal\n",
  "role/controller/credentialHashes": hashes.map((hash) => `${hash}\n`).join(""),
};
type Files = Readonly<Record<string, string>>;
const placer: Files = { ...common, "role/name": "placer\n", "role/token": `${token}\n` };
const controller: Files = { ...placer, "role/name": "controller.shop\n", ...cell };
const places: RolePlaces = {
  directory: "/var/lib/cells/x",
  runDirectory: "/run/cells/x",
  seedDirectory: "/run/cells/x/seed",
};
const read = (files: Files, role: string) => readServiceSeed(new Map(Object.entries(files)), role);
const configured = (files: Files, role: string) => {
  const seed = read(files, role);
  assert.ok(seed.ok, JSON.stringify(seed));
  return configureRole(seed.value, places);
};

test("a role is configured with its own ports, its identity on the data volume and a token that it reads itself", () => {
  assert.deepEqual(configured(placer, "placer"), {
    name: "placer",
    role: "placer",
    address: "10.0.0.31",
    directory: places.directory,
    runDirectory: "/run/cells/x",
    certificate: {
      certFile: "/var/lib/cells/x/identity/certificate.pem",
      keyFile: "/var/lib/cells/x/identity/key.pem",
      caFile: "/var/lib/cells/x/identity/authority.pem",
    },
    peersFile: "/var/lib/cells/x/peers.json",
    followPeers: true,
    distributionPort: 7116,
    httpPort: 7117,
    enrolment: { authority: "10.0.0.31:7102", fingerprint, tokenFile: "/run/cells/x/seed/role/token" },
  });
  const seed = read(placer, "placer");
  assert.ok(seed.ok);
  assert.deepEqual(JSON.parse(firstPeers(seed.value)), { peers: { authority: "10.0.0.31:7124:7125" } });
  assert.doesNotMatch(JSON.stringify(seed.value), new RegExp(token), "a token is in no configuration");
});

test("a controller knows its cell and card, the root cell's where services enrol; its key may be pinned", () => {
  const shop = configured(controller, "controller");
  const told = { cell: "shop", cellUid: "c1-1", cellNumber: 7, domain: "cells.internal", credentialHashes: hashes };
  const own = { ...told, mac: "02:00:0a:00:00:1f", directory: true, cellManager: true };
  assert.deepEqual(shop.controller, own);
  assert.equal(shop.pinsFile, undefined);
  const numbers = {
    "role/controller/placer": "2\n",
    "role/controller/storageManager": "3\n",
    "role/controller/networkMode": "EDGE\n",
  };
  const bound = configured({ ...controller, ...numbers }, "controller");
  assert.deepEqual(bound.controller, { ...own, placer: 2, storageManager: 3, networkMode: "EDGE" });
  const rootFiles = { ...controller, "role/name": "controller.root\n", "role/controller/root": "true\n" };
  const root = configured(rootFiles, "controller");
  const authority = { address: "10.0.0.31", fingerprint };
  assert.deepEqual(root.controller, { ...own, root: { management: "10.0.0.0/16", authority } });
  assert.equal(root.pinsFile, "/var/lib/cells/x/pins.json");
});

test("the authority enrols nowhere, and a gateway listens with its certificate", () => {
  const { enrolment, authority, pinsFile } = configured({ ...common, "role/name": "authority\n" }, "authority");
  assert.deepEqual(
    [enrolment, authority, pinsFile],
    [undefined, { enrolmentPort: 7102 }, "/var/lib/cells/x/pins.json"],
  );
  const files = { ...placer, "role/name": "gateway\n", "role/gateway/credentialHashes": "" };
  const { gateway } = configured(files, "gateway");
  assert.deepEqual(gateway, {
    credentialHashes: [],
    page: "/usr/lib/cells/page",
    listen: { address: "10.0.0.31", port: 7127 },
  });
});

test("a gateway with doors apart is at its first address for everybody, and passes on what comes for the doors", () => {
  const two = `${common.interfaces}02:00:0a:7f:ff:f2 10.127.255.242 255.255.255.248 10.127.255.241 10.0.0.31 gateway.x\n`;
  const doors: Files = {
    ...placer,
    interfaces: two,
    "role/name": "gateway\n",
    "role/gateway/credentialHashes": "",
    "role/gateway/inside": "10.127.255.242\n",
    "role/gateway/doors/personality.caas": "10.127.255.243\n",
  };
  const { address, gateway } = configured(doors, "gateway");
  assert.equal(address, "10.0.0.31");
  assert.deepEqual(gateway, {
    credentialHashes: [],
    page: "/usr/lib/cells/page",
    listen: { address: "10.0.0.31", port: 7127 },
    inside: { address: "10.127.255.242", port: 7127 },
    passes: [
      { at: "10.127.255.242:7102", to: "10.0.0.31:7102", places: 8 },
      { at: "10.0.0.31:7443", to: "10.127.255.243:7443" },
    ],
  });
  const turned = { ...doors, interfaces: two.split("\n").reverse().join("\n") };
  assert.equal(configured(turned, "gateway").address, "10.0.0.31", "whichever card is the first");
  const other = read({ ...doors, "role/gateway/doors/placer": "10.127.255.244\n" }, "gateway");
  assert.ok(!other.ok && /doors\/placer is not known there/.test(other.error));
});

test("a personality apart asks the gateway where that serves it, and beside it at its own address", () => {
  const beside: Files = {
    ...placer,
    "role/name": "personality.caas\n",
    "role/personality/credential": `${token}\n`,
  };
  const { personality, followPeers } = configured(beside, "personality.caas");
  assert.deepEqual([personality?.gateway, followPeers], [{ address: "10.0.0.31", port: 7127 }, undefined]);
  const apart = configured({ ...beside, "role/personality/gateway": "10.127.255.242\n" }, "personality.caas");
  assert.deepEqual(apart.personality, {
    listen: { address: "10.0.0.31", port: 7443 },
    gateway: { address: "10.127.255.242", port: 7127 },
    credentialFile: "/run/cells/x/seed/role/personality/credential",
  });
});

test("the service of users is told by which credentials it knows the operator, and that it is no other's", () => {
  const files = { ...placer, "role/name": "tenancy\n", "role/tenancy/credentialHashes": `${hashes[0]}\n` };
  assert.deepEqual(configured(files, "tenancy").tenancy, { credentialHashes: [hashes[0]] });
});

test("whatever is wrong is said with its file, and no secret with it", () => {
  const without = (name: string): Files =>
    Object.fromEntries(Object.entries(controller).filter(([key]) => key !== name));
  const secret = "hidden-words";
  const wrong: readonly (readonly [Files, RegExp])[] = [
    [{ ...controller, "data/format": "1\n" }, /data\/format is "1"; this image reads format 2/],
    [without("data/domain"), /data\/domain is missing/],
    [without("role/token"), /role\/token is missing/],
    [{ ...controller, "role/token": `${secret}\n` }, /role\/token is not a token/],
    [{ ...controller, "role/name": "a b\n" }, /role\/name is not a name of a peer/],
    [{ ...controller, "role/more": "1\n" }, /role\/more is not known there/],
    [{ ...controller, "role/gateway/credentialHashes": "" }, /role\/gateway\/credentialHashes is not known there/],
    [{ ...controller, interfaces: "" }, /interfaces names no network card/],
    [{ ...controller, "role/controller/cellNumber": "0\n" }, /cellNumber is not a whole number from 1 upward/],
    [{ ...controller, "role/controller/credentialHashes": `${secret}\n` }, /credentialHashes holds something else/],
    [{ ...controller, "role/controller/placer": "x\n" }, /controller\/placer is not a whole number from 1 upward/],
    [{ ...controller, "role/controller/root": "yes\n" }, /controller\/root is not "true"/],
    [{ ...controller, "data/domain": "x".repeat(20_000) }, /data\/domain is longer than/],
    [{ ...controller, "data/domain": "a\nb\n" }, /data\/domain is not one line/],
  ];
  for (const [files, words] of wrong) {
    const seed = read(files, "controller");
    assert.ok(!seed.ok, String(words));
    assert.match(seed.error, words);
    assert.doesNotMatch(seed.error, /hidden/);
  }
  const other = read(placer, "placre");
  assert.ok(!other.ok && /names "placre", which is no role; the roles are controller/.test(other.error));
});

test("anything at all is read or refused with a sentence", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const names = fc.constantFrom(...Object.keys(controller), "other");
  const property = fc.property(
    names,
    fc.string(),
    fc.constantFrom(...Object.keys(serviceRoles)),
    (name, text, role) => {
      const made = read({ ...controller, [name]: text }, role);
      assert.ok(made.ok || /^the seed volume's /.test(made.error));
    },
  );
  fc.assert(property, { seed, numRuns: 300 });
});
