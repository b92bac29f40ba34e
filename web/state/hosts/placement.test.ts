import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallationStatus } from "../../../model/api.ts";
import { foretoldBy, standingIn } from "./placement.ts";

test("hosts and what stands there are in the order of their names, and children's machines have their whole names", () => {
  const machine = (cell: string, path: string, stage = "running") => ({ cell, path, stage, memoryMiB: 64 });
  const host = (name: string, more: object = {}) => ({
    host: name,
    state: "up",
    usedMiB: 64,
    memoryMiB: 1000,
    ...more,
  });
  const status = {
    hosts: [
      host("h10", { state: "unreachable" }),
      host("h2", {
        administration: "disabled",
        reservedMiB: 200,
        machines: [machine("db.shop", "db/vm10", "ended"), machine("db.shop", "db/vm2")],
      }),
    ],
  } as unknown as InstallationStatus;
  const [first, second] = standingIn(status);
  assert.deepEqual(
    [first?.host, first?.isHeard, first?.administration, first?.memoryMiB],
    ["h2", true, "disabled", 800],
  );
  assert.deepEqual(
    first?.machines.map(({ vm, path, isRunning }) => [vm, path, isRunning]),
    [
      ["db.shop/vm2", "db/vm2", true],
      ["db.shop/vm10", "db/vm10", false],
    ],
  );
  assert.deepEqual([second?.host, second?.isHeard, second?.machines], ["h10", false, []]);
});

test("a host that does not take it says until when it waits; each alert is said", () => {
  const refusal = { kind: "memory", why: "it has 8 MiB free", lifts: "56 MiB more are free" };
  assert.equal(
    foretoldBy({ refusal, alerts: [] }).waits,
    "it has 8 MiB free. It would run on where it is, until 56 MiB more are free",
  );
  assert.deepEqual(foretoldBy({ alerts: [{ kind: "E1", says: "it leaves" }] }), {
    waits: null,
    alerts: ["Alert E1: it leaves"],
  });
});
