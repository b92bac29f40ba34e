import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { By } from "./actor.ts";
import type { Ask, AskName, TenancyResponse } from "./asks.ts";
import { publishLooks } from "./looks.ts";
import { Bench, operator, settled } from "./tenancy.testing.ts";
import { createTenancy } from "./tenancy.ts";

const logIn = (bench: Bench, user: string): string => {
  const domain =
    { ann: "ROOT/acme", bob: "ROOT/acme", dora: "ROOT/acme", lea: "ROOT/acme/sub", rita: "ROOT" }[user] ?? "";
  const session = bench.logIn(user, domain, `of ${user}`);
  assert.ok(session !== null, user);
  return session;
};
const uidOf = (bench: Bench, name: string): string => {
  const all = bench.ask(operator, "listUsers").body as unknown as readonly UserSummary[];
  return all.find((user) => user.name === name)?.uid ?? "";
};

const accountOf = (bench: Bench, path: string): string => {
  const all = bench.ask(operator, "listAccounts").body as unknown as readonly { path: string; uid: string }[];
  return all.find((each) => each.path === path)?.uid ?? "";
};

test("a ticket is worth something at the controller of its cell alone, and for whom the account is within reach", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  assert.equal(bench.ticket(ann, "shop", "t1"), 200);
  assert.equal(bench.look("shop", "t1")?.open, true);
  assert.equal(bench.look("bank", "t1")?.open, false);
  assert.equal(bench.worth("shop", "t1")?.user, "ann@ROOT/acme");
  for (const cell of ["bank", "lab", "root", "nothing"]) assert.equal(bench.ticket(ann, cell, `${cell} t`), 404, cell);
  assert.equal(bench.ticket(ann, "web.shop", "t2"), 200, "a child cell goes with the one around it");
  const dora = logIn(bench, "dora");
  for (const [cell, status] of [
    ["shop", 200],
    ["lab", 200],
    ["root", 404],
    ["others", 404],
  ] as const)
    assert.equal(bench.ticket(dora, cell, `d ${cell}`), status, cell);
  assert.equal(bench.ticket(logIn(bench, "rita"), "root", "r"), 404, "what runs the cloud is the operator's");
});

test("no account has all tickets: another one that asks finds some", () => {
  const bench = settled();
  const [ann, bob] = [logIn(bench, "ann"), logIn(bench, "bob")];
  let had = 0;
  const { ticket } = bench.state.tables;
  for (; had < 33_000; had += 1) ticket.set(`ann ${had}`, { session: ann, cell: "shop" });
  assert.equal(bench.ticket(ann, "shop", "one more"), 200);
  for (; had < 34_000; had += 1) ticket.set(`ann ${had}`, { session: ann, cell: "shop" });
  assert.equal(bench.ticket(ann, "shop", "too many"), 503);
  assert.equal(bench.ticket(bob, "bank", "his first"), 200);
});

test("no domain has all users, roles, accounts or domains: another one that makes some finds room, and so does the operator", () => {
  const bench = settled();
  bench.ask(operator, "addDomain", { path: "ROOT/others-too" });
  bench.ask(operator, "addAccount", { path: "ROOT/others-too/one" });
  bench.ask(operator, "addUser", {
    name: "dana",
    account: "ROOT/others-too/one",
    role: "domain-admin",
    password: "of dana",
  });
  const dora = { session: logIn(bench, "dora") };
  const dana = { session: bench.logIn("dana", "ROOT/others-too", "of dana") ?? assert.fail() };
  const { domain, account, user, role } = bench.state.tables;
  const [acme, dev] = [bench.uidOf("ROOT/acme"), bench.uidOf("ROOT/acme/dev")];
  const fill = <T>(table: Map<string, T>, count: number, make: (n: number) => T): void => {
    for (let n = 0; n < count; n += 1) table.set(`filled ${n}`, make(n));
  };
  fill(user, 170_000, (n) => ({
    uid: `f${n}`,
    name: `f${n}`,
    account: dev,
    role: "role.user",
    state: "enabled" as const,
    password: null,
  }));
  fill(role, 3_400, (n) => ({ uid: `r${n}`, name: `r${n}`, domain: acme, reach: "account" as const, rules: [] }));
  const number = "1".repeat(12);
  fill(account, 34_000, (n) => ({ uid: `a${n}`, name: `a${n}`, domain: acme, number, state: "enabled" as const }));
  fill(domain, 3_400, (n) => ({ uid: `filled ${n}`, name: `d${n}`, parent: acme, state: "enabled" as const }));
  const asks = (under: string, at: string) =>
    [
      ["addUser", { name: "new", account: at, role: "user" }],
      ["addRole", { name: "new", domain: under, reach: "account", rules: [] }],
      ["addAccount", { path: `${under}/new` }],
      ["addDomain", { path: `${under}/newer` }],
    ] as const;
  for (const [name, body] of asks("ROOT/acme", "ROOT/acme/dev"))
    assert.match(JSON.stringify(bench.ask(dora, name, body).body), /so that others find some/, name);
  for (const [name, body] of asks("ROOT/others-too", "ROOT/others-too/one"))
    assert.equal(bench.ask(dana, name, body).status, 200, name);
  for (const [name, body] of asks("ROOT/acme", "ROOT/acme/dev"))
    assert.equal(bench.ask(operator, name, body).status, 200, name);
});

