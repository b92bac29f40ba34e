import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { encodeMetrics } from "../../runtime/observation/metrics.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import type { MachineUsage } from "../drivers/hypervisor/usage.ts";
import type { Announced, RuleCounters } from "../drivers/network/driver.ts";
import type { HostStatus } from "../host-requests.ts";
import type { Inventory } from "./inventory.ts";
import { createHostObservation } from "./observation.ts";

const [one, vif] = [uid("ab-1"), uid("ab-2")];
const inventory: Inventory = {
  machines: [{ vm: one, cell: "shop", path: "shop/web/vm", stage: "running", memoryMiB: 128, cpus: 1 }],
  interfaces: [{ interface: vif, vm: one, cell: "shop", path: "shop/web/interface" }],
  policies: [{ cellNumber: 1, cell: "shop", rules: { 1: "shop/a", 2: "shop/a", 3: "shop/b" } }],
};
const status: HostStatus = {
  host: "h1",
  address: "10.0.1.1",
  state: "up",
  memoryMiB: 1024,
  reservedMiB: 256,
  usedMiB: 128,
  cpus: 2,
  accelerator: "tcg",
  vms: 1,
};

const observed = (rules: readonly RuleCounters[] = []) => {
  const now = {
    seconds: 100,
    own: 1,
    usages: [] as readonly MachineUsage[],
    inventory,
    announced: null as Announced | null,
    /** Of its interface, both ways. */
    octets: 300,
    countersFail: false,
    /** Of its disks, both ways. */
    disks: new Map<Uid, number>(),
  };
  const zero = { packets: 0, bytes: 0 };
  const observation = createHostObservation({
    network: {
      counters: async () => {
        if (now.countersFail) throw new Error("the maps cannot be read");
        const half = { packets: 3, bytes: now.octets / 2 };
        return {
          interfaces: [
            { interface: vif, sent: half, received: { ...half, packets: 0 }, drops: { "no-rule": 2 } },
            { interface: uid("ab-99"), sent: half, received: zero, drops: {} },
          ],
          rules,
        };
      },
      announced: async () => now.announced,
    },
    usages: async () => now.usages,
    hypervisor: { diskOctets: async () => now.disks },
    request: async (request) =>
      ((request as { kind: string }).kind === "status" ? status : now.inventory) as unknown as Json,
    ownCpuSeconds: () => now.own,
    nowSeconds: () => now.seconds,
  });
  return { now, observation };
};

