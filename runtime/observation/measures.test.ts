import assert from "node:assert/strict";
import { test } from "node:test";
import { createAddressManager } from "../../core/address/manager.ts";
import { createController } from "../../core/controller/controller.ts";
import { createDnsManager } from "../../core/dns/manager.ts";
import type { Restored, Service } from "../../core/env.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import { createAgentService } from "../../core/storage/agent/agent.ts";
import { createStorageManager } from "../../core/storage/manager/manager.ts";
import { cellName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import { encodeMetrics } from "./metrics.ts";
import { parseMetrics } from "./metrics-text.ts";

const nothing: Restored = { records: new Map(), desiredAt: new Map() };
const self = peerName("self");
const named = (name: string) => name.startsWith("cells_");

/** Names, helps and types must be right from the first scrape on, before anything was ever asked of a service. */
const check = <State>(what: string, service: Service<State>): void => {
  const metrics = service.measure?.(service.restore(nothing)) ?? [];
  assert.ok(metrics.length >= 2, `${what} has numbers`);
  const read = parseMetrics(encodeMetrics(metrics));
  assert.ok(read.ok, read.ok ? "" : `${what}: ${read.error}`);
  for (const { name, help } of metrics) {
    assert.ok(named(name), name);
    assert.match(help, /^[A-Z0-9].*\.$/, `${name}: a help is a sentence`);
    assert.doesNotMatch(name, /_(MiB|ms|count|sum|bucket)(_|$)/, `${name}: base units, and no suffix of a histogram`);
  }
};

test("every core service's numbers are valid from the beginning", () => {
  check("the Placer", createPlacer({ self, hosts: [peerName("host.h1")] }));
  check("the Storage Manager", createStorageManager({ self, agents: [peerName("agent.s1")] }));
  check("the DNS Manager", createDnsManager({ self }));
  const pools = { internalPool: "10.64.0.0/10", externalPool: "198.18.0.0/15" };
  check("the IP Address Manager", createAddressManager({ self, ...pools, controllers: [] }));
  check("a storage agent", createAgentService({ server: "s1", address: ipv4("10.0.2.1"), firstPort: 20_000 }));
  const cell = { cell: cellName("shop"), cellUid: uid("ab"), cellNumber: 1, domain: "cells.internal" };
  check("a controller", createController({ ...cell, address: ipv4("10.0.3.1"), mac: mac("02:00:0a:00:03:01"), self }));
});
