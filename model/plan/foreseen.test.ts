import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell } from "../cell/cell.ts";
import type { StorageOffer } from "../check/check-storage.ts";
import { checkDocument } from "../specification/specification.ts";
import { foreseenOf } from "./foreseen.ts";
import { planChange } from "./plan.ts";

const many = 1_000_000;
const offer: StorageOffer = {
  totalMiB: many,
  freeMiB: many,
  largestFreeMiB: many,
  largestMiB: many,
  largestCopyMiB: many,
  promisableMiB: many,
  images: [
    { name: "debian", sizeMiB: 2048 },
    { name: "tiny", sizeMiB: 64 },
  ],
};
const cellOf = (elements: object): Cell => {
  const read = checkDocument({ shop: { "x.type": "Cell", ...elements } });
  assert.ok(read.ok, JSON.stringify(read));
  return read.value;
};
const told = (elements: object, before: object | null = null, from: StorageOffer | null = offer): readonly string[] => {
  const cell = cellOf(elements);
  const plan = planChange(before === null ? null : cellOf(before), cell);
  return foreseenOf(cell, plan, from).map(({ path, type, says }) => `${path} (${type}): ${says}`);
};
const vm = { "x.type": "VM", "x.memory": 64 };
const volume = (more: object = {}) => ({ "x.type": "Volume", "x.size": 64, ...more });
const copy = { "x.type": "VolumeCopy", "x.image": "<ref:../golden>" };
const disk = { "x.type": "VolumeConnection", "x.vm": "<ref:../vm>", "x.volume": "<ref:../boot>" };

test("an image that is not there, and a volume smaller than its image, are told with what would be right", () => {
  assert.deepEqual(told({ golden: volume({ "x.import": "tiny" }) }), []);
  assert.match(
    told({ golden: volume({ "x.import": "tyni" }) }).join(),
    /wait: there is no image "tyni"; did you mean "tiny"\?/,
  );
  assert.match(
    told({ golden: volume({ "x.import": "windows" }) }).join(),
    /no image "windows"; there are: debian, tiny /,
  );
  assert.deepEqual(told({ golden: volume({ "x.import": "debian" }) }), [
    'shop/golden (Volume): it will fail: the image "debian" needs 2048 MiB; write x.size 2048 or more',
  ]);
  assert.deepEqual(told({ golden: volume({ "x.import": "debian", "x.size": 2048 }) }), [], "what it says is right");
  // Whoever knows nothing says nothing; a volume that is there already began as something.
  assert.deepEqual(told({ golden: volume({ "x.import": "windows" }) }, null, null), []);
  assert.deepEqual(told({ golden: volume({ "x.import": "service" }) }), []);
  const there = { golden: volume({ "x.import": "windows" }) };
  assert.deepEqual(told(there, there), []);
});

test("a VM without a disk, or with empty ones alone, has nothing to boot from", () => {
  assert.match(told({ vm }).join(), /^shop\/vm \(VM\): it has no disk to boot from: connect a volume/);
  assert.match(
    told({ vm, boot: volume(), disk }).join(),
    /nothing to boot from: shop\/boot is made empty; give one an x\.import/,
  );
  assert.match(told({ vm, golden: volume(), boot: copy, disk }).join(), /nothing to boot from/);
  assert.deepEqual(told({ vm, boot: volume({ "x.import": "tiny" }), disk }), []);
  assert.deepEqual(told({ vm, golden: volume({ "x.import": "tiny" }), boot: copy, disk }), []);
  assert.deepEqual(told({ vm: { ...vm, "x.desiredState": "off" } }), [], "one that is off needs none");
  // What was there before may have been written to.
  assert.deepEqual(told({ vm, boot: volume(), disk }, { boot: volume() }), []);
  assert.deepEqual(told({ vm }, { vm }), [], "an unchanged VM is not told of again");
});

test("a VM that is asked at one of two interfaces in one subnet is told that it may not be heard, and what would be right", () => {
  const card = (subnet: string) => ({
    "x.type": "VirtualInterface",
    "x.vm": "<ref:../vm>",
    "x.subnet": `<ref:../${subnet}>`,
  });
  const net = { "x.type": "Subnet", "x.size": 16 };
  const askedAt = (name: string, second = "net"): readonly string[] =>
    told({
      boot: volume({ "x.import": "tiny" }),
      disk,
      net,
      back: net,
      one: card("net"),
      two: card(second),
      vm: { ...vm, "x.liveness.protocol": "icmp", "x.liveness.interface": `<ref:../${name}>` },
    });
  assert.match(
    askedAt("two").join(),
    /^shop\/vm \(VM\): it is asked at shop\/two, and has shop\/one in the same subnet: .*whichever of them came up first.*; give shop\/two a subnet of its own$/,
  );
  assert.match(askedAt("one").join(), /asked at shop\/one, and has shop\/two/, "neither is surer than the other");
  for (const name of ["one", "two"]) assert.deepEqual(askedAt(name, "back"), []);
});
