import assert from "node:assert/strict";
import { test } from "node:test";
import { childOf, Root, rootWithTenancy } from "../../../core/controller/model/root.testing.ts";
import { routeNames } from "../../../model/contract/routes.ts";
import type { Rule } from "../../../model/contract/tenancy/rules.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { onChildCell } from "./child-cells.ts";
import type { Tenant } from "./tenants.ts";

const all: readonly Rule[] = [{ verb: "*", effect: "allow" }];
const ticket = (child: string | undefined, account = "ROOT/acme/dev", rules = all): Tenant => ({
  ticket: "t",
  user: "ann@ROOT/acme",
  account,
  rules,
  ...(child === undefined ? {} : { child }),
});
const root = (): Root => {
  const made = new Root();
  const cells = { bank: childOf("bank", "ROOT/acme/ops"), primary: childOf("primary"), vault: childOf("vault") };
  made.put("", rootWithTenancy({ cells, apart: { own: childOf("hidden") } }));
  return made;
};
const go = async (at: Root, tenant: Tenant, name: "putElement" | "deleteElement" | "readElement", path: string) => {
  const answer = await onChildCell(async (request) => at.ask(request), tenant, name, path);
  return answer === "read" ? 200 : "refused" in answer ? answer.refused.status : answer.status;
};
const element = (at: Root, path: string): JsonObject =>
  at.ask({ method: "GET", path: `root/cells/${path}` }).body as JsonObject;

test("a user's cell is bound to the account of his ticket, whatever the gateway sends beside it", async () => {
  const at = root();
  assert.equal(await go(at, ticket("shop"), "putElement", "root/cells/shop"), 200);
  assert.deepEqual(element(at, "shop"), childOf("shop", "ROOT/acme/dev"));
  assert.equal(await go(at, ticket("shop"), "readElement", "root/cells/shop"), 200);
  // The operator gives it more; that it is asked for again changes nothing of that.
  const more = childOf("shop", "ROOT/acme/dev", { "x.limits.vms": 2 });
  at.put("root/cells/shop", more);
  assert.equal(await go(at, ticket("shop"), "putElement", "root/cells/shop"), 200);
  assert.deepEqual(element(at, "shop"), more);
  assert.equal(await go(at, ticket("shop"), "deleteElement", "root/cells/shop"), 200);
  assert.equal(at.ask({ method: "GET", path: "root/cells/shop" }).status, 404);
  assert.equal(await go(at, ticket("shop", "ROOT/others"), "putElement", "root/cells/shop"), 409, "until it has ended");
});

test("of cells of others, and of all else in the root cell, a ticket opens nothing", async () => {
  const at = root();
  const before = JSON.stringify(at.ask({ method: "GET", path: "" }).body);
  for (const [child, put, others] of [
    ["bank", 409, 404],
    ["primary", 409, 404],
    ["vault", 409, 404],
    // It stands elsewhere in the model, under this name.
    ["hidden", 409, 404],
    ["new", 200, 404],
  ] as const) {
    const path = `root/cells/${child}`;
    if (put !== 200) assert.equal(await go(at, ticket(child), "putElement", path), put, child);
    assert.equal(await go(at, ticket(child), "deleteElement", path), others, child);
    assert.equal(await go(at, ticket(child), "readElement", path), others, child);
  }
  // A ticket for one name is for no other place.
  for (const path of [
    "",
    "root",
    "root/cells",
    "root/core",
    "root/controllers/bank",
    "root/cells/bank",
    "root/cells/shop/x.cell",
    "root/cells/shop/x.gateway",
    "root/apart/own",
    "root/cells/../core",
    "/root/cells/shop",
    "root/cells/shop/",
  ])
    for (const name of ["putElement", "deleteElement", "readElement"] as const)
      assert.equal(await go(at, ticket("shop"), name, path), 403, `${name} ${path}`);
  for (const name of routeNames) {
    // What is said of whole hosts is that of the ticket's account.
    if (["putElement", "deleteElement", "readElement", "readHoldings"].includes(name)) continue;
    const answer = await onChildCell(async (request) => at.ask(request), ticket("shop"), name, "root/cells/shop");
    assert.ok(answer !== "read" && "refused" in answer && answer.refused.status === 403, name);
  }
  assert.equal(await go(at, ticket(undefined), "putElement", "root/cells/shop"), 403, "of a cell's own ticket");
  const holdings = await onChildCell(async (request) => at.ask(request), ticket(undefined), "readHoldings", "");
  assert.ok(holdings !== "read" && "refused" in holdings, "of a cell's own ticket");
  assert.equal(JSON.stringify(at.ask({ method: "GET", path: "" }).body), before, "nothing was touched");
});

test("what the role does not allow is refused with the rule, before anybody is told whether the cell is there", async () => {
  const at = root();
  const reader = ticket("shop", "ROOT/acme/dev", [{ verb: "cell.read", effect: "allow" }]);
  const told = async (name: "putElement" | "deleteElement") =>
    JSON.stringify(await onChildCell(async (request) => at.ask(request), reader, name, "root/cells/shop"));
  const [makes, ends] = [await told("putElement"), await told("deleteElement")];
  assert.match(makes, /cell\.create.*no rule allows it.*administrator of the account/);
  at.put("root/cells/shop", childOf("shop", "ROOT/acme/dev"));
  assert.deepEqual([await told("putElement"), await told("deleteElement")], [makes, ends]);
});

test("two who want one name at the same time: it is one's, and a change in between overtakes nobody", async () => {
  const at = root();
  let others = 3;
  const ask = async (request: Parameters<Root["ask"]>[0]) => {
    const answer = at.ask(request);
    if (request.method === "CHILDREN-NAMED" && others > 0) {
      others -= 1;
      if (others === 0) at.put("root/cells/shop", childOf("shop", "ROOT/acme/ops"));
      else at.put(`root/cells/other${others}`, childOf(`other${others}`));
    }
    return answer;
  };
  const answer = await onChildCell(ask, ticket("shop"), "putElement", "root/cells/shop");
  assert.ok(answer !== "read" && "refused" in answer && answer.refused.status === 409, JSON.stringify(answer));
  assert.equal(element(at, "shop")["x.account"], "ROOT/acme/ops");
});
