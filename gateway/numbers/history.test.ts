import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallationStatus } from "../../model/api.ts";
import { everyMs, HistoryRing, moments, mostSeries } from "./history.ts";

type Host = InstallationStatus["hosts"][number];
const host = (name: string, vms: number, more: object = {}): Host =>
  ({ host: name, state: "up", usedMiB: 100, load: { vms, management: 0 }, machines: [], ...more }) as unknown as Host;
const vm = (cell: string, stage = "running") => ({ cell, stage });

test("an hour is kept, the last moment last; what was not heard is null", () => {
  const ring = new HistoryRing();
  ring.add({ hosts: [host("h1", 0.5, { machines: [vm("shop"), vm("shop"), vm("bank", "starting")] })] }, 0);
  ring.add(null, everyMs);
  ring.add({ hosts: [host("h1", 0.75), host("h2", 0, { state: "unreachable" })] }, 2 * everyMs);
  assert.deepEqual(ring.read(), {
    everyMs,
    until: new Date(2 * everyMs).toISOString(),
    moments: 3,
    load: { h1: [0.5, null, 0.75] },
    usedMiB: { h1: [100, null, 100] },
    running: { bank: [0, null, null], shop: [2, null, null] },
    leftOut: 0,
  });
  for (let at = 0; at < moments; at += 1) ring.add({ hosts: [host("h1", at)] }, at * everyMs);
  const { load, running } = ring.read();
  assert.deepEqual([load.h1?.length, load.h1?.[0], load.h1?.at(-1)], [moments, 0, moments - 1]);
  assert.deepEqual(running, {}, "a cell of which nothing was heard for an hour is forgotten");
});

test("moments that a slow status has left out are there, with nothing heard, and an hour is no longer than one", () => {
  const ring = new HistoryRing();
  ring.add({ hosts: [host("h1", 1)] }, 0);
  ring.add({ hosts: [host("h1", 2)] }, 3 * everyMs + 400);
  ring.add({ hosts: [host("h1", 3)] }, 4 * everyMs);
  assert.deepEqual(ring.read().load, { h1: [1, null, null, 2, 3] });
  ring.add({ hosts: [host("h1", 4)] }, 2 * everyMs);
  assert.deepEqual(ring.read().load.h1?.at(-1), 4, "a clock that was put back leaves out nothing");
  ring.add({ hosts: [host("h2", 5)] }, 1e12);
  const { load, moments: count } = ring.read();
  assert.deepEqual([Object.keys(load), load.h2?.length, load.h2?.at(-1), count], [["h2"], moments, 5, moments]);
});

test("there is room for so many series and no more, whoever comes first", () => {
  assert.ok(mostSeries * moments * 4 <= 16 * 1024 * 1024);
  const ring = new HistoryRing(3);
  ring.add({ hosts: ["h1", "h2"].map((name) => host(name, 1)) }, 0);
  const { load, usedMiB, leftOut } = ring.read();
  assert.deepEqual([Object.keys(load), Object.keys(usedMiB), leftOut], [["h1", "h2"], ["h1"], 1]);
});
