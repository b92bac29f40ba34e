import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { casesFrom, onlyKnown } from "../../../../testing/case-folders.testing.ts";
import { placementSettings } from "../../../attributes/placement-settings.ts";
import { alertsOf, type Crossing } from "../alerts.ts";
import {
  type Dedications,
  dedicate,
  type Guest,
  groupOf,
  isSameOwner,
  mayStand,
  mayUse,
  type Owner,
  type Resource,
  release,
  releaseGroup,
  ruleOf,
  type Tree,
  upFrom,
} from "../dedication.ts";
import { type ImplicitMode, implicitModes, type Neighbour, preferenceOf, standingOf } from "../implicit.ts";

/**
 * What an existing cloud does, beside ours (the JSON files here; with CELLS_CASES another folder's `dedication/`). The design decides where
 * the two differ; no row here does.
 */
const base = casesFrom(new URL("./", import.meta.url), "dedication");
const read = <T>(file: string): T => JSON.parse(readFileSync(new URL(file, base), "utf8")) as T;

interface World {
  readonly domains: Readonly<Record<string, string | null>>;
  readonly accounts: Readonly<Record<string, string>>;
  readonly places: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>>>;
}
const world = read<World>("world.json");
const domainPath = (name: string): string => {
  const above = world.domains[name];
  return above === null || above === undefined ? name : `${domainPath(above)}/${name}`;
};
const ownerNamed = (name: string): Owner =>
  Object.hasOwn(world.domains, name)
    ? { kind: "domain", path: domainPath(name) }
    : { kind: "account", path: `${domainPath(world.accounts[name] ?? "nowhere")}/${name}` };
const isKnown = (name: string): boolean => Object.hasOwn(world.domains, name) || Object.hasOwn(world.accounts, name);
const accountPath = (name: string): string => ownerNamed(name).path;
const nameOf = ({ path }: Owner): string => path.slice(path.lastIndexOf("/") + 1);
const tree: Tree = new Map(
  Object.entries(world.places).flatMap(([zone, pods]): [string, Resource][] => [
    [zone, { level: "zone", above: null }],
    ...Object.entries(pods).flatMap(([pod, clusters]): [string, Resource][] => [
      [pod, { level: "pod", above: zone }],
      ...Object.entries(clusters).flatMap(([cluster, hosts]): [string, Resource][] => [
        [cluster, { level: "cluster", above: pod }],
        ...hosts.map((host): [string, Resource] => [host, { level: "host", above: cluster }]),
      ]),
    ]),
  ]),
);

interface Said {
  readonly of: string;
  readonly to: string;
}
interface Step {
  readonly dedicate?: string;
  readonly to?: string;
  readonly domain?: string | null;
  readonly release?: string;
  readonly deleteGroup?: string;
  readonly deploy?: string;
  readonly explicit?: string | null;
  readonly at?: string;
}
/** A VM whose account is none of the world's is the system's. */
interface SaidGuest {
  readonly vm: string;
  readonly host: string;
  readonly account: string | null;
}
interface DedicationCase {
  readonly id: string;
  readonly rule: string;
  readonly given: {
    readonly dedications: readonly Said[];
    readonly vms?: readonly SaidGuest[];
    readonly hostType?: Readonly<Record<string, string>>;
    /** Whose group is there though nothing is dedicated to him. */
    readonly emptyGroup?: string;
  };
  readonly when: Step | readonly Step[];
  readonly then: {
    readonly ok: boolean;
    readonly error?: string;
    readonly names?: readonly string[];
    readonly dedications?: readonly Said[];
    readonly released?: readonly string[];
    readonly groups?: Readonly<Record<string, readonly string[]>>;
    readonly hosts?: readonly string[];
  };
}
interface Told {
  dedications: Dedications;
  released: string[];
  hosts: readonly string[] | null;
  error: { readonly kind: string; readonly why: string } | null;
}
const steps = (when: Step | readonly Step[]): readonly Step[] => (Array.isArray(when) ? when : [when as Step]);

