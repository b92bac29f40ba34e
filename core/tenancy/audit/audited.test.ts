import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditRecord } from "../../../model/contract/audit/audit.ts";
import { faultsOf, recordsIn } from "../../../model/contract/testing/audited.testing.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import type { By } from "../actor.ts";
import type { AskName } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";
import type { Sight } from "./audited.ts";

const kinds = ["domain", "account", "user", "role", "session", "owner", "key"];
/** Did these make something durable that people asked for? */
const isChange = (effects: readonly Effect[]): boolean =>
  effects.some((effect) => effect.kind === "write" && kinds.includes(effect.key.split("/")[0] ?? ""));
const auditedIn = (effects: readonly Effect[]): readonly AuditRecord[] =>
  effects.flatMap((effect) =>
    effect.kind === "write" && /^audit(-refusals)?\//.test(effect.key) && effect.value !== null
      ? [effect.value as unknown as AuditRecord]
      : [],
  );

/** One request for each thing that can be changed, in an order in which all pass. */
type Step = readonly [name: AskName, body: object, uidOf?: readonly [AskName, string]];
const steps: readonly Step[] = [
  ["addDomain", { path: "ROOT/new" }],
  ["addAccount", { path: "ROOT/new/dev" }],
  [
    "addRole",
    { name: "watcher", domain: "ROOT/new", reach: "account", rules: [{ verb: "cell.read", effect: "allow" }] },
  ],
  ["addUser", { name: "eva", account: "ROOT/new/dev", role: "watcher", password: "secret of eva" }],
  ["changeRole", { rules: [{ verb: "cell.*", effect: "allow" }] }, ["listRoles", "watcher"]],
  ["changeUser", { role: "user", password: "another secret of eva" }, ["listUsers", "eva"]],
  ["changeAccount", { state: "locked" }, ["listAccounts", "ROOT/new/dev"]],
  ["changeDomain", { state: "disabled" }, ["listDomains", "ROOT/new"]],
  ["linkUser", {}, ["listUsers", "eva"]],
  ["addKey", {}, ["listUsers", "eva"]],
  ["changeKey", { state: "disabled" }],
  ["deleteKey", {}],
  ["deleteUser", {}, ["listUsers", "eva"]],
  ["deleteRole", {}, ["listRoles", "watcher"]],
  ["deleteAccount", {}, ["listAccounts", "ROOT/new/dev"]],
  ["deleteDomain", {}, ["listDomains", "ROOT/new"]],
];
const uidOf = (bench: Bench, [list, name]: readonly [AskName, string]): string => {
  const all = bench.ask(operator, list).body as unknown as readonly { uid: string; name?: string; path?: string }[];
  return all.find((each) => each.name === name || each.path === name)?.uid ?? "";
};
let drawn = 0;
const carryOut = (bench: Bench, [name, body, of]: Step): number => {
  drawn += 1;
  const { password } = body as { readonly password?: string };
  const uid = of === undefined ? "" : uidOf(bench, of);
  const ofKey = name === "addKey" ? { key: { id: `CELL${drawn}`, sealed: "sealed" } } : { link: "sealed" };
  const key = [...bench.state.tables.key.keys()].at(-1) ?? "";
  return bench.request({
    kind: "ask",
    by: operator,
    name,
    query: {},
    ...ofKey,
    body: (name === "addKey" ? { user: uid } : body) as JsonObject,
    parameters: { uid, key },
    password: password === undefined ? null : `phc ${password}`,
    fresh: { uid: `drawn${drawn}`, number: `9${String(drawn).padStart(11, "0")}` },
  }).status;
};

test("each change has its record, in the transaction of that change, and nothing else has one", () => {
  const bench = settled();
  for (const step of steps) {
    const before = recordsIn(bench.records).length;
    let changed: readonly Effect[] = [];
    const own = bench.step.bind(bench);
    bench.step = (input) => {
      const effects = own(input);
      if (isChange(effects)) changed = effects;
      return effects;
    };
    assert.equal(carryOut(bench, step), 200, step[0]);
    bench.step = own;
    const [record, ...more] = auditedIn(changed);
    assert.deepEqual([record?.verb, record?.outcome, record?.who, more.length], [step[0], "done", "operator", 0]);
    assert.equal(recordsIn(bench.records).length, before + 1);
  }
  const { length } = recordsIn(bench.records);
  for (const name of ["listUsers", "listRoles", "listDomains", "listAccounts", "listKeys", "whoAmI", "cells"] as const)
    bench.ask(operator, name);
  bench.request({
    kind: "ask",
    by: operator,
    name: "addDomain",
    parameters: {},
    query: { dryRun: true },
    body: { path: "ROOT/dry" },
    password: null,
    fresh: { uid: "dry", number: "1" },
  });
  assert.equal(recordsIn(bench.records).length, length);
  assert.deepEqual(faultsOf(bench.records), []);
});

