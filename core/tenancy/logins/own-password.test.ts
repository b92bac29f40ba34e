import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bench, operator, settled } from "../tenancy.testing.ts";
import type { LoginBegun } from "./logins.ts";

const logIn = (bench: Bench): string => bench.logIn("lea", "ROOT/acme/sub", "of lea") ?? assert.fail();
const begin = (bench: Bench, session: string, source = "here") =>
  bench.request({ kind: "password-begin", session, source });
const change = (bench: Bench, session: string, present: string, next: string, source = "here") => {
  const begun = begin(bench, session, source);
  if (begun.status !== 200) return begun;
  const known = begun.body as unknown as LoginBegun;
  const matched = known.password === `phc ${present}`;
  return bench.request({ kind: "password-end", session, source, begun: known, matched, password: `phc ${next}` });
};

test("a user, whatever his role, gives himself another password, and his other sessions end", () => {
  const bench = settled();
  const [own, other] = [logIn(bench), logIn(bench)];
  bench.ticket(other, "lab", "t");
  assert.equal(bench.look("lab", "t")?.open, true);
  assert.equal(change(bench, own, "of lea", "next").status, 200);
  assert.equal(bench.ask({ session: own }, "whoAmI").status, 200, "who has shown that he knows it stays");
  assert.equal(bench.ask({ session: other }, "whoAmI").status, 401);
  assert.equal(bench.worth("lab", "t")?.open, false, "with what was opened so");
  assert.equal(bench.logIn("lea", "ROOT/acme/sub", "of lea"), null);
  assert.notEqual(bench.logIn("lea", "ROOT/acme/sub", "next"), null);
});

test("a session alone does not do: the present password is needed, and trying slows down as at a login", () => {
  const bench = settled();
  const own = logIn(bench);
  const told = [1, 2, 3, 4].map(() => change(bench, own, "wrong", "mine").status);
  assert.deepEqual(told, [403, 403, 403, 429]);
  assert.equal(
    bench.request({ kind: "login-begin", domain: "ROOT/acme/sub", user: "lea", source: "here" }).status,
    429,
  );
  assert.equal(change(bench, own, "of lea", "next", "elsewhere").status, 200, "from elsewhere she may");
  bench.ms += 60_000;
  assert.equal(change(bench, own, "next", "again").status, 200, "and never is she kept out for good");
  assert.equal(begin(bench, own).status, 200, "a good one ends that");
});

test("what happens while it is looked at counts: another password, another user, the end of the session", () => {
  const bench = settled();
  const own = logIn(bench);
  const users = bench.ask(operator, "listUsers").body as unknown as readonly { name: string; uid: string }[];
  const uid = users.find(({ name }) => name === "lea")?.uid ?? "";
  const begun = begin(bench, own).body as unknown as LoginBegun;
  const end = (session: string, known = begun) =>
    bench.request({
      kind: "password-end",
      session,
      source: "here",
      begun: known,
      matched: true,
      password: "phc mine",
    }).status;
  const ann = bench.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  assert.equal(end(ann), 403, "of somebody else's session");
  bench.ask(operator, "changeUser", { password: "other" }, { uid });
  assert.equal(end(own), 401, "his session ended with that");
  const next = bench.logIn("lea", "ROOT/acme/sub", "other") ?? assert.fail();
  assert.equal(end(next), 403, "it is another password now");
  bench.ask(operator, "changeUser", { state: "disabled" }, { uid });
  assert.equal(begin(bench, next).status, 401);
  assert.equal(bench.records.get(`user/${uid}`) !== undefined && end(next), 401);
});