function deploy(told: Told, runs: Tree, { deploy: name = "", explicit = null, at = "" }: Step, empty: string): void {
  const [account, group] = [accountPath(name), explicit === null ? null : ownerNamed(explicit)];
  const isThere =
    explicit === empty || [...told.dedications.values()].some((to) => group !== null && isSameOwner(to, group));
  if (group !== null && !(isThere && mayUse(group, account))) {
    told.error = { kind: "invalid", why: `${groupOf(group)} is no group of ${name}` };
    return;
  }
  told.hosts = [...runs].flatMap(([host, { level }]) =>
    level === "host" &&
    [...upFrom(runs, host)].includes(at) &&
    mayStand(ruleOf(runs, told.dedications, host), account, group)
      ? [host]
      : [],
  );
  if (told.hosts.length === 0) told.error = { kind: "capacity", why: "no host may be used" };
}

function run({ given, when }: DedicationCase): Told {
  const runs: Tree = new Map([...tree].filter(([host]) => given.hostType?.[host] === undefined));
  const guests = (given.vms ?? []).flatMap(({ vm, host, account }): Guest[] =>
    account !== null && Object.hasOwn(world.accounts, account) ? [{ vm, host, account: accountPath(account) }] : [],
  );
  const told: Told = {
    dedications: new Map(given.dedications.map(({ of, to }) => [of, ownerNamed(to)])),
    released: [],
    hosts: null,
    error: null,
  };
  for (const step of steps(when)) {
    if (told.error !== null) break;
    if (step.deploy !== undefined) {
      deploy(told, runs, step, given.emptyGroup ?? "");
      continue;
    }
    if (step.to !== undefined && !isKnown(step.to)) {
      told.error = { kind: "invalid", why: `there is no domain or account ${step.to}` };
      break;
    }
    const owner = ownerNamed(step.to ?? "");
    const inOther =
      step.domain !== undefined &&
      owner.kind === "account" &&
      (step.domain === null || !isKnown(step.domain) || owner.path !== `${domainPath(step.domain)}/${step.to}`);
    if (inOther) {
      told.error = { kind: "invalid", why: `${step.to} is no account of the domain` };
      break;
    }
    const grouped = [...told.dedications.values()].find((each) => nameOfGroup(each) === step.deleteGroup);
    const isEmptyGroup =
      step.deleteGroup !== undefined && step.deleteGroup === groupOf(ownerNamed(given.emptyGroup ?? ""));
    if (step.deleteGroup !== undefined && grouped === undefined && !isEmptyGroup) {
      told.error = { kind: "invalid", why: `there is no group ${step.deleteGroup}` };
      break;
    }
    const outcome =
      step.dedicate !== undefined
        ? dedicate(runs, told.dedications, step.dedicate, owner, guests)
        : step.release !== undefined
          ? release(told.dedications, step.release)
          : releaseGroup(told.dedications, grouped ?? owner);
    if (!outcome.ok) told.error = outcome.refused;
    else {
      told.dedications = outcome.dedications;
      if (step.dedicate !== undefined) told.released.push(...outcome.released);
    }
  }
  return told;
}
const nameOfGroup = (owner: Owner): string => groupOf(owner);
const saidOf = (dedications: Dedications): readonly Said[] =>
  [...dedications].map(([of, to]) => ({ of, to: nameOf(to) })).sort((one, other) => (one.of < other.of ? -1 : 1));
function groupsOf(dedications: Dedications): Readonly<Record<string, readonly string[]>> {
  const groups: Record<string, string[]> = {};
  for (const [of, to] of dedications) groups[groupOf(to)] = [...(groups[groupOf(to)] ?? []), of].sort();
  return groups;
}

for (const each of read<readonly DedicationCase[]>("dedicate.json"))
  test(`dedicate ${each.id} (${each.rule})`, () => {
    const { then } = each;
    onlyKnown("given", each.given, ["dedications", "vms", "hostType", "emptyGroup"]);
    for (const step of steps(each.when))
      onlyKnown("when", step, ["dedicate", "to", "domain", "release", "deleteGroup", "deploy", "explicit", "at"]);
    onlyKnown("then", then, ["ok", "error", "names", "dedications", "released", "groups", "hosts"]);
    const told = run(each);
    if (!then.ok) {
      assert.equal(told.error?.kind, then.error, JSON.stringify(told.error));
      for (const name of then.names ?? []) assert.match(told.error?.why ?? "", new RegExp(`\\b${name}\\b`));
      return;
    }
    assert.equal(told.error, null);
    if (then.dedications !== undefined)
      assert.deepEqual(
        saidOf(told.dedications),
        [...then.dedications].sort((one, other) => (one.of < other.of ? -1 : 1)),
      );
    if (then.released !== undefined) assert.deepEqual(told.released.sort(), [...then.released].sort());
    if (then.groups !== undefined) assert.deepEqual(groupsOf(told.dedications), then.groups);
    if (then.hosts !== undefined) assert.deepEqual([...(told.hosts ?? [])].sort(), [...then.hosts].sort());
  });

