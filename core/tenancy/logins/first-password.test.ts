import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { builtInUid } from "../../../model/contract/tenancy/rules.ts";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { save } from "../state.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const uidOf = (on: Bench, name: string): string =>
  [...on.state.tables.user.values()].find((user) => user.name === name)?.uid ?? assert.fail(name);
const link = (on: Bench, by: By, user: string, hash: string): TenancyResponse =>
  on.request({
    kind: "ask",
    by,
    name: "linkUser",
    parameters: { uid: uidOf(on, user) },
    query: {},
    body: {},
    password: null,
    fresh: { uid: "", number: "" },
    link: hash,
  });
/** As the edge does. */
const use = (on: Bench, user: string, hash: string, password: string): number => {
  const asked = { user: on.state.tables.user.has(user) ? user : uidOf(on, user), hash, source: "here" };
  const begun = on.request({ kind: "link-begin", ...asked, password: null });
  return begun.status === 200
    ? on.request({ kind: "link-end", ...asked, password: `phc ${password}` }).status
    : begun.status;
};

test("a user without a password gives himself one by a link, which opens once", () => {
  const on = settled();
  assert.equal(on.ask(operator, "addUser", { name: "new", account: "ROOT/acme/dev", role: "user" }).status, 200);
  assert.equal(on.logIn("new", "ROOT/acme", "mine"), null);
  assert.equal(link(on, operator, "new", "h").status, 200);
  assert.equal(use(on, "new", "other", "guessed"), 401);
  assert.equal(use(on, "new", "h", "mine"), 200);
  assert.notEqual(on.logIn("new", "ROOT/acme", "mine"), null);
  assert.equal(use(on, "new", "h", "another's"), 401);
  assert.notEqual(on.logIn("new", "ROOT/acme", "mine"), null);
});

test("a link opens for a day, the next one takes its place, and another password ends it", () => {
  const on = settled();
  link(on, operator, "ann", "h");
  on.ms += 24 * 60 * 60_000;
  assert.equal(use(on, "ann", "h", "late"), 401);
  link(on, operator, "ann", "h1");
  link(on, operator, "ann", "h2");
  assert.equal(use(on, "ann", "h1", "former"), 401);
  on.ask(operator, "changeUser", { password: "given" }, { uid: uidOf(on, "ann") });
  assert.equal(use(on, "ann", "h2", "after that"), 401);
  assert.notEqual(on.logIn("ann", "ROOT/acme", "given"), null);
});

test("who was in is out, and it outlasts a restart", () => {
  const before = settled();
  const session = before.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  link(before, operator, "ann", "h");
  const on = Bench.started(before.records);
  assert.equal(on.ask({ session }, "whoAmI").status, 200);
  assert.equal(use(on, "ann", "h", "next"), 200);
  assert.equal(on.ask({ session }, "whoAmI").status, 401);
});

test("an older store opens by no link: one that was used since would be there again", () => {
  const before = settled();
  link(before, operator, "ann", "h");
  const on = Bench.started(before.records, true);
  assert.equal(use(on, "ann", "h", "mine"), 503);
});

test("a link is made by who may change the user, and is no way up", () => {
  const on = settled();
  const by = (name: string): By => ({ session: on.logIn(name, "ROOT/acme", `of ${name}`) ?? assert.fail() });
  assert.equal(link(on, by("dora"), "bob", "h").status, 200);
  assert.equal(link(on, by("bob"), "dora", "h").status, 403);
  assert.equal(link(on, by("ann"), "bob", "h").status, 404, "who is not there for her");
  assert.equal(link(on, by("dora"), "rita", "h").status, 404);
  const listed = JSON.stringify(on.ask(operator, "listUsers").body);
  assert.ok(!listed.includes('"h"') && !listed.includes("link"), "nobody is told that there is one");
});

const recover = (on: Bench, by: By, name: string, hash: string, more: object = {}): TenancyResponse =>
  on.request({
    kind: "ask",
    by,
    name: "recoverAdmin",
    parameters: {},
    query: { ...more },
    body: { name },
    password: null,
    fresh: { uid: `uid-of-${name}`, number: "" },
    link: hash,
  });

