import assert from "node:assert/strict";
import type { QuotaSummary } from "../../model/contract/tenancy/quotas.ts";
import type { AccountSummary, DomainSummary, RoleSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import type { Asking } from "./reads-apart.testing.ts";

/**
 * The root cell's specification declares domains, accounts, roles and limits: they are made so, taken over and kept so, and what leaves it goes on.
 *
 * @param specification of the root cell, without tenants
 * @param ann a session of a user of `ROOT/dev`, which is there
 */
export async function tenantsAreDeclared(
  { operator, said, ask }: Asking,
  specification: { readonly root: JsonObject },
  ann: string,
): Promise<void> {
  const put = async (tenants: JsonObject | null): Promise<void> => {
    const { root } = specification;
    const answer = await ask("PUT", "/cells/root/model", { root: tenants === null ? root : { ...root, tenants } });
    assert.equal(answer.status, 200, JSON.stringify(answer.json));
  };
  const all = async <T>(what: string): Promise<readonly T[]> =>
    (await ask("GET", what, undefined, operator)).json as unknown as readonly T[];
  const at = async (path: string): Promise<AccountSummary | undefined> =>
    (await all<AccountSummary>("/accounts")).find((each) => each.path === path);
  const limitsOf = async (path: string): Promise<object | undefined> =>
    (await all<QuotaSummary>("/quotas")).find((each) => each.path === path)?.limits;
  const isIn = async (): Promise<boolean> => (await ask("GET", "/whoami", undefined, ann)).status === 200;

  const before = (await at("ROOT/dev")) ?? assert.fail("it is there");
  const dev: JsonObject = { "x.type": "Account", "x.limits.cells": 3 };
  const lab: JsonObject = {
    "x.type": "Domain",
    "x.limits.vms": 7,
    physics: { "x.type": "Account", "x.state": "locked" },
    lookers: { "x.type": "Role", "x.rules": ["allow cell.read"] },
  };
  await put({ dev, lab });
  await eventually(`what is declared is so\n${said()}`, async () => (await at("ROOT/lab/physics")) !== undefined);
  await eventually("limits too", async () => JSON.stringify(await limitsOf("ROOT/dev")) === '{"cells":3}');
  await eventually("roles too", async () =>
    (await all<RoleSummary>("/roles")).some(({ name, domain }) => name === "lookers" && domain === "ROOT/lab"),
  );
  assert.equal((await at("ROOT/lab/physics"))?.state, "locked");
  const now = await at("ROOT/dev");
  assert.deepEqual([now?.uid, now?.number], [before.uid, before.number], "it was taken over");
  assert.ok(await isIn(), "with its users");
  const phaseOf = async (path: string): Promise<unknown> =>
    ((await ask("GET", `/cells/root/model/${path}?state=true`)).json as { readonly phase?: unknown }).phase;
  await eventually("each is ready", async () => (await phaseOf("root/tenants/lab/physics")) !== "waiting");

  const domain = (await all<DomainSummary>("/domains")).find(({ path }) => path === "ROOT/lab") ?? assert.fail();
  const role = (await all<RoleSummary>("/roles")).find(({ name }) => name === "lookers") ?? assert.fail();
  for (const [method, path, body] of [
    ["PUT", `/accounts/${before.uid}`, { state: "disabled" }],
    ["DELETE", `/accounts/${before.uid}`, undefined],
    ["PUT", `/quotas/${before.uid}`, { limits: {} }],
    ["PUT", `/domains/${domain.uid}`, { state: "locked" }],
    ["DELETE", `/domains/${domain.uid}?cleanup=true`, undefined],
    ["PUT", `/roles/${role.uid}`, { rules: [] }],
  ] as const) {
    const answer = await ask(method, path, body, operator);
    assert.equal(answer.status, 409, `${method} ${path}: ${JSON.stringify(answer.json)}`);
    assert.match(JSON.stringify(answer.json), /stands in the root cell's specification \(root\/tenants\//);
  }

  await put({ dev: { ...dev, "x.state": "disabled" }, lab });
  await eventually("who is disabled there is out", async () => !(await isIn()));
  await put({ dev, lab });
  await eventually("and in again", isIn);
  await put(null);
  await eventually("it is changed by commands again", async () => {
    const answer = await ask("PUT", `/accounts/${before.uid}`, { state: "enabled" }, operator);
    return answer.status === 200;
  });
  assert.equal((await at("ROOT/dev"))?.uid, before.uid);
  assert.deepEqual(await limitsOf("ROOT/dev"), { cells: 3 }, "what was declared last holds on");
  assert.ok((await at("ROOT/lab/physics")) !== undefined, "what leaves the text goes on");
  await eventually("all of it", async () => {
    const answer = await ask("DELETE", `/domains/${domain.uid}?cleanup=true`, undefined, operator);
    return answer.status < 300;
  });
  await eventually("it has gone", async () => (await at("ROOT/lab/physics")) === undefined);
}
