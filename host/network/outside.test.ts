import assert from "node:assert/strict";
import { test } from "node:test";
import { wayOutside } from "./outside.ts";

const pools = { underlay: "10.0.0.0/16", internalPool: "10.64.0.0/10", externalPool: "198.18.0.0/15" };
const found = { mac: "02:00:00:00:0f:01", addresses: ["172.16.5.4/16", "192.0.2.11/24"] };
const ask = (routers: readonly string[], device: typeof found | null = found, name?: string) =>
  wayOutside({ routers, ...(name === undefined ? {} : { device: name }) }, "eth0", device, pools);
const refused = (...asked: Parameters<typeof ask>): string => {
  const answer = ask(...asked);
  return answer.ok ? "it is taken" : answer.error;
};

test("the address by which the host asks for its routers is the one on their network", () => {
  const answer = ask(["192.0.2.1", "192.0.2.2"], found, "out0");
  assert.ok(answer.ok);
  const { device, address, prefixLength, mac, routers, external } = answer.value;
  assert.deepEqual(
    [device, address, prefixLength, mac, routers, external],
    ["out0", "192.0.2.11", 24, found.mac, ["192.0.2.1", "192.0.2.2"], ["198.18.0.0/15"]],
  );
  const uplink = ask(["10.0.254.1"], { ...found, addresses: ["10.0.1.1/16"] });
  assert.equal(uplink.ok && uplink.value.device, "eth0");
});

test("what cannot be a router says why, and what would be one", () => {
  for (const [routers, told] of [
    [
      ["192.0.3.1"],
      /192\.0\.3\.1 is not on the network of eth0, where this host is 172\.16\.5\.4\/16: name one from 172\.16\.0\.1 to 172\.16\.255\.254/,
    ],
    [
      ["192.0.2.1", "192.0.3.1"],
      /192\.0\.3\.1 is not on the network of eth0, where this host is 192\.0\.2\.11\/24: name one from 192\.0\.2\.1 to 192\.0\.2\.254/,
    ],
    [["192.0.2.1", "192.0.2.255"], /192\.0\.2\.255 is not on the network/],
    [["192.0.2.1", "192.0.2.11"], /192\.0\.2\.11 is this host's own address on eth0/],
    [["192.0.2.1", "192.0.2.1"], /names 192\.0\.2\.1 twice/],
    [["gateway"], /`gateway` in `host\.outside\.routers` is no IPv4 address/],
    [[], /has 0 addresses: name from 1 to 4/],
  ] as const)
    assert.match(refused(routers), told);
  const pooled = { ...found, addresses: ["198.18.0.2/24"] };
  assert.match(
    refused(["198.18.0.1"], pooled),
    /198\.18\.0\.1 is in the pool 198\.18\.0\.0\/15, whose addresses VMs are given/,
  );
});

test("a table from which addresses are announced is none by which the machine itself sends", () => {
  const withTable = (table: number) =>
    wayOutside({ routers: ["192.0.2.1"], device: "out0", table }, "eth0", found, pools);
  for (const table of [1, 100, 252, 256, 4_294_967_295]) {
    const answer = withTable(table);
    assert.equal(answer.ok && answer.value.table, table);
  }
  for (const [table, told] of [
    [254, /`host\.outside\.table` is 254, by which this machine itself sends packets .* such as 100/],
    [253, /is 253/],
    [255, /is 255/],
    [0, /is 0, which is no number of a routing table: choose a number from 1/],
    [4_294_967_296, /no number of a routing table/],
    [1.5, /no number/],
  ] as const) {
    const answer = withTable(table);
    assert.match(answer.ok ? "it is taken" : answer.error, told);
  }
});

test("a device that is not there, or that nobody can ask by", () => {
  assert.match(
    refused(["192.0.2.1"], null, "out9"),
    /`host\.outside\.device` is out9, and this machine has no such device/,
  );
  assert.match(
    refused(["192.0.2.1"], { ...found, addresses: [] }, "out0"),
    /out0 leads outside and has no IPv4 address/,
  );
});
