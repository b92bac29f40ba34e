import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { AccountSummary, DomainSummary } from "../../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredLimits } from "../../documents/tenancy.ts";
import type { Effect, Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import type { AskName, TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const root = peerName("controller.root");

/** The service beside a root controller that has cells of these accounts, and does what it is told when it is let. */
class World {
  bench: Bench;
  readonly desired = new Map<string, DesiredLimits>();
  readonly cells: Map<string, string>;
  /** After each step that wrote something the service starts anew. */
  crashing = false;
  constructor(cells: Readonly<Record<string, string>>) {
    this.bench = this.#with(settled());
    for (const cell of ["shop", "bank", "lab"])
      this.bench.ask(operator, "giveCell", { account: "ROOT/others" }, { cell });
    this.cells = new Map(Object.entries({ primary: "ROOT/others", ...cells }));
    for (const [cell, account] of this.cells) this.says(cell, account);
  }
  #with(bench: Bench): Bench {
    const step = bench.step.bind(bench);
    bench.step = (input) => {
      const effects = step(input);
      for (const effect of effects) this.#take(effect);
      return effects;
    };
    return bench;
  }
  #take(effect: Effect): void {
    if (effect.kind !== "desire" || effect.to !== root) return;
    if (effect.value === null) this.desired.delete(effect.key);
    else this.desired.set(effect.key, effect.value as unknown as DesiredLimits);
  }
  step(input: Input): void {
    const before = JSON.stringify([...this.bench.records]);
    this.bench.step(input);
    if (this.crashing && JSON.stringify([...this.bench.records]) !== before) this.crash();
  }
  /** Of what the root controller said of grants nothing is durable; whose its cells are is. */
  crash(): void {
    const bench = new Bench(this.bench.records);
    this.bench = this.#with(bench);
    for (const [cell, account] of this.cells) this.says(cell, account);
    bench.step({ kind: "start" });
  }
  says(cell: string, account: string | null): void {
    const value = account === null ? null : toJson({ uid: uid(`r-${cell}`), cell: cellName(cell), account });
    this.step({ kind: "desired", from: root, key: `owner/r-${cell}`, value });
  }
  /** What the root controller counts, said anew. */
  counts(): void {
    for (const { uid, path, ending, domainEnds } of [...this.desired.values()]) {
      const left = [...this.cells.values()].filter((account) => account === path).length;
      const value = toJson({ granted: {}, ...(ending === true || domainEnds === true ? { left } : {}) });
      this.step({ kind: "actual", from: root, key: `tenancy/limits/${uid}`, value });
    }
  }
  /** It ends one cell of an account that is being deleted; false: there is none. */
  endsOne(): boolean {
    const ending = [...this.desired.values()].flatMap(({ path, ending }) => (ending === true ? [path] : []));
    const found = [...this.cells].find(([, account]) => ending.includes(account));
    if (found === undefined) return false;
    this.cells.delete(found[0]);
    this.says(found[0], null);
    this.counts();
    return true;
  }
  remove(name: "deleteAccount" | "deleteDomain", path: string, query: JsonObject = {}): TenancyResponse {
    const asked = { kind: "ask", by: operator, name: name as AskName, query, body: {}, password: null } as const;
    return this.bench.request({
      ...asked,
      parameters: { uid: this.bench.uidOf(path) },
      fresh: { uid: "", number: "" },
    });
  }
  paths = (): readonly string[] =>
    (this.bench.ask(operator, "listAccounts").body as unknown as readonly AccountSummary[]).map(({ path }) => path);
  /** Keys of all that is durable and is, or is of, this: records of the audit say what was. */
  left(...uids: readonly string[]): readonly string[] {
    return [...this.bench.records].flatMap(([key, value]) =>
      !key.startsWith("audit") &&
      uids.some((each) => new RegExp(`\\b${each}\\b`).test(`${key} ${JSON.stringify(value)}`))
        ? [key]
        : [],
    );
  }
}
const named = { allowDestroy: ["shop,web"] as Json };
const messageOf = ({ body }: TenancyResponse): string => (body as { error?: { message: string } }).error?.message ?? "";

