/*
 * Kinds of whole hosts that can be had (host flavours). A host of a flavour serves nobody until an account has it in a pool; it keeps its
 * flavour there, so that what it costs and where it goes back to is never asked of anybody. Frozen data in, frozen data out: each step answers
 * with what then is so, or why it is not taken.
 *
 * Rejected: a state "allocated" at the host. In whose pool a host is says the pool alone; two facts could differ.
 */

/** Who asks. */
export type By = { readonly kind: "administrator" } | { readonly kind: "account"; readonly path: string };
export const administrator: By = Object.freeze({ kind: "administrator" });

export interface Flavor {
  readonly id: string;
  /** For people: processors, memory, and whatever tells it from others. */
  readonly description: string;
  /** What one host costs of an account's units. */
  readonly units: number;
}
export type Flavors = ReadonlyMap<string, Flavor>;

/** A host of the installation, as far as flavours and pools look at it. */
export interface WholeHost {
  /** The operator's word. */
  readonly state: "enabled" | "disabled" | "maintenance";
  readonly flavor: string | null;
  /** null: in no zone that has a name. */
  readonly zone: string | null;
  /** UIDs of VMs there. */
  readonly vms: readonly string[];
}

/**
 * `forbidden`: it is another's to do; `invalid`: what is asked for is not there, or cannot be; `runtime`: what there is stands against it;
 * `quota`, `capacity`: there is not as much. `names`: fields, or things, that stand in the way.
 */
export interface PoolRefused {
  readonly kind: "forbidden" | "invalid" | "runtime" | "quota" | "capacity";
  readonly why: string;
  readonly hint: string;
  readonly names: readonly string[];
}
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refused: PoolRefused };
export const done = <T>(value: T): Outcome<T> => ({ ok: true, value });
export const refusal = (
  kind: PoolRefused["kind"],
  names: readonly string[],
  why: string,
  hint: string,
): { readonly ok: false; readonly refused: PoolRefused } => ({ ok: false, refused: { kind, why, hint, names } });

/** What a host's units can be: one that costs nothing would be counted nowhere. */
export const mostUnits = 2 ** 20;
export const flavorPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const forOperators = (what: string): ReturnType<typeof refusal> =>
  refusal("forbidden", ["by"], `${what} is the operator's alone`, "Ask who operates the installation.");
const noFlavor = (id: string, flavors: Flavors): ReturnType<typeof refusal> =>
  refusal(
    "invalid",
    ["flavor"],
    `there is no host flavour ${id}`,
    flavors.size === 0 ? "The operator has defined none." : `There are ${[...flavors.keys()].sort().join(", ")}.`,
  );

export function defineFlavor(flavors: Flavors, flavor: Flavor, by: By): Outcome<Flavors> {
  const { id, units } = flavor;
  if (by.kind !== "administrator") return forOperators("which host flavours there are");
  if (!flavorPattern.test(id))
    return refusal("invalid", ["id"], `${JSON.stringify(id)} is no name of a flavour`, 'Write a label: "large".');
  if (!Number.isSafeInteger(units) || units < 1 || units > mostUnits)
    return refusal("invalid", ["units"], `a host of ${id} cannot cost ${units} units`, `Write 1 to ${mostUnits}.`);
  if (flavors.has(id))
    return refusal("runtime", ["id"], `there is a host flavour ${id} already`, "Give it another name, or change that.");
  return done(new Map(flavors).set(id, flavor));
}

/** @param hosts all that there are */
export function removeFlavor(flavors: Flavors, hosts: Iterable<WholeHost>, id: string, by: By): Outcome<Flavors> {
  if (by.kind !== "administrator") return forOperators("which host flavours there are");
  if (!flavors.has(id)) return noFlavor(id, flavors);
  const members = [...hosts].filter(({ flavor }) => flavor === id).length;
  if (members > 0)
    return refusal("runtime", ["hosts"], `hosts are of the flavour ${id}: ${members}`, "Take them out of it first.");
  return done(new Map([...flavors].filter(([each]) => each !== id)));
}

/** A host goes into a flavour disabled and empty, and is enabled by it: from then on only its pool's VMs come there. */
export function enterFlavor(flavors: Flavors, host: WholeHost, id: string, by: By): Outcome<WholeHost> {
  if (by.kind !== "administrator") return forOperators("of which flavour a host is");
  if (!flavors.has(id)) return noFlavor(id, flavors);
  if (host.flavor === id) return done(host);
  if (host.flavor !== null)
    return refusal("runtime", ["flavor"], `the host is of the flavour ${host.flavor}`, "Take it out of that first.");
  const standing = whyNotEmpty(host, "enters");
  return standing ?? done({ ...host, flavor: id, state: "enabled" });
}
const whyNotEmpty = ({ state, vms }: WholeHost, verb: string): ReturnType<typeof refusal> | null => {
  const names = [...(state === "disabled" ? [] : ["state"]), ...(vms.length === 0 ? [] : ["vms"])];
  if (names.length === 0) return null;
  const is = [
    ...(state === "disabled" ? [] : [`is ${state}`]),
    ...(vms.length === 0 ? [] : [`has ${vms.length === 1 ? "a VM" : `${vms.length} VMs`}`]),
  ];
  return refusal(
    "runtime",
    names,
    `a host ${verb} a flavour only disabled and empty, and this one ${is.join(" and ")}`,
    'Drain it and write `x.state "disabled"` first.',
  );
};

/** @param pool in which pool it is; null: in none */
export function leaveFlavor(host: WholeHost, pool: string | null, by: By): Outcome<WholeHost> {
  if (by.kind !== "administrator") return forOperators("of which flavour a host is");
  if (host.flavor === null)
    return refusal("invalid", ["flavor"], "the host is of no flavour", "Nothing is to be taken back.");
  if (pool !== null)
    return refusal(
      "runtime",
      ["pool"],
      `the host is in a pool, and keeps its flavour ${host.flavor} there`,
      "Its owner takes it out of the pool first.",
    );
  if (host.vms.length > 0) return refusal("runtime", ["vms"], `the host has ${host.vms.length} VMs`, "Drain it first.");
  return done({ ...host, flavor: null });
}

/** What of a flavour is seen: by an account how many there are to be had, and never which. */
export interface ListedFlavor extends Flavor {
  /** In no pool, and enabled. */
  readonly free: number;
  /** Names of all of its hosts: the operator's to see. */
  readonly hosts?: readonly string[];
}
export function listFlavors(
  flavors: Flavors,
  hosts: ReadonlyMap<string, WholeHost>,
  pooled: ReadonlySet<string>,
  by: By,
): readonly ListedFlavor[] {
  return [...flavors.values()]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map((flavor) => {
      const members = [...hosts].filter(([, host]) => host.flavor === flavor.id);
      const free = members.filter(([name, { state }]) => state === "enabled" && !pooled.has(name)).length;
      const names = members.map(([name]) => name).sort();
      return { ...flavor, free, ...(by.kind === "administrator" ? { hosts: names } : {}) };
    });
}