test("the operator gets back in: an administrator who is locked out, without his telephone, or whom nobody knows", () => {
  const on = settled();
  const uid = uidOf(on, "rita");
  const session = on.logIn("rita", "ROOT", "of rita") ?? assert.fail();
  on.request({
    kind: "ask",
    by: operator,
    name: "addKey",
    parameters: {},
    query: {},
    body: { user: uid },
    password: null,
    fresh: { uid: "", number: "" },
    key: { id: "CELLKEY", sealed: "sealed" },
  });
  const totp = { sealed: "s", isOn: true, lastStep: 0, recovery: [] };
  save(on.state, "user", uid, {
    ...(on.state.tables.user.get(uid) ?? assert.fail()),
    totp,
    state: "disabled",
    role: builtInUid("reader"),
    oidc: { issuer: "https://elsewhere", subject: "rita" },
  });
  assert.equal(recover(on, operator, "rita", "dry", { dryRun: true }).status, 200);
  assert.equal(on.state.tables.user.get(uid)?.state, "disabled", "a dry run changes nothing");
  assert.deepEqual((recover(on, operator, "rita", "h").body as { readonly user: string }).user, "rita@ROOT");
  assert.equal(on.ask({ session }, "whoAmI").status, 401);
  assert.equal(on.logIn("rita", "ROOT", "of rita"), null, "what opened before opens no more");
  assert.deepEqual([on.state.tables.key.size, on.state.subjects.size], [0, 0]);
  assert.equal(use(on, "rita", "h", "next"), 200);
  const next = on.logIn("rita", "ROOT", "next") ?? assert.fail();
  assert.equal(on.ask({ session: next }, "listDomains").status, 200);
  assert.equal(on.state.tables.user.get(uid)?.role, builtInUid("root-admin"));

  assert.equal(recover(on, operator, "nobody-yet", "n").status, 200);
  assert.equal(use(on, "nobody-yet", "n", "first"), 200);
  assert.notEqual(on.logIn("nobody-yet", "ROOT", "first"), null);
  const records = [...on.records].filter(([key]) => key.startsWith("audit")).map(([, value]) => JSON.stringify(value));
  const told = records.filter((each) => each.includes('"recoverAdmin"'));
  assert.deepEqual(
    told.map((each) => /"target":"([^"]*)"/.exec(each)?.[1]),
    ["rita@ROOT", "nobody-yet@ROOT"],
  );
});

test("the way back in is nobody's but the operator's, and leads into no account that is shut", () => {
  const on = settled();
  const rita: By = { session: on.logIn("rita", "ROOT", "of rita") ?? assert.fail() };
  assert.equal(recover(on, rita, "rita", "h").status, 403);
  const others = on.uidOf("ROOT/others");
  assert.equal(on.ask(operator, "changeAccount", { state: "disabled" }, { uid: others }).status, 200);
  const { status, body } = recover(on, operator, "rita", "h");
  assert.equal(status, 409);
  assert.match(JSON.stringify(body), /ROOT\/others, which is disabled: enable it first/);
  assert.equal(use(on, "rita", "h", "mine"), 401, "and nothing was changed");
});

test("over a store that is older or was lost the operator gets in by a link that was made since, and by no other", () => {
  const before = settled();
  link(before, operator, "rita", "of before");
  for (const [records, wasRestored] of [
    [before.records, true],
    [undefined, false],
  ] as const) {
    const on = Bench.started(records, wasRestored);
    if (records === undefined) on.step({ kind: "behind", peer: peerName("controller.shop") });
    else assert.equal(use(on, "rita", "of before", "stolen"), 503);
    assert.equal(recover(on, operator, "rita", "new").status, 200);
    const again = Bench.started(on.records);
    assert.equal(use(again, "rita", "new", "mine"), 503, "who has this store now may have it from anywhere");
    assert.equal(use(on, "rita", "new", "mine"), 200);
    assert.notEqual(on.logIn("rita", "ROOT", "mine"), null);
    assert.notEqual(on.state.held, null, "that the store counts says somebody else");
  }
});