test("an account is deleted step by step: first nobody gets in, then its cells end, then its users; and nothing is left", () => {
  const world = new World({ shop: "ROOT/acme/dev", web: "ROOT/acme/dev", bank: "ROOT/acme/ops" });
  const account = world.bench.uidOf("ROOT/acme/dev");
  const ann = world.bench.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  const user = [...world.bench.state.tables.user.values()].find(({ name }) => name === "ann")?.uid ?? assert.fail();
  const shown = world.remove("deleteAccount", "ROOT/acme/dev", { dryRun: true });
  assert.deepEqual((shown.body as unknown as AccountSummary).plan, [
    "1 session",
    "the cell shop",
    "the cell web",
    "the user ann",
    "the account ROOT/acme/dev",
  ]);
  assert.equal(world.bench.ask({ session: ann }, "whoAmI").status, 200, "to look at it changes nothing");
  const unnamed = world.remove("deleteAccount", "ROOT/acme/dev", { allowDestroy: ["shop"] });
  assert.deepEqual([unnamed.status, /add --allow-destroy web$/.test(messageOf(unnamed))], [409, true]);
  assert.equal(
    (world.remove("deleteAccount", "ROOT/acme/dev", named).body as unknown as AccountSummary).deleting,
    true,
  );
  assert.equal(world.bench.ask({ session: ann }, "whoAmI").status, 401);
  assert.equal(world.bench.logIn("ann", "ROOT/acme", "of ann"), null);
  const told = [...world.desired.values()].find(({ path }) => path === "ROOT/acme/dev");
  assert.deepEqual([told?.off, told?.ending], [true, true]);
  const late = world.bench.ask(operator, "addUser", { name: "late", account: "ROOT/acme/dev", role: "user" });
  assert.match(messageOf(late), /is being deleted/);
  world.counts();
  assert.ok(world.endsOne());
  assert.ok(world.paths().includes("ROOT/acme/dev"), "one of its cells is left");
  assert.ok(world.endsOne());
  assert.ok(!world.paths().includes("ROOT/acme/dev"));
  assert.deepEqual(world.left(account, user, ann), []);
  const its = [...world.desired.values()].filter(({ path }) => path === "ROOT/acme/dev");
  assert.deepEqual(its, [], "nothing is desired of it any more");
  assert.ok(world.paths().includes("ROOT/acme/ops") && world.cells.has("bank"));
});

test("it waits for the root controller's word, also where it has heard of no cell: one may be on its way", () => {
  const world = new World({});
  assert.equal(world.remove("deleteAccount", "ROOT/acme/dev").status, 200);
  assert.ok(world.paths().includes("ROOT/acme/dev"));
  world.counts();
  assert.ok(!world.paths().includes("ROOT/acme/dev"));
});

test("a crash after any step goes on where it was, and ends the same", () => {
  const world = new World({ shop: "ROOT/acme/dev", web: "ROOT/acme/dev" });
  const account = world.bench.uidOf("ROOT/acme/dev");
  world.bench.logIn("ann", "ROOT/acme", "of ann");
  world.remove("deleteAccount", "ROOT/acme/dev", named);
  world.crash();
  world.crashing = true;
  for (let turn = 0; turn < 10; turn += 1) {
    world.counts();
    world.endsOne();
    world.crash();
  }
  assert.deepEqual([world.left(account), world.cells.has("shop"), world.cells.has("web")], [[], false, false]);
});

