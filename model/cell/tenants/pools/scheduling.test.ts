import assert from "node:assert/strict";
import { test } from "node:test";
import { casesOf } from "./cases/cases.testing.ts";
import { mayStandInPool, type PoolRule } from "./pools.ts";

/** One host, one request: whether the host passes. */
interface SchedulingCase {
  readonly id: string;
  readonly rule: string;
  readonly host: {
    readonly flavor?: string;
    readonly pool?: string;
    readonly state?: string;
    readonly zone?: string;
    readonly askedZone?: string;
  };
  readonly asks: string | null;
  readonly tenant: string;
  readonly authorised: readonly string[];
  readonly passes: boolean;
}
for (const { id, rule, host, asks, tenant, authorised, passes } of casesOf<SchedulingCase>("scheduling.json"))
  test(`scheduling ${id} (${rule})`, () => {
    const pool = host.pool === undefined ? null : { uid: host.pool, enabled: host.state === "enabled", authorised };
    const ofFlavor: PoolRule | null =
      host.flavor === undefined && pool === null ? null : { flavor: host.flavor ?? "", pool };
    // The place stands for every other filter: each is asked for itself.
    const isElsewhere = host.askedZone !== undefined && host.askedZone !== host.zone;
    assert.equal(mayStandInPool(ofFlavor, asks, tenant) && !isElsewhere, passes);
  });

test("nobody who is not known stands in a pool, whomever it authorises", () => {
  const rule = { flavor: "large", pool: { uid: "p", enabled: true, authorised: ["null", ""] } };
  assert.equal(mayStandInPool(rule, "p", null), false);
});
