import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Limits } from "../../../model/contract/tenancy/quotas.ts";
import type { UsageDay } from "../../../model/contract/tenancy/usage.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { InUse } from "../../documents/cells.ts";
import { toJson } from "../../outbox.ts";
import type { By } from "../actor.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";
import { roomForUsage } from "./usage.ts";

const root = peerName("controller.root");
const hour = 3_600_000;
const noon = Date.parse("2026-11-26T12:00:00Z");

/** A cloud whose root controller says what cells have, from noon of a day on. */
class Meter {
  bench: Bench;
  constructor(bench = settled()) {
    this.bench = bench;
    bench.wall = noon;
  }
  get wallMs(): number {
    return this.bench.wall ?? 0;
  }
  /** Null: the cell is no more. */
  say(id: string, account: string | null, has: Limits | null, uses?: InUse): void {
    const document = {
      uid: uid(id),
      cell: cellName(`cell-${id}`),
      account,
      has: has ?? {},
      ...(uses === undefined ? {} : { uses }),
    };
    const value: Json = has === null ? null : toJson(document);
    this.bench.step({ kind: "desired", from: root, key: `owner/${id}`, value });
  }
  /** In steps as the service's own timer makes them. */
  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 30_000) {
      const step = Math.min(left, 30_000);
      this.bench.ms += step;
      this.bench.wall = this.wallMs + step;
      this.bench.step({ kind: "timer", name: "sweep" });
    }
  }
  /** The store is there, and who has what is said again before it goes on. */
  restart(said: () => void, awayMs: number, records: ReadonlyMap<string, Json> = this.bench.records): void {
    const next = new Bench(records);
    next.wall = this.wallMs + awayMs;
    next.ms = 77;
    this.bench = next;
    said();
    next.step({ kind: "start" });
  }
  ask = (by: By = operator, query: JsonObject = {}) => {
    const fresh = { uid: "-", number: "-" };
    return this.bench.request({
      kind: "ask",
      by,
      name: "listUsage",
      parameters: {},
      query,
      body: {},
      password: null,
      fresh,
    });
  };
  days = (by: By = operator, query: JsonObject = {}): readonly UsageDay[] => {
    const { status, body } = this.ask(by, query);
    assert.equal(status, 200, JSON.stringify(body));
    return body as unknown as readonly UsageDay[];
  };
  of = (path: string, by: By = operator): readonly string[] =>
    this.days(by, { path }).map(({ day, hours }) => `${day.slice(5)} ${JSON.stringify(hours)}`);
  session = (user: string, domain = "ROOT/acme"): By => ({
    session: this.bench.logIn(user, domain, `of ${user}`) ?? assert.fail(user),
  });
}

const names = (record: Json, uid: string): boolean => JSON.stringify(record).includes(`"${uid}"`);

test("a cell that is said to be an account's before that is there is the operator's until then", () => {
  const meter = new Meter();
  meter.say("a", "ROOT/acme/late", { vms: 2 });
  meter.pass(hour);
  meter.bench.ask(operator, "addAccount", { path: "ROOT/acme/late" });
  meter.pass(hour);
  assert.deepEqual(meter.of("ROOT/acme/late"), ['11-26 {"vms":2,"cells":1}']);
  assert.deepEqual(meter.of("ROOT/operator"), ['11-26 {"vms":2,"cells":1}']);
});

test("a crash soon after an account is added over its cells loses nothing of it", () => {
  const meter = new Meter();
  const said = () => meter.say("a", "ROOT/acme/late", { vms: 2 });
  said();
  meter.bench.ask(operator, "addAccount", { path: "ROOT/acme/late" });
  meter.pass(60_000);
  meter.restart(said, 3_000);
  meter.pass(hour - 63_000);
  assert.deepEqual(meter.of("ROOT/acme/late"), ['11-26 {"vms":2,"cells":1}']);
});

