import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceEvent } from "../../model/api.ts";
import { delaysOf, failuresBetween, largestDeviation, samplesOf, spellsOf } from "./trace.ts";

let number = 0;
const said = (
  second: number,
  host: string,
  vm: string,
  event: string,
  fields: ServiceEvent["fields"],
): ServiceEvent => {
  number += 1;
  const time = new Date(second * 1000).toISOString();
  return { id: `life-${number}`, time, service: `host.${host}`, event, cell: null, path: vm, fields };
};
const health = (second: number, host: string, vm: string, what: string): ServiceEvent =>
  said(second, host, vm, "machine/health", { what });
const stage = (second: number, host: string, vm: string, name: string): ServiceEvent =>
  said(second, host, vm, "machine/stage", { stage: name });

test("a VM answers from its first answer to its machine's end", () => {
  const events = [
    stage(1, "h1", "a/m1/vm", "starting"),
    stage(2, "h1", "a/m1/vm", "running"),
    health(5, "h1", "a/m1/vm", "answering"),
    health(6, "h1", "a/m1/vm", "answering"),
    stage(9, "h1", "a/m1/vm", "ended"),
    health(12, "h2", "a/m1/vm", "answering"),
    health(15, "h2", "a/m1/vm", "silent"),
  ];
  const expected = [
    { vm: "a/m1/vm", host: "h1", fromMs: 5000, toMs: 9000 },
    { vm: "a/m1/vm", host: "h2", fromMs: 12_000, toMs: 15_000 },
  ];
  assert.deepEqual(spellsOf(events, []), expected);
  assert.deepEqual(spellsOf(events.toReversed(), []), expected, "however they come in");
});

test("a host without power takes its VMs along, and what it says of them later is of its own past", () => {
  const events = [
    health(1, "h1", "a/m1/vm", "answering"),
    health(2, "h2", "b/m1/vm", "answering"),
    health(20, "h2", "a/m1/vm", "answering"),
    stage(21, "h1", "a/m1/vm", "ended"),
  ];
  const spells = spellsOf(events, [{ host: "h1", atMs: 10_000 }]);
  assert.deepEqual(spells, [
    { vm: "a/m1/vm", host: "h1", fromMs: 1000, toMs: 10_000 },
    { vm: "b/m1/vm", host: "h2", fromMs: 2000, toMs: null },
    { vm: "a/m1/vm", host: "h2", fromMs: 20_000, toMs: null },
  ]);
  assert.deepEqual(failuresBetween(spells, 10_000, 30_000), [
    { vm: "a/m1/vm", host: "h1", lostMs: 10_000, back: { atMs: 20_000, host: "h2" } },
  ]);
  assert.deepEqual(failuresBetween(spells, 10_001, 30_000), []);
  const last = spellsOf(events.slice(0, 1), [{ host: "h1", atMs: 10_000 }]);
  assert.deepEqual(
    failuresBetween(last, 0, 30_000).map(({ back }) => back),
    [null],
    "also after the last event, and one that stays away",
  );
});

test("one sample a second: what is wanted, and what answers", () => {
  const spells = spellsOf(
    [
      health(1, "h1", "a/m1/vm", "answering"),
      health(2, "h1", "ab/m1/vm", "answering"),
      health(2.5, "h1", "a/m2/vm", "answering"),
      stage(4, "h1", "a/m1/vm", "ended"),
    ],
    [],
  );
  const samples = samplesOf(spells, ["a", "ab"], [[0, 2000], [1000]], { startMs: 0, endMs: 4900 });
  assert.deepEqual(
    samples.map(({ second, answering, wanted }) => [second, ...answering, ...wanted]),
    [
      [0, 0, 0, 1, 0],
      [1, 1, 0, 1, 1],
      [2, 1, 1, 2, 1],
      [3, 2, 1, 2, 1],
      [4, 1, 1, 2, 1],
    ],
  );
});

test("a cell's deviation from its own line is a part of its interval", () => {
  const vms = ["a/m1/vm", "a/m2/vm", "a/m3/vm", "a/m4/vm", "a/m5/vm"];
  const due = [0, 10_000, 20_000, 30_000, 40_000];
  const spells = spellsOf(
    [4, 13, 25, 39].map((second, index) => health(second, "h1", vms[index] ?? "", "answering")),
    [],
  );
  const delays = delaysOf(spells, vms, due);
  assert.deepEqual(delays, [4000, 3000, 5000, 9000, null]);
  const known = delays.slice(0, 4);
  assert.deepEqual(largestDeviation(known, due, 29_000, 10_000), { before: 0.1, after: 0.5 });
  assert.deepEqual(largestDeviation(delays, due, 29_000, 10_000), { before: 0.1, after: Number.POSITIVE_INFINITY });
  assert.deepEqual(largestDeviation(known, due, 60_000, 10_000), { before: 0.5, after: null });
  assert.deepEqual(largestDeviation(known, due, 1000, 10_000), { before: null, after: null });
});