/** It is done once more where whoever had no answer asks again. */
const isRepeated = (name: AskName): boolean => name === "addKey" || name === "linkUser" || name.startsWith("change");

test("as many records as changes, wherever it crashes: before a commit nothing of either is there, after it both", () => {
  for (let crashAt = 0; crashAt < steps.length; crashAt += 1)
    for (const isCommitted of [false, true]) {
      let bench = settled();
      let changes = 0;
      const began = recordsIn(bench.records).length;
      for (const [index, step] of steps.entries()) {
        const before = new Map(bench.records);
        assert.equal(carryOut(bench, step), 200);
        if (index === crashAt) {
          bench = Bench.started(isCommitted ? new Map(bench.records) : before);
          // Whoever had no answer asks again.
          const status = carryOut(bench, step);
          const done = isCommitted && !isRepeated(step[0]);
          assert.equal(status === 200, !done, `${step[0]}: ${status}`);
          if (!done && isCommitted) changes += 1;
        }
        changes += 1;
      }
      const done = recordsIn(bench.records).filter(({ outcome }) => outcome === "done");
      assert.equal(done.length - began, changes, `crash at ${crashAt}`);
      assert.deepEqual(faultsOf(bench.records), []);
    }
});

test("logins, their refusals and a change of one's own password have theirs, and an unknown name is not written down", () => {
  const bench = settled();
  const session = bench.logIn("ann", "ROOT/acme", "of ann", "192.0.2.7");
  assert.equal(bench.logIn("ann", "ROOT/acme", "not of ann", "192.0.2.8"), null);
  assert.equal(bench.logIn("my secret password", "ROOT/acme", "of ann", "192.0.2.9"), null);
  const [good, wrong, unknown] = recordsIn(bench.records).slice(-3);
  assert.deepEqual(
    [good?.verb, good?.who, good?.outcome, good?.source, good?.by],
    ["logIn", "ann@ROOT/acme", "done", "192.0.2.7", `session ${session?.slice(0, 12)}`],
  );
  assert.deepEqual([wrong?.who, wrong?.outcome, wrong?.source], ["ann@ROOT/acme", "refused", "192.0.2.8"]);
  assert.deepEqual([unknown?.who, unknown?.outcome, unknown?.source], ["an unknown user", "refused", "192.0.2.9"]);
  bench.ask({ session: session ?? "" }, "logOut");
  assert.equal(recordsIn(bench.records).at(-1)?.verb, "logOut");
});

test("no password, hash or session is in any record", () => {
  const bench = settled();
  const session = bench.logIn("ann", "ROOT/acme", "of ann") ?? "";
  bench.ask({ session }, "addUser", { name: "new", account: "ROOT/acme/dev", role: "user", password: "very secret" });
  bench.ask({ session }, "addUser", { name: "new", account: "ROOT/others", role: "user", password: "very secret" });
  bench.logIn("ann", "ROOT/acme", "mistyped secret");
  for (const step of steps) carryOut(bench, step);
  const text = JSON.stringify(recordsIn(bench.records));
  for (const secret of ["secret", "of eva,", "sealed", "phc"]) assert.ok(!text.includes(secret), secret);
  assert.ok(session.length <= 12 || !text.includes(session));
});

test("refusals are recorded so often of one source, and what is left out is counted", () => {
  const bench = settled();
  const began = recordsIn(bench.records).length;
  for (let attempt = 0; attempt < 200; attempt += 1) {
    bench.ms += 61_000 / 4;
    bench.logIn("bob", "ROOT/acme", "wrong", "192.0.2.66");
  }
  const flood = recordsIn(bench.records).length - began;
  assert.ok(flood >= 20 && flood <= 60, `${flood} of 200 have a record`);
  assert.ok(bench.logIn("ann", "ROOT/acme", "of ann", "192.0.2.1") !== null);
  const last = recordsIn(bench.records).at(-1);
  assert.deepEqual([last?.who, last?.outcome], ["ann@ROOT/acme", "done"]);
  assert.ok((last?.leftOut ?? 0) > 0);
});