test("what is taken back is said to the controllers that follow it, at once, whichever way it was taken", () => {
  const ways: readonly (readonly [string, (bench: Bench) => void])[] = [
    [
      "user disabled",
      (bench) => bench.ask(operator, "changeUser", { state: "disabled" }, { uid: uidOf(bench, "ann") }),
    ],
    ["user deleted", (bench) => bench.ask(operator, "deleteUser", {}, { uid: uidOf(bench, "ann") })],
    [
      "password changed",
      (bench) => bench.ask(operator, "changeUser", { password: "other" }, { uid: uidOf(bench, "ann") }),
    ],
    ["role changed", (bench) => bench.ask(operator, "changeUser", { role: "reader" }, { uid: uidOf(bench, "ann") })],
    ["cell given away", (bench) => bench.ask(operator, "giveCell", { account: "ROOT/others" }, { cell: "shop" })],
    ["logged out", (bench) => bench.ask({ session: "session 1" }, "logOut")],
    [
      "account disabled",
      (bench) => {
        const all = bench.ask(operator, "listAccounts").body as unknown as readonly { path: string; uid: string }[];
        const uid = all.find(({ path }) => path === "ROOT/acme/dev")?.uid ?? "";
        bench.ask(operator, "changeAccount", { state: "disabled" }, { uid });
      },
    ],
    [
      "domain disabled",
      (bench) => {
        const all = bench.ask(operator, "listDomains").body as unknown as readonly { path: string; uid: string }[];
        const uid = all.find(({ path }) => path === "ROOT/acme")?.uid ?? "";
        bench.ask(operator, "changeDomain", { state: "disabled" }, { uid });
      },
    ],
    [
      "session over",
      (bench) => {
        bench.ms += 13 * 3_600_000;
        bench.step({ kind: "timer", name: "sweep" });
      },
    ],
  ];
  for (const [how, take] of ways) {
    const bench = settled();
    const session = bench.logIn("ann", "ROOT/acme", "of ann") ?? "";
    bench.ticket(session, "shop", "t");
    const before = bench.look("shop", "t");
    assert.equal(before?.open, true);
    take(how === "logged out" ? Object.assign(bench, { ask: askAs(bench, session) }) : bench);
    assert.notDeepEqual(bench.worth("shop", "t"), before, how);
    if (how !== "role changed") assert.equal(bench.worth("shop", "t")?.open, false, how);
  }
});
const askAs =
  (bench: Bench, session: string): Bench["ask"] =>
  (_by, name, body, parameters) =>
    Bench.prototype.ask.call(bench, { session }, name, body, parameters);

test("after every request all that is said is so, and who tries passwords or reads has none of it looked at", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  bench.ticket(ann, "shop", "t1");
  bench.look("shop", "t1");
  bench.look("shop", "asked before it is issued");
  let walks = 0;
  const { looks } = bench.state;
  Object.defineProperty(looks, Symbol.iterator, {
    value: () => {
      walks += 1;
      return looks.entries();
    },
  });
  const isSaid = (what: string): void => {
    publishLooks(bench.state, "all");
    assert.deepEqual(bench.state.outbox.effects, [], what);
    walks = 0;
  };
  for (const [what, ask] of [
    ["a login", () => bench.logIn("bob", "ROOT/acme", "of bob")],
    ["a wrong password", () => bench.logIn("ann", "ROOT/acme", "wrong", "far")],
    ["nobody", () => bench.logIn("zoe", "ROOT", "wrong", "far")],
    ["a list", () => bench.ask({ session: ann }, "listUsers")],
    ["what is refused", () => bench.ask({ session: ann }, "addDomain", { path: "ROOT/x" })],
  ] as const) {
    ask();
    assert.equal(walks, 0, what);
    isSaid(what);
  }
  for (const [what, ask] of [
    ["a ticket that was asked about before", () => bench.ticket(ann, "shop", "asked before it is issued")],
    ["a role", () => bench.ask(operator, "changeUser", { role: "reader" }, { uid: uidOf(bench, "ann") })],
    ["a cell", () => bench.ask(operator, "giveCell", { account: "ROOT/others" }, { cell: "shop" })],
    ["an account", () => bench.ask(operator, "deleteUser", {}, { uid: uidOf(bench, "ann") })],
  ] as const) {
    ask();
    isSaid(what);
  }
});

