/*
 * Whose a zone, a pod, a cluster or a host is. The root administrator dedicates one to a domain or to an account; who is not within that owner
 * has nothing to seek there. The innermost dedication rules a host, so of all that is said about a tree one rule is left for each host, and
 * that is what whoever places VMs keeps.
 *
 * Frozen data in, frozen data out: `dedicate` and `release` are steps, `faultOf` says what is not lawful in a tree that was written as a whole.
 * What may be is the same for both: below an account's resource nothing is dedicated, below a domain's only to that domain and what is in it.
 *
 * Owners are paths of `tenancy`, so that who is inside of whom needs no table: "ROOT/acme" has in it what begins with "ROOT/acme/". A
 * domain and an account never have the same path.
 */
export const levels = ["zone", "pod", "cluster", "host"] as const;
export type Level = (typeof levels)[number];

export interface Owner {
  readonly kind: "domain" | "account";
  /** From the root of all domains: "ROOT/acme", "ROOT/acme/dev". */
  readonly path: string;
}
/** As a dedication names its owner: a domain, or an account in it. */
export const ownerIn = (domain: string, account: string | undefined): Owner =>
  account === undefined ? { kind: "domain", path: domain } : { kind: "account", path: `${domain}/${account}` };
/** The other way about. */
export function namesOf({ kind, path }: Owner): { readonly domain: string; readonly account?: string } {
  if (kind === "domain") return { domain: path };
  const slash = path.lastIndexOf("/");
  return { domain: path.slice(0, slash), account: path.slice(slash + 1) };
}
/** Owners that every installation has. */
export const alwaysThere: readonly Owner[] = [ownerIn("ROOT", undefined), ownerIn("ROOT", "operator")];

/** A zone, pod, cluster or host, by whatever names each once. */
export interface Resource {
  readonly level: Level;
  /** What it stands in; null: nothing that has a name. */
  readonly above: string | null;
}
export type Tree = ReadonlyMap<string, Resource>;
/** By resource. */
export type Dedications = ReadonlyMap<string, Owner>;
/** The innermost dedication of a host. */
export interface HostRule {
  readonly of: string;
  readonly level: Level;
  readonly to: Owner;
}
/** A VM that is at a host, or is about to be; without those of the system. */
export interface Guest {
  readonly vm: string;
  readonly host: string;
  /** Path of its account. */
  readonly account: string;
}

/** `invalid`: what is asked for is not there; `runtime`: it is, and what there is stands against it. */
export interface DedicationRefused {
  readonly kind: "invalid" | "runtime";
  readonly why: string;
  readonly hint: string;
}
export type DedicationOutcome =
  | { readonly ok: true; readonly dedications: Dedications; readonly released: readonly string[] }
  | { readonly ok: false; readonly refused: DedicationRefused };

export const isSameOwner = (one: Owner, other: Owner): boolean => one.kind === other.kind && one.path === other.path;
/** May an account use what is dedicated to the owner? Its own, and what is a domain's above it. */
export const mayUse = ({ kind, path }: Owner, account: string): boolean =>
  kind === "account" ? account === path : account.startsWith(`${path}/`);
/** The same owner, or one inside of the domain. */
const isWithin = (inner: Owner, outer: Owner): boolean =>
  isSameOwner(inner, outer) || (outer.kind === "domain" && inner.path.startsWith(`${outer.path}/`));
export const ownerText = ({ kind, path }: Owner): string => `the ${kind} ${path}`;

/** From a resource up, itself first. */
export function* upFrom(tree: Tree, resource: string): Generator<string> {
  for (let at: string | null = resource; at !== null; at = tree.get(at)?.above ?? null) yield at;
}
const isBelow = (tree: Tree, resource: string, upper: string): boolean => {
  for (const at of upFrom(tree, resource)) if (at === upper) return at !== resource;
  return false;
};

/** What holds for a host; null: it is everybody's. */
export function ruleOf(tree: Tree, dedications: Dedications, host: string): HostRule | null {
  for (const of of upFrom(tree, host)) {
    const [to, resource] = [dedications.get(of), tree.get(of)];
    if (to !== undefined && resource !== undefined) return { of, level: resource.level, to };
  }
  return null;
}

const refused = (kind: DedicationRefused["kind"], why: string, hint: string): DedicationOutcome => ({
  ok: false,
  refused: { kind, why, hint },
});
/** So many are named in a refusal. */
const mostNamed = 10;
export const named = (all: readonly string[]): string =>
  all.length > mostNamed ? `${all.slice(0, mostNamed).join(", ")} and ${all.length - mostNamed} more` : all.join(", ");

