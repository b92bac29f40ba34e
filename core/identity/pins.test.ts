import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { takePin } from "./pins.ts";

const key = "a".repeat(64);
const h1 = peerName("host.h1");

test("pins follow what the authority publishes", () => {
  const first = takePin(new Map(), "pin/host.h1", { key });
  assert.deepEqual(first, new Map([[h1, key]]));
  assert.equal(takePin(first ?? new Map(), "pin/host.h1", { key }), null);
  assert.deepEqual(takePin(first ?? new Map(), "pin/host.h1", { key: "b".repeat(64) })?.get(h1), "b".repeat(64));
  assert.deepEqual(takePin(first ?? new Map(), "pin/host.h1", null), new Map());
  assert.equal(takePin(new Map(), "pin/host.h1", null), null);
  assert.ok(takePin(new Map(), "pin/authority", { key })?.has(peerName("authority")));
});

test("what is no pin of a host or the root controller is passed over", () => {
  for (const [name, value] of [
    ["pin/placer", { key }],
    ["pin/", { key }],
    ["host.h1", { key }],
    ["enrolment/x", { key }],
    ["pin/host.h1", { key: "short" }],
    ["pin/host.h1", key],
    ["pin/host.h1", 7],
  ] as const)
    assert.equal(takePin(new Map(), name, value), null, name);
  const full = new Map(Array.from({ length: 10_000 }, (_, at) => [peerName(`host.x${at}`), key] as const));
  assert.equal(takePin(full, "pin/host.h1", { key }), null);
});
