import assert from "node:assert/strict";
import { test } from "node:test";
import type { UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import type { TenancyResponse } from "../asks.ts";
import { type Bench, operator, settled } from "../tenancy.testing.ts";
import type { GivenCode } from "./codes.ts";
import type { LoginBegun } from "./logins.ts";

const bench = (): Bench => {
  const made = settled();
  made.ms = 3_000_000;
  return made;
};
const stepNow = (on: Bench): number => Math.floor(on.ms / 30_000);
const code = (step: number | null, hash = "none"): GivenCode => ({ step, hash });
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { error?: { code: string } }).error?.code ?? ""}`.trim();

let drawn = 0;
/** As the edge does. */
const enter = (
  on: Bench,
  given?: GivenCode,
  { password = "of ann", source = "here" } = {},
): TenancyResponse & { readonly session: string } => {
  drawn += 1;
  const session = `with code ${drawn}`;
  const asked = { domain: "ROOT/acme", user: "ann", source };
  const begun = on.request({ kind: "login-begin", ...asked });
  if (begun.status !== 200) return { ...begun, session };
  const known = begun.body as unknown as LoginBegun;
  const matched = known.password === `phc ${password}`;
  const answer = on.request({
    kind: "login-end",
    ...asked,
    begun: known,
    matched,
    session,
    ...(given === undefined ? {} : { code: given }),
  });
  return { ...answer, session };
};
const begin = (on: Bench, session: string, sealed = "sealed", password = "of ann"): TenancyResponse => {
  const begun = on.request({ kind: "password-begin", session, source: "here" });
  if (begun.status !== 200) return begun;
  const known = begun.body as unknown as LoginBegun;
  const matched = known.password === `phc ${password}`;
  return on.request({ kind: "totp-begin", session, source: "here", begun: known, matched, sealed });
};
const confirm = (on: Bench, session: string, given: GivenCode, sealed = "sealed"): TenancyResponse =>
  on.request({ kind: "totp-confirm", session, source: "here", sealed, code: given, recovery: ["r1", "r2"] });
const end = (on: Bench, session: string, given: GivenCode, password = "of ann"): TenancyResponse => {
  const begun = on.request({ kind: "password-begin", session, source: "here" });
  if (begun.status !== 200) return begun;
  const known = begun.body as unknown as LoginBegun;
  const matched = known.password === `phc ${password}`;
  return on.request({ kind: "totp-end", session, source: "here", begun: known, matched, code: given });
};
/** Ann with a second factor, and a session. */
const enrolled = (): { on: Bench; session: string } => {
  const on = bench();
  const { session } = enter(on);
  assert.equal(begin(on, session).status, 200);
  assert.equal(confirm(on, session, code(stepNow(on) - 1)).status, 200);
  return { on, session };
};
const isIn = (on: Bench, session: string): boolean => on.ask({ session }, "whoAmI").status === 200;

test("a second factor counts once a first code confirmed it; sessions by the password alone end then", () => {
  const on = bench();
  const [own, other] = [enter(on).session, enter(on).session];
  assert.equal(codeOf(begin(on, own, "sealed", "not hers")), "403 forbidden");
  assert.equal(begin(on, own).status, 200);
  assert.equal(enter(on).status, 201, "nobody is shut out by what no telephone has");
  assert.equal(codeOf(confirm(on, own, code(null))), "401 second-factor");
  assert.equal(codeOf(confirm(on, own, code(stepNow(on)), "another that was begun")), "409 conflict");
  const confirmed = confirm(on, own, code(stepNow(on)));
  assert.equal((confirmed.body as unknown as UserSummary).hasSecondFactor, true);
  assert.deepEqual([isIn(on, own), isIn(on, other)], [true, false]);
  assert.equal(codeOf(enter(on)), "401 second-factor");
  assert.equal(codeOf(begin(on, own)), "409 conflict", "it is taken away first");
  assert.equal(codeOf(confirm(on, own, code(stepNow(on)))), "409 conflict");
});

test("a login needs the password and a code of now, and no code opens twice", () => {
  const { on } = enrolled();
  const step = stepNow(on);
  assert.equal(codeOf(enter(on, code(step), { password: "not hers" })), "401 login", "which of the two is not said");
  assert.equal(codeOf(enter(on, code(step - 1))), "401 second-factor", "the one that confirmed it");
  const { session, status } = enter(on, code(step));
  assert.equal(status, 201);
  assert.ok(isIn(on, session));
  assert.equal(codeOf(enter(on, code(step))), "401 second-factor");
  assert.equal(enter(on, code(step + 1)).status, 201, "a clock that is ahead");
  const again = on.service.restore({ records: on.records, desiredAt: new Map() });
  assert.equal(again.tables.user.get("nobody"), undefined);
  assert.equal([...again.tables.user.values()].find(({ name }) => name === "ann")?.totp?.lastStep, step + 1);
});

test("a code that is older or newer than the one before and the one after opens nothing", () => {
  for (const far of [-2, 2, 1000]) {
    const { on } = enrolled();
    on.ms += 90_000;
    assert.equal(codeOf(enter(on, code(stepNow(on) + far))), "401 second-factor");
    assert.equal(enter(on, code(stepNow(on))).status, 201);
  }
});

test("each recovery code opens once", () => {
  const { on } = enrolled();
  assert.equal(enter(on, code(null, "r1")).status, 201);
  assert.equal(codeOf(enter(on, code(null, "r1"))), "401 second-factor");
  assert.equal(enter(on, code(null, "r2")).status, 201);
  assert.equal(codeOf(enter(on, code(null, "r2"))), "401 second-factor");
});

test("trying codes slows down, from wherever, and never for good; good passwords of others still get in", () => {
  const { on } = enrolled();
  let tried = 0;
  const begunMs = on.ms;
  while (on.ms - begunMs < 10 * 60_000) {
    for (let address = 0; address < 10; address += 1)
      if (codeOf(enter(on, code(null), { source: `192.0.2.${drawn}` })) === "401 second-factor") tried += 1;
    on.ms += 1000;
  }
  assert.ok(tried > 5 && tried < 25, `${tried} codes were tried in ten minutes, from as many addresses as one likes`);
  assert.notEqual(on.logIn("bob", "ROOT/acme", "of bob"), null);
  on.ms += 60_000;
  assert.equal(enter(on, code(stepNow(on)), { source: "elsewhere" }).status, 201);
});

test("it is taken away by the password and a code, by neither alone, or by who may change the user", () => {
  const { on, session } = enrolled();
  const step = stepNow(on);
  assert.equal(codeOf(end(on, session, code(step), "not hers")), "403 forbidden");
  assert.equal(codeOf(end(on, session, code(null))), "401 second-factor");
  assert.equal(end(on, session, code(step)).status, 200);
  assert.equal(enter(on).status, 201);
  const { on: other } = enrolled();
  const uid = [...other.state.tables.user.values()].find(({ name }) => name === "ann")?.uid ?? "";
  const bob = { session: other.logIn("bob", "ROOT/acme", "of bob") ?? "" };
  assert.notEqual(other.ask(bob, "changeUser", { totp: "off" }, { uid }).status, 200);
  assert.equal(other.ask(operator, "changeUser", { totp: "off" }, { uid }).status, 200);
  assert.equal(enter(other).status, 201);
});

test("who has a role that demands it may nothing before, but gets in and gives himself one", () => {
  const on = bench();
  const rules = [{ verb: "*", effect: "allow" }];
  const role = { name: "careful", domain: "ROOT/acme", reach: "account", rules, secondFactor: true };
  assert.equal(on.ask(operator, "addRole", role).status, 200);
  const uid = [...on.state.tables.user.values()].find(({ name }) => name === "ann")?.uid ?? "";
  assert.equal(on.ask(operator, "changeUser", { role: "careful" }, { uid }).status, 200);
  const { session } = enter(on);
  const may = (ticket: string): readonly unknown[] => {
    on.ticket(session, "shop", ticket);
    return on.look("shop", ticket)?.rules ?? [];
  };
  assert.deepEqual(may("t1"), []);
  const no = on.ask({ session }, "listAccounts");
  assert.match(JSON.stringify(no.body), /the role careful demands a second factor: `cells totp on`/);
  assert.equal(begin(on, session).status, 200);
  assert.deepEqual(may("t2"), [], "what is not confirmed is none");
  assert.equal(confirm(on, session, code(stepNow(on))).status, 200);
  assert.deepEqual(may("t3"), rules);
  assert.deepEqual(on.worth("shop", "t1")?.rules, rules, "and who follows is told");
});

test("no record says a code, a secret or a recovery code", () => {
  const { on } = enrolled();
  enter(on, code(null, "r1"));
  const audit = [...on.records].filter(([key]) => key.startsWith("audit"));
  const text = JSON.stringify(audit);
  for (const verb of ["beginTotp", "confirmTotp"]) assert.ok(text.includes(verb), verb);
  for (const secret of ["sealed", '"r1"', '"r2"']) assert.ok(!text.includes(secret), secret);
});
