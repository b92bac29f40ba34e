import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { routeNames, routeOf } from "../../../model/contract/routes.ts";
import type { Rule } from "../../../model/contract/tenancy/rules.ts";
import { verbOf } from "../../../model/contract/tenancy/verbs.ts";
import type { Json } from "../../../model/json/json.ts";
import { lacksOf } from "./callers.ts";
import { type Tenant, TenantAnswers, TicketHolds, tenantMayNot, tenantMayNotAsk, tenantOf } from "./tenants.ts";

const tenant = (...rules: readonly Rule[]): Tenant => ({ ticket: "t", user: "ann@ROOT", account: "ROOT/dev", rules });
const allow = (verb: string): Rule => ({ verb, effect: "allow" });

test("a tenant may what his rules say, and of what is the operator's nothing, whatever they say", () => {
  const all = tenant(allow("*"));
  for (const name of routeNames) {
    const { who, at } = routeOf(name);
    if (who !== "cell" || at === "gateway") continue;
    assert.equal(tenantMayNotAsk(all, name), null, name);
    if (name !== "grantSession") assert.equal(tenantMayNotAsk(tenant(), name)?.status, 403, name);
  }
  for (const name of ["returnStore", "admitHost", "removeHost", "endHost", "readHostEnd", "orderBackupAtRoot"] as const)
    assert.equal(tenantMayNotAsk(all, name)?.status, 403, name);
  assert.equal(tenantMayNot(tenant(allow("vm.exec")), "vm.console")?.status, 403);
});

test("every request about a cell that a cell's own credential opens has a verb", () => {
  // A session has a verb of its own, and of a sign-in nobody is asked but the gateway. What that answers out of what it asks of cells needs the verbs of those requests.
  const others: ReadonlySet<string> = new Set([
    "grantSession",
    "readOpenApi",
    "follow",
    "readSignIn",
    "signOut",
    "makeSignInCode",
  ]);
  for (const name of routeNames)
    if (routeOf(name).who === "cell" && !others.has(name))
      assert.notEqual(verbOf(name), null, `${name}: model/contract/tenancy/verbs.ts says which right it needs`);
});

test("who may make a credential of the cell may do all that it does", () => {
  const all = [allow("credential.*"), allow("cell.*"), allow("vm.*")];
  assert.equal(tenantMayNotAsk(tenant(...all, allow("placement.*")), "addCredential"), null);
  for (const rules of [
    [allow("credential.*")],
    [allow("credential.*"), allow("cell.*"), allow("vm.exec")],
    all,
    [{ verb: "cell.delete", effect: "deny" } as const, allow("*")],
  ])
    assert.equal(tenantMayNotAsk(tenant(...rules), "addCredential")?.status, 403, JSON.stringify(rules));
});

test("of rights that depend on what is changed the controller is told which ones a user has not", () => {
  const lacks = (...rules: readonly Rule[]) => lacksOf({ operator: false, tenant: tenant(...rules) });
  assert.deepEqual(lacks(allow("cell.*"), allow("vm.*")), { lacks: ["placement.strict"] });
  for (const verb of ["placement.*", "placement.strict", "*"]) assert.deepEqual(lacks(allow(verb)), {}, verb);
  assert.deepEqual([lacksOf(null), lacksOf({ operator: true }), lacksOf({ operator: false, hash: "x" })], [{}, {}, {}]);
});

test("what the service says, or that it is silent, is what a ticket is worth", async () => {
  const says = (worth: Json) => tenantOf(async () => worth, "shop", "tenant.x");
  const open = await says({ state: "open", user: "ann@ROOT", account: "ROOT/dev", rules: [] });
  assert.ok("ticket" in open && open.user === "ann@ROOT");
  for (const [state, status] of [
    ["unknown", 401],
    ["old", 401],
    ["silent", 503],
  ] as const) {
    const no = await says({ state });
    assert.equal("refused" in no ? no.refused.status : 0, status, state);
  }
});

test("answers end whose right was taken back, the others go on, and what is open is followed until it ends", async () => {
  const asked: Json[] = [];
  let rules: readonly Rule[] = [allow("*")];
  const holds = new TicketHolds(async (request) => {
    asked.push(request);
    return { state: "open", user: "", account: "", rules } as unknown as Json;
  });
  const answers = new TenantAnswers(holds);
  const response = () => {
    const own = Object.assign(new EventEmitter(), { destroyed: false, destroy: () => void own.emit("close") });
    own.once("close", () => {
      own.destroyed = true;
    });
    return own;
  };
  const [events, model] = [response(), response()];
  answers.follow(tenant(), "followCell", events as unknown as ServerResponse);
  answers.follow(tenant(), "putModel", model as unknown as ServerResponse);
  assert.deepEqual(asked.splice(0), [{ method: "TICKET-HELD", hash: "t", held: true }]);
  await answers.ended("t");
  assert.deepEqual([events.destroyed, model.destroyed], [false, false]);
  rules = [allow("cell.change")];
  await answers.ended("t");
  assert.deepEqual([events.destroyed, model.destroyed], [true, false]);
  assert.ok(
    asked.some((each) => (each as { readonly held?: boolean }).held === false),
    "it is let go",
  );
  await answers.ended("other");
});
