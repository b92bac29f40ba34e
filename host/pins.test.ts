import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect, Input } from "../core/env.ts";
import { hostName, ipv4, mac, peerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import { createHostManager } from "./manager.ts";

const host = {
  ...{ host: hostName("h1"), state: "up" as const, address: ipv4("10.0.1.1"), mac: mac("02:00:0a:00:01:01") },
  ...{ memoryMiB: 1024, reservedMiB: 0, machineMiB: 0, cpus: 1, cpuSpeedMHz: 1000, accelerator: "tcg" as const },
};
const now = { ms: 0, wallMs: 0 };

test("a host that pins keys follows the authority's, and takes nobody else's word", () => {
  const told: [string, Json][] = [];
  const service = createHostManager({ host, wake: () => undefined, onPin: (key, value) => told.push([key, value]) });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const input = (what: Input): readonly Effect[] => service.step(state, what, now).effects;
  const followed = { kind: "subscribe", to: "authority", prefix: "pin/" };
  assert.deepEqual(
    input({ kind: "start" }).filter((effect) => effect.kind === "subscribe"),
    [followed],
  );
  const [key, value] = ["pin/host.h2", { key: "a".repeat(64) }];
  for (const from of ["host.h2", "controller.root", "authority.2"])
    input({ kind: "actual", from: peerName(from), key, value });
  assert.deepEqual(told, []);
  input({ kind: "actual", from: peerName("authority"), key, value });
  input({ kind: "actual", from: peerName("authority"), key, value: null });
  assert.deepEqual(told, [
    [key, value],
    [key, null],
  ]);
});

test("a host that pins none does not look for the authority", () => {
  const service = createHostManager({ host, wake: () => undefined });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const { effects } = service.step(state, { kind: "start" }, now);
  assert.ok(!effects.some((effect) => effect.kind === "subscribe"));
});
