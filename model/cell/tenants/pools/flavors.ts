import { closestName } from "../../../diagnostics/closest-name.ts";
import { named } from "../dedication/dedication.ts";

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
/** Of which flavours there are no more than their names is looked at. */
type Names = Pick<ReadonlySet<string>, "has" | "size" | "keys">;
/** For whoever asks for one that is not there. */
export function noFlavor(id: string, flavors: Names): ReturnType<typeof refusal> {
  const all = [...flavors.keys()].sort();
  const close = closestName(id, all);
  const hint = all.length === 0 ? "The operator has defined none." : `There are ${all.join(", ")}.`;
  return refusal(
    "invalid",
    ["flavor"],
    `there is no host flavour ${JSON.stringify(id.slice(0, 200))}`,
    `${close === undefined ? "" : `Did you mean \`${close}\`? `}${hint}`,
  );
}

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
export function enterFlavor(flavors: Names, host: NamedHost, id: string, by: By): Outcome<WholeHost> {
  if (by.kind !== "administrator") return forOperators("of which flavour a host is");
  const { name = "the host", ...rest } = host;
  if (!flavors.has(id)) return noFlavor(id, flavors);
  if (host.flavor === id) return done(rest);
  if (host.flavor !== null)
    return refusal(
      "runtime",
      ["flavor"],
      `${name} is of the flavour ${host.flavor}`,
      "Take it out of that first: leave `x.flavor` out.",
    );
  return whyNotEmpty(name, host) ?? done({ ...rest, flavor: id, state: "enabled" });
}
/** For what is said about it, its name; absent: none is said. */
type NamedHost = WholeHost & { readonly name?: string };
function whyNotEmpty(name: string, { state, vms }: WholeHost): ReturnType<typeof refusal> | null {
  if (state !== "disabled")
    return refusal(
      "runtime",
      vms.length === 0 ? ["state"] : ["state", "vms"],
      `${name} is ${state}${vms.length === 0 ? "" : `, has the VMs ${named(vms)}`}, and goes into a flavour only disabled and empty`,
      'Drain it first, and write `x.state "disabled"`.',
    );
  return vms.length === 0 ? null : hasVms(name, vms);
}
const hasVms = (name: string, vms: readonly string[]): ReturnType<typeof refusal> =>
  refusal(
    "runtime",
    ["vms"],
    `VMs run at ${name}: ${named(vms)}`,
    "Let them go elsewhere first, with `cells host drain`.",
  );

/** @param pool in which pool it is; null: in none */
export function leaveFlavor(host: NamedHost, pool: string | null, by: By): Outcome<WholeHost> {
  if (by.kind !== "administrator") return forOperators("of which flavour a host is");
  const { name = "the host", ...rest } = host;
  if (host.flavor === null)
    return refusal("invalid", ["flavor"], `${name} is of no flavour`, "Nothing is to be taken back.");
  if (pool !== null)
    return refusal(
      "runtime",
      ["pool"],
      `${name} is in a pool, and keeps its flavour ${host.flavor} there`,
      "Let its owner take it out of the pool first.",
    );
  return host.vms.length > 0 ? hasVms(name, host.vms) : done({ ...rest, flavor: null });
}

/** The one or the other, as the host is written: of this flavour, or of none. */
export function changeFlavor(
  flavors: Names,
  host: NamedHost,
  pool: string | null,
  to: string | null,
): Outcome<WholeHost> {
  // One that it has already is looked for as well: a flavour goes only once no host is of it.
  if (to !== null && !flavors.has(to)) return noFlavor(to, flavors);
  if (to === host.flavor) return done(host);
  return to === null || pool !== null
    ? leaveFlavor(host, pool, administrator)
    : enterFlavor(flavors, host, to, administrator);
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
