import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { allows, type Rule } from "../../../model/contract/tenancy/rules.ts";
import type { AccountSummary, CanAnswer, DelegationSummary } from "../../../model/contract/tenancy/tenancy.ts";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const logIn = (on: Bench, name: string): string => {
  const domain = { lea: "ROOT/acme/sub", rita: "ROOT", zoe: "ROOT" }[name] ?? "ROOT/acme";
  return on.logIn(name, domain, `of ${name}`) ?? assert.fail(name);
};
const uidOf = (on: Bench, name: string): string =>
  [...on.state.tables.user.values()].find((user) => user.name === name)?.uid ?? assert.fail(name);
const numberOf = (on: Bench, path: string): string =>
  (on.ask(operator, "listAccounts").body as unknown as readonly AccountSummary[]).find((each) => each.path === path)
    ?.number ?? assert.fail(path);
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { error?: { code: string } }).error?.code ?? ""}`.trim();
/** Zoe, of an account in another domain, whom ann and dora do not see. */
const bench = (): Bench => {
  const on = settled();
  on.ask(operator, "addUser", { name: "zoe", account: "ROOT/others", role: "user", password: "of zoe" });
  return on;
};
const give = (on: Bench, by: By, change: object = {}): TenancyResponse => {
  const usual = { account: "ROOT/acme/dev", cells: ["shop"], to: numberOf(on, "ROOT/others"), role: "user" };
  return on.ask(by, "addDelegation", { ...usual, ...change });
};
const uidIn = ({ body }: TenancyResponse): string => (body as unknown as DelegationSummary).uid;
let drawn = 0;
/** What the controller of the cell hears; null: there is no ticket. */
const rulesIn = (on: Bench, session: string, cell: string): readonly Rule[] | null => {
  drawn += 1;
  if (on.ticket(session, cell, `t${drawn}`) !== 200) return null;
  return on.look(cell, `t${drawn}`)?.rules ?? null;
};
const may = (on: Bench, session: string, cell: string, verb: string): boolean => {
  const rules = rulesIn(on, session, cell);
  return rules !== null && allows(rules, verb);
};

test("an account gives another one a role on a cell: it counts there and nowhere else, and is gone when it is taken back", () => {
  const on = bench();
  const [ann, zoe] = [{ session: logIn(on, "ann") }, logIn(on, "zoe")];
  assert.equal(rulesIn(on, zoe, "shop"), null);
  const made = give(on, ann);
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.ok(may(on, zoe, "shop", "vm.console") && may(on, zoe, "shop", "cell.change"));
  assert.ok(may(on, zoe, "inner.shop", "cell.read"), "a child cell goes with the cell around it");
  on.ask(operator, "giveCell", { account: "ROOT/acme/dev" }, { cell: "yard" });
  for (const other of ["bank", "yard", "shop.yard"]) assert.equal(rulesIn(on, zoe, other), null, other);
  assert.deepEqual(on.ask({ session: zoe }, "cells").body, ["shop"]);
  assert.equal(on.ask({ session: zoe }, "claimCell", {}, { cell: "shop" }).status, 200, "its model is changed");
  assert.equal(codeOf(on.ask({ session: zoe }, "claimCell", {}, { cell: "bank" })), "409 conflict");
  on.ticket(zoe, "shop", "held");
  assert.equal(on.look("shop", "held")?.open, true);
  assert.equal(on.ask(ann, "deleteDelegation", {}, { uid: uidIn(made) }).status, 200);
  assert.equal(on.worth("shop", "held")?.open, false, "and who follows is told");
  assert.deepEqual(on.ask({ session: zoe }, "cells").body, []);
});

test("whoever has it makes and ends no cell, and makes no credential that would go on", () => {
  const on = bench();
  const zoe = logIn(on, "zoe");
  assert.equal(give(on, { session: logIn(on, "ann") }, { role: "account-admin" }).status, 200);
  for (const verb of ["cell.create", "cell.delete", "credential.add", "credential.revoke"])
    assert.ok(!may(on, zoe, "shop", verb), verb);
  for (const verb of ["cell.change", "vm.exec", "credential.read"]) assert.ok(may(on, zoe, "shop", verb), verb);
  assert.equal(
    codeOf(on.ask({ session: zoe }, "giveCell", { account: "ROOT/others" }, { cell: "shop" })),
    "404 not-found",
  );
});

test("nobody gives what he has not, on cells that he does not reach, or a role that reaches further than an account", () => {
  const on = bench();
  const as = (name: string): By => ({ session: logIn(on, name) });
  assert.equal(codeOf(give(on, as("bob"))), "404 not-found", "another account's cells are not there");
  assert.equal(codeOf(give(on, as("bob"), { account: "ROOT/acme/ops", cells: ["bank"] })), "403 forbidden");
  assert.equal(codeOf(give(on, as("ann"), { role: "domain-admin" })), "403 forbidden");
  assert.equal(codeOf(give(on, as("dora"), { role: "domain-admin" })), "400 bad-request");
  const rules = [{ verb: "delegation.*", effect: "allow" }];
  on.ask(operator, "addRole", { name: "giver", domain: "ROOT/acme", reach: "account", rules });
  on.ask(operator, "changeUser", { role: "giver" }, { uid: uidOf(on, "bob") });
  const no = give(on, as("bob"), { account: "ROOT/acme/ops", cells: ["bank"] });
  assert.match(JSON.stringify(no.body), /the role user is more than bob@ROOT\/acme has/);
  assert.equal(give(on, as("bob"), { account: "ROOT/acme/ops", role: "giver" }).status, 200);
});

test("that somebody is there is told to nobody who tries names; who was told his number or UID gives to him", () => {
  const on = bench();
  const ann: By = { session: logIn(on, "ann") };
  const same = (one: string, other: string): void => {
    const [is, isNot] = [give(on, ann, { to: one }), give(on, ann, { to: other })];
    assert.deepEqual([is.status, JSON.stringify(is.body)], [404, JSON.stringify(isNot.body).replaceAll(other, one)]);
  };
  same("ROOT/others", "ROOT/nobody");
  same("zoe@ROOT", "yak@ROOT");
  same(numberOf(on, "ROOT/acme/ops").replace(/\d{3}$/, "999"), "999999999998");
  assert.equal(give(on, ann, { to: uidOf(on, "zoe"), cells: undefined }).status, 200);
  assert.equal(give(on, ann).status, 200);
  const seen = on.ask(ann, "listDelegations").body as unknown as readonly DelegationSummary[];
  assert.deepEqual(seen.map(({ to }) => to).sort(), [numberOf(on, "ROOT/others"), uidOf(on, "zoe")].sort());
  const hers = on.ask({ session: logIn(on, "zoe") }, "listDelegations").body as unknown as typeof seen;
  assert.deepEqual(hers.map(({ account, to }) => `${account} ${to}`).sort(), [
    "ROOT/acme/dev ROOT/others",
    "ROOT/acme/dev zoe@ROOT",
  ]);
  assert.deepEqual(on.ask({ session: logIn(on, "lea") }, "listDelegations").body, []);
});

test("what is wrong is refused with what would be right, and nothing is written", () => {
  const on = bench();
  const ann: By = { session: logIn(on, "ann") };
  for (const [change, code] of [
    [{ account: "ROOT/acme/none" }, "404 not-found"],
    [{ role: "none" }, "404 not-found"],
    [{ to: "ROOT/acme/dev" }, "409 conflict"],
    [{ to: uidOf(on, "ann") }, "409 conflict"],
    [{ cells: ["a.shop"] }, "400 bad-request"],
  ] as const)
    assert.equal(codeOf(give(on, ann, change)), code, JSON.stringify(change));
  assert.equal(on.state.tables.delegation.size, 0);
  assert.equal(give(on, ann, { cells: ["shop", "later"] }).status, 200);
  assert.equal(codeOf(give(on, ann, { cells: ["later"], role: "reader" })), "409 conflict");
  assert.equal(give(on, ann, { cells: undefined, role: "reader" }).status, 200, "what is of all cells is another");
  assert.equal(codeOf(give(on, ann, { cells: undefined })), "409 conflict");
});

test("what was given to himself counts before what his account has, and a named cell before all; his own role before both", () => {
  const on = bench();
  const [ann, zoe]: readonly [By, string] = [{ session: logIn(on, "ann") }, logIn(on, "zoe")];
  const others = numberOf(on, "ROOT/others");
  give(on, ann, { to: others, cells: undefined, role: "reader" });
  assert.ok(!may(on, zoe, "shop", "cell.change"));
  give(on, ann, { to: others });
  assert.ok(may(on, zoe, "shop", "cell.change"));
  give(on, ann, { to: uidOf(on, "zoe"), cells: undefined, role: "reader" });
  assert.ok(!may(on, zoe, "shop", "cell.change"));
  const can = (user: string, verb: string): CanAnswer =>
    on.request({
      kind: "ask",
      by: operator,
      name: "can",
      parameters: {},
      body: {},
      password: null,
      query: { user, domain: "ROOT", verb, path: "shop/web" },
      fresh: { uid: "", number: "" },
    }).body as unknown as CanAnswer;
  assert.match(can("zoe", "cell.read").because, /allow cell\.read of the delegation of ROOT\/acme\/dev/);
  assert.equal(can("zoe", "cell.change").allowed, false);
  assert.ok(may(on, logIn(on, "rita"), "shop", "cell.delete"), "whose role reaches it");
});

test("a disabled account gives nothing, a locked one nothing new; a disabled guest is out", () => {
  const on = bench();
  const zoe = logIn(on, "zoe");
  give(on, { session: logIn(on, "ann") });
  const dev = on.uidOf("ROOT/acme/dev");
  on.ask(operator, "changeAccount", { state: "locked" }, { uid: dev });
  assert.ok(may(on, zoe, "shop", "cell.read") && !may(on, zoe, "shop", "cell.change"));
  on.ask(operator, "changeDomain", { state: "disabled" }, { uid: on.uidOf("ROOT/acme") });
  assert.equal(rulesIn(on, zoe, "shop"), null);
  on.ask(operator, "changeDomain", { state: "enabled" }, { uid: on.uidOf("ROOT/acme") });
  on.ask(operator, "changeAccount", { state: "enabled" }, { uid: dev });
  on.ticket(zoe, "shop", "held");
  assert.equal(on.look("shop", "held")?.open, true);
  on.ask(operator, "changeUser", { state: "disabled" }, { uid: uidOf(on, "zoe") });
  assert.equal(on.worth("shop", "held")?.open, false);
});

test("a role with a second factor gives nothing to whom has none; a role that is given stays", () => {
  const on = bench();
  const zoe = logIn(on, "zoe");
  const rules = [{ verb: "*", effect: "allow" }];
  on.ask(operator, "addRole", { name: "careful", domain: "ROOT/acme", reach: "account", rules, secondFactor: true });
  assert.equal(give(on, operator, { role: "careful" }).status, 200);
  assert.deepEqual(rulesIn(on, zoe, "shop"), []);
  const [uid = ""] = on.state.tables.role.keys();
  assert.match(
    JSON.stringify(on.ask(operator, "deleteRole", {}, { uid }).body),
    /a delegation of ROOT\/acme\/dev gives/,
  );
});

test("it goes with the user, and with either account; whoever has it gives it up, and nobody else's", () => {
  const on = bench();
  const ann: By = { session: logIn(on, "ann") };
  give(on, ann, { to: uidOf(on, "zoe") });
  const [first = ""] = on.state.tables.delegation.keys();
  assert.equal(codeOf(on.ask({ session: logIn(on, "bob") }, "deleteDelegation", {}, { uid: first })), "404 not-found");
  assert.equal(on.ask({ session: logIn(on, "zoe") }, "deleteDelegation", {}, { uid: first }).status, 200);
  give(on, ann, { to: uidOf(on, "zoe") });
  on.ask(operator, "deleteUser", {}, { uid: uidOf(on, "zoe") });
  assert.equal(on.state.tables.delegation.size, 0);
  give(on, ann);
  give(on, operator, { account: "ROOT/others", cells: undefined, to: "ROOT/acme/dev" });
  assert.equal(on.state.tables.delegation.size, 2);
  on.ask(operator, "giveCell", { account: "ROOT/acme/ops" }, { cell: "shop" });
  const dev = on.uidOf("ROOT/acme/dev");
  assert.equal(on.ask(operator, "deleteAccount", {}, { uid: dev }).status, 200);
  assert.equal(on.state.tables.delegation.size, 0);
  assert.ok(
    ![...on.records].some(([key, value]) => !key.startsWith("audit") && JSON.stringify(value).includes(`"${dev}"`)),
  );
});

test("what a version that knows no delegations, providers or invitations left of what it deleted is gone after a start", () => {
  const on = bench();
  const ann: By = { session: logIn(on, "ann") };
  give(on, ann);
  give(on, ann, { to: uidOf(on, "zoe"), cells: ["yard"] });
  const mapping = { claim: "groups", value: "devs", account: "ROOT/others", role: "user" };
  const provider = { name: "p", issuer: "https://login.example", clientId: "cells", mappings: [mapping] };
  assert.equal(on.ask(operator, "addProvider", provider).status, 200);
  const body = { domain: "ROOT/acme/sub" };
  const asked = { by: operator, name: "addInvitation", parameters: {}, query: {}, body, password: null } as const;
  on.request({ kind: "ask", ...asked, fresh: { uid: "i1", number: "" }, link: "hash" });
  const others = on.uidOf("ROOT/others");
  const gone = [`account/${others}`, `user/${uidOf(on, "zoe")}`, `domain/${on.uidOf("ROOT/acme/sub")}`];
  for (const key of gone) on.records.delete(key);
  const again = Bench.started(on.records);
  const { delegation, invitation, provider: providers } = again.state.tables;
  assert.deepEqual([delegation.size, invitation.size, providers.size], [0, 0, 1]);
  assert.ok(
    ![...again.records].some(([key, value]) => key.startsWith("provider/") && JSON.stringify(value).includes(others)),
  );
  assert.equal(Bench.started(bench().records).state.tables.delegation.size, 0);
});

test("after a restart everything that was given counts as before", () => {
  const on = bench();
  give(on, { session: logIn(on, "ann") });
  const again = Bench.started(on.records);
  assert.ok(may(again, logIn(again, "zoe"), "shop", "cell.change"));
});

/** Whatever is given and taken back: nobody may with a cell what no giver may, and nothing without a delegation that is there. */
test("nobody rises by what is given", () => {
  const people = ["ann", "bob", "dora", "lea", "zoe", "rita"] as const;
  const act = fc.record({
    by: fc.constantFrom(...people),
    what: fc.constantFrom("give", "give", "give", "take"),
    account: fc.constantFrom("ROOT/acme/dev", "ROOT/acme/ops", "ROOT/acme/sub/lab", "ROOT/others"),
    cells: fc.constantFrom(undefined, ["shop"], ["bank"], ["lab", "shop"]),
    to: fc.constantFrom(...people, "ROOT/others", "ROOT/acme/dev"),
    role: fc.constantFrom("account-admin", "user", "reader", "domain-admin", "root-admin", "viewer"),
  });
  let given = 0;
  fc.assert(
    fc.property(fc.array(act, { minLength: 1, maxLength: 12 }), (acts) => {
      const on = bench();
      const rules = [{ verb: "vm.console", effect: "allow" }];
      on.ask(operator, "addRole", { name: "viewer", domain: "ROOT/acme", reach: "account", rules });
      const giver = [...rules, { verb: "cell.read", effect: "allow" }, { verb: "delegation.*", effect: "allow" }];
      on.ask(operator, "addRole", { name: "giver", domain: "ROOT/acme", reach: "account", rules: giver });
      on.ask(operator, "changeUser", { role: "giver" }, { uid: uidOf(on, "bob") });
      const sessions = new Map(people.map((name) => [name, logIn(on, name)]));
      const cells = { shop: "dev", bank: "ops", lab: "lab" } as const;
      const verbs = ["cell.read", "cell.change", "cell.delete", "vm.console", "credential.add", "user.add"];
      const own = new Map(
        people.flatMap((name) =>
          Object.keys(cells).map((cell) => {
            const has = rulesIn(on, sessions.get(name) ?? "", cell) ?? [];
            return [`${name} ${cell}`, verbs.filter((verb) => allows(has, verb))] as const;
          }),
        ),
      );
      /** Whatever anybody who gave something on a cell could do with it himself. */
      const most = new Map<string, Set<string>>();
      for (const { by, what, account, cells: named, to, role } of acts) {
        const session = { session: sessions.get(by) ?? "" };
        if (what === "take") {
          for (const uid of [...on.state.tables.delegation.keys()].slice(0, 1))
            on.ask(session, "deleteDelegation", {}, { uid });
          continue;
        }
        const whom = to.startsWith("ROOT") ? numberOf(on, to) : uidOf(on, to);
        const body = { account, to: whom, role, ...(named === undefined ? {} : { cells: named }) };
        if (on.ask(session, "addDelegation", body).status !== 200) continue;
        given += 1;
        for (const [cell, place] of Object.entries(cells)) {
          if (!account.endsWith(place)) continue;
          const all = most.get(cell) ?? new Set();
          for (const verb of own.get(`${by} ${cell}`) ?? []) all.add(verb);
          most.set(cell, all);
        }
      }
      for (const name of people)
        for (const cell of Object.keys(cells)) {
          const has = rulesIn(on, sessions.get(name) ?? "", cell) ?? [];
          const rises = verbs.filter((verb) => allows(has, verb) && !own.get(`${name} ${cell}`)?.includes(verb));
          assert.ok(
            rises.every((verb) => most.get(cell)?.has(verb) && !["cell.delete", "credential.add"].includes(verb)),
            `${name} may ${rises} in ${cell}`,
          );
        }
    }),
    { numRuns: 200 },
  );
  assert.ok(given > 100, `only ${given} were given: nothing was tried`);
});
