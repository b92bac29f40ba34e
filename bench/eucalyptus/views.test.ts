import assert from "node:assert/strict";
import { test } from "node:test";
import { id, large, planned, thousandRules, viewOf } from "./views.ts";

test("views of benches are as large as their figures say", () => {
  const rules = (size: typeof large): number =>
    viewOf(size, 22).securityGroups.reduce((sum, { ingress }) => sum + ingress.length, 0);
  assert.equal(rules(thousandRules), 1000);
  const view = viewOf(large, 22);
  assert.deepEqual([view.instances.length, view.securityGroups.length], [10_000, 1000]);
  assert.equal(new Set(view.instances.map(({ mac }) => mac)).size, 10_000, "each has a MAC of its own");
  assert.equal(new Set(view.instances.map(({ privateIp }) => privateIp)).size, 10_000);
});

test("another port is another rule of the first group, at a node that has instances", () => {
  const [one, other] = [planned(thousandRules, 22), planned(thousandRules, 23)];
  const chainOf = (plan: typeof one, name: string) =>
    plan.iptables.flatMap(({ chains }) => chains).find((chain) => chain.name === name)?.rules;
  assert.notDeepEqual(chainOf(one, id("sg", 0)), chainOf(other, id("sg", 0)));
  assert.deepEqual(chainOf(one, id("sg", 1)), chainOf(other, id("sg", 1)));
  assert.equal(one.taps.length, thousandRules.instances / thousandRules.nodes);
});