test("sessions, tickets and what controllers follow outlast a restart; unasked tickets do not last a minute", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  bench.ticket(ann, "shop", "used");
  bench.ticket(ann, "shop", "unused");
  bench.look("shop", "used");
  const next = new Bench(bench.records);
  next.ms = bench.ms;
  next.step({ kind: "desired", from: peerName("controller.shop"), key: "look/used", value: { ticket: "used" } });
  assert.equal(next.worth("shop", "used"), undefined, "nothing is said before all is known");
  next.step({ kind: "start" });
  assert.equal(next.worth("shop", "used")?.open, true);
  next.ms += 61_000;
  next.step({ kind: "timer", name: "sweep" });
  assert.equal(next.look("shop", "unused")?.open, false);
  assert.equal(next.worth("shop", "used")?.open, true);
  next.step({ kind: "desired", from: peerName("controller.shop"), key: "look/used", value: null });
  assert.ok(!next.records.has("ticket/used"), "what nobody follows is forgotten");
});

test("an older store lets in who administers the installation, and nobody else until somebody lets it count", () => {
  for (const how of ["behind", "restored"] as const) {
    const before = settled();
    const ann = logIn(before, "ann");
    before.ticket(ann, "shop", "t");
    before.look("shop", "t");
    const bench = Bench.started(before.records, how === "restored");
    bench.ms = before.ms;
    assert.equal(bench.look("shop", "t")?.open, how !== "restored");
    if (how === "behind") bench.step({ kind: "behind", peer: peerName("controller.shop") });
    assert.equal(bench.worth("shop", "t")?.open, false, how);
    assert.equal(bench.logIn("ann", "ROOT/acme", "of ann"), null);
    assert.notEqual(bench.logIn("rita", "ROOT", "of rita"), null);
    assert.equal(bench.ask({ session: ann }, "whoAmI").status, 401);
    assert.equal(createTenancy({ self: peerName("tenancy") }).isLost?.(bench.state), true);
    const again = Bench.started(bench.records);
    assert.equal(again.logIn("ann", "ROOT/acme", "of ann"), null, "also after a restart");
    again.ms += 3_600_000;
    again.step({ kind: "excused", peer: peerName("tenancy") });
    assert.notEqual(again.logIn("ann", "ROOT/acme", "of ann"), null);
    assert.equal(createTenancy({ self: peerName("tenancy") }).isLost?.(again.state), false);
  }
});

test("an older store lets in nobody whose role reaches as far as an administrator's and allows less", () => {
  const before = settled();
  const rules = [{ verb: "user.*", effect: "allow" }];
  before.ask(operator, "addRole", { name: "helpdesk", domain: "ROOT", reach: "installation", rules });
  const helper = { name: "hans", account: "ROOT/others", role: "helpdesk", password: "of hans" };
  assert.equal(before.ask(operator, "addUser", helper).status, 200);
  assert.notEqual(before.logIn("hans", "ROOT", "of hans"), null);
  const bench = Bench.started(before.records, true);
  assert.equal(bench.logIn("hans", "ROOT", "of hans"), null);
});

test("failed logins wait ever longer, of one user from one address, and a good one ends that", () => {
  const bench = settled();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const begun = bench.request({ kind: "login-begin", domain: "ROOT/acme", user: "ann", source: "far" });
    if (begun.status !== 429) continue;
    waits.push(begun.retryAfter ?? 0);
    bench.ms += (begun.retryAfter ?? 0) * 1000;
  }
  assert.deepEqual(waits.slice(0, 8), [1, 2, 4, 8, 16, 32, 60, 60]);
  assert.notEqual(bench.logIn("ann", "ROOT/acme", "of ann", "near"), null, "from elsewhere she gets in");
  assert.notEqual(bench.logIn("bob", "ROOT/acme", "of bob", "far"), null, "and others from there");
  bench.ms += 60_000;
  assert.notEqual(bench.logIn("ann", "ROOT/acme", "of ann", "far"), null, "never for good");
  assert.notEqual(bench.logIn("ann", "ROOT/acme", "of ann", "far"), null);
});

