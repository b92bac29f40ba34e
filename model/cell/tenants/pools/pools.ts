import { type HostRule, mayUse, named } from "../dedication/dedication.ts";
import {
  type By,
  done,
  type Flavors,
  flavorPattern,
  noFlavor,
  type Outcome,
  refusal,
  type WholeHost,
} from "./flavors.ts";

/*
 * Pools of whole hosts: an account takes hosts of a flavour into a pool of its own, under names that it gives them, and says which accounts may
 * have VMs there. What a host is really called stands in this model alone, and in nothing that an owner is answered.
 *
 * A step is taken by whoever keeps all pools, one after the other, so that of two that ask for the last host one gets it: a host is in at
 * most one pool since it is looked for among those that are in none. Rejected: taking at random and looking afterwards who else took it.
 */
export interface PoolHost {
  /** The real one. */
  readonly host: string;
  readonly flavor: string;
  /** Whether new VMs come there; the operator's own switch is another (`WholeHost.state`). */
  readonly enabled: boolean;
}
/** How much of each is promised for what there is. */
export interface PoolRatios {
  readonly cpu?: number;
  readonly memory?: number;
}
export interface SchedulingPolicy {
  /** Absent: as elsewhere. */
  readonly fill?: "spread" | "pack";
  /** Whether groups bind here, whatever they say themselves. Absent: as each says. */
  readonly groups?: "strict" | "preferred";
}
export interface Pool {
  readonly uid: string;
  readonly name: string;
  /** Path of the account that pays for it. */
  readonly owner: string;
  /** Paths of the accounts whose VMs may come there. */
  readonly authorised: readonly string[];
  readonly ratios: PoolRatios;
  readonly policy: SchedulingPolicy;
  /** Names of offerings and images that VMs there must be of; absent: any. */
  readonly offerings?: readonly string[];
  readonly images?: readonly string[];
  /** By the name that its owner gave it. */
  readonly hosts: ReadonlyMap<string, PoolHost>;
}
/** All that is looked at. */
export interface Pooling {
  readonly flavors: Flavors;
  /** By real name. */
  readonly hosts: ReadonlyMap<string, WholeHost>;
  /** Whose hosts are that are somebody's. */
  readonly rules: ReadonlyMap<string, HostRule>;
  /** By UID. */
  readonly pools: ReadonlyMap<string, Pool>;
  /** Units that an account may hold; absent: not limited. */
  readonly limits: ReadonlyMap<string, number>;
}
export const mostRatio = 64;
/** Of one pool. */
export const mostAuthorised = 1000;

const withPool = (pooling: Pooling, pool: Pool): Pooling => ({
  ...pooling,
  pools: new Map(pooling.pools).set(pool.uid, pool),
});
/** Real names of all hosts that are in a pool. */
export const pooledHosts = ({ pools }: Pick<Pooling, "pools">): ReadonlySet<string> =>
  new Set([...pools.values()].flatMap(({ hosts }) => [...hosts.values()].map(({ host }) => host)));
/** What an account holds, in all of its pools. */
export const unitsOf = ({ flavors, pools }: Pick<Pooling, "flavors" | "pools">, account: string): number =>
  [...pools.values()]
    .filter(({ owner }) => owner === account)
    .flatMap(({ hosts }) => [...hosts.values()])
    .reduce((sum, { flavor }) => sum + (flavors.get(flavor)?.units ?? 0), 0);

/** The owner has himself authorised by it, and may take himself out. */
export function createPool(pooling: Pooling, uid: string, name: string, owner: string): Outcome<Pooling> {
  if (!flavorPattern.test(name))
    return refusal("invalid", ["name"], `${JSON.stringify(name)} is no name of a pool`, 'Write a label: "mine".');
  if (pooling.pools.has(uid)) return refusal("runtime", ["uid"], `there is a pool ${uid}`, "Draw another UID.");
  if ([...pooling.pools.values()].some((pool) => pool.owner === owner && pool.name === name))
    return refusal("runtime", ["name"], `there is a pool ${name} already`, "Give it another name.");
  return done(withPool(pooling, { uid, name, owner, authorised: [owner], ratios: {}, policy: {}, hosts: new Map() }));
}

/**
 * The pool, for who may manage it. Of a pool that is another's no more is said than of one that is not there; whoever may have VMs in it knows
 * of it.
 */
