import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementPath } from "../../../model/cell/identifiers.ts";
import type { Plan, PlanStep } from "../../../model/plan/plan-types.ts";
import { inShort, isHeardOf, linesOf } from "./plan.ts";

const step = (action: PlanStep["action"], more: Partial<PlanStep> = {}): PlanStep => ({
  path: "shop/vm" as ElementPath,
  type: "VM",
  action,
  causes: [],
  waitsFor: [],
  losesData: false,
  ...more,
});

test("a plan is told in words, its causes and what is lost with it", () => {
  const causes = [{ attribute: "x.memory", from: 256, to: null }];
  const plan: Plan = { steps: [step("restart", { causes }), step("none"), step("delete", { losesData: true })] };
  assert.deepEqual(
    linesOf(plan).map(({ sign, says, causes, losesData }) => [sign, says, causes, losesData]),
    [
      ["↻", "VM is stopped and started again", ["x.memory: 256 → nothing"], false],
      ["−", "VM is taken away", [], true],
    ],
  );
  assert.equal(inShort(plan), "1 restarted, 1 taken away");
  assert.equal(inShort({ steps: [step("none")] }), "Nothing would change");
  assert.match(inShort({ steps: [], textOnly: true }), /text alone/);
});

test("what was known before a plan says nothing of what it makes", () => {
  const plan: Plan = {
    steps: [
      step("none", { path: "shop/old" as ElementPath }),
      step("create"),
      step("create", { path: "shop/it" as ElementPath }),
    ],
  };
  const changed = { plan, version: 4 };
  const made = [{ path: "shop/old" }, { path: "shop/vm" }];
  assert.equal(isHeardOf(changed, null, []), false);
  assert.equal(isHeardOf(changed, null, [{ path: "shop/old" }]), false);
  assert.equal(isHeardOf(changed, null, made), true);
  const changing = { plan: { steps: [step("change")] }, version: 4 };
  assert.equal(isHeardOf(changing, null, []), true, "nothing is made, and nobody has said");
  for (const each of [changed, changing]) {
    assert.equal(isHeardOf(each, 3, made), false, "of a version before");
    assert.equal(isHeardOf(each, 4, []), true);
    assert.equal(isHeardOf(each, 5, []), true, "somebody has changed it since");
  }
});
