import assert from "node:assert/strict";
import { test } from "node:test";
import type { NewProvider } from "../../../model/contract/tenancy/oidc.ts";
import { builtInUid } from "../../../model/contract/tenancy/rules.ts";
import type { Login } from "../../../model/contract/tenancy/tenancy.ts";
import { recordsIn } from "../../../model/contract/testing/audited.testing.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { save } from "../state.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const issuer = "https://login.example";
const provider = {
  name: "acme",
  issuer,
  clientId: "cells",
  mappings: [
    { claim: "groups", value: "admins", account: "ROOT/acme/dev", role: "account-admin" },
    { claim: "groups", value: "devs", account: "ROOT/acme/dev", role: "user" },
    { claim: "verified", value: "true", account: "ROOT/acme/sub/lab", role: "reader" },
  ],
} as const satisfies NewProvider;
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { error?: { code: string } }).error?.code ?? ""}`.trim();
const logIn = (on: Bench, name: string, domain = "ROOT/acme"): By => ({
  session: on.logIn(name, domain, `of ${name}`) ?? assert.fail(name),
});
const uidOf = (on: Bench, name: string): string =>
  [...on.state.tables.user.values()].find((user) => user.name === name)?.uid ?? assert.fail(name);
const providerOf = (on: Bench): string => [...on.state.tables.provider.keys()][0] ?? assert.fail("no provider");
const bench = (): Bench => {
  const on = settled();
  assert.equal(on.ask(operator, "addProvider", provider).status, 200);
  return on;
};
let drawn = 0;
const enter = (
  on: Bench,
  subject: string,
  claims: JsonObject,
  { from = issuer, by = providerOf(on), sid = "" } = {},
): TenancyResponse & { readonly session: string } => {
  drawn += 1;
  const session = `of the provider ${drawn}`;
  const ofSession = sid === "" ? {} : { sid };
  const own = { uid: `new ${drawn}`, session, source: "here" };
  const asked = { provider: by, issuer: from, subject, claims, ...own, ...ofSession };
  return { ...on.request({ kind: "oidc-login", ...asked }), session };
};
const isIn = (on: Bench, session: string): boolean => on.ask({ session }, "whoAmI").status === 200;
const userIn = ({ body }: TenancyResponse): string => {
  const { user } = body as unknown as Login;
  return `${user.name} ${user.account} ${user.role}`;
};

test("the first mapping that fits makes him a user, and says his role at each login", () => {
  const on = bench();
  const kim = enter(on, "s1", { preferred_username: "kim", groups: ["others", "admins", "devs"] });
  assert.equal(userIn(kim), "kim ROOT/acme/dev account-admin");
  assert.ok(isIn(on, kim.session));
  const again = enter(on, "s1", { preferred_username: "kimberly", groups: ["devs"] });
  assert.equal(userIn(again), "kim ROOT/acme/dev user", "the name is that of the first login");
  assert.equal(userIn(enter(on, "s2", { preferred_username: "lee", verified: true })), "lee ROOT/acme/sub/lab reader");
  assert.equal(enter(on, "s1", { preferred_username: "kim", groups: "devs" }).status, 201);
  const restored = Bench.started(on.records);
  assert.equal(
    userIn(enter(restored, "s1", { groups: ["devs"] })),
    "kim ROOT/acme/dev user",
    "after a restart as well",
  );
});

test("whom nothing fits is nobody, and nothing is made of him", () => {
  const on = bench();
  const users = on.state.tables.user.size;
  for (const claims of [{}, { groups: [] }, { groups: ["dev"] }, { groups: { devs: true } }, { verified: false }])
    assert.equal(codeOf(enter(on, "s1", { preferred_username: "kim", ...claims })), "403 oidc-unmapped");
  for (const preferred_username of [undefined, "", "Kim", "kim@acme.example", "k".repeat(10_000), ["kim"]])
    assert.equal(
      codeOf(
        enter(on, "s1", { groups: ["devs"], ...(preferred_username === undefined ? {} : { preferred_username }) }),
      ),
      "403 oidc-unmapped",
    );
  assert.equal(on.state.tables.user.size, users);
});

test("nobody becomes a user whom somebody else has made: neither by his name nor by another issuer's subject", () => {
  const on = bench();
  assert.equal(codeOf(enter(on, "s1", { preferred_username: "ann", groups: ["devs"] })), "409 conflict");
  assert.equal(enter(on, "s1", { preferred_username: "kim", groups: ["admins"] }).status, 201);
  assert.equal(codeOf(enter(on, "s2", { preferred_username: "kim", groups: ["devs"] })), "409 conflict");
  const other = { ...provider, name: "other", issuer: "https://other.example" };
  assert.equal(on.ask(operator, "addProvider", other).status, 200);
  const uid = [...on.state.tables.provider.values()].find(({ name }) => name === "other")?.uid ?? "";
  const stranger = enter(on, "s1", { preferred_username: "kim", groups: ["devs"] }, { from: other.issuer, by: uid });
  assert.equal(codeOf(stranger), "409 conflict");
  const wrong = enter(on, "s1", { preferred_username: "kim", groups: ["devs"] }, { from: other.issuer });
  assert.match(JSON.stringify(wrong.body), /was deleted meanwhile/);
});

test("nobody maps to more than he has, nor makes a provider whose reach is less than the installation's", () => {
  const on = settled();
  for (const by of [logIn(on, "ann"), logIn(on, "dora"), logIn(on, "bob")])
    assert.equal(codeOf(on.ask(by, "addProvider", provider)), "403 forbidden");
  const rules = [
    { verb: "user.*", effect: "allow" },
    { verb: "provider.*", effect: "allow" },
  ];
  const role = { name: "gate", domain: "ROOT", reach: "installation", rules };
  assert.equal(on.ask(operator, "addRole", role).status, 200);
  const gate = { name: "gil", account: "ROOT/others", role: "gate", password: "of gil" };
  assert.equal(on.ask(operator, "addUser", gate).status, 200);
  const gil = logIn(on, "gil", "ROOT");
  const no = on.ask(gil, "addProvider", provider);
  assert.match(JSON.stringify(no.body), /the role account-admin is more than gil@ROOT has/);
  assert.equal(on.state.tables.provider.size, 0);
  assert.equal(on.ask(logIn(on, "rita", "ROOT"), "addProvider", provider).status, 200);
});

test("what is wrong in a provider is refused, and a role that demands a second factor is not mapped to", () => {
  const on = settled();
  const [mapping] = provider.mappings;
  const add = (change: object): string => codeOf(on.ask(operator, "addProvider", { ...provider, ...change }));
  assert.equal(add({ mappings: [{ ...mapping, account: "ROOT/none" }] }), "404 not-found");
  assert.equal(add({ mappings: [{ ...mapping, role: "none" }] }), "404 not-found");
  const careful = { name: "careful", domain: "ROOT/acme", reach: "account", rules: [], secondFactor: true };
  assert.equal(on.ask(operator, "addRole", careful).status, 200);
  assert.equal(add({ mappings: [{ ...mapping, role: "careful" }] }), "409 conflict");
  assert.equal(add({}), "200");
  assert.equal(add({ issuer: "https://another.example" }), "409 conflict", "the name");
});

test("a user whom the mapping sends to another account, and the last root administrator, are not changed", () => {
  const on = bench();
  assert.equal(enter(on, "s1", { preferred_username: "kim", groups: ["devs"] }).status, 201);
  assert.equal(codeOf(enter(on, "s1", { verified: true })), "409 conflict");
  assert.equal(on.ask(operator, "deleteUser", {}, { uid: uidOf(on, "rita") }).status, 200);
  assert.equal(on.ask(operator, "changeUser", { role: "root-admin" }, { uid: uidOf(on, "kim") }).status, 200);
  assert.match(JSON.stringify(enter(on, "s1", { groups: ["devs"] }).body), /the last user with the role root-admin/);
});

test("who is disabled here stays out, whatever the provider says, and nothing of him changes", () => {
  const on = bench();
  const kim = enter(on, "s1", { preferred_username: "kim", groups: ["devs"] });
  on.ticket(kim.session, "shop", "t1");
  assert.equal(on.look("shop", "t1")?.open, true);
  assert.equal(on.ask(operator, "changeUser", { state: "disabled" }, { uid: uidOf(on, "kim") }).status, 200);
  assert.equal(on.worth("shop", "t1")?.open, false);
  assert.equal(codeOf(enter(on, "s1", { groups: ["admins"] })), "403 disabled");
  assert.equal(on.state.tables.user.get(uidOf(on, "kim"))?.role, builtInUid("user"));
});

test("with a provider end the sessions of who came by it; with an account goes what is mapped to it; a mapped role stays", () => {
  const on = bench();
  const kim = enter(on, "s1", { preferred_username: "kim", groups: ["devs"] });
  const ann = logIn(on, "ann");
  const role = { name: "plain", domain: "ROOT/acme", reach: "account", rules: [] };
  on.ask(operator, "addRole", role);
  const plain = [...on.state.tables.role.keys()][0] ?? "";
  const [mapping] = provider.mappings;
  const second = {
    ...provider,
    name: "second",
    issuer: "https://second.example",
    mappings: [{ ...mapping, role: "plain" }],
  };
  assert.equal(on.ask(operator, "addProvider", second).status, 200);
  assert.match(JSON.stringify(on.ask(operator, "deleteRole", {}, { uid: plain }).body), /the provider second gives/);
  assert.equal(on.ask(operator, "deleteProvider", {}, { uid: providerOf(on) }).status, 200);
  assert.ok(!isIn(on, kim.session));
  assert.equal(on.ask(ann, "whoAmI").status, 200);
  const lab = on.uidOf("ROOT/acme/dev");
  on.ask(operator, "giveCell", { account: "ROOT/others" }, { cell: "shop" });
  assert.equal(on.ask(operator, "deleteAccount", {}, { uid: lab }).status, 200);
  assert.ok(![...on.records.values()].some((record) => JSON.stringify(record).includes(`"account":"${lab}"`)));
  assert.equal(on.state.tables.provider.size, 1);
});

test("an older store of the service lets nobody in by a provider, whatever his role", () => {
  const before = bench();
  const roots = { claim: "groups", value: "roots", account: "ROOT/others", role: "root-admin" };
  const second = { ...provider, name: "second", issuer: "https://second.example", mappings: [roots] };
  assert.equal(before.ask(operator, "addProvider", second).status, 200);
  const [, by = ""] = [...before.state.tables.provider.keys()];
  const from = { from: second.issuer, by };
  assert.equal(enter(before, "r", { preferred_username: "rob", groups: ["roots"] }, from).status, 201);
  const on = Bench.started(before.records, true);
  assert.equal(codeOf(enter(on, "r", { groups: ["roots"] }, from)), "503 held");
  assert.equal(codeOf(on.request({ kind: "provider-look", name: null })), "503 held");
  assert.equal(codeOf(enter(on, "s1", { preferred_username: "kim", groups: ["admins"] })), "503 held");
});

test("each login, and each user that it makes or changes, has its record, without a secret", () => {
  const on = bench();
  const records = (): number => recordsIn(on.records).length;
  const before = records();
  enter(on, "s1", { preferred_username: "kim", groups: ["devs"] });
  assert.equal(records() - before, 2, "he was made, and came in");
  enter(on, "s1", { groups: ["devs"] });
  assert.equal(records() - before, 3);
  enter(on, "s1", { groups: ["admins"] });
  assert.equal(records() - before, 5, "another role");
  enter(on, "s1", {});
  assert.equal(records() - before, 6);
});

const logOut = (on: Bench, subject: string | null, sid: string | null = null, from = issuer): TenancyResponse =>
  on.request({ kind: "oidc-logout", provider: providerOf(on), issuer: from, subject, sid, source: "there" });

test("who logs out at the provider is out of what was begun by it, and of nothing else", () => {
  const on = bench();
  const claims = { preferred_username: "kim", groups: ["devs"] };
  const [one, two] = [enter(on, "s1", claims, { sid: "a" }), enter(on, "s1", claims, { sid: "b" })];
  const silent = enter(on, "s1", claims);
  const lee = enter(on, "s2", { preferred_username: "lee", groups: ["devs"] }, { sid: "c" });
  const ann = on.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  const uid = uidOf(on, "kim");
  on.ask(operator, "changeUser", { state: "enabled" }, { uid });
  save(on.state, "session", "by a key", { user: uid, untilMs: on.ms + 1_000_000, key: "CELLKEY" });
  const all = { one: one.session, two: two.session, silent: silent.session, lee: lee.session, ann, key: "by a key" };
  const inside = (): string =>
    Object.entries(all)
      .flatMap(([name, session]) => (isIn(on, session) ? [name] : []))
      .join(" ");
  assert.equal(inside(), "one two silent lee ann key");
  assert.equal(logOut(on, "nobody").status, 200, "it does not know who is in here");
  assert.equal(logOut(on, null, "unknown").status, 200);
  assert.equal(inside(), "one two silent lee ann key");
  assert.equal(logOut(on, null, "a").status, 200);
  assert.equal(inside(), "two silent lee ann key");
  assert.equal(logOut(on, "s2", "b").status, 200, "of another subject that session is not");
  assert.equal(inside(), "two silent lee ann key");
  assert.equal(logOut(on, "s1", null, "https://other.example").status, 400);
  assert.equal(logOut(on, "s1").status, 200);
  assert.equal(inside(), "lee ann key");
  const told = recordsIn(on.records).filter(({ verb }) => verb === "logOutByProvider");
  assert.deepEqual(
    told.map(({ who, target }) => `${who}: ${target}`),
    ["the provider acme: kim@ROOT/acme", "the provider acme: kim@ROOT/acme"],
    "each logout that ended something has a record",
  );
});

test("which provider a token is of is found by issuer and client, and a ticket of who is logged out opens nothing", () => {
  const on = bench();
  const look = (from: string, audience: readonly string[]): number =>
    on.request({ kind: "logout-look", issuer: from, audience }).status;
  assert.deepEqual(
    [look(issuer, ["cells"]), look(issuer, ["x", "cells"]), look(issuer, ["x"]), look("https://x", ["cells"])],
    [200, 200, 400, 400],
  );
  const kim = enter(on, "s1", { preferred_username: "kim", groups: ["devs"] });
  assert.equal(on.ticket(kim.session, "shop", "t"), 200);
  assert.equal(on.look("shop", "t")?.open, true);
  logOut(on, "s1");
  assert.equal(on.worth("shop", "t")?.open, false);
});