test("who administers sees what is below, everybody else what he did himself; also of what is there no more", () => {
  const bench = settled();
  const by = (user: string): By => ({
    session:
      bench.logIn(user, user === "rita" ? "ROOT" : user === "lea" ? "ROOT/acme/sub" : "ROOT/acme", `of ${user}`) ?? "",
  });
  const [ann, bob, dora, lea, rita] = ["ann", "bob", "dora", "lea", "rita"].map(by) as [By, By, By, By, By];
  assert.equal(bench.ask(ann, "addUser", { name: "of-dev", account: "ROOT/acme/dev", role: "user" }).status, 200);
  assert.equal(bench.ask(operator, "addUser", { name: "of-others", account: "ROOT/others", role: "user" }).status, 200);
  assert.equal(bench.ask(dora, "deleteUser", {}, { uid: uidOf(bench, ["listUsers", "of-dev"]) }).status, 200);
  const seen = (who: By): readonly AuditRecord[] => {
    const { sees } = bench.request({ kind: "audit", by: who }).body as unknown as Sight;
    return recordsIn(bench.records).filter(
      ({ within = [] }) => sees === "all" || sees.some((uid) => within.includes(uid)),
    );
  };
  const about = (who: By, target: string): readonly string[] =>
    seen(who).flatMap((record) => (record.target.includes(target) ? [record.verb] : []));
  assert.deepEqual(about(ann, "of-dev"), ["addUser", "deleteUser"], "of his account, whoever did it");
  assert.deepEqual(about(dora, "of-dev"), ["addUser", "deleteUser"]);
  for (const each of [bob, lea]) assert.deepEqual(about(each, "of-dev"), []);
  for (const each of [ann, bob, dora, lea]) assert.deepEqual(about(each, "of-others"), []);
  assert.deepEqual(about(rita, "of-others"), ["addUser"]);
  assert.deepEqual([...new Set(seen(bob).map(({ who }) => who))], ["bob@ROOT/acme"], "bob administers nothing");
});

const refusalsOf = (bench: Bench, who: string): number =>
  recordsIn(bench.records).filter((record) => record.outcome === "refused" && record.who === who).length;
test("strangers who try passwords from everywhere keep nobody else's refusals out of the audit", () => {
  const bench = settled();
  const bob: By = { session: bench.logIn("bob", "ROOT/acme", "of bob") ?? assert.fail() };
  const began = bench.ms;
  for (let source = 0; source < 40; source += 1)
    for (let attempt = 0; attempt < 12; attempt += 1) {
      bench.ms = began;
      bench.logIn("bob", "ROOT/acme", "wrong", `192.0.2.${source}-${attempt}`);
      bench.logIn("whoever", "ROOT/acme", "wrong", `192.0.2.${source}-${attempt}`);
    }
  const flood = refusalsOf(bench, "bob@ROOT/acme") + refusalsOf(bench, "an unknown user");
  assert.ok(flood >= 60 && flood <= 90, `${flood} of 960 have a record`);
  bench.logIn("ann", "ROOT/acme", "wrong", "198.51.100.1");
  bench.logIn("lea", "ROOT/acme/sub", "wrong", "198.51.100.2");
  const tried = refusalsOf(bench, "ann@ROOT/acme") + refusalsOf(bench, "lea@ROOT/acme/sub");
  assert.equal(tried, 2, "whom they did not try");
  // Nor is anything taken from the one whose name they tried.
  const before = refusalsOf(bench, "bob@ROOT/acme");
  assert.equal(bench.ask(bob, "addDomain", { path: "ROOT/of-bob" }).status, 404);
  assert.equal(refusalsOf(bench, "bob@ROOT/acme"), before + 1);
});

test("an account whose users are refused all the time keeps nobody else's refusals out of the audit", () => {
  const bench = settled();
  const by = (user: string, domain: string): By => ({
    session: bench.logIn(user, domain, `of ${user}`) ?? assert.fail(user),
  });
  const [ann, bob, rita] = [by("ann", "ROOT/acme"), by("bob", "ROOT/acme"), by("rita", "ROOT")];
  bench.ask(operator, "addAccount", { path: "ROOT/evil" });
  const mallories = Array.from({ length: 20 }, (_none, index) => {
    const name = `mallory${index}`;
    bench.ask(operator, "addUser", { name, account: "ROOT/evil", role: "user", password: `of ${name}` });
    return by(name, "ROOT");
  });
  const refuse = (who: By): void =>
    assert.notEqual(bench.ask(who, "addAccount", { path: "ROOT/never/there" }).status, 200);
  const flood = (): void => {
    for (let turn = 0; turn < 30; turn += 1) for (const mallory of mallories) refuse(mallory);
  };
  flood();
  const had = mallories.map((_one, index) => refusalsOf(bench, `mallory${index}@ROOT`));
  const inAll = had.reduce((sum, each) => sum + each, 0);
  assert.ok(inAll >= 45 && inAll <= 50, `${inAll} of 600 have a record`);
  assert.ok(Math.max(...had) <= 25);
  for (const who of [ann, bob, rita]) for (let turn = 0; turn < 5; turn += 1) refuse(who);
  for (const who of ["ann@ROOT/acme", "bob@ROOT/acme", "rita@ROOT"]) assert.equal(refusalsOf(bench, who), 5, who);
  bench.ms += 3_600_000;
  flood();
  const next = mallories.map((_one, index) => refusalsOf(bench, `mallory${index}@ROOT`));
  assert.equal(
    next.reduce((sum, each) => sum + each, 0),
    2 * inAll,
    "the next hour has as many again",
  );
});
