import assert from "node:assert/strict";
import type { CellSummary } from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { QuotaSummary } from "../../model/contract/tenancy/quotas.ts";
import type { AccountSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { UsageDay } from "../../model/contract/tenancy/usage.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { newTenantTicket, ticketPath } from "../../runtime/identity/tickets.ts";
import { eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { cellsByTheDocument } from "../tenancy/by-openapi.testing.ts";
import { startIssuer } from "../tenancy/issuer.testing.ts";
import { accountGoes } from "./account-goes.testing.ts";
import { tenantsAreDeclared } from "./declared.testing.ts";
import { type Asking, readsAreApart } from "./reads-apart.testing.ts";
import { tenantsPageRuns } from "./tenants-page.testing.ts";

/** An installation whose cells are elements of the root cell; what hosts would do, the test does. */
export interface Means extends Asking {
  readonly installation: TestInstallation;
  readonly gateway: ProcessConfiguration;
  readonly url: () => string;
  readonly cells: () => Promise<string[]>;
  readonly components: () => Promise<Record<string, unknown>>;
  readonly specification: (...names: string[]) => JsonObject;
  readonly start: (name: string, change: Partial<ProcessConfiguration>) => Promise<void>;
  readonly startAsHostsWould: (name: string) => Promise<JsonObject>;
  readonly end: (name: PeerName) => Promise<void>;
}

/** Users make cells of their own there, and a gateway lies for them. */
export async function usersMakeCells(means: Means): Promise<void> {
  const { installation, gateway, operator, said, ask, cells, components, specification, shop } = means;
  const { start, startAsHostsWould, end } = means;
  const users: JsonObject = {
    "x.type": "VM",
    "x.memory": 64,
    "x.desiredState": "off",
    "x.data": { service: { roles: { tenancy: {} } } },
  };
  const { root } = specification("core1") as { readonly root: JsonObject };
  const cellsOfOthers = { vault: { "x.type": "CellController", "x.cell": { vault: { "x.type": "Cell" } } } };
  const put = await ask("PUT", "/cells/root/model", { root: { ...root, users, cells: cellsOfOthers } });
  assert.equal(put.status, 200, JSON.stringify(put.json));
  await startAsHostsWould("vault");
  await start("tenancy", { role: "tenancy", tenancy: { credentialHashes: [hashCredential(operator)] } });
  const done = async (method: string, path: string, body: JsonObject, by = operator) => {
    const answer = await ask(method, path, method === "GET" ? undefined : body, by);
    assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.json)}\n${said()}`);
    return answer.json;
  };
  await eventually(
    "the service of users answers",
    async () => (await ask("POST", "/accounts", { path: "ROOT/dev" })).status < 300,
  );
  await done("POST", "/accounts", { path: "ROOT/ops" });
  const logIn = async (name: string, account: string): Promise<string> => {
    const password = `the password of ${name}`;
    await done("POST", "/users", { name, account, role: "account-admin", password });
    const { session } = (await done("POST", "/logins", { user: name, password })) as { readonly session: string };
    return session;
  };
  const [ann, bob] = [await logIn("ann", "ROOT/dev"), await logIn("bob", "ROOT/ops")];
  // The word of the root controller has to be heard first.
  const { uid } = ((await done("GET", "/accounts", {})) as readonly AccountSummary[])[0] ?? assert.fail();
  await eventually(
    "the root controller was heard, without which nobody has quotas",
    async () => (await ask("PUT", `/quotas/${uid}`, { limits: {} })).status === 200,
  );
  const taken = await ask("PUT", "/cells/vault/model", { vault: { "x.type": "Cell" } }, ann);
  assert.equal(taken.status, 409, "the operator has it");
  const [made] = await Promise.all([ask("PUT", "/cells/shop/model", shop("web"), ann), startAsHostsWould("shop")]);
  assert.equal(made.status, 200, `${JSON.stringify(made.json)}\n${said()}`);
  const { json: element } = await ask("GET", "/cells/root/model/root/cells/shop");
  assert.equal((element as JsonObject)["x.account"], "ROOT/dev");
  assert.equal((await ask("PUT", "/cells/shop/model", shop("web", "app"), ann)).status, 200);
  // What the account may have bounds all of its cells, at the root controller.
  const accounts = (await done("GET", "/accounts", {})) as readonly AccountSummary[];
  const dev = accounts.find(({ path }) => path === "ROOT/dev");
  await done("PUT", `/quotas/${dev?.uid}`, { limits: { vms: 2, cells: 1 } });
  const quotas = async () => (await ask("GET", "/quotas", undefined, ann)).json as readonly QuotaSummary[];
  await eventually("it is said how much was granted", async () => (await quotas())[0]?.granted?.vms === 2);
  const beyond = await ask("PUT", "/cells/shop/model", shop("web", "app", "db"), ann);
  assert.equal(beyond.status, 400);
  assert.match(
    JSON.stringify(beyond.json),
    /the account ROOT\/dev may have 2 VMs; 0 are held, and 3 more are asked for/,
  );
  const second = await ask("PUT", "/cells/second/model", { second: { "x.type": "Cell" } }, ann);
  assert.match(
    JSON.stringify(second.json),
    /the account ROOT\/dev may have 1 cells; 1 are held, of ROOT\/dev by shop 1/,
  );
  assert.equal((await ask("PUT", `/quotas/${dev?.uid}`, { limits: {} }, ann)).status, 403, "she has no say in that");
  // And that is what she has, for as long as she has it; what others have she is not told.
  const used = async (by?: string) => (await ask("GET", "/usage", undefined, by)).json as readonly UsageDay[];
  await eventually("her machines are counted", async () => ((await used(ann))[0]?.hours.vms ?? 0) > 0);
  const [own, all] = [await used(ann), await used()];
  assert.deepEqual([...new Set(own.map(({ account }) => account))], ["ROOT/dev"]);
  assert.ok(all.some(({ account }) => account === "ROOT/operator"));
  assert.deepEqual((await ask("GET", "/usage?path=ROOT/operator", undefined, ann)).json, []);
  assert.equal((await ask("GET", "/usage?from=yesterday", undefined, ann)).status, 400);
  await done("PUT", `/quotas/${dev?.uid}`, { limits: {} });
  assert.equal((await ask("PUT", "/cells/shop/model", shop("web"), bob)).status, 409, "the name is taken");
  assert.equal((await ask("GET", "/cells/shop/model", undefined, bob)).status, 404);
  assert.equal((await ask("GET", "/cells/root/model", undefined, ann)).status, 404);
  assert.deepEqual(
    ((await ask("GET", "/cells", undefined, ann)).json as CellSummary[]).map(({ cell }) => cell),
    ["shop"],
  );

  await readsAreApart(means, { ann, bob, secret: "password that is long" });
  await cellsByTheDocument(means, { ann, bob });

  // A gateway that lies: it claims what it likes at the service of users, and shows a user's tickets where it likes.
  const tell = async (peer: string, method: string, path: string, by: string, body?: JsonObject) => {
    const headers = { authorization: `Bearer ${by}`, "content-type": "application/json" };
    const answer = await peerRequest(gateway, peerName(peer), {
      method,
      path,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  for (const cell of ["vault", "shop", "nothing"]) {
    await tell("tenancy", "POST", `/owners/${cell}?isThere=false&dryRun=false`, bob);
    await tell("tenancy", "DELETE", `/owners/${cell}`, bob);
    const ticket = newTenantTicket();
    const issued = await tell("tenancy", "PUT", ticketPath(hashCredential(ticket)), bob, { cell });
    assert.equal(issued.status, 404, cell);
    assert.equal(
      (await tell(`controller.${cell === "nothing" ? "shop" : cell}`, "GET", `/cells/${cell}`, ticket)).status,
      401,
    );
  }
  const ticket = newTenantTicket();
  const issued = await tell("tenancy", "PUT", ticketPath(hashCredential(ticket)), bob, {
    cell: "root",
    child: "other",
  });
  assert.equal(issued.status, 200, issued.text);
  for (const path of ["model", "model/root", "model/root/core1", "model/root/cells/shop", "model/root/cells/vault"])
    for (const method of ["GET", "PUT", "DELETE"]) {
      const body = method === "PUT" ? { root: { "x.type": "Cell" } } : undefined;
      const answer = await tell("controller.root", method, `/cells/root/${path}`, ticket, body);
      assert.equal(answer.status, 403, `${method} ${path}`);
    }
  assert.equal((await tell("controller.root", "GET", "/cells/root/events", ticket)).status, 403);
  // What it sends for a user's own cell is not looked at.
  const greedy = { "x.type": "CellController", "x.account": "ROOT/dev", "x.gateway": "10.0.0.40", "x.cell": {} };
  assert.equal(
    (await tell("controller.root", "PUT", "/cells/root/model/root/cells/other", ticket, greedy)).status,
    200,
  );
  const { json: bound } = await ask("GET", "/cells/root/model/root/cells/other");
  assert.deepEqual(bound, {
    "x.type": "CellController",
    "x.name": "other",
    "x.account": "ROOT/ops",
    "x.cell": { other: { "x.type": "Cell" } },
  });
  await startAsHostsWould("other");
  await ask("DELETE", "/cells/root/model/root/cells/other");
  await eventually("it has ended", async () => (await components()).other === undefined);
  await end(peerName("controller.other"));
  await installation.forget(peerName("controller.other"));

  // The operator gives it away, and it is another's from then on.
  await done("PUT", "/owners/shop", { account: "ROOT/ops" });
  await eventually("bob has it", async () => (await ask("GET", "/cells/shop/model", undefined, bob)).status === 200);
  assert.equal((await ask("GET", "/cells/shop/model", undefined, ann)).status, 404);
  const issuer = await startIssuer(installation.foreignAuthority, "what the page's provider knows us by");
  try {
    await tenantsPageRuns(installation.directory, means.url(), operator, issuer);
  } finally {
    await issuer.stop();
  }
  const paths = async () => ((await done("GET", "/accounts", {})) as readonly AccountSummary[]).map(({ path }) => path);
  await eventually("the account of the page has gone", async () => !(await paths()).includes("ROOT/acme/old"));
  await done("PUT", "/owners/shop", { account: "ROOT/ops" });
  await eventually(
    "bob has it again",
    async () => (await ask("GET", "/cells/shop/model", undefined, bob)).status === 200,
  );
  await tenantsAreDeclared(means, { root: { ...root, users } }, ann);
  await accountGoes(means, "ROOT/ops", { name: "bob", session: bob, cell: "shop" }, async () => {
    await eventually(`its VM is taken away\n${said()}`, async () => (await components()).shop === undefined);
    await end(peerName("controller.shop"));
    await installation.forget(peerName("controller.shop"));
  });
  await ask("PUT", "/cells/root/model", specification("core1"));
  await ask("DELETE", "/cells/vault/model");
  await eventually(`nothing of it is left\n${said()}`, async () => !(await components()).vault);
  await end(peerName("controller.vault"));
  await installation.forget(peerName("controller.vault"));
  await end(peerName("tenancy"));
  await installation.forget(peerName("tenancy"));
  await eventually("it is as before", async () => (await cells()).length === 1);
}
