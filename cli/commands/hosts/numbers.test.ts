import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "../model/scene.testing.ts";
import { curve, showCounters, showHistory, showMachineHistory } from "./numbers.ts";

test("what a cell's rules and interfaces count is a table, and hosts that do not say are named", async (t) => {
  const half = { packets: 4, bytes: 40 };
  const body = {
    rules: [{ path: "shop/rule", packets: 6, bytes: 60 }],
    interfaces: [{ path: "shop/nic", sent: half, received: half, drops: { "no-rule": 2 } }],
    machines: [{ path: "shop/web", diskBytes: 5 }],
    missing: 1,
    silent: ["h2"],
  };
  const asked: string[] = [];
  const { context, printed } = await scene(t, ({ url }) => {
    asked.push(url);
    return { status: 200, body };
  });
  await showCounters(context, "shop");
  assert.deepEqual(asked, ["/cells/shop/counters"]);
  const words = printed.map((line) => line.trim().split(/\s{2,}/));
  assert.deepEqual(words.slice(1), [
    ["shop/rule", "passed", "6", "60"],
    ["shop/nic", "sent", "4", "40"],
    ["shop/nic", "received", "4", "40"],
    ["shop/nic", "dropped: no-rule", "2"],
    ["shop/web", "disks", "5"],
    ["hosts that do not say what they count: h2"],
  ]);
});

test("the last hour is a curve for each host and cell, with what was not heard left free", async (t) => {
  assert.equal(curve([0, 1, null, 2], 2), "▁▅ █");
  assert.equal(
    curve(
      Array.from({ length: 360 }, (_, at) => at),
      359,
    ).length,
    60,
  );
  const body = {
    everyMs: 10_000,
    until: "2026-01-01T00:00:00Z",
    moments: 3,
    load: { h1: [0.5, null, 1] },
    usedMiB: {},
    running: { shop: [0, 0, 0] },
    leftOut: 0,
  };
  const { context, printed } = await scene(t, () => ({ status: 200, body }));
  await showHistory(context);
  assert.match(printed[1] ?? "", /^h1 +CPU +▅ █ +0\.5 +1$/);
  assert.match(printed[2] ?? "", /^shop +VMS RUNNING +▁▁▁ +0 +0$/);
  const nothing = await scene(t, () => ({ status: 200, body: { ...body, moments: 0 } }));
  await showHistory(nothing.context);
  assert.match(nothing.printed[0] ?? "", /only just begun/);
});

test("the last hour of a VM is asked of its cell by its path there, and what its host does not say is left out", async (t) => {
  const asked: string[] = [];
  const nothing = [null, null];
  const body = {
    everyMs: 10_000,
    until: "2026-01-01T00:00:00Z",
    moments: 2,
    load: [0.25, 1],
    residentMiB: [64, null],
    network: nothing,
    disk: nothing,
    isWhole: true,
  };
  let answer: object = body;
  const { context, printed } = await scene(t, ({ url }) => {
    asked.push(url);
    return { status: 200, body: answer };
  });
  await showMachineHistory(context, "shop.primary/web");
  assert.deepEqual(asked, ["/cells/shop.primary/history?vm=shop%2Fweb"]);
  assert.match(printed.join("\n"), /CPU +▃█ +0\.25 +1\nMEMORY MiB +█ +64 +64\n1 min, the present at the right$/);
  answer = { ...body, load: nothing, residentMiB: nothing };
  await showMachineHistory(context, "shop/web");
  assert.match(printed.at(-1) ?? "", /nothing was heard of it in the last hour/);
  answer = { ...body, load: nothing, residentMiB: nothing, isWhole: false };
  await showMachineHistory(context, "shop/web");
  assert.match(printed.at(-1) ?? "", /no room for it among the others/);
});
