import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../json/json.ts";
import { Fault } from "../../json/reader.ts";
import { read } from "../schema.ts";
import { haReport } from "./ha.ts";

const time = "2026-11-26T20:00:00Z";
const alert = { kind: "stuck", subject: "h1", since: time, sentence: "shop/web/vm of h1 should have started" };
const item = {
  type: "HA",
  step: "Fencing",
  vm: "a-1",
  cell: "shop",
  path: "shop/web/vm",
  incarnation: 1,
  host: "h1",
  reason: "h1 was declared dead",
  outcome: null,
  held: null,
  fencedBy: null,
  scheduled: time,
  since: time,
  investigators: [],
  fencers: [],
};
const power = { host: "h1", kind: "ipmi", address: "10.9.0.1", uuid: "u", said: null };
const report = (more: { readonly [name: string]: Json } = {}): JsonObject => ({
  protected: 1,
  storm: null,
  alerts: [alert],
  power: [power],
  items: [item],
  ...more,
});

test("a report of a later version is read whole: kinds, types, steps and fencers that are not known yet are shown as they are", () => {
  for (const later of [
    report({ alerts: [alert, { ...alert, kind: "lukewarm" }] }),
    report({ items: [{ ...item, type: "Evacuation", step: "Thinking", fencedBy: "hammer" }] }),
    report({ power: [{ ...power, kind: "smoke" }] }),
  ])
    assert.deepEqual(read(haReport, later), later);
});

test("what is no word is refused with its place", () => {
  for (const [wrong, where] of [
    [report({ alerts: [{ ...alert, kind: 7 }] }), "alerts.0.kind"],
    [report({ alerts: [{ ...alert, kind: "x".repeat(65) }] }), "alerts.0.kind"],
    [report({ items: [{ ...item, step: null }] }), "items.0.step"],
  ] as const) {
    const fault = read(haReport, wrong);
    assert.ok(fault instanceof Fault);
    assert.equal(fault.path.join("."), where);
  }
});
