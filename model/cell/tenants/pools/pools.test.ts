import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject, type Json, type JsonObject } from "../../../json/json.ts";
import { type PoolCase, runCases } from "./cases/cases.testing.ts";
import { administrator, type By, type Outcome, type WholeHost } from "./flavors.ts";
import {
  addHost,
  createPool,
  deletePool,
  listPool,
  type Pool,
  type Pooling,
  pooledHosts,
  removeHost,
  type SchedulingPolicy,
  setAuthorised,
  setEnabled,
  setPolicy,
  setRatios,
  unitsOf,
} from "./pools.ts";

/** What owners of pools, and those whom they authorised, may do; hosts are really called `real-…`. */
const object = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
const list = (value: Json | undefined): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
const byOf = (by: Json | undefined): By =>
  typeof by !== "string" || by === "administrator" || by === "root"
    ? administrator
    : { kind: "account", path: by.replace(/^tenant /, "") };
const pool = "pool";

function poolingOf(given: JsonObject): Pooling {
  const [said, flavor] = [object(given.pool), String(given.flavor ?? "large")];
  const owner = String(said.owner ?? "t1");
  const [counts, whose] = [object(said.vms), object(said.vmsOf)];
  const hosts = new Map<string, WholeHost>();
  const members = new Map<string, { host: string; flavor: string; enabled: boolean }>();
  for (const [name, state] of Object.entries(object(said.hosts))) {
    const count = Number(counts[name] ?? list(whose[name]).length);
    const vms = Array.from({ length: count }, (_, at) => `${name}-vm-${at}`);
    hosts.set(`real-${name}`, { state: "enabled", flavor, zone: null, vms });
    members.set(name, { host: `real-${name}`, flavor, enabled: state === "enabled" });
  }
  for (const [zone, count] of Object.entries(object(given.free)))
    for (let at = 0; at < Number(count); at += 1)
      hosts.set(`real-${zone}-${at}`, { state: "enabled", flavor, zone, vms: [] });
  const authorised = said.authorised === undefined ? [owner] : list(said.authorised);
  const first: Pool = { uid: pool, name: "p", owner, authorised, ratios: {}, policy: {}, hosts: members };
  return {
    flavors: new Map([[flavor, { id: flavor, description: "", units: Number(given.units ?? 1) }]]),
    hosts,
    rules: new Map(),
    pools: given.pool === undefined ? new Map() : new Map([[pool, first]]),
    limits: given.limitUnits === undefined ? new Map() : new Map([[owner, Number(given.limitUnits)]]),
  };
}
const hostAsked = (value: Json): { name: string; flavor: string; zone: string | null } => {
  const { name = "", flavor = "large", zone = null } = object(value);
  return { name: String(name), flavor: String(flavor), zone: zone === null ? null : String(zone) };
};

function step(pooling: Pooling, action: string, value: Json, by: By): Outcome<unknown> {
  switch (action) {
    case "createPool":
      return createPool(pooling, pool, String(value), by.kind === "account" ? by.path : "ROOT/operator");
    case "deletePool":
      return deletePool(pooling, pool, by);
    case "addHost":
      return addHost(pooling, pool, hostAsked(value), by);
    case "removeHost":
      return removeHost(pooling, pool, String(value), by);
    case "enable":
    case "disable":
      return setEnabled(pooling, pool, String(value), action === "enable", by);
    case "authorise":
    case "deauthorise":
      return setAuthorised(pooling, pool, String(value), action === "authorise", by);
    case "setRatios":
      return setRatios(pooling, pool, object(value), by);
    case "setPolicy":
      return setPolicy(pooling, pool, object(value) as SchedulingPolicy, by);
    case "list":
      return listPool(pooling, pool, by);
    default:
      throw new Error(`the runner of pools.json has no ${action}`);
  }
}

/** Of several that ask at the same moment, each for a pool of its own. */
function atOnce(pooling: Pooling, askers: readonly string[], asked: ReturnType<typeof hostAsked>) {
  let [now, won] = [pooling, 0];
  for (const who of askers) {
    const made = createPool(now, `pool-${who}`, "p", who);
    assert.ok(made.ok);
    const outcome = addHost(made.value, `pool-${who}`, asked, { kind: "account", path: who });
    now = outcome.ok ? outcome.value : made.value;
    won += outcome.ok ? 1 : 0;
  }
  const taken = [...now.pools.values()].flatMap(({ hosts }) => [...hosts.values()].map(({ host }) => host));
  return { won, lost: askers.length - won, hostsInTwoPools: taken.length - new Set(taken).size };
}

