import assert from "node:assert/strict";
import { test } from "node:test";
import { reportIn } from "./openstack.ts";

test("what Nova's program says last is read, and what it does not say is an error", () => {
  const report = { placed: 3, hostsInUse: 2, tookMs: 90.5, cpuMs: 40, candidatesMs: 20, claimsMs: 30 };
  assert.deepEqual(reportIn(`a library's words\nbegins\n${JSON.stringify(report)}\n`), report);
  const { claimsMs: _left, ...less } = report;
  assert.throws(() => reportIn(`${JSON.stringify(less)}\n`), { message: "Nova's program does not say claimsMs" });
  assert.throws(() => reportIn("begins\n"), SyntaxError);
});
