import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Limits, QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import type { Json } from "../../../model/json/json.ts";
import { mayDesire, maySee } from "../../documents/permissions.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import type { DesiredLimits } from "../../documents/tenancy.ts";
import type { Effect } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import type { By } from "../actor.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const root = peerName("controller.root");
/** What it desires at the root controller, as effects have it. */
class Kept {
  readonly bench: Bench;
  readonly desired = new Map<string, DesiredLimits>();
  constructor(bench = settled()) {
    this.bench = bench;
    const step = bench.step.bind(bench);
    bench.step = (input) => {
      const effects = step(input);
      for (const effect of effects) this.#take(effect);
      return effects;
    };
  }
  #take(effect: Effect): void {
    if (effect.kind !== "desire" || effect.to !== root) return;
    if (effect.value === null) this.desired.delete(effect.key);
    else this.desired.set(effect.key, effect.value as unknown as DesiredLimits);
  }
  hearRoot(): this {
    const value = toJson({ uid: uid("r-1"), cell: cellName("primary"), account: null });
    this.bench.step({ kind: "desired", from: root, key: "owner/r-1", value });
    return this;
  }
  set = (by: By, path: string, limits: Limits) =>
    this.bench.ask(by, "setQuota", { limits }, { uid: this.bench.uidOf(path) });
  list = (by: By): readonly QuotaSummary[] =>
    this.bench.ask(by, "listQuotas").body as unknown as readonly QuotaSummary[];
  paths = (): readonly string[] =>
    [...this.desired.values()].map(({ path, limits }) => `${path} ${JSON.stringify(limits)}`).sort();
  session = (user: string, domain = "ROOT/acme"): By => ({
    session: this.bench.logIn(user, domain, `of ${user}`) ?? assert.fail(user),
  });
}

test("limits are kept here and desired at the root controller, which says what it has granted of them", () => {
  const kept = new Kept();
  assert.equal(kept.set(operator, "ROOT/acme/dev", { vms: 3 }).status, 409, "nobody would count them");
  kept.hearRoot();
  assert.equal(kept.set(operator, "ROOT/acme/dev", { vms: 3 }).status, 200);
  assert.equal(kept.set(operator, "ROOT/acme", { vms: 9, cells: 2 }).status, 200);
  assert.deepEqual(kept.paths(), ['ROOT/acme {"vms":9,"cells":2}', 'ROOT/acme/dev {"vms":3}']);
  const key = `tenancy/limits/${kept.bench.uidOf("ROOT/acme/dev")}`;
  const say = (value: Json) => kept.bench.step({ kind: "actual", from: root, key, value });
  say({ granted: { vms: 2 } });
  const [acme, dev] = kept.list(operator);
  assert.deepEqual([acme?.kind, acme?.granted, dev?.kind, dev?.granted], ["domain", null, "account", { vms: 2 }]);
  say(null);
  assert.equal(kept.list(operator)[1]?.granted, null);
  assert.equal(kept.set(operator, "ROOT/acme", {}).status, 200);
  assert.deepEqual(kept.paths(), ['ROOT/acme/dev {"vms":3}']);
  // A restart says the same, and nothing twice.
  const next = new Bench(kept.bench.records);
  const again = new Kept(next);
  again.hearRoot();
  next.step({ kind: "start" });
  assert.deepEqual(again.paths(), ['ROOT/acme/dev {"vms":3}']);
});

