import type { Json } from "../../../model/json/json.ts";
import { cut, type Item, noSlices, toggled } from "../../distribution/views/slices.ts";
import { hostsGroup, type PolicySlice, sliceGroup } from "../../documents/network/network.ts";
import type { PolicyTraits, SliceDigest } from "../../documents/network/policy.ts";
import type { CellPolicy } from "../../documents/vocabulary.ts";
import type { PolicyInterface } from "../network/policy.ts";

/**
 * A cell's policy, cut by identity: what a host needs to judge packets of the identities that live there. A rule is in the
 * slices of both its ends, and with it whatever else of the policy is about its other end: which network that is, which
 * subnet, who takes what goes outside, which groups it is a member of. No host gets rules between identities it does not
 * have, and a changed rule is news for the hosts of its two ends alone.
 */
export interface SlicedPolicy {
  readonly policy: CellPolicy;
  readonly base: number;
  /** By group: slices by their names. One that is as it was is the same object. */
  readonly groups: ReadonlyMap<string, ReadonlyMap<string, PolicySlice>>;
  /** What each group was cut from. */
  readonly contents: Groups["all"];
  readonly head: CellPolicy;
}

/** What is in none of its slices: two that differ in nothing else differ for every host. */
export const headOf = ({ rules, hosts, subnets, routers, traits, ...head }: CellPolicy): CellPolicy => ({
  ...head,
  rules: [],
  networks: head.networks.filter(({ identity }) => identity === head.controller.identity),
  hosts: [],
});

/** Entries of a policy that goes to hosts as one document, some 16 KB. */
export const mostInDocument = 100;
/** So many entries a policy has in its lists. */
export const entriesOf = ({ rules, networks, hosts, subnets, routers, traits }: CellPolicy): number =>
  [rules, networks, hosts, subnets, routers, traits].reduce((sum, list) => sum + (list?.length ?? 0), 0);

type Field = Exclude<keyof PolicySlice, "digest">;
interface Entry {
  readonly field: Field;
  readonly value: Json;
}

/** Asked for where an interface has traits alone. */
type Interfaces = () => Iterable<PolicyInterface>;

/** What is in a group, in the order in which it came. Two that hold the same objects are cut into the same slices. */
class Group {
  readonly fields: Field[] = [];
  readonly keys: (number | string)[] = [];
  readonly values: (object | string)[] = [];
  readonly #known = new Set<number | string>();

  add(field: Field, key: number | string, value: object | string): void {
    // Rules are many: their numbers need no text.
    const name = field === "rules" ? Number(key) : `${field} ${key}`;
    if (this.#known.has(name)) return;
    this.#known.add(name);
    this.fields.push(field);
    this.keys.push(key);
    this.values.push(value);
  }
  /** What a value is called here, and where it belongs, the value says itself. */
  isAs({ values }: Group): boolean {
    if (values.length !== this.values.length) return false;
    for (let at = 0; at < values.length; at += 1) if (values[at] !== this.values[at]) return false;
    return true;
  }
  items(textOf: (value: object | string) => string): readonly Item<Entry>[] {
    return this.values.map((value, at) => {
      const [field, key] = [this.fields[at] as Field, `${this.fields[at]} ${this.keys[at]}`];
      return { key, value: { field, value: value as unknown as Json }, text: textOf(value) };
    });
  }
}

class Groups {
  readonly all = new Map<string, Group>();
  readonly #names = new Map<number | typeof hostsGroup, Group>();
  readonly #base: number;