const known = ["by", "pool", "flavor", "free", "units", "limitUnits", "atOnce", "host"];
runCases("pools.json", known, ({ given, do: doing }: PoolCase) => {
  let pooling = poolingOf(given);
  const before = pooling;
  if (given.atOnce !== undefined) return atOnce(pooling, list(given.atOnce), hostAsked(doing.addHost ?? {}));
  const owner = pooling.pools.get(pool)?.owner ?? String(given.by);
  const refused: string[] = [];
  let [answer, listed]: [unknown, unknown] = [null, null];
  for (const [action, value] of Object.entries(doing)) {
    const outcome = step(pooling, action, value, byOf(given.by));
    answer = outcome;
    if (!outcome.ok) refused.push(...outcome.refused.names);
    else if (action === "list") listed = outcome.value;
    else pooling = outcome.value as Pooling;
  }
  const now = pooling.pools.get(pool);
  const ofHost = (name: string): number => pooling.hosts.get(now?.hosts.get(name)?.host ?? "")?.vms.length ?? 0;
  const shown = object(given.host);
  const others = (of: Pooling): unknown => [...of.pools].filter(([uid]) => uid !== pool);
  return {
    ok: refused.length === 0,
    refused: refused.length > 0,
    names: refused,
    owner: now?.owner,
    authorised: now?.authorised,
    unitsUsed: unitsOf(pooling, owner),
    hosts: Array.isArray(listed)
      ? listed.map((each) => ({ ...each, vmUids: each.vms.length }))
      : given.pool === undefined
        ? [...(now?.hosts.keys() ?? [])]
        : Object.fromEntries(
            [...(now?.hosts ?? [])].map(([name, { enabled }]) => [name, enabled ? "enabled" : "disabled"]),
          ),
    vms: Object.fromEntries([...(now?.hosts.keys() ?? [])].map((name) => [name, ofHost(name)])),
    realHostNames: JSON.stringify(answer).includes("real-"),
    free: [...pooling.hosts.keys()].filter((host) => !pooledHosts(pooling).has(host)).length,
    cpusOffered: Number(shown.cpus ?? 0) * (now?.ratios.cpu ?? 16),
    memoryOffered: Number(shown.memoryMiB ?? shown.memory ?? 0) * (now?.ratios.memory ?? 1),
    otherHostsUnchanged:
      JSON.stringify(others(before)) === JSON.stringify(others(pooling)) && pooling.hosts === before.hosts,
  };
});

const t1: By = { kind: "account", path: "ROOT/d1/t1" };
const withHosts = (rules: Pooling["rules"] = new Map()): Pooling => {
  const made = createPool({ ...poolingOf({ free: { z1: 2 } }), rules }, pool, "mine", t1.path);
  assert.ok(made.ok);
  return made.value;
};
const large = { name: "a", flavor: "large" };

test("a host in a dedicated place goes only to that owner's accounts", () => {
  const of = (path: string) => ({ of: "z1", level: "zone" as const, to: { kind: "domain" as const, path } });
  const rules = (path: string) =>
    new Map([
      ["real-z1-0", of(path)],
      ["real-z1-1", of(path)],
    ]);
  assert.equal(addHost(withHosts(rules("ROOT/d1")), pool, large, t1).ok, true);
  const other = addHost(withHosts(rules("ROOT/d2")), pool, large, t1);
  assert.ok(!other.ok);
  assert.equal(other.refused.kind, "capacity");
  assert.doesNotMatch(JSON.stringify(other), /real-|ROOT\/d2/);
});

test("of a pool that is another's no more is said than of one that is not there", () => {
  const stranger: By = { kind: "account", path: "ROOT/d2/t9" };
  const refusals = [pool, "none"].map((uid) => listPool(withHosts(), uid, stranger));
  assert.equal(
    JSON.stringify(refusals[0]).replaceAll(pool, "none"),
    JSON.stringify(refusals[1]).replaceAll(pool, "none"),
  );
});

test("a ratio is more than nothing, and changes the other one not", () => {
  for (const cpu of [0, -1, Number.NaN, 65])
    assert.equal(setRatios(withHosts(), pool, { cpu }, t1).ok, false, `${cpu}`);
  const once = setRatios(withHosts(), pool, { memory: 1.5 }, t1);
  assert.ok(once.ok);
  const twice = setRatios(once.value, pool, { cpu: 2 }, t1);
  assert.ok(twice.ok);
  assert.deepEqual(twice.value.pools.get(pool)?.ratios, { memory: 1.5, cpu: 2 });
});

test("a pool with hosts stays", () => {
  const added = addHost(withHosts(), pool, large, t1);
  assert.ok(added.ok);
  assert.equal(deletePool(added.value, pool, t1).ok, false);
  assert.equal(deletePool(withHosts(), pool, t1).ok, true);
});

test("whatever is asked in whatever order, a host is in one pool at most and within the units", () => {
  let seed = 1;
  const draw = (below: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };
  const [accounts, names] = [
    ["t1", "t2", "t3"],
    ["a", "b", "c"],
  ];
  let now: Pooling = {
    ...poolingOf({ free: { z1: 3, z2: 2 }, units: 2 }),
    limits: new Map(accounts.map((each) => [each, 5])),
  };
  for (const who of accounts) {
    const made = createPool(now, who, "p", who);
    assert.ok(made.ok);
    now = made.value;
  }
  for (let count = 0; count < 5000; count += 1) {
    const [who, of, name] = [accounts[draw(3)] ?? "", accounts[draw(3)] ?? "", names[draw(3)] ?? ""];
    const by: By = { kind: "account", path: who };
    const outcome = [
      () => addHost(now, of, { name, flavor: "large", zone: [null, "z1", "z2"][draw(3)] ?? null }, by),
      () => removeHost(now, of, name, by),
      () => setEnabled(now, of, name, draw(2) === 0, by),
    ][draw(3)]?.();
    if (outcome?.ok === true) {
      assert.equal(who, of, "only the owner changes his pool");
      now = outcome.value;
    }
    const taken = [...now.pools.values()].flatMap(({ hosts }) => [...hosts.values()].map(({ host }) => host));
    assert.equal(new Set(taken).size, taken.length);
    for (const each of accounts) assert.ok(unitsOf(now, each) <= 5);
  }
});