test("nobody changes what bounds himself, and beyond his reach he sees none", () => {
  const kept = new Kept().hearRoot();
  kept.set(operator, "ROOT/acme", { vms: 9 });
  kept.set(operator, "ROOT/others", { vms: 1 });
  const [dora, ann, rita] = [kept.session("dora"), kept.session("ann"), kept.session("rita", "ROOT")];
  assert.equal(kept.set(dora, "ROOT/acme/dev", { vms: 4 }).status, 200);
  assert.equal(kept.set(dora, "ROOT/acme/sub", { vms: 4 }).status, 200);
  const own = kept.set(dora, "ROOT/acme", { vms: 99 });
  assert.deepEqual([own.status, /who administer what it is in/.test(JSON.stringify(own.body))], [403, true]);
  assert.equal(kept.set(dora, "ROOT/others", { vms: 4 }).status, 404);
  assert.equal(kept.set(ann, "ROOT/acme/dev", { vms: 99 }).status, 403);
  assert.equal(kept.set(rita, "ROOT/acme", { vms: 10 }).status, 200);
  assert.deepEqual(
    [dora, ann, rita].map((by) => kept.list(by).map(({ path }) => path)),
    [
      ["ROOT/acme", "ROOT/acme/dev", "ROOT/acme/sub"],
      ["ROOT/acme/dev"],
      ["ROOT/acme", "ROOT/acme/dev", "ROOT/acme/sub", "ROOT/others"],
    ],
  );
  assert.deepEqual(kept.paths()[0], 'ROOT/acme {"vms":10}');
});

test("an account's limit goes with it, and an older store changes no limit before somebody has looked", () => {
  const kept = new Kept().hearRoot();
  kept.set(operator, "ROOT/others", { vms: 1 });
  kept.bench.step({ kind: "behind", peer: root });
  kept.set(operator, "ROOT/others", { vms: 99 });
  assert.deepEqual(kept.paths(), ['ROOT/others {"vms":1}']);
  kept.bench.step({ kind: "excused", peer: root });
  assert.deepEqual(kept.paths(), ['ROOT/others {"vms":99}']);
  const uid = kept.bench.uidOf("ROOT/others");
  assert.equal(kept.bench.ask(operator, "deleteAccount", {}, { uid }).status, 200);
  assert.deepEqual(kept.paths(), ['ROOT/others {"vms":99}'], "the root controller has to say that no cell is left");
  const said = { kind: "actual", from: root, key: `tenancy/limits/${uid}`, value: { granted: {}, left: 0 } } as const;
  kept.bench.step(said);
  assert.deepEqual(kept.paths(), []);
});

test("of an account that has cells its UID is said, and those of its domains, for as long as it has any", () => {
  const kept = new Kept().hearRoot();
  const owns = (cell: string, account: string | null): void => {
    const value = account === null ? null : toJson({ uid: uid(`r-${cell}`), cell: cellName(cell), account });
    kept.bench.step({ kind: "desired", from: root, key: `owner/r-${cell}`, value });
  };
  const of = (path: string): string => kept.bench.uidOf(path);
  const said = (): readonly object[] => [...kept.desired.values()].map(({ uid, within }) => ({ uid, within }));
  const dev = { uid: of("ROOT/acme/dev"), within: [of("ROOT/acme"), "domain.root"] };
  const others = { uid: of("ROOT/others"), within: ["domain.root"] };
  assert.deepEqual(said(), []);
  owns("shop", "ROOT/acme/dev");
  owns("web", "ROOT/acme/dev");
  assert.deepEqual(said(), [dev]);
  owns("web", "ROOT/others");
  owns("none", "ROOT/acme/nobody");
  assert.deepEqual(said(), [dev, others]);
  owns("shop", "ROOT/others");
  assert.deepEqual(said(), [others]);
  owns("shop", null);
  owns("web", null);
  assert.deepEqual(said(), []);
  // An account that is made over cells of its name is another one than the one before.
  owns("shop", "ROOT/acme/later");
  kept.bench.ask(operator, "addAccount", { path: "ROOT/acme/later" });
  assert.deepEqual(said(), [{ ...dev, uid: of("ROOT/acme/later") }]);
});

