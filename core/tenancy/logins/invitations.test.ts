import assert from "node:assert/strict";
import { test } from "node:test";
import type { UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const logIn = (on: Bench, name: string): By => {
  const domain = { rita: "ROOT" }[name] ?? "ROOT/acme";
  return { session: on.logIn(name, domain, `of ${name}`) ?? assert.fail(name) };
};
const uidOf = (on: Bench, name: string): string =>
  [...on.state.tables.user.values()].find((user) => user.name === name)?.uid ?? assert.fail(name);
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { error?: { code: string } }).error?.code ?? ""}`.trim();
let drawn = 0;
const invite = (
  on: Bench,
  by: By,
  change: object = {},
): TenancyResponse & { readonly uid: string; readonly hash: string } => {
  drawn += 1;
  const [uid, hash] = [`invitation${drawn}`, `hash ${drawn}`];
  const body = { domain: "ROOT/acme", ...change };
  const asked = { by, name: "addInvitation", parameters: {}, query: {}, body, password: null } as const;
  return { ...on.request({ kind: "ask", ...asked, fresh: { uid, number: "" }, link: hash }), uid, hash };
};
/** As the edge does. */
const register = (
  on: Bench,
  { uid, hash }: { readonly uid: string; readonly hash: string },
  name = "pat",
  between = (): unknown => undefined,
): TenancyResponse => {
  drawn += 1;
  const fresh = { account: `account${drawn}`, user: `user${drawn}`, number: String(drawn).padStart(12, "9") };
  const asked = { invitation: uid, hash, name, fresh, source: "here" };
  const begun = on.request({ kind: "registration-begin", ...asked, password: null });
  if (begun.status !== 200) return begun;
  between();
  return on.request({ kind: "registration-end", ...asked, password: "phc of pat" });
};
const sizes = (on: Bench): readonly number[] => [on.state.tables.account.size, on.state.tables.user.size];

test("whoever has the link makes himself an account, once, and is in with his password", () => {
  const on = settled();
  const made = invite(on, logIn(on, "dora"), { role: "user" });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const pat = register(on, made);
  assert.equal(pat.status, 201);
  const { account, role, domain } = pat.body as unknown as UserSummary;
  assert.deepEqual([account, role, domain], ["ROOT/acme/pat", "user", "ROOT/acme"]);
  assert.notEqual(on.logIn("pat", "ROOT/acme", "of pat"), null);
  const before = sizes(on);
  assert.equal(codeOf(register(on, made, "pam")), "401 login");
  assert.deepEqual(sizes(on), before);
});

test("a link that is wrong, old or taken back makes nothing", () => {
  const on = settled();
  const dora = logIn(on, "dora");
  const made = invite(on, dora);
  assert.equal(codeOf(register(on, { ...made, hash: "another" })), "401 login");
  assert.equal(codeOf(register(on, { ...made, uid: "another" })), "401 login");
  on.ms += 7 * 24 * 60 * 60_000;
  assert.equal(codeOf(register(on, made)), "401 login");
  const other = invite(on, operator);
  assert.equal(codeOf(on.ask({ session: "nobody's" }, "deleteInvitation", {}, { uid: other.uid })), "401 unauthorized");
  assert.equal(on.ask(operator, "deleteInvitation", {}, { uid: other.uid }).status, 200);
  assert.equal(codeOf(register(on, other)), "401 login");
  on.step({ kind: "timer", name: "sweep" });
  assert.equal(on.state.tables.invitation.size, 0, "what is over goes");
});

test("who invites gives no more than he has, then and when it is used", () => {
  const on = settled();
  assert.equal(codeOf(invite(on, logIn(on, "ann"))), "404 not-found", "it is not his domain");
  assert.equal(codeOf(invite(on, logIn(on, "dora"), { role: "domain-admin" })), "400 bad-request");
  assert.equal(codeOf(invite(on, logIn(on, "dora"), { role: "root-admin" })), "403 forbidden");
  const made = invite(on, logIn(on, "dora"));
  assert.equal(on.ask(operator, "changeUser", { role: "reader" }, { uid: uidOf(on, "dora") }).status, 200);
  assert.equal(codeOf(register(on, made)), "401 login");
  assert.equal(on.ask(operator, "changeUser", { role: "domain-admin" }, { uid: uidOf(on, "dora") }).status, 200);
  assert.equal(on.ask(operator, "changeUser", { state: "disabled" }, { uid: uidOf(on, "dora") }).status, 200);
  assert.equal(codeOf(register(on, made)), "401 login");
  assert.equal(on.ask(operator, "changeUser", { state: "enabled" }, { uid: uidOf(on, "dora") }).status, 200);
  assert.equal(register(on, made).status, 201);
});

test("a name that is taken is said, and the link opens another; two who use it at once do not both get in", () => {
  const on = settled();
  const made = invite(on, operator);
  for (const name of ["dev", "sub", "ann"]) assert.equal(codeOf(register(on, made, name)), "409 conflict", name);
  const other = (): unknown => assert.equal(register(on, made, "pam").status, 201);
  assert.equal(codeOf(register(on, made, "pat", other)), "401 login");
});

test("an older store opens by none, and with its domain an invitation goes", () => {
  const before = settled();
  const made = invite(before, operator, { domain: "ROOT/acme/sub" });
  const on = Bench.started(before.records, true);
  assert.equal(codeOf(register(on, made)), "503 held");
  before.ask(operator, "deleteUser", {}, { uid: uidOf(before, "lea") });
  before.ask(operator, "giveCell", { account: "ROOT/others" }, { cell: "lab" });
  assert.equal(before.ask(operator, "deleteAccount", {}, { uid: before.uidOf("ROOT/acme/sub/lab") }).status, 200);
  assert.equal(before.ask(operator, "deleteDomain", {}, { uid: before.uidOf("ROOT/acme/sub") }).status, 200);
  assert.equal(before.state.tables.invitation.size, 0);
});

test("with who has invited goes what he has invited to, also of a version that kept it", () => {
  const on = settled();
  const [made, other] = [invite(on, logIn(on, "dora")), invite(on, operator)];
  const records = new Map(on.records);
  assert.equal(on.ask(operator, "deleteUser", {}, { uid: uidOf(on, "dora") }).status, 200);
  assert.equal(codeOf(register(on, made)), "401 login");
  assert.deepEqual([...on.state.tables.invitation.keys()], [other.uid]);
  records.delete(`user/${uidOf(settled(), "dora")}`);
  assert.deepEqual([...Bench.started(records).state.tables.invitation.keys()], [other.uid]);
});

test("limits come with the account, where somebody counts; each step has its record, without the link", () => {
  const on = settled();
  assert.equal(codeOf(invite(on, operator, { limits: { vms: 2 } })), "409 conflict", "here nobody counts");
  const made = invite(on, operator);
  register(on, made, "ann");
  register(on, made);
  const audit = [...on.records].filter(([key]) => key.startsWith("audit"));
  const text = JSON.stringify(audit);
  assert.equal(text.match(/"verb":"register"/g)?.length, 2, "one was refused");
  assert.ok(text.includes('"verb":"addInvitation"') && !text.includes(made.hash));
});