interface SaidVm {
  readonly account: string;
  readonly mode: string | null;
  readonly secondsAgo?: number;
}
interface ImplicitCase {
  readonly id: string;
  readonly rule: string;
  readonly topology: {
    readonly hosts: Readonly<
      Record<
        string,
        { readonly cluster: number; readonly vms: readonly SaidVm[]; readonly stopped?: readonly SaidVm[] }
      >
    >;
  };
  readonly account: string;
  readonly mode: string | null;
  readonly avoid: readonly string[];
  readonly clusters: readonly number[];
  readonly avoidedAfter?: readonly string[];
}
function modeOf(text: string | null): ImplicitMode | null {
  const mode = implicitModes.find((each) => each === text?.toLowerCase()) ?? null;
  assert.ok(text === null || mode !== null, `the runner knows nothing of the mode ${text}`);
  return mode;
}
/** `placement.lastHostS`. */
const lastHostS = placementSettings.lastHostS.preset;

for (const each of read<readonly ImplicitCase[]>("implicit.json"))
  test(`implicit ${each.id} (${each.rule})`, () => {
    onlyKnown("the case", each, [
      ...["id", "rule", "note", "topology", "account", "mode", "avoid", "clusters", "avoidedAfter"],
    ]);
    const places = new Set(["zone", ...Object.keys(each.topology.hosts)]);
    for (const avoided of each.avoid) assert.ok(places.has(avoided), `the runner knows no place ${avoided} to avoid`);
    // An offering with the planner and without a mode is strict.
    const mode = modeOf(each.mode) ?? "strict";
    const ranked = Object.entries(each.topology.hosts).flatMap(([host, { cluster, vms, stopped = [] }]) => {
      const counted = stopped.filter(({ secondsAgo = 0 }) => secondsAgo < lastHostS);
      const there = [...vms, ...counted].map((vm): Neighbour => ({ account: vm.account, mode: modeOf(vm.mode) }));
      const preference = preferenceOf(standingOf(there, each.account), mode);
      const avoided = each.avoid.includes("zone") || each.avoid.includes(host);
      return avoided || preference === null ? [] : [{ host, cluster, preference }];
    });
    const best = Math.min(...ranked.map(({ preference }) => preference));
    const chosen = ranked.filter(({ preference }) => preference === best);
    assert.deepEqual([...new Set(chosen.map(({ cluster }) => cluster))].sort(), [...each.clusters].sort());
    if (each.avoidedAfter === undefined) return;
    const left = Object.keys(each.topology.hosts).filter((host) => !chosen.some((other) => other.host === host));
    assert.deepEqual(left.sort(), [...each.avoidedAfter].sort());
  });

interface MigrationCase {
  readonly id: string;
  readonly rule: string;
  readonly given: {
    readonly dedications?: readonly Said[];
    readonly vms?: readonly (SaidVm & { readonly host: string })[];
  };
  readonly migrate: SaidVm;
  readonly source: string;
  readonly destination: string;
  readonly alerts: readonly string[];
}
for (const each of read<readonly MigrationCase[]>("migrate.json"))
  test(`migrate ${each.id} (${each.rule})`, () => {
    onlyKnown("given", each.given, ["dedications", "vms"]);
    const dedications: Dedications = new Map((each.given.dedications ?? []).map(({ of, to }) => [of, ownerNamed(to)]));
    const at = (host: string): Crossing["from"] => ({
      rule: ruleOf(tree, dedications, host),
      there: (each.given.vms ?? []).flatMap((vm) =>
        vm.host === host ? [{ account: accountPath(vm.account), mode: modeOf(vm.mode) }] : [],
      ),
    });
    const { account, mode } = each.migrate;
    const crossing = {
      account: accountPath(account),
      mode: modeOf(mode),
      from: at(each.source),
      to: at(each.destination),
    };
    assert.deepEqual(alertsOf(crossing), each.alerts);
  });

test("owners are the same only with their kind", () => {
  assert.equal(isSameOwner(ownerNamed("D1"), { kind: "account", path: "ROOT/D1" }), false);
});
