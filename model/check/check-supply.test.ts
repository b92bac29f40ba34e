import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../json/json.ts";
import { checkDocument } from "../specification/specification.ts";
import type { StorageOffer } from "./check-storage.ts";
import { type Supply, unknownSupply } from "./check-supply.ts";
import type { AddressOffer } from "./network/check-addresses.ts";

const storage: StorageOffer = {
  totalMiB: 3000,
  freeMiB: 900,
  largestFreeMiB: 700,
  largestMiB: 2000,
  largestCopyMiB: 40_000,
  promisableMiB: 60_000,
};
const addresses: AddressOffer = {
  internal: { pool: "10.64.0.0/24", largest: 256, fixed: ["10.64.0.0/24", "192.168.0.0/16"] },
  external: { pool: "198.18.0.0/28", largest: 16, fixed: ["198.18.0.0/28"] },
  reserved: ["192.168.7.0/24"],
  shortestPrefix: 8,
  longestPrefix: 29,
};
const said = (element: JsonObject, supply: Supply = { hosts: null, storage, addresses }): string => {
  const golden = { "x.type": "Volume", "x.size": 10 };
  const result = checkDocument({ shop: { "x.type": "Cell", golden, it: element } }, supply);
  return result.ok
    ? ""
    : result.error.map(({ code, path, message, hint }) => `${code} ${path}: ${message}. ${hint}`).join("\n");
};
const volume = (size: number): JsonObject => ({ "x.type": "Volume", "x.size": size });
const copy = (size: number): JsonObject => ({
  "x.type": "VolumeCopy",
  "x.image": "<ref:/shop/golden>",
  "x.size": size,
});
const subnet = (more: JsonObject): JsonObject => ({ "x.type": "Subnet", "x.size": 8, ...more });

test("a volume larger than any server could ever hold is refused; one that does not fit now is not", () => {
  assert.equal(said(volume(2000)), "");
  assert.match(
    said(volume(2001)),
    /^cell\/no-storage shop\/it: .*asks for 2001 MiB.*At most 2000 MiB can be had \(700 MiB at the moment\): write `x.size 2000`/,
  );
  assert.equal(said(volume(2001), unknownSupply), "");
});

test("a copy takes little at first, and may be larger", () => {
  assert.equal(said(copy(40_000)), "");
  assert.match(said(copy(40_001)), /^cell\/no-storage shop\/it: /);
});

test("without any server there is no volume", () => {
  const none = { ...storage, largestMiB: 0, largestCopyMiB: 0 };
  assert.match(
    said(subnet({}), { ...unknownSupply, storage: none }),
    /^cell\/no-storage shop\/golden: .*has no storage server/,
  );
});

test("a subnet larger than its pool could ever give is refused", () => {
  assert.equal(said(subnet({ "x.size": 256 })), "");
  assert.match(
    said(subnet({ "x.size": 257 })),
    /^cell\/no-addresses shop\/it: .*internal pool 10.64.0.0\/24.*`x.size 256`/,
  );
  assert.match(said(subnet({ "x.size": 17, "x.addressRange": "external" })), /external pool.*`x.size 16`/);
  assert.equal(said(subnet({ "x.size": 257 }), unknownSupply), "");
});

test("a fixed range is in a permitted network and takes nothing of what is reserved", () => {
  for (const cidr of ["10.64.0.0/24", "10.64.0.248/29", "192.168.6.0/24"])
    assert.equal(said(subnet({ "x.cidr": cidr })), "");
  assert.match(
    said(subnet({ "x.cidr": "10.65.0.0/24" })),
    /no range of the installation's internal subnets.*192.168.0.0\/16/,
  );
  assert.match(
    said(subnet({ "x.cidr": "10.64.0.0/28", "x.addressRange": "external" })),
    /Choose one in 198.18.0.0\/28/,
  );
  assert.match(
    said(subnet({ "x.cidr": "192.168.7.64/28" })),
    /overlaps 192.168.7.0\/24, which the installation itself needs/,
  );
  assert.match(said(subnet({ "x.cidr": "192.168.0.0/16" })), /overlaps 192.168.7.0\/24/);
  assert.match(said({ "x.type": "Subnet", "x.cidr": "10.64.0.0/30", "x.size": 4 }), /between \/8 and \/29/);
});

