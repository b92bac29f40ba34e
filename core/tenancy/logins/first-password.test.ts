import assert from "node:assert/strict";
import { test } from "node:test";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const uidOf = (on: Bench, name: string): string =>
  [...on.state.tables.user.values()].find((user) => user.name === name)?.uid ?? assert.fail(name);
const link = (on: Bench, by: By, user: string, hash: string): TenancyResponse =>
  on.request({
    ...{ kind: "ask", by, name: "linkUser", parameters: { uid: uidOf(on, user) }, query: {}, body: {}, password: null },
    ...{ fresh: { uid: "", number: "" }, link: hash },
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
