import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../json/json.ts";
import { checkDocument } from "../specification/specification.ts";
import { planChange } from "./plan.ts";
import { renderPlan } from "./render-plan.ts";

type Open = { readonly [name: string]: Json };
const cell = (made: Open) => {
  const result = checkDocument({ c: { "x.type": "Cell", ...made } });
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
};
const vm = (more: Open = {}): Open => ({ "x.type": "VM", "x.memory": 64, ...more });
const volume = (more: Open = {}): Open => ({ "x.type": "Volume", "x.size": 8, ...more });
const disk = (to: string): Open => ({
  "x.type": "VolumeConnection",
  "x.vm": "<ref:/c/vm>",
  "x.volume": `<ref:/c/${to}>`,
});
const shown = (from: Open | null, to: Open | null, all = false): string =>
  renderPlan(planChange(from && cell(from), to && cell(to)), { color: false, all });

test("a new cell: what each element waits for", () => {
  assert.equal(
    shown(null, { vm: vm(), data: volume(), disk: disk("data") }),
    [
      "+ c/data  Volume            is created",
      "+ c/disk  VolumeConnection  is created",
      "    after c/data",
      "+ c/vm    VM                is created",
      "    after c/data",
      "",
      "Plan: 3 to create, 0 unchanged.",
    ].join("\n"),
  );
});

test("what is replaced, why, what it takes along and what is lost", () => {
  const from = { vm: vm(), data: volume(), other: volume({ "x.import": "tiny" }), disk: disk("data") };
  assert.equal(
    shown(from, { ...from, data: volume({ "x.size": 4 }) }),
    [
      "± c/data  Volume            is deleted and created anew; its data is lost",
      "    x.size: 8 → 4",
      "    loses up to 8 MiB that were written to it",
      "± c/disk  VolumeConnection  is deleted and created anew",
      "    x.volume: c/data is made anew",
      "    after c/data",
      "! c/vm    VM                is started again",
      "    c/disk connects c/data anew",
      "    after c/data",
      "",
      "The data of c/data is lost.",
      "Plan: 1 to restart, 2 to replace, 1 unchanged.",
    ].join("\n"),
  );
  assert.match(shown(from, { ...from, disk: disk("other") }), /\n {4}c\/disk connects c\/other instead of c\/data\n/);
  const { disk: _disk, other: _other, ...rest } = from;
  const gone = shown(from, rest);
  assert.match(gone, /! c\/vm .*is started again\n {4}c\/disk connects c\/data no longer\n/);
  assert.match(gone, /- c\/disk .*is deleted\n {4}after c\/vm\n/);
  assert.match(gone, /\n {4}loses up to 8 MiB that were written since it was made from the image "tiny"\n/);
  assert.match(shown(rest, from), /\n {4}c\/disk connects c\/data\n/);
});

test("of a large value what differs is shown", () => {
  const long = "a".repeat(200);
  const from = { vm: vm({ "x.data": { serve: { http: 80, names: [1, 2] }, keep: long } }) };
  const text = shown(from, { vm: vm({ "x.data": { serve: { http: 81, names: [1, 2] }, keep: `${long}b` } }) });
  assert.match(text, /\n {4}x\.data\/serve\/http: 80 → 81\n {4}x\.data\/keep: …a+" → …a+b"\n/);
  assert.ok(Math.max(...text.split("\n").map(({ length }) => length)) < 160);
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`n${n}`, n]));
  assert.match(shown({ vm: vm({ "x.data": {} }) }, { vm: vm({ "x.data": many }) }), /\n {4}and 14 more in x\.data\n/);
});

test("with --all what stays, and with many names just a few of them", () => {
  const disks = Object.fromEntries(
    Array.from({ length: 9 }, (_, n) => [
      [`v${n}`, volume({ "x.access": "ro" })] as const,
      [`d${n}`, disk(`v${n}`)] as const,
    ]).flat(),
  );
  const made = { vm: vm(), ...disks };
  assert.match(
    shown(made, { ...made, vm: vm({ "x.memory": 65 }) }),
    /^! c\/vm .*again\n {4}x\.memory: 64 → 65\n\nPlan/,
  );
  const all = shown(made, { ...made, vm: vm({ "x.memory": 65 }) }, true);
  assert.match(all, /^ {2}c\/v0 .*stays as it is\n/);
  assert.match(all, /\n {4}after c\/v0, c\/v1, c\/v2, c\/v3 and 5 more\n/);
});

test("the cell itself: what changes about it, also where no element does", () => {
  const from = { vm: vm(), net: { "x.type": "Subnet", "x.size": 8 } };
  assert.equal(
    shown(from, { ...from, "x.limits.memory": 4096 }),
    [
      "~ c  Cell  changes; none of its elements does",
      "    x.limits.memory: nothing → 4096",
      "",
      "Plan: the cell itself to change, 2 unchanged.",
    ].join("\n"),
  );
  assert.equal(
    shown(from, { ...from, "x.policy.subnetConnectivity": true }),
    [
      "~ c      Cell    changes",
      "    x.policy.subnetConnectivity: nothing → true",
      "~ c/net  Subnet  changes while it runs",
      "    x.policy.subnetConnectivity: nothing → true",
      "",
      "Plan: the cell itself to change, 1 to change, 1 unchanged.",
    ].join("\n"),
  );
  assert.equal(
    shown(null, {
      vm: vm(),
      "x.policy.internet": "out",
      "x.policy.subnetConnectivity": true,
      "x.policy.broadcast": "off",
      "x.defaults.internet": "out",
      "x.defaults.subnetConnectivity": false,
    }),
    [
      "+ c     Cell  is created",
      "    x.policy.subnetConnectivity: nothing → true",
      '    x.policy.internet: nothing → "out"',
      '    x.defaults.internet: nothing → "out"',
      "+ c/vm  VM    is created",
      "",
      "Plan: the cell itself to create, 1 to create, 0 unchanged.",
    ].join("\n"),
    "what a new cell opens without a rule is named",
  );
  assert.equal(shown(null, {}), "+ c  Cell  is created\n\nPlan: the cell itself to create, 0 unchanged.");
  assert.equal(shown({}, null), "- c  Cell  is deleted\n\nPlan: the cell itself to delete, 0 unchanged.");
  assert.equal(
    shown(from, { ...from, remark: "new" }),
    "Nothing to do: the text changes, and nothing that is deployed does (2 unchanged).",
  );
});