test("a password that was changed while it was looked at opens nothing", () => {
  const bench = settled();
  const begun = bench.request({ kind: "login-begin", domain: "ROOT/acme", user: "ann", source: "here" }).body as never;
  bench.ask(operator, "changeUser", { password: "other" }, { uid: uidOf(bench, "ann") });
  const end = { kind: "login-end", domain: "ROOT/acme", user: "ann", source: "here", begun, matched: true } as const;
  assert.equal(bench.request({ ...end, session: "s" }).status, 401);
});

test("who is locked does nothing new, and the last root administrator stays", () => {
  const bench = settled();
  bench.ask(operator, "changeUser", { state: "locked" }, { uid: uidOf(bench, "ann") });
  bench.ticket(logIn(bench, "ann"), "shop", "t");
  const worth = bench.look("shop", "t");
  assert.deepEqual([worth?.open, worth?.rules[0]?.effect], [true, "deny"]);
  const rita = { session: logIn(bench, "rita") };
  const uid = uidOf(bench, "rita");
  for (const [name, body] of [
    ["changeUser", { state: "disabled" }],
    ["changeUser", { role: "reader" }],
    ["deleteUser", {}],
  ] as const)
    assert.equal(bench.ask(rita, name, body, { uid }).status, 409, JSON.stringify(body));
  // Nor is he taken with the account that he is in.
  const account = accountOf(bench, "ROOT/others");
  for (const [name, body] of [
    ["changeAccount", { state: "locked" }],
    ["changeAccount", { state: "disabled" }],
    ["deleteAccount", {}],
  ] as const)
    assert.equal(bench.ask(rita, name, body, { uid: account }).status, 409, JSON.stringify(body));
  const inDomain = { name: "rob", account: "ROOT/acme/dev", role: "root-admin", password: "of rob" };
  assert.equal(bench.ask(rita, "addUser", inDomain).status, 200);
  assert.equal(
    bench.ask(rita, "changeAccount", { state: "disabled" }, { uid: account }).status,
    200,
    "there is another",
  );
  const rob = { session: bench.logIn("rob", "ROOT/acme", "of rob") ?? "" };
  const all = bench.ask(rob, "listDomains").body as unknown as readonly { path: string; uid: string }[];
  const acme = all.find(({ path }) => path === "ROOT/acme")?.uid ?? "";
  assert.equal(bench.ask(rob, "changeDomain", { state: "disabled" }, { uid: acme }).status, 409);
  assert.equal(bench.ask(operator, "changeDomain", { state: "disabled" }, { uid: acme }).status, 200);
});

test("what a user can do is asked of a cell, by the account that it is of, and of an account itself", () => {
  const bench = settled();
  const can = (path: string): unknown => {
    const query = { user: "ann", domain: "ROOT/acme", verb: "cell.write", path };
    const asked = { kind: "ask", by: operator, name: "can", parameters: {}, query, body: {}, password: null } as const;
    return bench.request({ ...asked, fresh: { uid: "none", number: "000000000000" } }).body;
  };
  for (const path of ["shop", "shop/web", "ROOT/acme/dev"])
    assert.equal((can(path) as { readonly allowed: boolean }).allowed, true, path);
  for (const path of ["bank", "ROOT/acme/ops", "ROOT", "nothing", "ROOT/nothing"])
    assert.match((can(path) as { readonly because: string }).because, /is not there for ann@ROOT\/acme/, path);
});

test("a built-in role stays as it is, and one that is not there is said to be none", () => {
  const bench = settled();
  const roles = bench.ask(operator, "listRoles").body as unknown as readonly { uid: string; builtIn: boolean }[];
  const builtIn = roles.find((role) => role.builtIn)?.uid ?? assert.fail();
  const rules = [{ verb: "cell.read", effect: "allow" }];
  const status = (uid: string): number => bench.ask(operator, "changeRole", { rules }, { uid }).status;
  assert.deepEqual([status(builtIn), status("none")], [409, 404]);
});

const asks = (bench: Bench, by: By, name: AskName, more: Partial<Ask>): TenancyResponse =>
  bench.request({
    kind: "ask",
    by,
    name,
    parameters: {},
    query: {},
    body: {},
    password: null,
    fresh: { uid: "drawn", number: "900000000000" },
    ...more,
  });

