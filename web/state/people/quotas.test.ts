import assert from "node:assert/strict";
import { test } from "node:test";
import { formOfLimits, limitsOf, quotaCommand, quotaSays, unitsSay } from "./quotas.ts";

test("limits are as they were written, and what is left empty is not limited", () => {
  const limits = { vms: 3, units: 0 };
  assert.deepEqual(limitsOf(formOfLimits(limits)), limits);
  assert.deepEqual(limitsOf({ ...formOfLimits(limits), vms: " " }), { units: 0 });
  assert.equal(quotaCommand("ROOT/acme", limits), "cells quota set ROOT/acme vms=3 units=0");
  assert.equal(quotaCommand("ROOT/acme", {}), "cells quota set ROOT/acme none");
});

test("of each other limit it is said what it was, what was granted, and what comes of it", () => {
  const says = quotaSays(
    { vms: 5, cpus: 2, cells: 1 },
    { limits: { vms: 2, cells: 1, volumes: 4 }, granted: { vms: 3 } },
  );
  assert.deepEqual(says, [
    "machines: 2 at most (5 until now); 3 were granted: these stay, and no more are granted before there are fewer",
    "processors: not limited any more (2 until now); 0 were granted",
    "volumes: 4 at most (not limited until now); 0 were granted",
  ]);
  assert.deepEqual(quotaSays({}, { limits: { vms: 1 }, granted: null }), [
    "machines: 1 at most (not limited until now); what was granted is counted from then on",
  ]);
});

test("units of whole hosts stand against their limit, where there is one", () => {
  const of = (path: string, limits: object, granted: object | null) =>
    ({ uid: path, path, kind: "account", limits, granted, tag: "" }) as const;
  assert.deepEqual(
    unitsSay([
      of("ROOT/a", { units: 4 }, { units: 1 }),
      of("ROOT/b", { vms: 1 }, {}),
      of("ROOT/c", { units: 2 }, null),
    ]),
    ["ROOT/a has 1 of 4 units of whole hosts.", "ROOT/c has an unknown part of 2 units of whole hosts."],
  );
});
