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
    /** What it has, and as `asked…` what the request wants of that. */
    readonly [property: string]: string | number | readonly string[] | undefined;
  };
  readonly asks: string | null;
  readonly tenant: string;
  readonly authorised: readonly string[];
  readonly passes: boolean;
}
/** Every other filter is asked for itself: what is asked for is there, as much of it, or all of it. */
const isMet =
  (host: SchedulingCase["host"]) =>
  ([property, asked]: [string, SchedulingCase["host"][string]]): boolean => {
    if (!property.startsWith("asked")) return true;
    const own = `${property.charAt("asked".length).toLowerCase()}${property.slice("asked".length + 1)}`;
    const has = host[own];
    if (typeof asked === "number") return typeof has === "number" && asked <= has;
    const all = Array.isArray(has) ? has : [has];
    return (Array.isArray(asked) ? asked : [asked]).every((each) => all.includes(each));
  };
for (const { id, rule, host, asks, tenant, authorised, passes } of casesOf<SchedulingCase>("scheduling.json"))
  test(`scheduling ${id} (${rule})`, () => {
    const pool = host.pool === undefined ? null : { uid: host.pool, enabled: host.state === "enabled", authorised };
    const ofFlavor: PoolRule | null =
      host.flavor === undefined && pool === null ? null : { flavor: host.flavor ?? "", pool };
    assert.equal(mayStandInPool(ofFlavor, asks, tenant) && Object.entries(host).every(isMet(host)), passes);
  });

test("nobody who is not known stands in a pool, whomever it authorises", () => {
  const rule = { flavor: "large", pool: { uid: "p", enabled: true, authorised: ["null", ""] } };
  assert.equal(mayStandInPool(rule, "p", null), false);
});