test("a domain goes with all that is in it where that is asked for, from below", () => {
  const world = new World({ shop: "ROOT/acme/dev", web: "ROOT/acme/sub/lab" });
  const uids = ["ROOT/acme", "ROOT/acme/sub", "ROOT/acme/dev", "ROOT/acme/ops", "ROOT/acme/sub/lab"].map((path) =>
    world.bench.uidOf(path),
  );
  const rule = { verb: "cell.read", effect: "allow" };
  world.bench.ask(operator, "addRole", { name: "own", domain: "ROOT/acme", reach: "account", rules: [rule] });
  assert.match(messageOf(world.remove("deleteDomain", "ROOT/acme")), /still has ROOT\/acme\/sub/);
  assert.match(messageOf(world.remove("deleteDomain", "ROOT/acme", { cleanup: true })), /add --allow-destroy/);
  const plan = (
    world.remove("deleteDomain", "ROOT/acme", { cleanup: true, dryRun: true }).body as unknown as DomainSummary
  ).plan;
  assert.deepEqual(plan?.slice(-2), ["the domain ROOT/acme/sub", "the domain ROOT/acme"]);
  assert.equal(world.remove("deleteDomain", "ROOT/acme", { cleanup: true, ...named }).status, 200);
  world.crash();
  for (let turn = 0; turn < 4; turn += 1) {
    world.counts();
    world.endsOne();
  }
  assert.deepEqual(world.left(...uids), []);
  assert.deepEqual([world.cells.size, world.paths()], [1, ["ROOT/operator", "ROOT/others"]]);
});

test("a store that is older deletes nothing before somebody has looked", () => {
  const world = new World({});
  const account = world.bench.uidOf("ROOT/acme/dev");
  world.remove("deleteAccount", "ROOT/acme/dev");
  world.step({ kind: "behind", peer: root });
  world.counts();
  assert.ok(world.left(account).length > 0);
  world.step({ kind: "excused", peer: peerName("tenancy") });
  world.counts();
  assert.deepEqual(world.left(account), []);
});

test("with its users go their keys, which the plan names", () => {
  const world = new World({});
  const { bench } = world;
  const user = [...bench.state.tables.user.values()].find(({ name }) => name === "ann")?.uid ?? assert.fail();
  const asked = { kind: "ask", by: operator, name: "addKey", parameters: {}, query: {}, password: null } as const;
  const key = { id: "CELLHERS", sealed: "sealed" };
  assert.equal(bench.request({ ...asked, body: { user }, key, fresh: { uid: "", number: "" } }).status, 200);
  const shown = world.remove("deleteAccount", "ROOT/acme/dev", { dryRun: true });
  assert.deepEqual((shown.body as unknown as AccountSummary).plan, [
    "1 key",
    "the user ann",
    "the account ROOT/acme/dev",
  ]);
  assert.equal(world.remove("deleteAccount", "ROOT/acme/dev").status, 200);
  world.counts();
  assert.deepEqual([world.left("CELLHERS", user), world.paths().includes("ROOT/acme/dev")], [[], false]);
});

test("a domain waits for the root controller's word that nothing is dedicated to it any more", () => {
  const world = new World({});
  const sub = world.bench.uidOf("ROOT/acme/sub");
  const says = (left: number): void =>
    world.step({ kind: "actual", from: root, key: `tenancy/limits/${sub}`, value: { granted: {}, left } });
  assert.equal(world.remove("deleteDomain", "ROOT/acme/sub", { cleanup: true }).status, 200);
  const told = [...world.desired.values()].find(({ uid: of }) => of === sub);
  assert.deepEqual([told?.kind, told?.ending, told?.domainEnds], ["domain", undefined, true]);
  for (const { uid: of } of [...world.desired.values()])
    if (of !== sub)
      world.step({ kind: "actual", from: root, key: `tenancy/limits/${of}`, value: { granted: {}, left: 0 } });
  says(1);
  assert.notDeepEqual(world.left(sub), []);
  says(0);
  assert.deepEqual(world.left(sub), []);
});

test("where the root controller was heard once its word counts, also when it has no cell to speak of", () => {
  for (const isAnew of [false, true]) {
    const world = new World({});
    const sub = world.bench.uidOf("ROOT/acme/sub");
    for (const cell of [...world.cells.keys()]) {
      world.cells.delete(cell);
      world.says(cell, null);
    }
    if (isAnew) world.crash();
    const { status, body } = world.remove("deleteDomain", "ROOT/acme/sub", { cleanup: true });
    assert.equal(status, 200);
    assert.equal((body as unknown as DomainSummary).deleting, true);
    assert.notDeepEqual(world.left(sub), []);
    for (const { uid: of } of [...world.desired.values()])
      world.step({ kind: "actual", from: root, key: `tenancy/limits/${of}`, value: { granted: {}, left: 0 } });
    assert.deepEqual(world.left(sub), []);
  }
});