test("what an account has is counted for as long as it has it, by day", () => {
  const meter = new Meter();
  meter.say("1", "ROOT/acme/dev", { vms: 2, memoryMiB: 128 });
  meter.pass(3 * hour);
  assert.deepEqual(meter.of("ROOT/acme/dev"), ['11-26 {"vms":6,"memoryMiB":384,"cells":3}']);
  meter.say("1", "ROOT/acme/dev", { vms: 1, memoryMiB: 64 });
  meter.say("2", "ROOT/acme/dev", { vms: 4 });
  meter.pass(13 * hour);
  assert.deepEqual(meter.of("ROOT/acme/dev"), [
    '11-26 {"vms":51,"memoryMiB":960,"cells":21}',
    '11-27 {"vms":20,"memoryMiB":256,"cells":8}',
  ]);
  // What is no more counts no more, and whose it is now has it from now on.
  meter.say("1", null, { vms: 1 });
  meter.say("2", null, null);
  meter.pass(hour);
  assert.deepEqual(meter.of("ROOT/acme/dev")[1], '11-27 {"vms":20,"memoryMiB":256,"cells":8}');
  assert.deepEqual(meter.of("ROOT/operator").at(-1), '11-27 {"vms":1,"cells":1}');
  assert.deepEqual(
    meter.days(operator, { from: "2026-11-27", until: "2026-11-27" }).map(({ account }) => account),
    ["ROOT/acme/dev", "ROOT/operator"],
  );
});

test("what was in use is counted beside what was had, over midnight, crashes and cells that go, and nothing of it twice", () => {
  const meter = new Meter();
  const runs = (vms: number): InUse => ({ vms, memoryMiB: 64 * vms, cpus: vms, storageMiB: 100 });
  const used = () =>
    meter.days(operator, { path: "ROOT/acme/dev" }).map(({ day, used }) => `${day.slice(8)} ${used?.vms ?? "-"}`);
  const had = { vms: 9 };
  // A controller of the previous version does not say it.
  meter.say("1", "ROOT/acme/dev", had);
  meter.pass(hour);
  assert.deepEqual(used(), ["26 -"]);
  meter.say("1", "ROOT/acme/dev", had, runs(2));
  meter.say("2", "ROOT/acme/dev", had, runs(1));
  meter.pass(2 * hour);
  const [today] = meter.days(operator, { path: "ROOT/acme/dev" });
  assert.deepEqual(today?.used, { vms: 6, memoryMiB: 384, cpus: 6, storageMiB: 400 });
  assert.equal(today?.hours.vms, 9 + 36, "what is had is had, whether it runs or not");
  meter.say("2", null, null);
  meter.say("1", "ROOT/acme/dev", had, runs(1));
  meter.pass(10 * hour);
  assert.deepEqual(used(), ["26 15", "27 1"]);
  // The service is away for an hour, and hears what runs now before it goes on.
  meter.restart(() => meter.say("1", "ROOT/acme/dev", had, runs(1)), hour);
  meter.pass(hour);
  assert.deepEqual(used(), ["26 15", "27 3"]);
  for (const each of [1, 2, 3]) meter.restart(() => meter.say("1", "ROOT/acme/dev", had, runs(each)), 0);
  assert.deepEqual(used(), ["26 15", "27 3"]);
  meter.say("1", "ROOT/acme/dev", had, runs(0));
  meter.pass(hour);
  assert.deepEqual(used(), ["26 15", "27 3"], "what is off is in use no more");
});