const whole = (parts: JsonObject, supply: Supply): string => {
  const result = checkDocument({ shop: { "x.type": "Cell", "x.policy.deploy": "all-or-none", ...parts } }, supply);
  return result.ok ? "" : result.error.map(({ code, path, message }) => `${code} ${path}: ${message}`).join("\n");
};

test("an all-or-none cell must be possible as a whole; as-possible, each of its parts", () => {
  const hosts = [1, 2].map((number) => ({ host: `h${number}`, memoryMiB: 1000, cpus: 8, cpuSpeedMHz: 2000 }));
  const supply: Supply = { hosts, storage, addresses };
  const vm = (memory: number, more: JsonObject = {}): JsonObject => ({ "x.type": "VM", "x.memory": memory, ...more });
  assert.equal(whole({ a: vm(1000), b: vm(1000) }, supply), "");
  assert.match(
    whole({ a: vm(1000), b: vm(600), c: vm(600) }, supply),
    /^cell\/no-host shop: .*ask for 2200 MiB, more than all/,
  );
  assert.equal(whole({ a: vm(1000), b: vm(600), c: vm(600, { "x.desiredState": "off" }) }, supply), "");
  assert.equal(whole({ "x.policy.deploy": "as-possible", a: vm(1000), b: vm(600), c: vm(600) }, supply), "");
  const golden = { "x.type": "Volume", "x.size": 10 };
  assert.equal(whole({ golden, a: copy(40_000) }, supply), "");
  assert.match(whole({ golden, a: copy(40_000), b: copy(20_000) }, supply), /^cell\/no-storage shop: .*60010 MiB/);
  assert.equal(whole({ a: subnet({ "x.size": 128 }), b: subnet({ "x.size": 100 }) }, supply), "");
  assert.match(
    whole({ a: subnet({ "x.size": 128 }), b: subnet({ "x.size": 100 }), c: subnet({ "x.size": 3 + 1 }) }, supply),
    /^cell\/no-addresses shop: .*264 internal addresses, more than the pool 10.64.0.0\/24 has/,
  );
});

test("what the model in force asks for already is not refused, also when it moves; what asks for more is", () => {
  const cell = (parts: JsonObject): JsonObject => ({ shop: { "x.type": "Cell", ...parts } });
  const before = checkDocument(cell({ disk: volume(5000), net: subnet({ "x.cidr": "10.65.0.0/24" }) }));
  assert.ok(before.ok);
  const supply: Supply = { hosts: [], storage, addresses, present: before.value };
  const net = subnet({ "x.cidr": "10.65.0.0/24" });
  assert.equal(checkDocument(cell({ disk: volume(5000), net }), supply).ok, true);
  assert.equal(checkDocument(cell({ moved: { ...volume(5000), "x.movedFrom": "shop/disk" }, net }), supply).ok, true);
  assert.equal(checkDocument(cell({ disk: volume(5001), net }), supply).ok, false);
  assert.equal(checkDocument(cell({ disk: volume(5000), other: volume(5000), net }), supply).ok, false);
});

test("a VM that asks for what no host is said to be is refused, with what there is; where nobody says it, it waits", () => {
  const marks = { places: ["z1/p1/c1", "z2/p1/c1"], tags: ["ssd"], properties: ["sriov"] };
  const vm = (wish: string, value: Json): JsonObject => ({
    "x.type": "VM",
    "x.memory": 64,
    [`x.placement.${wish}`]: value,
  });
  const rows: readonly (readonly [string, Json, RegExp | null])[] = [
    ["zone", "z1", null],
    ["zone", "z3", /^cell\/no-host shop\/it: There is no host with the zone `z3`\. .*There are z1, z2\.$/],
    ["cluster", "z1/p2/c1", /the cluster `z1\/p2\/c1`\. Did you mean `z1\/p1\/c1`\?/],
    ["pod", "p1", null],
    ["tags", ["ssd"], null],
    ["tags", ["sdd"], /the tag `sdd`\. Did you mean `ssd`\? There are ssd\.$/],
    ["properties", { sriov: 99 }, null],
    ["properties", { gpus: 1 }, /the property `gpus`\. .*There are sriov\.$/],
  ];
  for (const [wish, value, refused] of rows) {
    const text = said(vm(wish, value), { ...unknownSupply, marks });
    if (refused === null) assert.equal(text, "", `${wish} ${JSON.stringify(value)}`);
    else assert.match(text, refused);
    assert.equal(said(vm(wish, value), unknownSupply), "", "of a Placer that does not say");
  }
});
