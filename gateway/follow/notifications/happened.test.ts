import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Rows } from "../../../model/contract/follow/follow.ts";
import { mostEvents, noticeKinds } from "../../../model/contract/tenancy/subscriptions.ts";
import { began, cellPhase, happened } from "./happened.ts";

const vm = (phase: string, more: object = {}) => ({ type: "VM", state: { phase, ...more } });
const volume = (phase: string, more: object = {}) => ({ type: "Volume", state: { phase, ...more } });
const rows = (all: object): Rows => all as Rows;
const told = (before: object, after: object, kinds = [...noticeKinds]) =>
  happened("shop", rows(before), rows(after), kinds)?.events.map(
    ({ event, path, before: was, phase, ...more }) =>
      `${event} ${path ?? ""} ${was ?? "-"} ${phase ?? "-"} ${JSON.stringify(more)}`,
  ) ?? [];

test("a cell is ready once all of it is, and has failed once something has", () => {
  assert.equal(cellPhase(rows({})), "ready");
  assert.equal(cellPhase(rows({ a: vm("ready"), b: volume("waiting") })), "working");
  assert.equal(cellPhase(rows({ a: vm("failed"), b: volume("waiting") })), "failed");
  assert.deepEqual(began("shop", rows({ a: vm("failed") })).events, [
    { event: "cell", path: null, phase: "failed", before: null },
  ]);
});

test("what becomes of VMs and volumes is told, and what else changes of them is not", () => {
  const before = { a: vm("ready", { power: "on", host: "h1" }), v: volume("ready", { sizeMiB: 10 }) };
  assert.deepEqual(told(before, { ...before, a: vm("ready", { power: "on", host: "h2" }) }), []);
  assert.deepEqual(told(before, { ...before, a: vm("ready", { power: "off" }) }), ['vm a ready ready {"power":"off"}']);
  assert.deepEqual(told(before, { ...before, v: volume("ready", { sizeMiB: 20 }) }), [
    'volume v ready ready {"sizeMiB":20}',
  ]);
  assert.deepEqual(told(before, { ...before, a: vm("failed", { reason: "no room" }) }), [
    "cell  ready failed {}",
    'vm a ready failed {"reason":"no room"}',
  ]);
  assert.deepEqual(told(before, { a: before.a }), ["volume v ready - {}"]);
  assert.deepEqual(told({}, { s: { type: "Subnet", state: { phase: "ready" } } }), []);
  assert.deepEqual(told(before, { ...before, a: vm("failed") }, ["volume"]), []);
});

test("a notice has 32 events, and says how many more there were", () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`v${at}`, vm("ready")]));
  const news = happened("shop", {}, rows(many), noticeKinds);
  assert.deepEqual([news?.events.length, news?.more], [mostEvents, 100 - mostEvents]);
});

test("whatever became of a cell in whatever steps, what is told of its VMs adds up to what is so", () => {
  const phase = fc.constantFrom("waiting", "working", "ready", "failed");
  const cell = fc.dictionary(
    fc.constantFrom("a", "b", "c"),
    phase.map((each) => vm(each)),
  );
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 8 }), (all) => {
      const known = new Map<string, string | null>();
      let before: Rows = {};
      for (const each of all) {
        for (const { event, path, phase: is } of happened("shop", before, rows(each), noticeKinds)?.events ?? [])
          if (event === "vm") known.set(path ?? "", is);
        before = rows(each);
      }
      const left = [...known].filter(([, is]) => is !== null).sort();
      assert.deepEqual(
        left,
        Object.entries(all.at(-1) ?? {})
          .map(([path, { state }]) => [path, state.phase])
          .sort(),
      );
    }),
  );
});
