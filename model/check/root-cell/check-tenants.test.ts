import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../json/json.ts";
import { checkDocument } from "../../specification/specification.ts";
import { isTenant, tenantPath } from "./check-tenants.ts";

const checked = (tenants: JsonObject, name = "root") => checkDocument({ [name]: { "x.type": "Cell", tenants } });
const said = (tenants: JsonObject, name?: string): string => {
  const result = checked(tenants, name);
  return result.ok ? "" : result.error.map(({ code, message, hint = "" }) => `${code}: ${message} ${hint}`).join("\n");
};
const account: JsonObject = { "x.type": "Account" };
const domain: JsonObject = { "x.type": "Domain" };
const role: JsonObject = { "x.type": "Role", "x.rules": ["allow vm.*"] };

test("domains, accounts and roles stand in one another as they are called", () => {
  const result = checked({
    acme: {
      ...domain,
      "x.limits.vms": 50,
      dev: { ...account, "x.limits.memory": 1024, "x.limits.cells": 2, "x.state": "locked" },
      ops: { ...role, "x.rules": ["deny  vm.console", "allow vm.*"], "x.reach": "domain", "x.secondFactor": true },
    },
    // Its domain is made by commands.
    elsewhere: { lab: account },
  });
  const found = result.ok ? [...result.value.elements.values()].filter(isTenant) : assert.fail(said({}));
  assert.deepEqual(found.map(tenantPath), ["ROOT/acme", "ROOT/acme/dev", "ROOT/acme/ops", "ROOT/elsewhere/lab"]);
  const [acme, dev, ops] = found;
  assert.deepEqual([acme?.type === "Domain" && acme.limits], [{ vms: 50 }]);
  assert.deepEqual(dev?.type === "Account" && [dev.state, dev.limits], ["locked", { memoryMiB: 1024, cells: 2 }]);
  assert.deepEqual(ops?.type === "Role" && [ops.reach, ops.rules, ops.secondFactor], [
    "domain",
    [
      { verb: "vm.console", effect: "deny" },
      { verb: "vm.*", effect: "allow" },
    ],
    true,
  ]);
});

test("what cannot be is refused with where it stands and how it would be right", () => {
  const deep = (levels: number): JsonObject =>
    levels === 0 ? { last: account } : { [`d${levels}`]: { ...domain, ...deep(levels - 1) } };
  assert.equal(said(deep(15)), "");
  for (const [tenants, told] of [
    [{ Acme: domain }, /has the part "Acme", which is no name of a tenant Use at most 63 small letters/],
    [{ a_b: { dev: account } }, /the part "a_b"/],
    [
      { dev: { ...account, inner: account } },
      /`root\/tenants\/dev\/inner` is in `root\/tenants\/dev`, which is of type Account/,
    ],
    [{ dev: { ...account, ops: role } }, /is in `root\/tenants\/dev`, which is of type Account/],
    [{ ops: { ...role, inner: domain } }, /which is of type Role/],
    [{ operator: account }, /is the operator's account, which stays/],
    [{ acme: { ...domain, reader: role } }, /has the name of a role that every installation has Give it another/],
    [{ acme: { ...domain, "x.movedFrom": "root/tenants/former" } }, /what tenants are called never changes/],
    [deep(16), /is within 16 domains Domains are at most 15/],
    [{ acme: { ...domain, "x.state": "off" } }, /`x\.state` must be "enabled" or "locked" or "disabled"/],
    [{ acme: { ...domain, "x.limits.vms": -1 } }, /x\.limits\.vms/],
    [{ acme: { ...domain, "x.limits.snapshots": 1 } }, /x\.limits\.snapshots/],
    [{ acme: { ...domain, "x.limits.vmStartsPerMinute": 1 } }, /x\.limits\.vmStartsPerMinute/],
    [{ ops: { "x.type": "Role" } }, /x\.rules/],
    [{ ops: { ...role, "x.rules": [] } }, /at least one rule, not \[\] Write \["allow cell\.read"\]/],
    [{ ops: { ...role, "x.rules": "allow *" } }, /a list of rules/],
    [
      { ops: { ...role, "x.rules": ["perhaps vm.*"] } },
      /has "perhaps vm\.\*", which is no rule A rule is allow or deny and/,
    ],
    [{ ops: { ...role, "x.rules": ["allow VM.start"] } }, /which is no rule/],
    [{ ops: { ...role, "x.rules": ["allow vm.*", "allow  vm.*"] } }, /twice/],
    [{ ops: { ...role, "x.rules": [`allow ${"a".repeat(10_000)}`] } }, /which is no rule/],
    [
      { ops: { ...role, "x.rules": Array.from({ length: 257 }, (_, at) => `allow a${"b".repeat(at % 60)}.c`) } },
      /at most 256/,
    ],
    [{ ops: { ...role, "x.reach": "world" } }, /x\.reach/],
  ] as const)
    assert.match(said(tenants as JsonObject), told, JSON.stringify(tenants).slice(0, 200));
  assert.match(
    said({ dev: account }, "shop"),
    /cell\/tenants: `shop\/tenants\/dev` is of type Account, and .* root cell alone/,
  );
  const misplaced = checkDocument({ root: { "x.type": "Cell", acme: domain } });
  assert.match(
    misplaced.ok ? "" : JSON.stringify(misplaced.error),
    /stands outside of `root\/tenants`.*tenants extends \{ acme extends Domain/s,
  );
});
