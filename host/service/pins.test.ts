import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect, Input } from "../../core/env.ts";
import { hostName, ipv4, mac, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createHostManager } from "./manager.ts";

const host = {
  host: hostName("h1"),
  state: "up" as const,
  address: ipv4("10.0.1.1"),
  mac: mac("02:00:0a:00:01:01"),
  memoryMiB: 1024,
  reservedMiB: 0,
  machineMiB: 0,
  cpus: 1,
  cpuSpeedMHz: 1000,
  accelerator: "tcg" as const,
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

test("which cell is the way in is the authority's word alone, and is known after a restart until that speaks again", () => {
  const records = new Map<string, Json>();
  const service = createHostManager({ host, wake: () => undefined, hasAuthority: true });
  const start = () => service.restore({ records: new Map(records), desiredAt: new Map() });
  let state = start();
  const followed: Effect[] = [];
  const input = (what: Input): void => {
    for (const effect of service.step(state, what, now).effects) {
      if (effect.kind === "subscribe") followed.push(effect);
      if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
    }
  };
  const known = () => [...state.entrances.known].map(([controller, address]) => `${controller} ${address}`);
  const [key, value] = ["entrance/primary", { address: "10.0.0.40" }];
  input({ kind: "start" });
  assert.deepEqual(followed, [{ kind: "subscribe", to: "authority", prefix: "entrance/" }]);
  assert.equal(state.entrances.heard, false);
  for (const from of ["host.h2", "controller.root", "controller.primary"])
    input({ kind: "actual", from: peerName(from), key, value });
  assert.deepEqual(known(), []);
  input({ kind: "actual", from: peerName("authority"), key, value });
  input({ kind: "actual", from: peerName("authority"), key: "entrance/other", value: { address: "10.0.0.41" } });
  state = start();
  input({ kind: "start" });
  assert.deepEqual(known(), ["controller.primary 10.0.0.40", "controller.other 10.0.0.41"]);
  input({ kind: "actual", from: peerName("authority"), key, value });
  input({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
  assert.equal(known().length, 2);
  input({ kind: "reachable", peer: peerName("authority"), reachable: true });
  assert.deepEqual(known(), ["controller.primary 10.0.0.40"], "what it does not repeat is over");
  assert.equal(state.entrances.heard, true);
  input({ kind: "actual", from: peerName("authority"), key, value: null });
  assert.deepEqual(known(), []);
  state = start();
  assert.deepEqual(known(), []);
});
