import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallationStatus } from "../../../model/api.ts";
import type { History } from "../../../model/contract/operator/numbers/history.ts";
import { curvesOf, goneOn, inWords, whereIn } from "./history.ts";

const begin: History = {
  everyMs: 10_000,
  until: "1970-01-01T00:00:20.000Z",
  moments: 3,
  load: { h1: [0.5, null, 1] },
  usedMiB: {},
  running: { shop: [1, 2, 2] },
  leftOut: 0,
};
const status = {
  hosts: [
    {
      host: "h1",
      state: "up",
      usedMiB: 64,
      load: { vms: 2, management: 0 },
      machines: [{ cell: "bank", stage: "running" }],
    },
    { host: "h2", state: "unreachable", usedMiB: 0, machines: [{ cell: "shop", stage: "running" }] },
  ],
} as unknown as Pick<InstallationStatus, "hosts">;

test("an hour goes on by the stream: each moment once, what was missed stays free, and it stays an hour", () => {
  assert.equal(goneOn(begin, status, 29_999), begin);
  const next = goneOn(begin, status, 40_500);
  assert.deepEqual(next, {
    ...begin,
    until: "1970-01-01T00:00:40.000Z",
    moments: 5,
    load: { h1: [0.5, null, 1, null, 2] },
    usedMiB: { h1: [null, null, null, null, 64] },
    running: { shop: [1, 2, 2, null, null], bank: [null, null, null, null, 1] },
  });
  assert.equal(goneOn(next, status, 49_000), next);
  const later = goneOn(next, status, 100_000_000);
  assert.deepEqual([later.moments, later.running.shop?.length, later.running.bank?.at(-1)], [360, 360, 1]);
});

test("a curve breaks off where nothing was heard, and is said in words", () => {
  assert.deepEqual(curvesOf([0, 2, null, 4], 30, 8), ["0.0,8.0 10.0,4.0", "30.0,0.0"]);
  assert.deepEqual(curvesOf([null], 30, 8), []);
  assert.equal(inWords([1, 4, null, 3]), "3 now; from 1 to 4 in the last hour");
  assert.equal(inWords([1, null]), "not known now; from 1 to 1 in the last hour");
  assert.equal(inWords([null]), "nothing was heard");
});

test("a picked moment is the nearest of those that there are, and none before or after", () => {
  const at = (ms: number) => whereIn(begin, ms);
  assert.deepEqual([at(0), at(4_000), at(11_000), at(20_000), at(24_000)], [0, 0, 1, 2, 2]);
  assert.deepEqual([at(-6_000), at(26_000), at(Number.NaN)], [null, null, null]);
});
