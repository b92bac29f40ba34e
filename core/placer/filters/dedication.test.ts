import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { groupOf, type HostRule, type Owner } from "../../../model/cell/tenants/dedication/dedication.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { toJson } from "../../outbox.ts";
import { host, world } from "../placer.testing.ts";

const root = peerName("controller.root");
const d1: Owner = { kind: "domain", path: "ROOT/d1" };
const a1: Owner = { kind: "account", path: "ROOT/d1/a1" };
const d2: Owner = { kind: "domain", path: "ROOT/d2" };

/** Hosts with room, each of which the root controller may say something of; `shop` belongs to an account, or to nobody who is known. */
function cloud(names: readonly string[], account: string | null = a1.path) {
  const placer = world(names);
  for (const name of names) placer.say(name, host(name));
  const say = (key: string, value: object | null): unknown =>
    placer.input({ kind: "desired", from: root, key, value: value === null ? null : toJson(value) });
  const dedicate = (name: string, to: Owner | null, level: HostRule["level"] = "host"): unknown =>
    say(`dedicated/${name}`, to === null ? null : { host: name, of: name, level, to });
  const own = (cell: string, whose: string | null): unknown =>
    say(`owner/${cell}`, whose === null ? null : { cell, account: whose });
  own("shop", account);
  const inGroup = (of: Owner, more: JsonObject = {}): JsonObject => ({ placement: { groups: [groupOf(of)], ...more } });
  return { ...placer, dedicate, own, inGroup, say: placer.say };
}

test("Table 1: with a request for dedication only what is dedicated, without one only what is shared, and else refused", () => {
  const { want, get, dedicate, inGroup } = cloud(["h1", "h2"]);
  want("before", 100, 1, inGroup(d1));
  assert.deepEqual([get("before")?.phase, get("before")?.host], ["waiting", null], "nothing is dedicated");
  dedicate("h1", d1);
  assert.equal(get("before")?.host, "h1", "it waited for that");
  want("in", 100, 1, inGroup(d1));
  want("out", 100);
  assert.deepEqual([get("in")?.host, get("out")?.host], ["h1", "h2"]);
  dedicate("h2", a1);
  want("late", 100);
  assert.equal(get("late")?.host, null, "nothing is shared any more");
  assert.deepEqual(
    get("late")?.refusals.map(({ kind, lifts }) => [kind, lifts]),
    [
      ["dedicated", 'ask for it with x.placement.groups "DedicatedGrp-domain-d1"'],
      ["dedicated", 'ask for it with x.placement.groups "DedicatedGrp-a1"'],
    ],
  );
  dedicate("h1", null);
  assert.equal(get("late")?.host, "h1", "released, it is everybody's");
  assert.equal(get("in")?.host, "h1", "what runs stays");
  want("in", 100, 2, inGroup(d1));
  assert.equal(get("in")?.host, null, "and a restart obeys what holds then");
});

test("a domain's host is open to it and all below, an account's to that account; nobody else learns of either", () => {
  const outcome = (account: string | null, of: Owner, asks: Owner) => {
    const { want, get, dedicate, inGroup } = cloud(["h1"], account);
    dedicate("h1", of);
    want("vm", 100, 1, inGroup(asks));
    return get("vm");
  };
  assert.equal(outcome("ROOT/d1/sub/s", d1, d1)?.host, "h1", "below");
  assert.equal(outcome("ROOT/d1/a1", a1, a1)?.host, "h1");
  for (const [account, of, asks] of [
    ["ROOT/o", d1, d1],
    ["ROOT/d2/a", d1, d1],
    ["ROOT/d1/a2", a1, a1],
    ["ROOT/d1/a2", a1, d1],
    ["ROOT/d10/a", d1, d1],
    [null, d1, d1],
  ] as const) {
    const told = outcome(account, of, asks);
    assert.deepEqual([told?.host, told?.refusals], [null, []], `${account} ${of.path}`);
    assert.doesNotMatch(told?.reason ?? "", /h1|ROOT\/d1(?!\/a2|0)/, `${account}: ${told?.reason}`);
  }
});

test("in a zone of its account or domain a VM in no group may have what is not dedicated again inside", () => {
  const { want, get, dedicate, restart } = cloud(["h1", "h2", "h3"]);
  dedicate("h1", d2, "zone");
  dedicate("h2", d1, "pod");
  dedicate("h3", d1, "zone");
  want("vm", 100);
  assert.equal(get("vm")?.host, "h3");
  const near = cloud(["h1"], "ROOT/d10/a");
  near.dedicate("h1", d1, "zone");
  near.want("vm", 100);
  assert.equal(near.get("vm")?.host, null, "another domain, whose name begins alike");
  dedicate("h3", a1, "cluster");
  want("vm", 100, 2);
  assert.equal(get("vm")?.host, null);
  restart();
  assert.equal(
    get("vm")?.host,
    "h1",
    "a Placer whose root controller says nothing of hosts has none that is somebody's",
  );
});

test("the cloud's own VMs stand anywhere, at dedicated hosts last", () => {
  const { input, dedicate, rooms } = cloud(["h1", "h2"]);
  dedicate("h1", d1);
  const start = (vm: string, memoryMiB: number) =>
    input({
      kind: "desired",
      from: root,
      key: `placement/${vm}`,
      value: {
        vm,
        path: `root/${vm}`,
        cell: "root",
        incarnation: 1,
        memoryMiB,
        cpus: 1,
        cpuSpeedMHz: 0,
        placement: {},
      },
    });
  start("r1", 1000);
  start("r2", 1000);
  start("r3", 1600);
  assert.deepEqual(
    rooms().map(({ host: name, vms }) => [name, vms]),
    [
      ["h1", 1],
      ["h2", 2],
    ],
  );
});