  constructor(base: number) {
    this.#base = base;
  }
  add(of: number | typeof hostsGroup, field: Field, key: number | string, value: object | string): void {
    this.of(of).add(field, key, value);
  }
  of(of: number | typeof hostsGroup): Group {
    const known = this.#names.get(of);
    if (known !== undefined) return known;
    const group = new Group();
    this.#names.set(of, group);
    this.all.set(sliceGroup(this.#base, of), group);
    return group;
  }
}

function groupsOf(policy: CellPolicy, interfaces: Interfaces, base: number): Groups["all"] {
  const groups = new Groups(base);
  const { networks, hosts, subnets = [], routers = [], traits = [], rules, controller } = policy;
  for (const host of hosts) groups.add(hostsGroup, "hosts", host, host);
  // Nobody lives at a network, or as the controller: what is about these is in the slices of the other end.
  const networkOf = Map.groupBy(networks, ({ identity }) => identity);
  const isPlace = (identity: number): boolean => identity === controller.identity || networkOf.has(identity);
  const subnetOf = new Map(subnets.map((subnet) => [subnet.identity, subnet]));
  const traitsOf = traitsByIdentity(traits, interfaces);
  const told = new Map<number, Set<number>>();
  const about = (identity: number, of: number): void => {
    const known = told.get(of) ?? new Set<number>();
    told.set(of, known);
    if (known.has(identity)) return;
    known.add(identity);
    for (const network of networkOf.get(identity) ?? []) groups.add(of, "networks", network.cidr, network);
    const subnet = subnetOf.get(identity);
    if (subnet !== undefined) groups.add(of, "subnets", identity, subnet);
    for (const each of traitsOf.get(identity) ?? []) groups.add(of, "traits", each.identity, each);
  };
  for (const subnet of subnets) groups.add(subnet.identity, "subnets", subnet.identity, subnet);
  for (const each of traits) groups.add(each.identity, "traits", each.identity, each);
  for (const router of routers)
    for (const [one, other] of [
      [router.subnet, router.identity],
      [router.identity, router.subnet],
    ] as const) {
      groups.add(one, "routers", router.subnet, router);
      about(other, one);
    }
  for (const rule of rules)
    for (const [one, other] of [
      [rule.from, rule.to],
      [rule.to, rule.from],
    ] as const) {
      if (isPlace(one)) continue;
      groups.add(one, "rules", rule.id, rule);
      about(other, one);
    }
  return groups.all;
}

/** A rule that speaks of an interface's VM or subnet speaks of it. */
function traitsByIdentity(
  traits: readonly PolicyTraits[],
  interfaces: Interfaces,
): ReadonlyMap<number, readonly PolicyTraits[]> {
  if (traits.length === 0) return new Map();
  const of = new Map(traits.map((each) => [each.identity, each]));
  const found = new Map<number, PolicyTraits[]>();
  for (const { identity, vmIdentity, subnetIdentity } of interfaces()) {
    const own = of.get(identity);
    if (own === undefined) continue;
    for (const each of [identity, vmIdentity, subnetIdentity]) {
      const known = found.get(each) ?? [];
      known.push(own);
      found.set(each, known);
    }
  }
  return found;
}

/** That a host came, or went, is about no identity. */
function contentsOf(
  policy: CellPolicy,
  interfaces: Interfaces,
  base: number,
  before: SlicedPolicy | null,
): Groups["all"] {
  const isForHostsAlone =
    before !== null &&
    before.base === base &&
    policy.traits === undefined &&
    before.policy.traits === undefined &&
    before.policy.controller.identity === policy.controller.identity &&
    (["rules", "networks", "subnets", "routers"] as const).every((field) => before.policy[field] === policy[field]);
  if (!isForHostsAlone) return groupsOf(policy, interfaces, base);
  const { hosts } = policy;
  const group = new Group();
  for (const host of hosts) group.add("hosts", host, host);
  const contents = new Map(before.contents);
  if (hosts.length > 0) contents.set(sliceGroup(base, hostsGroup), group);
  else contents.delete(sliceGroup(base, hostsGroup));
  return contents;
}

/** @param before what was cut last: of a group that holds the same objects as then, nothing is done again */
export function slicePolicy(
  policy: CellPolicy,
  interfaces: Interfaces,
  base: number,
  before: SlicedPolicy | null,
): SlicedPolicy {
  const groups = new Map<string, ReadonlyMap<string, PolicySlice>>();
  const contents = contentsOf(policy, interfaces, base, before);
  const texts = new Map<object, string>();
  // Most are in two groups.
  const textOf = (value: object | string): string => {
    if (typeof value === "string") return value;
    const known = texts.get(value) ?? JSON.stringify(value);
    texts.set(value, known);
    return known;
  };
  for (const [group, content] of contents) {
    const known = before?.groups.get(group);
    if (known !== undefined && before?.contents.get(group)?.isAs(content) === true) {
      groups.set(group, known);
      continue;
    }
    const slices = cut(group, content.items(textOf)).map(({ name, digest, values }): [string, PolicySlice] => {
      const same = known?.get(name);
      return [name, same !== undefined && isSame(same.digest, digest) ? same : sliceOf(digest, values)];
    });
    groups.set(group, new Map(slices));
  }
  return { policy, base, groups, contents, head: headOf(policy) };
}
const isSame = (one: SliceDigest, other: SliceDigest): boolean => one[0] === other[0] && one[1] === other[1];

function sliceOf(digest: SliceDigest, entries: readonly Entry[]): PolicySlice {
  const lists = [...Map.groupBy(entries, ({ field }) => field)].map(([field, all]): [Field, Json] => [
    field,
    all.map(({ value }) => value),
  ]);
  return { digest, ...Object.fromEntries(lists) };
}

export interface HostPolicy {
  /** Its version is that of the policy. */
  readonly manifest: CellPolicy;
  readonly slices: ReadonlyMap<string, PolicySlice>;
}

/** What a host with these identities is told. */
export function policyAt({ head, base, groups }: SlicedPolicy, identities: ReadonlySet<number>): HostPolicy {
  const slices = new Map<string, PolicySlice>();
  let digest = noSlices;
  for (const of of [...identities, hostsGroup as typeof hostsGroup])
    for (const [name, slice] of groups.get(sliceGroup(base, of)) ?? []) {
      slices.set(name, slice);
      digest = toggled(digest, slice.digest);
    }
  const manifest: CellPolicy = {
    ...head,
    identities: [...identities].sort((one, other) => one - other),
    slices: { count: slices.size, digest, base },
  };
  return { manifest, slices };
}

/** The key of a slice at a host. */
export const sliceKey = (cell: string, name: string): string => `slice/${cell}/${name}`;
