import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallationStatus } from "../../model/api.ts";
import { HistoryRing, MachineRing } from "./history.ts";
import { everyMs, moments, mostSeries } from "./series.ts";

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

test("a cell with ever new machines loses its own, and no other one's; who comes late has a share", () => {
  const ring = new MachineRing(40);
  const machine = (path: string) => ({ cell: path.split("/")[0], path, load: 1, residentMiB: 1, network: 1, disk: 1 });
  const life = (): string => "u";
  const add = (at: number, ...paths: readonly string[]): void =>
    ring.add({ hosts: [host("h1", 1, { machines: paths.map(machine) })] }, life, at * everyMs);
  const isThere = (path: string): boolean =>
    ring.read(path.split("/")[0] ?? "", path, "u").load.some((each) => each !== null);
  const flood = (round: number): readonly string[] => Array.from({ length: 10 }, (_, at) => `flood/v${round}-${at}`);
  add(0, "shop/web", ...flood(0));
  assert.ok(isThere("shop/web"));
  for (let round = 1; round < 6; round += 1) add(round, "shop/web", ...flood(round));
  assert.deepEqual(
    ring.read("shop", "shop/web", "u").load,
    Array.from({ length: 6 }, () => 1),
  );
  assert.equal(flood(5).filter(isThere).length, 9, "and it has all that is left, for those of now");
  assert.equal(ring.read("flood", "flood/v5-9", "u").isWhole, false);
  add(6, ...flood(5), "shop/web", "late/one", "late/two");
  assert.ok(isThere("late/one") && isThere("late/two") && isThere("shop/web"));
  add(7, ...flood(5), "shop/web", "late/one", "late/two");
  assert.ok(isThere("late/one") && isThere("late/two") && isThere("shop/web"), "and keeps it");
  assert.equal(flood(5).filter(isThere).length, 7);
});

test("a machine has an hour of its own, also on another host; what is not said is null", () => {
  const ring = new MachineRing();
  const machine = (load: number, more: object = {}) => ({
    cell: "shop",
    path: "shop/web",
    load,
    residentMiB: 64,
    ...more,
  });
  const life = (): string => "u1";
  ring.add({ hosts: [host("h1", 1, { machines: [machine(0.5, { network: 9, disk: 7 })] })] }, life, 0);
  ring.add({ hosts: [host("h1", 1, { state: "unreachable", machines: [machine(9)] })] }, life, everyMs);
  ring.add({ hosts: [host("h2", 1, { machines: [machine(0.25, { residentMiB: null })] })] }, life, 2 * everyMs);
  ring.add(null, life, 3 * everyMs);
  assert.deepEqual(ring.read("shop", "shop/web", "u1"), {
    everyMs,
    until: new Date(3 * everyMs).toISOString(),
    moments: 4,
    load: [0.5, null, 0.25, null],
    residentMiB: [64, null, null, null],
    network: [9, null, null, null],
    disk: [7, null, null, null],
    isWhole: true,
  });
  assert.deepEqual(ring.read("shop", "shop/db", "u1").load, [null, null, null, null]);
  assert.deepEqual(ring.read("bank", "shop/web", "u1").load, [null, null, null, null], "another cell's");
});

test("a cell that has the name of one before is shown nothing of that one's machines", () => {
  const ring = new MachineRing();
  let uid = "u1";
  const add = (load: number, at: number): void =>
    ring.add({ hosts: [host("h1", 1, { machines: [{ cell: "shop", path: "shop/web", load }] })] }, () => uid, at);
  add(1, 0);
  uid = "u2";
  add(2, everyMs);
  assert.deepEqual(ring.read("shop", "shop/web", "u2").load, [null, 2]);
});

test("machines beyond the bound are left out, and that is said", () => {
  const ring = new MachineRing(1);
  const machines = ["web", "db"].map((name) => ({ cell: "shop", path: `shop/${name}`, load: 1 }));
  ring.add({ hosts: [host("h1", 1, { machines })] }, () => "", 0);
  const [web, db] = ["shop/web", "shop/db"].map((path) => ring.read("shop", path, ""));
  assert.deepEqual([web?.load, db?.load, db?.isWhole], [[1], [null], false]);
});