test("whose a cell is says the root controller alone, and a cell within a cell goes with that", () => {
  const { input, dedicate, own, get, inGroup } = cloud(["h1"], null);
  dedicate("h1", a1);
  own("shop", a1.path);
  const inner = peerName("controller.db.other");
  const desire = (cell: string): unknown =>
    input({
      kind: "desired",
      from: inner,
      key: "placement/x",
      value: {
        vm: "x",
        path: "db/x",
        cell,
        incarnation: 1,
        memoryMiB: 10,
        cpus: 1,
        cpuSpeedMHz: 0,
        ...inGroup(a1),
      },
    });
  desire("shop");
  assert.equal(get("x", inner)?.host, null, "its certificate says that it is another");
  own("other", a1.path);
  assert.equal(get("x", inner)?.host, "h1");
});

test("a move between what is dedicated and what is not is told, and not refused", () => {
  const { want, input, dedicate, administer } = cloud(["h1", "h2"]);
  administer("h2", "disabled");
  want("vm", 100);
  administer("h2", null);
  dedicate("h1", d1);
  const move = (): readonly unknown[] =>
    input({ kind: "desired", from: root, key: "host/h1", value: { host: "h1", state: "maintenance" } }).flatMap(
      (effect) =>
        effect.kind === "log" && effect.event === "placement/crosses" ? [effect.fields.alerts, effect.fields.to] : [],
    );
  assert.deepEqual(move(), ["E1", "h2"]);
  administer("h1", null);
  dedicate("h1", null);
  assert.deepEqual(move(), [], "between what is shared nobody is told");
});

test("a VM that is started elsewhere since its host was lost is told as a move is, and says so itself until it starts anew", () => {
  const made = cloud(["h1", "h2"]);
  const { want, get, dedicate, administer, say, restart, own, input } = made;
  const told = (effects: ReturnType<typeof input>): readonly unknown[] =>
    effects.flatMap((effect) =>
      effect.kind === "log" && effect.event === "placement/crosses"
        ? [[effect.fields.from, effect.fields.to, effect.fields.alerts, effect.fields.restart]]
        : [],
    );
  administer("h2", "disabled");
  want("vm", 100);
  want("other", 100);
  dedicate("h1", d1);
  say("h1", null);
  assert.deepEqual(told(want("vm", 100, 2, { restart: true })), [], "it has no place yet");
  assert.equal(get("vm")?.host, null);
  administer("h2", null);
  assert.deepEqual([get("vm")?.host, get("vm")?.crossed], ["h2", ["E1"]]);
  assert.deepEqual(told(want("other", 100, 2, { restart: true })), [["h1", "h2", "E1", true]]);
  want("other", 100, 2, { restart: true, path: "shop/renamed" });
  assert.deepEqual(get("other")?.crossed, ["E1"], "under another name, too");
  want("other", 100, 3);
  assert.deepEqual([get("other")?.host, get("other")?.crossed], ["h2", undefined], "it starts where it was");
  restart();
  own("shop", a1.path);
  assert.deepEqual(get("vm")?.crossed, ["E1"], "as it is stored");

  const plain = cloud(["h1", "h2"]);
  plain.administer("h2", "disabled");
  plain.want("vm", 100);
  plain.administer("h2", null);
  plain.dedicate("h1", d1);
  assert.deepEqual(told(plain.want("vm", 100, 2)), [], "a change of the VM's own is none");
  assert.deepEqual([plain.get("vm")?.host, plain.get("vm")?.crossed], ["h2", undefined]);
});

test("of VMs that leave a lost host one by one the last is told as the first what was there", () => {
  const { want, get, administer, say } = cloud(["h1", "h2", "h3"]);
  const preferred = { placement: { dedication: "preferred" } };
  for (const name of ["h2", "h3"]) administer(name, "disabled");
  want("held", 100, 1, preferred);
  want("plain", 100);
  for (const name of ["h2", "h3"]) administer(name, null);
  say("h1", null);
  want("held", 100, 2, { ...preferred, restart: true });
  assert.deepEqual([get("held")?.host, get("held")?.crossed], ["h2", undefined], "where nobody is");
  want("plain", 100, 2, { restart: true });
  assert.deepEqual([get("plain")?.host, get("plain")?.crossed], ["h3", ["I3"]]);
  say("h1", host("h1"));
  for (const name of ["h2", "h3"]) administer(name, "disabled");
  want("new", 100);
  assert.equal(get("new")?.host, "h1");
  for (const name of ["h3"]) administer(name, null);
  say("h1", null);
  want("new", 100, 2, { restart: true });
  assert.deepEqual([get("new")?.host, get("new")?.crossed], ["h3", undefined], "that was before");
});

test("a move says of the machine what was told when room was kept for it", () => {
  const { want, get, dedicate, administer } = cloud(["h1", "h2"]);
  administer("h2", "disabled");
  want("vm", 100);
  administer("h2", null);
  dedicate("h1", d1);
  administer("h1", "maintenance");
  assert.equal(get("vm")?.leave?.to, "h2");
  want("vm", 100, 2);
  assert.deepEqual([get("vm")?.host, get("vm")?.crossed], ["h2", ["E1"]]);
});
