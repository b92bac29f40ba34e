import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rebalance } from "../../../model/contract/operator/placement.ts";
import { failure, scene } from "../model/scene.testing.ts";
import { type RebalanceOptions, showRebalance } from "./rebalance.ts";

const plan: Rebalance = {
  goal: "empty",
  host: "h1" as never,
  left: ["shop/db"],
  moves: [{ uid: "u1" as never, vm: "shop/web", from: "h1" as never, to: "h2" as never, memoryMiB: 512 }],
  before: { hostsInUse: 2, fullestPercent: 80.5, deviationPercent: 20 },
  after: { hostsInUse: 2, fullestPercent: 60, deviationPercent: 2 },
};

test("cells rebalance shows each move as the command that makes it, what is gained, and what stays", async (t) => {
  const asked: string[] = [];
  const said = async (body: Rebalance, options: RebalanceOptions): Promise<readonly string[]> => {
    const { context, printed } = await scene(t, ({ url }) => {
      asked.push(url);
      return { status: 200, body: { plans: [body] } };
    });
    await showRebalance(context, options);
    return printed;
  };
  assert.deepEqual(await said(plan, { empty: "h1" }), [
    "cells move shop/web --to h2    # from h1",
    "now: 2 in use, the fullest 80.5 %, deviation 20 %",
    "then: 2 in use, the fullest 60 %, deviation 2 %",
    "these stay at h1: shop/db",
  ]);
  const none: Rebalance = { ...plan, goal: "even", host: null, moves: [], left: [] };
  assert.deepEqual(await said(none, {}), ["no move gains anything"]);
  await said(none, { pack: true });
  assert.deepEqual(asked, [
    "/placement/rebalance?goal=empty&host=h1",
    "/placement/rebalance?goal=even",
    "/placement/rebalance?goal=pack",
  ]);
  const { context } = await scene(t, () => assert.fail("nothing is asked"));
  assert.match((await failure(showRebalance(context, { pack: true, empty: "h1" }))).message, /^say one of/);
});
