import assert from "node:assert/strict";
import { test } from "node:test";
import type { HaItem } from "../../model/contract/operator/ha.ts";
import { answerSigns, hostOf, namedVm, queueOf, stepsOf, workOf } from "./availability.ts";

const said = (type: HaItem["type"], step: HaItem["step"]) =>
  stepsOf({ type, step })
    .map(({ name, is }) => `${name} ${is}`)
    .join(", ");

test("an item is shown at its step, with those before it and those to come", () => {
  assert.equal(
    said("HA", "Scheduled"),
    "Scheduled now, Investigating ahead, Fencing ahead, Restarting ahead, Done ahead",
  );
  assert.equal(said("HA", "Fencing"), "Scheduled over, Investigating over, Fencing now, Restarting ahead, Done ahead");
  assert.equal(said("Stop", "Done"), "Scheduled over, Investigating over, Fencing over, Done over");
  assert.equal(
    said("Migration", "Migrating"),
    "Scheduled over, Migrating now, Stopping ahead, Restarting ahead, Done ahead",
  );
  assert.equal(said("HA", "Cancelled"), "Scheduled over, Cancelled over");
  assert.equal(said("HA", "Error"), "Scheduled over, Error over");
  assert.equal(said("Later" as never, "Thinking" as never), "Scheduled over, Thinking now");
});

test("what is not known is drawn as nothing else", () => {
  assert.equal(new Set(Object.values(answerSigns)).size, 3);
});

test("what the page knows is what the table of actions takes", () => {
  const item = { path: "db/main", cell: "db.shop", type: "HA", step: "Investigating", held: "why" } as HaItem;
  assert.equal(namedVm(item), "db.shop/main");
  assert.deepEqual(workOf(item), { path: "db/main", type: "HA", step: "Investigating", isHeld: true });
  const ha = { protected: 1, alerts: [], items: [] };
  assert.equal(queueOf({ ...ha, storm: null }).paused, null);
  assert.equal(queueOf({ ...ha, storm: { since: "", hosts: [], asked: true } }).paused, "asked");
  assert.equal(queueOf({ ...ha, storm: { since: "", hosts: ["h1"] } }).paused, "storm");
  const host = { host: "h1", state: "up" } as never as Parameters<typeof hostOf>[0];
  assert.deepEqual(hostOf(host), { host: "h1", administration: "enabled", presence: "unknown" });
  const off = { ...host, presence: { state: "dead", since: null, powerIsOff: true } } as const;
  assert.equal(hostOf(off).presence, "off");
});