test("a crash at any moment counts nothing twice, and what was had while nobody counted", () => {
  for (const atMs of [0, 1, 29_000, 4 * 60_000, 5 * 60_000, 37 * 60_000]) {
    const meter = new Meter();
    const said = () => meter.say("1", "ROOT/acme/dev", { vms: 3 });
    said();
    meter.pass(atMs);
    meter.restart(said, hour - atMs);
    assert.deepEqual(meter.of("ROOT/acme/dev"), ['11-26 {"vms":3,"cells":1}'], `after ${atMs}`);
    meter.pass(hour);
    assert.deepEqual(meter.of("ROOT/acme/dev"), ['11-26 {"vms":6,"cells":2}'], `after ${atMs}`);
    meter.restart(said, 12 * hour);
    const both = ['11-26 {"vms":36,"cells":12}', '11-27 {"vms":6,"cells":2}'];
    assert.deepEqual(meter.of("ROOT/acme/dev"), both, "each day has its own");
  }
});

test("who was away for a month, or has a wrong clock, charges a day at most, and a clock that is put right nothing", () => {
  const meter = new Meter();
  const said = () => meter.say("1", "ROOT/acme/dev", { vms: 1 });
  said();
  meter.pass(hour);
  meter.restart(said, 30 * 24 * hour);
  const vms = () =>
    meter.days(operator, { from: "2026-01-01", until: "2027-12-31" }).map(({ hours }) => hours.vms ?? 0);
  assert.equal(
    vms().reduce((sum, each) => sum + each, 0),
    25,
  );
  meter.bench.wall = meter.wallMs - 45 * 24 * hour;
  meter.pass(hour);
  assert.equal(
    vms().reduce((sum, each) => sum + each, 0),
    26,
  );
  meter.restart(said, -10 * 24 * hour);
  assert.equal(
    vms().reduce((sum, each) => sum + each, 0),
    26,
    "nothing is counted back",
  );
});

test("each sees what is within his reach, and of an account that has gone whoever administers what it was in", () => {
  const meter = new Meter();
  meter.say("1", "ROOT/acme/dev", { vms: 1 });
  meter.say("2", "ROOT/acme/ops", { vms: 2 });
  meter.say("3", "ROOT/others", { vms: 3 });
  meter.pass(hour);
  const [ann, bob, dora, rita] = [
    ...["ann", "bob", "dora"].map((user) => meter.session(user)),
    meter.session("rita", "ROOT"),
  ];
  const seen = (by: By | undefined) => meter.days(by).map(({ account }) => account);
  assert.deepEqual([seen(ann), seen(bob)], [["ROOT/acme/dev"], ["ROOT/acme/ops"]]);
  assert.deepEqual(seen(dora), ["ROOT/acme/dev", "ROOT/acme/ops"]);
  assert.deepEqual(seen(rita), ["ROOT/acme/dev", "ROOT/acme/ops", "ROOT/others"]);
  assert.deepEqual(meter.days(ann, { path: "ROOT/others" }), [], "as one that nobody has");
  assert.deepEqual(meter.days(ann, { path: "ROOT/nothing" }), []);
  // The account ends; another one of its name has nothing of it.
  meter.say("1", "ROOT/acme/dev", null);
  const gone = meter.bench.uidOf("ROOT/acme/dev");
  meter.bench.ask(operator, "giveCell", { account: "ROOT/operator" }, { cell: "shop" });
  assert.equal(meter.bench.ask(operator, "deleteAccount", {}, { uid: gone }).status, 200);
  meter.bench.step({ kind: "actual", from: root, key: `tenancy/limits/${gone}`, value: { granted: {}, left: 0 } });
  assert.equal(meter.bench.ask(operator, "addAccount", { path: "ROOT/acme/dev" }).status, 200);
  const user = { name: "eve", account: "ROOT/acme/dev", role: "account-admin", password: "of eve" };
  assert.equal(meter.bench.ask(operator, "addUser", user).status, 200);
  assert.deepEqual(seen(meter.session("eve")), []);
  assert.deepEqual([seen(dora), seen(bob)], [["ROOT/acme/dev", "ROOT/acme/ops"], ["ROOT/acme/ops"]]);
  // With a domain it goes to who administers the one above, and to nobody of another domain of its name.
  meter.say("4", "ROOT/acme/sub/lab", { vms: 1 });
  meter.pass(hour);
  meter.say("4", "ROOT/acme/sub/lab", null);
  const [lab, sub] = ["ROOT/acme/sub/lab", "ROOT/acme/sub"].map((path) => meter.bench.uidOf(path));
  meter.bench.ask(operator, "giveCell", { account: "ROOT/operator" }, { cell: "lab" });
  meter.bench.ask(operator, "deleteAccount", {}, { uid: lab ?? "" });
  meter.bench.step({ kind: "actual", from: root, key: `tenancy/limits/${lab}`, value: { granted: {}, left: 0 } });
  assert.equal(meter.bench.ask(operator, "deleteDomain", {}, { uid: sub ?? "" }).status, 200);
  meter.bench.step({ kind: "actual", from: root, key: `tenancy/limits/${sub}`, value: { granted: {}, left: 0 } });
  const left = [...meter.bench.records].filter(([key, each]) => !key.startsWith("audit") && names(each, sub ?? ""));
  assert.deepEqual(left, []);
  meter.bench.ask(operator, "addDomain", { path: "ROOT/acme/sub" });
  meter.bench.ask(operator, "addAccount", { path: "ROOT/acme/sub/new" });
  const sam = { name: "sam", account: "ROOT/acme/sub/new", role: "domain-admin", password: "of sam" };
  assert.equal(meter.bench.ask(operator, "addUser", sam).status, 200);
  assert.deepEqual(seen(meter.session("sam", "ROOT/acme/sub")), []);
  assert.ok(seen(dora).includes("ROOT/acme/sub/lab"));
});

