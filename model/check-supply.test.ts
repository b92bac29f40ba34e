import assert from "node:assert/strict";
import { test } from "node:test";
import type { AddressOffer } from "./check-addresses.ts";
import type { StorageOffer } from "./check-storage.ts";
import { type Supply, unknownSupply } from "./check-supply.ts";
import type { JsonObject } from "./json.ts";
import { checkDocument } from "./specification.ts";

const storage: StorageOffer = {
  ...{ totalMiB: 3000, freeMiB: 900, largestFreeMiB: 700, largestMiB: 2000, largestCopyMiB: 40_000 },
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
