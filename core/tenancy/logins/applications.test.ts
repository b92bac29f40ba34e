import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { ApplicationSummary, OpeningSummary, UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { toJson } from "../../outbox.ts";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const logIn = (on: Bench, name: string, domain = { rita: "ROOT" }[name] ?? "ROOT/acme"): By => ({
  session: on.logIn(name, domain, `of ${name}`) ?? assert.fail(name),
});
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { error?: { code: string } }).error?.code ?? ""}`.trim();
const open = (on: Bench, by: By, change: object = {}): TenancyResponse =>
  on.ask(by, "addOpening", { domain: "ROOT/acme", email: "acme.example", role: "user", ...change });
let drawn = 0;
/** As the edge does. */
const apply = (
  on: Bench,
  change: { readonly domain?: string; readonly email?: string; readonly name?: string; readonly source?: string } = {},
): TenancyResponse & { readonly uid: string } => {
  drawn += 1;
  const id = `application${drawn}`;
  const asked = { domain: "ROOT/acme", email: "pat@acme.example", name: "pat", source: "here", ...change, uid: id };
  const begun = on.request({ kind: "application-begin", ...asked, password: null });
  if (begun.status !== 200) return { ...begun, uid: id };
  return { ...on.request({ kind: "application-end", ...asked, password: `phc of ${asked.name}` }), uid: id };
};
const waiting = (on: Bench, by: By): readonly ApplicationSummary[] =>
  on.ask(by, "listApplications").body as unknown as readonly ApplicationSummary[];
const approve = (on: Bench, by: By, id: string, body: object = {}): TenancyResponse =>
  on.ask(by, "approveApplication", body, { uid: id });
/** Nothing of who applies is anywhere but with his application. */
const left = (on: Bench): readonly string[] =>
  [...on.records].flatMap(([key, value]) => (/pat@acme|phc of pat/.test(JSON.stringify(value)) ? [key] : []));

test("whoever has such an address applies, and is in with his own password once an administrator has said so", () => {
  const on = settled();
  const dora = logIn(on, "dora");
  assert.equal(open(on, dora).status, 200);
  const asked = apply(on, { email: "Pat@ACME.example" });
  assert.equal(asked.status, 201, JSON.stringify(asked.body));
  assert.equal(on.logIn("pat", "ROOT/acme", "of pat"), null);
  assert.deepEqual(
    waiting(on, dora).map(({ uid: id, name, domain, email, role }) => [id, name, domain, email, role]),
    [[asked.uid, "pat", "ROOT/acme", "Pat@ACME.example", "user"]],
  );
  const made = approve(on, dora, asked.uid);
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const { account, role } = made.body as unknown as UserSummary;
  assert.deepEqual([account, role], ["ROOT/acme/pat", "user"]);
  assert.notEqual(on.logIn("pat", "ROOT/acme", "of pat"), null);
  assert.deepEqual([waiting(on, dora), codeOf(approve(on, dora, asked.uid))], [[], "404 not-found"]);
});

test("a domain that is closed, one that nobody has and another address are answered alike, and a taken name as a free one", () => {
  const on = settled();
  const dora = logIn(on, "dora");
  const said = (change: object): string =>
    JSON.stringify(apply(on, change).body).replaceAll(/ROOT(?:\/\w+)+|ROOT|[\w.]+\.example/g, "…");
  const closed = said({});
  assert.match(closed, /registration-closed/);
  open(on, dora);
  for (const change of [
    { domain: "ROOT/others" },
    { domain: "ROOT/nothing" },
    { domain: "ROOT/acme/dev" },
    { email: "pat@other.example" },
    { email: "pat@sub.acme.example" },
    { email: "acme.example@other.example" },
  ])
    assert.equal(said(change), closed, JSON.stringify(change));
  const taken = apply(on, { name: "dev" });
  assert.equal(taken.status, 201);
  assert.deepEqual(Object.keys(taken.body as object), Object.keys(apply(on, { name: "free" }).body as object));
  // Whoever approves sees it, and gives another name.
  assert.equal(codeOf(approve(on, dora, taken.uid)), "409 conflict");
  assert.equal(approve(on, dora, taken.uid, { name: "dev2" }).status, 200);
  assert.notEqual(on.logIn("dev2", "ROOT/acme", "of dev"), null);
});

test("who lets somebody in gives no more than he has, when he does it, and no one else does", () => {
  const on = settled();
  const [dora, ann, lea] = [logIn(on, "dora"), logIn(on, "ann"), logIn(on, "lea", "ROOT/acme/sub")];
  for (const by of [ann, lea]) assert.ok(open(on, by).status >= 403, "no right to make accounts");
  assert.equal(codeOf(open(on, dora, { domain: "ROOT" })), "404 not-found", "beyond her domain");
  assert.equal(codeOf(open(on, dora, { role: "domain-admin" })), "400 bad-request", "it reaches more than the account");
  assert.equal(codeOf(open(on, dora, { role: "none" })), "404 not-found");
  assert.equal(codeOf(open(on, dora, { limits: { vms: 1 } })), "409 conflict", "nobody would count them");
  const { uid: opening } = open(on, operator, { role: "account-admin" }).body as unknown as OpeningSummary;
  assert.equal(codeOf(open(on, dora)), "409 conflict", "it is open already");
  const { uid: id } = apply(on);
  for (const by of [ann, lea]) {
    assert.deepEqual(on.ask(by, "listApplications").status === 200 ? waiting(on, by) : [], []);
    for (const name of ["approveApplication", "rejectApplication"] as const)
      assert.ok(on.ask(by, name, {}, { uid: id }).status >= 403, name);
    assert.ok(on.ask(by, "deleteOpening", {}, { uid: opening }).status >= 403);
  }
  // Dora's role is one by now that gives less than the opening would.
  const rules = ["account.*", "user.*", "cell.read"].map((verb) => ({ verb, effect: "allow" }));
  on.ask(operator, "addRole", { name: "weak", domain: "ROOT/acme", reach: "domain", rules });
  const [user] = [...on.state.tables.user.values()].filter(({ name }) => name === "dora");
  on.ask(operator, "changeUser", { role: "weak" }, { uid: user?.uid ?? "" });
  assert.equal(codeOf(approve(on, dora, id)), "403 forbidden");
  assert.equal(on.state.tables.account.size, 5);
  assert.equal(approve(on, operator, id).status, 200);
});

test("what is rejected, closed, too old or of a domain that ends leaves nothing", () => {
  const ends: readonly ((on: Bench, opening: string, id: string) => void)[] = [
    (on, _opening, id) => void on.ask(logIn(on, "dora"), "rejectApplication", {}, { uid: id }),
    (on, opening) => void on.ask(logIn(on, "dora"), "deleteOpening", {}, { uid: opening }),
    (on) => {
      on.ms += 31 * 24 * 3_600_000;
      on.step({ kind: "timer", name: "sweep" });
    },
    (on) => {
      on.step({ kind: "desired", from: peerName("controller.root"), key: "owner/r-1", value: null });
      const acme = on.uidOf("ROOT/acme/void");
      const { status, body } = on.ask(operator, "deleteDomain", {}, { uid: acme });
      assert.equal(status, 200, JSON.stringify(body));
    },
  ];
  for (const [index, end] of ends.entries()) {
    const on = settled();
    const domain = index === 3 ? "ROOT/acme/void" : "ROOT/acme";
    on.ask(operator, "addDomain", { path: "ROOT/acme/void" });
    const { uid: opening } = open(on, operator, { domain }).body as unknown as OpeningSummary;
    const { uid: id, status } = apply(on, { domain });
    assert.equal(status, 201);
    assert.deepEqual(left(on), [`application/${id}`]);
    end(on, opening, id);
    assert.deepEqual(left(on), [], `${index}`);
    assert.equal(codeOf(approve(on, operator, id)), "404 not-found");
  }
});

test("so many wait and no more, few of one address, and an older store takes nobody", () => {
  const on = settled();
  open(on, operator);
  const from = (source: string): string => codeOf(apply(on, { source }));
  assert.deepEqual([from("here"), from("here"), from("here"), from("here")], ["201", "201", "201", "503 busy"]);
  for (let count = 3; count < 100; count += 1) assert.equal(from(`from ${count}`), "201");
  assert.equal(from("elsewhere"), "503 busy");
  on.step({ kind: "behind", peer: peerName("gateway") });
  assert.equal(from("later"), "503 held");
});

test("with what it opens to goes what an account may have", () => {
  const on = settled();
  const value = toJson({ uid: uid("r-1"), cell: cellName("primary"), account: null });
  on.step({ kind: "desired", from: peerName("controller.root"), key: "owner/r-1", value });
  open(on, operator, { limits: { vms: 2 } });
  const { uid: id } = apply(on);
  // Whoever sets no quota lets nobody in with one.
  const rules = ["account.*", "user.*", "cell.*", "vm.*"].map((verb) => ({ verb, effect: "allow" }));
  on.ask(operator, "addRole", { name: "porter", domain: "ROOT/acme", reach: "domain", rules });
  const [dora] = [...on.state.tables.user.values()].filter(({ name }) => name === "dora");
  on.ask(operator, "changeUser", { role: "porter" }, { uid: dora?.uid ?? "" });
  assert.equal(codeOf(approve(on, logIn(on, "dora"), id)), "403 forbidden");
  assert.equal(approve(on, operator, id).status, 200);
  const account = [...on.state.tables.account.values()].find(({ name }) => name === "pat");
  assert.deepEqual(account?.limits, { vms: 2 });
  // And it outlasts a crash that somebody waits.
  const { uid: next } = apply(on, { name: "pam" });
  const again = Bench.started(on.records);
  assert.equal(approve(again, operator, next).status, 200);
  assert.notEqual(again.logIn("pam", "ROOT/acme", "of pam"), null);
});