function managed({ pools }: Pooling, uid: string, by: By): Outcome<Pool> {
  const pool = pools.get(uid);
  if (pool !== undefined && (by.kind === "administrator" || by.path === pool.owner)) return done(pool);
  if (pool !== undefined && by.kind === "account" && pool.authorised.includes(by.path))
    return refusal(
      "forbidden",
      ["by"],
      `the pool ${pool.name} is managed by its owner alone`,
      "You may have VMs there: ask its owner for anything else.",
    );
  return refusal("invalid", ["pool"], `there is no pool ${uid}`, "Look at the list of yours.");
}
function memberOf(pool: Pool, name: string): Outcome<PoolHost> {
  const host = pool.hosts.get(name);
  if (host !== undefined) return done(host);
  const there = [...pool.hosts.keys()].sort().join(", ");
  return refusal(
    "invalid",
    ["host"],
    `there is no host ${name} in the pool ${pool.name}`,
    there === "" ? "It has none." : `It has ${there}.`,
  );
}

/**
 * Real name of the host that an account gets; null: none of the flavour is to be had.
 * @param pooled real names of those that are in a pool
 */
export function freeHost<Name extends string>(
  { hosts, rules }: { readonly hosts: ReadonlyMap<Name, WholeHost>; readonly rules: ReadonlyMap<Name, HostRule> },
  pooled: ReadonlySet<Name>,
  { account, flavor, zone }: { readonly account: string; readonly flavor: string; readonly zone: string | null },
): Name | null {
  const free = [...hosts].flatMap(([name, host]): readonly Name[] => {
    if (host.flavor !== flavor || host.state !== "enabled" || host.vms.length > 0 || pooled.has(name)) return [];
    const rule = rules.get(name);
    if (rule !== undefined && !mayUse(rule.to, account)) return [];
    return zone === null || host.zone === zone ? [name] : [];
  });
  return free.sort()[0] ?? null;
}

/** What is said is by the flavour alone: how many hosts there are, or whose, is not for whoever asks. */
export function addHost(
  pooling: Pooling,
  uid: string,
  { name, flavor, zone = null }: { readonly name: string; readonly flavor: string; readonly zone?: string | null },
  by: By,
): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  const pool = found.value;
  const [kind, limit] = [pooling.flavors.get(flavor), pooling.limits.get(pool.owner)];
  if (!flavorPattern.test(name))
    return refusal("invalid", ["name"], `${JSON.stringify(name)} is no name of a host`, 'Write a label: "rack-1".');
  if (kind === undefined) return noFlavor(flavor, pooling.flavors);
  if (pool.hosts.has(name))
    return refusal("runtime", ["name"], `the pool ${pool.name} has a host ${name} already`, "Give it another name.");
  const held = unitsOf(pooling, pool.owner);
  if (limit !== undefined && held + kind.units > limit)
    return refusal(
      "quota",
      ["units"],
      `a host of ${flavor} costs ${kind.units} units, and ${held} of ${limit} are held`,
      "Give a host back, or ask for more units.",
    );
  const host = freeHost(pooling, pooledHosts(pooling), { account: pool.owner, flavor, zone });
  if (host === null)
    return refusal(
      "capacity",
      zone === null ? ["flavor"] : ["flavor", "zone"],
      `no host of ${flavor} is free${zone === null ? "" : ` in ${zone}`}`,
      zone === null ? "Ask again later, or for another flavour." : "Ask again later, or for another zone or flavour.",
    );
  const hosts = new Map(pool.hosts).set(name, { host, flavor, enabled: false });
  return done(withPool(pooling, { ...pool, hosts }));
}

/** A host goes back to its flavour once nothing new can come there and nothing is left. */
export function removeHost(pooling: Pooling, uid: string, name: string, by: By): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  const member = memberOf(found.value, name);
  if (!member.ok) return member;
  const { enabled, host } = member.value;
  const vms = pooling.hosts.get(host)?.vms ?? [];
  const [names, is]: [string[], string[]] = [[], []];
  if (enabled) {
    names.push("state", "enabled");
    is.push("is enabled");
  }
  if (vms.length > 0) {
    names.push("vms", ...vms);
    is.push(`has ${namesOf(vms)}`);
  }
  if (names.length > 0)
    return refusal(
      "runtime",
      names,
      `a host leaves a pool only disabled and empty, and ${name} ${is.join(" and ")}`,
      "Disable it, and have those VMs go or end first.",
    );
  const hosts = new Map([...found.value.hosts].filter(([each]) => each !== name));
  return done(withPool(pooling, { ...found.value, hosts }));
}
const namesOf = (vms: readonly string[]): string => `the VM${vms.length === 1 ? "" : "s"} ${named(vms)}`;

