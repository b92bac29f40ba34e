import assert from "node:assert/strict";
import { test } from "node:test";
import { playScenario, readScenario, scenarioNames } from "./histories/scenario.ts";

for (const name of scenarioNames()) {
  test(`scenario ${name}`, async () => {
    const scenario = readScenario(name);
    assert.ok(scenario.why.length > 80, "why.md says what it is there for");
    assert.deepEqual(await playScenario(scenario), []);
  });
}

test("an expectation that is not met is told, and so is one that must not be", async () => {
  const steps = "hosts 1\nat 100 apply c1 vm:a1:64\nuntil 2000";
  const expect = "machine.h1 started a1\nmachine.h1 started a1\n! host.h1 machine/stage running";
  const faults = await playScenario({ name: "none", why: "", steps, expect });
  assert.equal(faults.length, 2);
  assert.match(faults[0] ?? "", /does not show "machine\.h1 started a1" behind line/);
  assert.match(faults[1] ?? "", /should not come/);
});