test("what nobody counts, or nobody can mean, is refused", () => {
  const meter = new Meter();
  assert.equal(meter.ask().status, 409, "there is no root controller");
  meter.say("1", null, { vms: 1 });
  for (const [query, why] of [
    [{ from: "2026-11-27", until: "2026-11-26" }, /say the earlier one first/],
    [{ from: "2026-02-30" }, /there is no day 2026-02-30/],
    [{ until: "2026-02-29" }, /there is no day 2026-02-29/],
  ] as const) {
    const { status, body } = meter.ask(operator, query);
    assert.deepEqual([status, why.test(JSON.stringify(body))], [400, true], JSON.stringify(query));
  }
});

test("the oldest days go where there are too many, of the part of the tree that has most", () => {
  const meter = new Meter();
  const records = new Map(meter.bench.records);
  const mostUsage = roomForUsage(meter.bench.state);
  const day = (number: number): string => new Date(noon - number * 24 * hour).toISOString().slice(0, 10);
  const put = (number: number, account: string, id: string): void => {
    const record = { number: id, account, domain: "domain.root", untilMs: 0, amounts: { vms: 1 } };
    records.set(`usage/${day(number)}/${id}`, toJson(record));
  };
  for (let each = 0; each < mostUsage; each += 1) put(each % 60, `ROOT/many/a${each}`, `m${each}`);
  for (let each = 0; each < 100; each += 1) put(200 + each, "ROOT/few", "f");
  meter.restart(() => meter.say("1", null, { vms: 1 }), 0, records);
  meter.pass(6 * 60_000);
  const kept = [...meter.bench.records.keys()].filter((key) => key.startsWith("usage/"));
  assert.equal(kept.length, mostUsage);
  assert.equal(kept.filter((key) => key.endsWith("/f")).length, 100, "who has few keeps them");
  const oldest = kept.filter((key) => key.includes(`/${day(59)}/`)).length;
  assert.ok(oldest < mostUsage / 60 - 50, `${oldest} are left of the oldest day`);
  // What users take of the room is theirs, and some is left of it.
  const sizes = [0, 1_000, 50_000].map((size) => roomForUsage({ tables: { user: { size } } } as never));
  assert.deepEqual(sizes, [32_768, 32_268, 8_192]);
});