export function deletePool(pooling: Pooling, uid: string, by: By): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  const { hosts, name } = found.value;
  if (hosts.size > 0)
    return refusal(
      "runtime",
      ["hosts", ...hosts.keys()],
      `the pool ${name} has hosts: ${[...hosts.keys()].sort().join(", ")}`,
      "Take them out of it first.",
    );
  return done({ ...pooling, pools: new Map([...pooling.pools].filter(([each]) => each !== uid)) });
}

/** Disabled, a host takes nothing new; what runs there goes on. */
export function setEnabled(pooling: Pooling, uid: string, name: string, enabled: boolean, by: By): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  const member = memberOf(found.value, name);
  if (!member.ok) return member;
  const hosts = new Map(found.value.hosts).set(name, { ...member.value, enabled });
  return done(withPool(pooling, { ...found.value, hosts }));
}

/** VMs of an account that is not authorised any more go on, and are not started there again. */
export function setAuthorised(
  pooling: Pooling,
  uid: string,
  account: string,
  isAuthorised: boolean,
  by: By,
): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  const { name, authorised } = found.value;
  if (!isAuthorised && !authorised.includes(account))
    return refusal(
      "invalid",
      ["account"],
      `${account} is not authorised in the pool ${name}`,
      "Nothing is to be done.",
    );
  if (isAuthorised && !authorised.includes(account) && authorised.length >= mostAuthorised)
    return refusal(
      "quota",
      ["authorised"],
      `${mostAuthorised} accounts are authorised in the pool ${name}`,
      "Take one out.",
    );
  const others = authorised.filter((each) => each !== account);
  const kept = authorised.includes(account) ? authorised : [...authorised, account];
  return done(withPool(pooling, { ...found.value, authorised: isAuthorised ? kept : others }));
}

/** They count in this pool alone. */
export function setRatios(pooling: Pooling, uid: string, ratios: PoolRatios, by: By): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  for (const [name, ratio] of [
    ["cpu", ratios.cpu],
    ["memory", ratios.memory],
  ] as const)
    if (ratio !== undefined && !(ratio > 0 && ratio <= mostRatio))
      return refusal("invalid", [name], `a ratio of ${ratio} is none`, `Write more than 0, and ${mostRatio} at most.`);
  return done(withPool(pooling, { ...found.value, ratios: { ...found.value.ratios, ...ratios } }));
}
export function setPolicy(pooling: Pooling, uid: string, policy: SchedulingPolicy, by: By): Outcome<Pooling> {
  const found = managed(pooling, uid, by);
  return found.ok ? done(withPool(pooling, { ...found.value, policy: { ...found.value.policy, ...policy } })) : found;
}

/** What the owner sees of one host of his pool. */
export interface ListedPoolHost {
  readonly name: string;
  readonly flavor: string;
  readonly state: "enabled" | "disabled";
  /** Of all that run there, whosever they are. */
  readonly vms: readonly string[];
}
export function listPool(pooling: Pooling, uid: string, by: By): Outcome<readonly ListedPoolHost[]> {
  const found = managed(pooling, uid, by);
  if (!found.ok) return found;
  const listed = [...found.value.hosts].map(([name, { host, flavor, enabled }]): ListedPoolHost => {
    const vms = pooling.hosts.get(host)?.vms ?? [];
    return { name, flavor, state: enabled ? "enabled" : "disabled", vms };
  });
  return done(listed.sort((one, other) => (one.name < other.name ? -1 : 1)));
}

/** A host as the Placer looks at it. `null`: of no flavour, in no pool. */
export interface PoolRule {
  readonly flavor: string;
  readonly pool: {
    readonly uid: string;
    readonly enabled: boolean;
    readonly authorised: readonly string[];
  } | null;
}
/**
 * May a VM stand there?
 * @param pool UID of the pool that it asks for; null: it asks for none
 * @param account null: nobody knows whose it is
 */
export function mayStandInPool(rule: PoolRule | null, pool: string | null, account: string | null): boolean {
  if (pool === null) return rule === null;
  const there = rule?.pool ?? null;
  return (
    there !== null && there.uid === pool && there.enabled && account !== null && there.authorised.includes(account)
  );
}