test("lists come in pages for whoever asks so, and each sees in them what he may and no more", () => {
  const bench = settled();
  for (let index = 0; index < 25; index += 1)
    bench.ask(operator, "addUser", {
      name: `u${index}`,
      account: index % 2 ? "ROOT/acme/dev" : "ROOT/others",
      role: "user",
    });
  for (const by of [operator, { session: logIn(bench, "ann") }, { session: logIn(bench, "bob") }])
    for (const name of ["listUsers", "listDomains", "listAccounts", "listRoles"] as const) {
      const whole = asks(bench, by, name, {});
      if (whole.status !== 200) continue;
      const found: { uid: string; etag?: string }[] = [];
      for (let after: string | undefined; ; ) {
        const page = asks(bench, by, name, { query: { limit: 3, ...(after === undefined ? {} : { after }) } });
        assert.equal(page.status, 200);
        found.push(...(page.body as unknown as typeof found));
        after = page.next;
        if (after === undefined) break;
      }
      const uids = (all: readonly { uid: string }[]): readonly string[] => all.map(({ uid }) => uid).sort();
      assert.deepEqual(uids(found), uids(whole.body as unknown as { uid: string }[]), name);
      assert.ok(found.every(({ etag }) => /^[0-9a-f]{32}$/.test(etag ?? "")));
    }
  const no = asks(bench, operator, "listUsers", { query: { after: "0123" } });
  assert.equal(no.status, 400);
});

test("a change is refused where what it changes is not any more what whoever asks has seen, and nothing is touched", () => {
  const bench = settled();
  const uid = uidOf(bench, "ann");
  const shown = (): string =>
    (
      asks(bench, operator, "listUsers", { query: { limit: 100 } }).body as unknown as { uid: string; etag: string }[]
    ).find((each) => each.uid === uid)?.etag ?? assert.fail();
  const change = (state: string, ifMatch: string | null, more: Partial<Ask> = {}): TenancyResponse =>
    asks(bench, operator, "changeUser", { parameters: { uid }, body: { state }, ifMatch, ...more });
  const seen = shown();
  assert.equal(change("locked", seen).status, 200);
  assert.notEqual(shown(), seen);
  const before = new Map(bench.records);
  const late = change("disabled", seen, { source: "192.0.2.1" });
  assert.equal(late.status, 412);
  assert.match(JSON.stringify(late.body), /"version-mismatch"/);
  assert.equal(change("disabled", seen, { query: { dryRun: true } }).status, 412);
  for (const [key, value] of before) if (!key.startsWith("audit")) assert.deepEqual(bench.records.get(key), value, key);
  const told = [...bench.records.values()].map((each) => JSON.stringify(each));
  assert.ok(
    told.some((each) => each.includes("it was changed since it was seen")),
    "and has a record",
  );
  // A login changes nothing that is shown.
  assert.notEqual(bench.logIn("ann", "ROOT/acme", "of ann"), null);
  const answered = change("enabled", shown());
  assert.equal((answered.body as unknown as { etag: string }).etag, shown(), "the answer has the next tag");
  assert.equal(change("locked", null).status, 200, "as long as it is there");
  assert.equal(asks(bench, operator, "deleteUser", { parameters: { uid: "none" }, ifMatch: null }).status, 404);
  assert.equal(asks(bench, operator, "addDomain", { body: { path: "ROOT/new" }, ifMatch: seen }).status, 400);
  const bob = { session: logIn(bench, "bob") };
  assert.equal(asks(bench, bob, "deleteUser", { parameters: { uid }, ifMatch: seen }).status, 404, "not his to see");
});

test("a domain and an account are found by their paths from when they are there until they have gone", () => {
  const bench = Bench.started();
  const status = (name: "addDomain" | "addAccount", path: string): number => bench.ask(operator, name, { path }).status;
  const end = (name: "deleteDomain" | "deleteAccount", path: string): number =>
    bench.ask(operator, name, {}, { uid: bench.uidOf(path) }).status;
  for (let round = 0; round < 2; round += 1) {
    assert.equal(status("addDomain", "ROOT/new/below"), 404);
    assert.equal(status("addDomain", "ROOT/new"), 200);
    assert.equal(status("addDomain", "ROOT/new"), 409);
    assert.equal(status("addDomain", "ROOT/new/below"), 200);
    assert.equal(status("addAccount", "ROOT/new/below/dev"), 200);
    assert.equal(status("addAccount", "ROOT/new/below/dev"), 409);
    assert.equal(end("deleteAccount", "ROOT/new/below/dev"), 200);
    assert.equal(end("deleteDomain", "ROOT/new/below"), 200);
    assert.equal(end("deleteDomain", "ROOT/new"), 200);
  }
});