test("a disabled account or domain is said to be off, whatever limits it has, until it is enabled", () => {
  const kept = new Kept().hearRoot();
  const off = (): readonly string[] =>
    [...kept.desired.values()].flatMap((each) => (each.off ? [each.path] : [])).sort();
  const set = (name: "changeAccount" | "changeDomain", path: string, state: string): void =>
    assert.equal(kept.bench.ask(operator, name, { state }, { uid: kept.bench.uidOf(path) }).status, 200);
  kept.set(operator, "ROOT/acme/dev", { vms: 3 });
  set("changeAccount", "ROOT/acme/dev", "locked");
  assert.deepEqual(off(), []);
  set("changeAccount", "ROOT/acme/dev", "disabled");
  set("changeDomain", "ROOT/acme/sub", "disabled");
  assert.deepEqual(off(), ["ROOT/acme/dev", "ROOT/acme/sub"]);
  set("changeAccount", "ROOT/acme/dev", "enabled");
  set("changeDomain", "ROOT/acme/sub", "enabled");
  assert.deepEqual([off(), kept.paths()], [[], ['ROOT/acme/dev {"vms":3}']]);
});

test("a limit of what nothing counts is refused, wherever it is said, and nothing is touched", () => {
  const kept = new Kept().hearRoot();
  kept.set(operator, "ROOT/acme/dev", { vms: 3 });
  for (const key of ["snapshots", "images", "hosts", "toString", "vm"]) {
    const limits = { vms: 1, [key]: 2 } as Limits;
    for (const { status, body } of [
      kept.set(operator, "ROOT/acme/dev", limits),
      kept.bench.ask(operator, "addOpening", { domain: "ROOT/acme", email: "acme.example", limits }),
      kept.bench.request({
        kind: "ask",
        by: operator,
        name: "addInvitation",
        parameters: {},
        query: {},
        password: null,
        link: "h",
        body: { domain: "ROOT/acme", limits: limits as Json },
        fresh: { uid: "i", number: "" },
      }),
    ]) {
      assert.equal(status, 400);
      assert.match(JSON.stringify(body), new RegExp(`at limits.${key}: nothing counts that; it must be one of vms, `));
    }
  }
  assert.deepEqual(kept.paths(), ['ROOT/acme/dev {"vms":3}']);
  assert.deepEqual([kept.bench.state.tables.opening.size, kept.bench.state.tables.invitation.size], [0, 0]);
});

test("of what changes alone the root controller is told, and it is what a service tells that starts over this store", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(4), fc.nat(5), fc.constantFrom("enabled", "locked", "disabled")), { maxLength: 12 }),
      (changes) => {
        const bench = settled();
        const owner = { uid: "r-1", cell: "vault", account: null };
        const heard = { kind: "desired", from: root, key: "owner/r-1", value: owner } as const;
        bench.step(heard);
        const places = ["ROOT/acme", "ROOT/acme/sub", "ROOT/acme/dev", "ROOT/acme/ops", "ROOT/acme/sub/lab"] as const;
        for (const [at, vms, state] of changes) {
          const of = bench.uidOf(places[at] ?? "");
          const [change, remove] =
            at < 2 ? (["changeDomain", "deleteDomain"] as const) : (["changeAccount", null] as const);
          bench.ask(operator, "setQuota", { limits: vms === 0 ? {} : { vms } }, { uid: of });
          bench.ask(operator, change, { state }, { uid: of });
          if (remove !== null && vms === 5) bench.ask(operator, remove, {}, { uid: of });
          const other = new Bench(structuredClone(bench.records));
          other.step(heard);
          other.step({ kind: "start" });
          const said = (of: Bench): object => [...(of.state.outbox.desired.get(root) ?? [])].sort();
          assert.deepEqual(said(bench), said(other));
        }
      },
    ),
    { numRuns: 60 },
  );
});

test("the root controller takes what is said of the root of all domains, and of the operator's account", () => {
  const kept = new Kept().hearRoot();
  for (const path of ["ROOT", "ROOT/operator", "ROOT/acme", "ROOT/acme/dev"])
    assert.equal(kept.set(operator, path, { vms: 3 }).status, 200, path);
  assert.equal(kept.desired.size, 4);
  for (const [key, document] of kept.desired) {
    assert.ok(mayDesire("controller", peerName("tenancy"), key), key);
    assert.ok(maySee("controller", peerName("tenancy"), `tenancy/${key}`), key);
    const read = documentsOf("controller")("desired", peerName("tenancy"), key, toJson(document));
    assert.ok(read.ok, `${key}: ${JSON.stringify(read)}`);
  }
});
