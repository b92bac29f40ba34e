import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../addresses/addresses.ts";
import { isValidSegment, lastSegment, type ManagedSubnet, restrictToMaximumSegment, usableTags } from "./segments.ts";

const subnet = (netmask: string, segmentSize: number, minVlan = 2, maxVlan = 4095): ManagedSubnet => ({
  subnet: parseIpv4("10.64.0.0") ?? 0,
  netmask: parseIpv4(netmask) ?? 0,
  segmentSize,
  minVlan,
  maxVlan,
});

test("no tag is above the last one that both halves of the original know", () => {
  for (const [netmask, size, last] of [
    ["255.255.255.0", 16, 15],
    ["255.255.255.0", 256, 0],
    ["255.255.192.0", 32, 511],
    ["255.255.0.0", 2048, 31],
  ] as const) {
    const managed = subnet(netmask, size);
    assert.equal(restrictToMaximumSegment(managed, 4095), last, `${netmask}, ${size}`);
    assert.equal(isValidSegment(managed, last), true);
    assert.equal(isValidSegment(managed, last + 1), false, `${netmask}, ${size}`);
    assert.equal(lastSegment(managed), last);
  }
  assert.equal(restrictToMaximumSegment(subnet("255.0.0.0", 32), 4095), 4095);
  assert.equal(lastSegment(subnet("255.0.0.0", 32)), 4094);
});

test("groups are given tags of the operator's that have a segment", () => {
  assert.deepEqual(usableTags(subnet("255.255.255.0", 16, 10, 200)), { first: 10, last: 15 });
  const { first, last } = usableTags(subnet("255.255.255.0", 256));
  assert.ok(first > last);
});