/** Why a resource must not be this owner's for what it stands in; null: it may. */
function whyNotBelow(tree: Tree, dedications: Dedications, of: string, to: Owner): DedicationRefused | null {
  for (const upper of upFrom(tree, tree.get(of)?.above ?? "")) {
    const owner = dedications.get(upper);
    if (owner === undefined) continue;
    const what = `${of} stands in ${upper}, which is dedicated to ${ownerText(owner)}`;
    if (owner.kind === "account")
      return {
        kind: "runtime",
        why: `${what}: what is an account's is not dedicated again`,
        hint: `Release ${upper} first.`,
      };
    if (!isWithin(to, owner))
      return {
        kind: "runtime",
        why: `${what}, and ${to.path} is not in that domain`,
        hint: `Name ${owner.path}, a domain below it or an account of these, or release ${upper} first.`,
      };
  }
  return null;
}

/** What is not lawful about one of several dedications, wherever each came from; null: nothing. */
export function faultOf(tree: Tree, dedications: Dedications, of: string): DedicationRefused | null {
  const to = dedications.get(of);
  return to === undefined ? null : whyNotBelow(tree, dedications, of, to);
}

/**
 * Gives a resource to an owner. What the very same owner has below goes into it; what another has below stays only within a domain's.
 * @param guests VMs of accounts at hosts, at least those below the resource
 */
export function dedicate(
  tree: Tree,
  dedications: Dedications,
  of: string,
  to: Owner,
  guests: Iterable<Guest> = [],
): DedicationOutcome {
  if (!tree.has(of))
    return refused(
      "invalid",
      `there is no zone, pod, cluster or host ${of} for VMs`,
      "Name a host, or a zone, pod or cluster by its names from the zone down: z1/p1/c1.",
    );
  const before = dedications.get(of);
  if (before !== undefined)
    return refused("runtime", `${of} is dedicated to ${ownerText(before)} already`, `Release ${of} first.`);
  const above = whyNotBelow(tree, dedications, of, to);
  if (above !== null) return { ok: false, refused: above };
  const released: string[] = [];
  for (const [lower, owner] of dedications) {
    if (!isBelow(tree, lower, of)) continue;
    if (isSameOwner(owner, to)) released.push(lower);
    else if (to.kind === "account" || !isWithin(owner, to))
      return refused(
        "runtime",
        `${lower} in ${of} is dedicated to ${ownerText(owner)}${to.kind === "account" ? "" : `, which is not in ${to.path}`}`,
        `Release ${lower} first.`,
      );
  }
  const gone = new Set(released);
  const after = new Map([...dedications].filter(([each]) => !gone.has(each))).set(of, to);
  const strangers = [...guests].filter(({ host, account }) => {
    const rule = host === of || isBelow(tree, host, of) ? ruleOf(tree, after, host) : null;
    return rule?.of === of && !mayUse(to, account);
  });
  if (strangers.length > 0) {
    const vms = named(strangers.map(({ vm, host }) => `${vm} at ${host}`));
    return refused(
      "runtime",
      `VMs of others run in ${of}: ${vms}`,
      "Let them go elsewhere first, with `cells host drain` or `cells move`.",
    );
  }
  return { ok: true, dedications: after, released };
}

/** Takes back what was given; VMs that run stay. */
export function release(dedications: Dedications, of: string): DedicationOutcome {
  if (!dedications.has(of))
    return refused(
      "invalid",
      `${of} is dedicated to nobody`,
      "`cells dedications` lists what is dedicated, and to whom.",
    );
  return { ok: true, dedications: new Map([...dedications].filter(([each]) => each !== of)), released: [of] };
}

/**
 * Each owner has one group of type `ExplicitDedication`, which is there as long as something is dedicated to him. A VM asks for hosts that are
 * his by naming it.
 */
export const groupOf = ({ kind, path }: Owner): string =>
  `DedicatedGrp-${kind === "domain" ? "domain-" : ""}${path.slice(path.lastIndexOf("/") + 1)}`;
/** With its last dedication a group goes, and with a group all of its dedications. */
export const releaseGroup = (dedications: Dedications, owner: Owner): DedicationOutcome => {
  const released = [...dedications].filter(([, to]) => isSameOwner(to, owner)).map(([of]) => of);
  const gone = new Set(released);
  return { ok: true, dedications: new Map([...dedications].filter(([of]) => !gone.has(of))), released };
};

/** Whose group an account means by a name: its own, or that of the nearest domain above it; null: no such group can be its. */
export function ownerOfGroup(name: string, account: string): Owner | null {
  const own: Owner = { kind: "account", path: account };
  if (groupOf(own) === name) return own;
  for (let at = account.lastIndexOf("/"); at > 0; at = account.lastIndexOf("/", at - 1)) {
    const domain: Owner = { kind: "domain", path: account.slice(0, at) };
    if (groupOf(domain) === name) return domain;
  }
  return null;
}

/**
 * May a VM of the account stand at a host with this rule?
 * @param account null: of nobody who is known, so of nobody to whom anything is dedicated
 * @param group whose `ExplicitDedication` group it is in; null: in none
 */
export function mayStand(rule: HostRule | null, account: string | null, group: Owner | null): boolean {
  if (group !== null) return rule !== null && account !== null && isSameOwner(rule.to, group) && mayUse(group, account);
  return rule === null || (rule.level === "zone" && account !== null && mayUse(rule.to, account));
}
