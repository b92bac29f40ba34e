import assert from "node:assert/strict";
import { test } from "node:test";
import { offeringElement, offeringsIn, type WantedOffering } from "./offerings.ts";

const wanted: WantedOffering = {
  name: "small",
  says: "for tests",
  memoryMiB: 256,
  cpus: 1,
  tags: [],
  planner: "FirstFitPlanner",
  mode: "Preferred",
  ha: false,
};

test("an offering's element has what the form says, and a mode beside the planner that has modes alone", () => {
  const plain = offeringElement(wanted);
  assert.deepEqual(plain.ok && plain.value, {
    "x.type": "Offering",
    "x.displayText": "for tests",
    "x.memory": 256,
    "x.cpus": 1,
    "x.planner": "FirstFitPlanner",
  });
  const alone = offeringElement({ ...wanted, planner: "ImplicitDedicationPlanner", tags: ["ssd"], ha: true, says: "" });
  assert.deepEqual(alone.ok && alone.value, {
    "x.type": "Offering",
    "x.memory": 256,
    "x.cpus": 1,
    "x.tags": ["ssd"],
    "x.planner": "ImplicitDedicationPlanner",
    "x.mode": "Preferred",
    "x.ha": true,
  });
  for (const name of ["", "Small", "a b", "-a", "../hosts"]) {
    const refused = offeringElement({ ...wanted, name });
    assert.ok(!refused.ok && /^an offering is called by/.test(refused.error), name);
  }
});

test("what is offered is said in words, and what else stands there is not", () => {
  const strict = offeringElement({ ...wanted, planner: "ImplicitDedicationPlanner", mode: "Strict", cpus: 2 });
  assert.ok(strict.ok);
  const model = { root: { offerings: { small: strict.value, "x.type": "Other", other: { "x.type": "Zone" } } } };
  assert.deepEqual(offeringsIn(model), [
    { name: "small", says: "256 MiB, 2 processors; where nobody else's machines are, or nowhere; for tests" },
  ]);
  assert.deepEqual(offeringsIn({ root: {} }), []);
  assert.deepEqual(offeringsIn(null), []);
});