test("what the kernel counts has the names that people know, and its exposition is valid", async () => {
  const rule = (number: number, packets: number) => ({ cellNumber: 1, rule: number, packets, bytes: 10 * packets });
  const { now, observation } = observed([
    rule(1, 4),
    rule(2, 5),
    rule(3, 6),
    rule(77, 1),
    { ...rule(1, 9), cellNumber: 8 },
  ]);
  now.usages = [{ vm: one, cpuSeconds: 1.5, residentBytes: 1024 }];
  const text = encodeMetrics(await observation.metrics());
  const read = parseMetrics(text);
  assert.ok(read.ok, read.ok ? "" : read.error);
  for (const line of [
    'cells_interface_packets_total{cell="shop",path="shop/web/interface",direction="sent"} 3',
    'cells_interface_drops_total{cell="shop",path="shop/web/interface",reason="no-rule"} 2',
    'cells_rule_packets_total{cell="shop",rule="shop/a"} 9',
    'cells_rule_packets_total{cell="shop",rule="shop/b"} 6',
    'cells_vm_cpu_seconds_total{cell="shop",path="shop/web/vm"} 1.5',
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`);
  }
  assert.ok(!text.includes("ab-99"), "what nobody knows by name has no series");
  now.disks = new Map([[one, 700]]);
  assert.deepEqual(await observation.counters(), {
    interfaces: [
      {
        cell: "shop",
        path: "shop/web/interface",
        sent: { packets: 3, bytes: 150 },
        received: { packets: 0, bytes: 150 },
        drops: { "no-rule": 2 },
      },
    ],
    rules: [
      { cell: "shop", path: "shop/a", packets: 9, bytes: 90 },
      { cell: "shop", path: "shop/b", packets: 6, bytes: 60 },
    ],
    machines: [{ cell: "shop", path: "shop/web/vm", diskBytes: 700 }],
  });
});

test("rules beyond the bound share one series", async () => {
  const rules = Array.from({ length: 700 }, (_, index) => ({ cellNumber: 1, rule: index, packets: 1, bytes: 1 }));
  const { now, observation } = observed(rules);
  const paths = Object.fromEntries(rules.map(({ rule }) => [rule, `shop/rule${rule}`]));
  now.inventory = { ...inventory, policies: [{ cellNumber: 1, cell: "shop", rules: paths }] };
  const metric = (await observation.metrics()).find(({ name }) => name === "cells_rule_packets_total");
  assert.equal(metric?.samples.length, 501);
  assert.equal(metric?.samples.at(-1)?.value, 200);
});

test("load is CPU time per time since the last look; a machine that began anew counts from its beginning", async () => {
  const { now, observation } = observed();
  const use = (cpuSeconds: number): readonly MachineUsage[] => [
    { vm: one, cpuSeconds, residentBytes: 5 * 1024 * 1024 },
  ];
  Object.assign(now, { seconds: 110, own: 1.5, usages: use(8) });
  const first = await observation.status();
  assert.deepEqual(first.load, { vms: 0.8, management: 0.05 });
  assert.equal(first.machines?.[0]?.residentMiB, 5);
  Object.assign(now, { seconds: 110.1, usages: use(9) });
  assert.deepEqual((await observation.status()).load, first.load, "too short a span says nothing new");
  Object.assign(now, { seconds: 114, own: 1.5, usages: use(2) });
  assert.deepEqual((await observation.status()).load, { vms: 0.5, management: 0 });
  Object.assign(now, { seconds: 118, usages: [] });
  const last = await observation.status();
  assert.equal(last.load?.vms, 0);
  assert.equal(last.machines?.[0]?.residentMiB, null);
});

test("octets a second are those of all of a machine's interfaces, and a host that cannot read them says none", async () => {
  const { now, observation } = observed();
  const network = async () => (await observation.status()).machines?.[0]?.network;
  Object.assign(now, { seconds: 110, octets: 10_000 });
  assert.equal(await network(), 1000);
  Object.assign(now, { seconds: 120, octets: 30_000 });
  assert.equal(await network(), 2000, "since the last look");
  Object.assign(now, { seconds: 130, octets: 500 });
  assert.equal(await network(), 50, "another device counts from its beginning");
  now.countersFail = true;
  assert.equal(await network(), undefined);
});

test("a host's status has what it announces by BGP, and why nobody is told of it", async () => {
  const { now, observation } = observed();
  assert.equal((await observation.status()).announces, undefined, "it is not configured to");
  const addresses = [{ address: ipv4("198.18.0.10"), sinceMs: 0, isRouted: true }];
  now.announced = { table: 100, peers: ["192.0.2.1"], addresses };
  const { announces, remark } = await observation.status();
  const since = "1970-01-01T00:00:00.000Z";
  assert.deepEqual(announces, { to: ["192.0.2.1"], addresses: [{ address: "198.18.0.10", since }] });
  assert.equal(remark, undefined);
  now.announced = { table: 100, peers: [], addresses };
  assert.match(
    (await observation.status()).remark ?? "",
    /^no router is told of 198\.18\.0\.10: this machine has no BGP/,
  );
});

test("octets a second are those of all of a machine's disks since it was looked at before, and who does not say has none", async () => {
  const { now, observation } = observed();
  const disk = async () => (await observation.status()).machines?.[0]?.disk;
  assert.equal(await disk(), undefined);
  Object.assign(now, { seconds: 110, disks: new Map([[one, 10_000]]) });
  assert.equal(await disk(), 1000);
  Object.assign(now, { seconds: 120, disks: new Map([[one, 15_000]]) });
  assert.equal(await disk(), 500);
  Object.assign(now, { seconds: 130, disks: new Map([[one, 2000]]) });
  assert.equal(await disk(), 200, "another process counts from its beginning");
  Object.assign(now, { seconds: 140, disks: new Map() });
  assert.equal(await disk(), undefined);
});
