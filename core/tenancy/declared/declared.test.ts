import assert from "node:assert/strict";
import { test } from "node:test";
import { elementPath, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { AccountSummary, RoleSummary } from "../../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredDeclared, DesiredLimits } from "../../documents/tenancy.ts";
import type { Effect, Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const root = peerName("controller.root");
type Written = {
  readonly kind: DesiredDeclared["kind"];
  readonly path: string;
  readonly [more: string]: unknown;
};
const documentOf = (id: string, { path, kind, ...more }: Written): Json =>
  toJson({
    uid: uid(id),
    at: elementPath(`root/tenants${path.slice("ROOT".length)}`),
    path,
    kind,
    tag: `of ${id}`,
    ...(kind === "role" ? { reach: "account", rules: [] } : { state: "enabled", limits: {} }),
    ...more,
  });

/** The service with what a root controller declares, which a crash does not take from it. */
class Declaring {
  bench: Bench;
  readonly #desired = new Map<string, Json>();
  constructor(bench = Bench.started()) {
    this.bench = bench;
  }
  declare(id: string, written: Written): readonly Effect[] {
    return this.#say(id, documentOf(id, written));
  }
  takeOut(id: string): readonly Effect[] {
    return this.#say(id, null);
  }
  #say(id: string, value: Json): readonly Effect[] {
    if (value === null) this.#desired.delete(id);
    else this.#desired.set(id, value);
    return this.bench.step({ kind: "desired", from: root, key: `declared/${id}`, value });
  }
  crash(records: ReadonlyMap<string, Json> = this.bench.records): void {
    this.bench = new Bench(structuredClone(new Map(records)));
    for (const [id, value] of this.#desired)
      this.bench.step({ kind: "desired", from: root, key: `declared/${id}`, value } satisfies Input);
    this.bench.step({ kind: "start" });
  }
  said(id: string): string {
    const said = this.bench.published.get(`controller.root/declared/${id}`);
    const { phase, reason } = (said ?? { phase: "nothing", reason: null }) as unknown as {
      readonly phase: string;
      readonly reason: string | null;
    };
    return reason === null ? phase : `${phase}: ${reason}`;
  }
  list = <T>(name: "listAccounts" | "listDomains" | "listRoles" | "listQuotas"): readonly T[] =>
    this.bench.ask(operator, name).body as unknown as readonly T[];
  places = (): readonly string[] =>
    [...this.list<AccountSummary>("listDomains"), ...this.list<AccountSummary>("listAccounts")]
      .map(({ path, state }) => `${path} ${state}`)
      .sort();
}
const message = ({ body }: { readonly body: Json }): string =>
  (body as { readonly error?: { readonly message: string } }).error?.message ?? "";

test("what is declared is made so, whatever comes first, and a start makes nothing anew", () => {
  const world = new Declaring();
  world.declare("r-3", { kind: "account", path: "ROOT/acme/labs/physics", limits: { vms: 3 } });
  assert.match(world.said("r-3"), /^waiting: there is no domain "ROOT\/acme\/labs"/);
  world.declare("r-4", { kind: "role", path: "ROOT/acme/ops", rules: [{ verb: "vm.*", effect: "allow" }] });
  world.declare("r-2", { kind: "domain", path: "ROOT/acme/labs", state: "locked" });
  world.declare("r-1", { kind: "domain", path: "ROOT/acme", limits: { vms: 5 } });
  const are = [
    "ROOT enabled",
    "ROOT/acme enabled",
    "ROOT/acme/labs locked",
    "ROOT/acme/labs/physics enabled",
    "ROOT/operator enabled",
  ];
  assert.deepEqual(world.places(), are);
  const shown = [...world.list<AccountSummary>("listAccounts"), ...world.list<RoleSummary>("listRoles")];
  assert.deepEqual(
    shown.flatMap(({ declared }) => declared ?? []),
    ["root/tenants/acme/labs/physics", "root/tenants/acme/ops"],
  );
  assert.deepEqual(
    ["r-1", "r-2", "r-3", "r-4"].map((id) => world.said(id)),
    ["ready", "ready", "ready", "ready"],
  );
  const [role] = world.list<RoleSummary>("listRoles").filter(({ builtIn }) => !builtIn);
  assert.deepEqual([role?.name, role?.domain, role?.rules], ["ops", "ROOT/acme", [{ verb: "vm.*", effect: "allow" }]]);
  const limits = world.list<DesiredLimits>("listQuotas").map((each) => `${each.path} ${JSON.stringify(each.limits)}`);
  assert.deepEqual(limits, ['ROOT/acme {"vms":5}', 'ROOT/acme/labs/physics {"vms":3}']);
  const before = structuredClone(world.bench.records);
  world.crash();
  assert.deepEqual(world.bench.records, before);
  assert.deepEqual(world.places(), are);
  assert.equal(world.said("r-3"), "ready");
});

test("a crash before any of its writes is durable makes it later, and once", () => {
  const lost = new Declaring();
  lost.declare("r-1", { kind: "domain", path: "ROOT/acme" });
  lost.declare("r-2", { kind: "account", path: "ROOT/acme/dev" });
  lost.crash(new Map());
  assert.deepEqual(lost.places().slice(1, 3), ["ROOT/acme enabled", "ROOT/acme/dev enabled"]);
});

test("what is there already is taken over with all that it has", () => {
  const world = new Declaring(settled());
  const { bench } = world;
  const account = bench.uidOf("ROOT/acme/dev");
  const ann = bench.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  world.declare("r-1", { kind: "account", path: "ROOT/acme/dev", limits: { cells: 2 } });
  assert.equal(bench.uidOf("ROOT/acme/dev"), account);
  assert.equal(bench.ask({ session: ann }, "whoAmI").status, 200);
  bench.ticket(ann, "shop", "t1");
  assert.equal(bench.look("shop", "t1")?.open, true);
  // What is declared of it counts at once.
  world.declare("r-1", { kind: "account", path: "ROOT/acme/dev", state: "disabled" });
  assert.equal(bench.worth("shop", "t1")?.open, false);
  assert.deepEqual(world.list("listQuotas"), []);
  world.declare("r-1", { kind: "account", path: "ROOT/acme/dev" });
  assert.equal(bench.worth("shop", "t1")?.open, true);
});

test("what is declared changes only there, for the operator as well, and of others' things nobody hears where they stand", () => {
  const world = new Declaring(settled());
  const { bench } = world;
  const dora = bench.logIn("dora", "ROOT/acme", "of dora") ?? assert.fail();
  const bob = bench.logIn("bob", "ROOT/acme", "of bob") ?? assert.fail();
  world.declare("r-1", { kind: "account", path: "ROOT/acme/dev" });
  world.declare("r-2", { kind: "role", path: "ROOT/acme/ops", rules: [{ verb: "vm.*", effect: "allow" }] });
  world.declare("r-3", { kind: "domain", path: "ROOT/acme/sub" });
  const [account, domain] = [bench.uidOf("ROOT/acme/dev"), bench.uidOf("ROOT/acme/sub")];
  const role = world.list<RoleSummary>("listRoles").find(({ name }) => name === "ops")?.uid ?? assert.fail();
  const asks = [
    ["changeAccount", { state: "disabled" }, account],
    ["deleteAccount", {}, account],
    ["setQuota", { limits: { vms: 1 } }, account],
    ["changeDomain", { state: "locked" }, domain],
    ["setQuota", { limits: {} }, domain],
    ["deleteDomain", {}, domain],
    ["changeRole", { rules: [] }, role],
    ["deleteRole", {}, role],
  ] as const;
  for (const [name, body, of] of asks) {
    const answer = bench.ask(operator, name, body, { uid: of });
    assert.equal(answer.status, 409, `${name}: ${JSON.stringify(answer.body)}`);
    assert.match(message(answer), /stands in the root cell's specification \(root\/tenants\/acme\/(dev|ops|sub)\)/);
  }
  for (const [name, body, of] of asks) {
    const answer = bench.ask({ session: bob }, name, body, { uid: of });
    assert.doesNotMatch(message(answer), /specification/, name);
  }
  assert.equal(bench.ask({ session: dora }, "changeRole", { rules: [] }, { uid: role }).status, 409);
  // Who sees it all, and may change nothing of it.
  const looks = ["domain.read", "account.read", "role.read"].map((verb) => ({ verb, effect: "allow" }));
  const looker = { name: "looker", domain: "ROOT/acme", reach: "domain", rules: looks };
  assert.equal(bench.ask(operator, "addRole", looker).status, 200);
  const lou = { name: "lou", account: "ROOT/acme/ops", role: "looker", password: "of lou" };
  assert.equal(bench.ask(operator, "addUser", lou).status, 200);
  const session = bench.logIn("lou", "ROOT/acme", "of lou") ?? assert.fail();
  for (const [name, body, of] of asks) {
    const answer = bench.ask({ session }, name, body, { uid: of });
    assert.equal(answer.status, 403, name);
    assert.doesNotMatch(message(answer), /specification/, name);
  }
  const all = structuredClone(bench.records);
  for (const [name, body, of] of asks) assert.equal(bench.ask(operator, name, body, { uid: of }).status, 409);
  // With all that is in it: what is declared below is in the way.
  const acme = bench.uidOf("ROOT/acme");
  const request = { kind: "ask", by: operator, name: "deleteDomain", parameters: { uid: acme } } as const;
  const whole = bench.request({
    ...request,
    query: { cleanup: true },
    body: {},
    password: null,
    fresh: { uid: "x", number: "1" },
  });
  assert.match(message(whole), /specification \(root\/tenants\/acme\/dev\)/);
  const isKept = (key: string): boolean => /^(account|domain|role|user)\//.test(key);
  const kept = (records: ReadonlyMap<string, Json>): object => [...records].filter(([key]) => isKept(key)).sort();
  assert.deepEqual(kept(bench.records), kept(all));
  // What is in it goes on being theirs who administer it.
  assert.equal(bench.ask(operator, "addUser", { name: "zoe", account: "ROOT/acme/dev", role: "ops" }).status, 200);
  assert.equal(bench.ask({ session: dora }, "addAccount", { path: "ROOT/acme/sub/more" }).status, 200);
});

test("what is taken out goes on as it was, and is changed and deleted by commands again", () => {
  const world = new Declaring(settled());
  const { bench } = world;
  world.declare("r-1", { kind: "account", path: "ROOT/acme/dev", state: "locked", limits: { vms: 2 } });
  const account = bench.uidOf("ROOT/acme/dev");
  const [before, users] = [bench.records.get(`account/${account}`), bench.state.tables.user.size];
  world.takeOut("r-1");
  assert.deepEqual(bench.records.get(`account/${account}`), before);
  assert.equal(bench.state.tables.user.size, users);
  assert.equal(bench.published.has("controller.root/declared/r-1"), false);
  world.crash();
  assert.deepEqual(world.bench.records.get(`account/${account}`), before);
  assert.equal(world.bench.ask(operator, "changeAccount", { state: "enabled" }, { uid: account }).status, 200);
  // Of what ends nothing is declared anew before it has ended.
  const other = world.bench.uidOf("ROOT/others");
  world.bench.step({
    kind: "desired",
    from: root,
    key: "owner/r-9",
    value: { uid: "r-9", cell: "vault", account: "ROOT/others" },
  });
  const ends = world.bench.request({
    kind: "ask",
    by: operator,
    name: "deleteAccount",
    parameters: { uid: other },
    query: { allowDestroy: ["vault"] },
    body: {},
    password: null,
    fresh: { uid: "x", number: "1" },
  });
  assert.equal(ends.status, 200, JSON.stringify(ends.body));
  world.declare("r-2", { kind: "account", path: "ROOT/others" });
  assert.match(world.said("r-2"), /waiting: ROOT\/others is being deleted, and is made anew/);
  world.bench.step({ kind: "desired", from: root, key: "owner/r-9", value: null });
  const none: JsonObject = { granted: {}, left: 0 };
  world.bench.step({ kind: "actual", from: root, key: `tenancy/limits/${other}`, value: none });
  assert.equal(world.said("r-2"), "ready");
  assert.notEqual(world.bench.uidOf("ROOT/others"), other, "another one, with nothing of before");
});

test("an older store makes nothing so before somebody has looked, and of two words nothing is made", () => {
  const world = new Declaring(settled());
  world.bench.step({ kind: "behind", peer: root });
  world.declare("r-1", { kind: "account", path: "ROOT/acme/dev", state: "disabled" });
  assert.match(world.said("r-1"), /waiting: the store of the service of users is older/);
  const account = world.bench.uidOf("ROOT/acme/dev");
  assert.equal(world.bench.state.tables.account.get(account)?.state, "enabled");
  world.bench.step({ kind: "excused", peer: root });
  assert.equal(world.said("r-1"), "ready");
  assert.equal(world.bench.state.tables.account.get(account)?.state, "disabled");
  world.declare("r-7", { kind: "account", path: "ROOT/acme/dev" });
  assert.match(world.said("r-7"), /waiting: it is declared twice, and not alike/);
  assert.equal(world.bench.state.tables.account.get(account)?.state, "disabled");
  world.takeOut("r-1");
  assert.equal(world.said("r-7"), "ready");
  assert.equal(world.bench.state.tables.account.get(account)?.state, "enabled");
});
