import assert from "node:assert/strict";
import { test } from "node:test";
import { formatIpv4, parseIpv4, parseNetwork } from "../../addresses/addresses.ts";
import { type AddressRange, hostsOfNetwork, hostsOfSubnet, readRange, without } from "./ranges.ts";

const address = (text: string): number => parseIpv4(text) ?? assert.fail(text);
const text = ({ first, last }: AddressRange): string => `${formatIpv4(first)}-${formatIpv4(last)}`;
const read = (written: string): AddressRange => {
  const range = readRange(written);
  assert.ok(range.ok, written);
  return range.value;
};

test("hosts have all but the first and last address, unless there are no others", () => {
  for (const [subnet, netmask, hosts] of [
    ["192.0.2.77", "255.255.255.192", "192.0.2.65-192.0.2.126"],
    ["198.51.100.9", "255.255.255.252", "198.51.100.9-198.51.100.10"],
    ["198.51.100.9", "255.255.255.254", "198.51.100.8-198.51.100.9"],
    ["198.51.100.9", "255.255.255.255", "198.51.100.9-198.51.100.9"],
    ["203.0.113.1", "0.0.0.0", "0.0.0.1-255.255.255.254"],
  ] as const)
    assert.equal(text(hostsOfSubnet(address(subnet), address(netmask))), hosts, `${subnet}/${netmask}`);
  for (const [cidr, hosts] of [
    ["0.0.0.0/0", "0.0.0.1-255.255.255.254"],
    ["255.255.255.252/30", "255.255.255.253-255.255.255.254"],
    ["255.255.255.254/31", "255.255.255.254-255.255.255.255"],
    ["0.0.0.0/32", "0.0.0.0-0.0.0.0"],
  ] as const)
    assert.equal(text(hostsOfNetwork(parseNetwork(cidr) ?? assert.fail(cidr))), hosts, cidr);
});

test("a range is cut around an address wherever that stands", () => {
  const cut = (range: string, at: string): readonly string[] => without(read(range), address(at)).map(text);
  assert.deepEqual(cut("0.0.0.0-255.255.255.255", "255.255.255.255"), ["0.0.0.0-255.255.255.254"]);
  assert.deepEqual(cut("127.255.255.255-128.0.0.1", "128.0.0.0"), [
    "127.255.255.255-127.255.255.255",
    "128.0.0.1-128.0.0.1",
  ]);
  assert.deepEqual(cut("192.0.2.1", "192.0.2.1"), []);
  assert.deepEqual(cut("192.0.2.1-192.0.2.3", "192.0.2.9"), ["192.0.2.1-192.0.2.3"]);
});

test("what is no range is refused, whatever is missing of it", () => {
  for (const written of ["", " ", "-", "192.0.2.1-", "-192.0.2.1", "1-2", "192.0.2.1-192.0.2.2-192.0.2.3", "192.0.2"])
    assert.equal(readRange(written).ok, false, JSON.stringify(written));
  assert.equal(text(read("192.0.2.1\t-\t192.0.2.2\n")), "192.0.2.1-192.0.2.2");
});
