import type { Openness } from "../cell/cell.ts";
import type { AttributeValues } from "../cell/elements.ts";
import { type Ipv4, ipv4 } from "../cell/identifiers.ts";

/**
 * What is open without a rule. A cell's own word counts up to what its parent lets it have (`x.defaults`), and a cell that
 * says nothing takes that; the root cell's `x.defaults` are the installation's. A cell may always be stricter. Where a parent
 * has no word of its own, its parent's holds; where nobody has, a cell may say what it likes, since it could write the same
 * as rules.
 */
export type Effective = Required<Omit<Openness, "resolvers">>;
type Name = keyof Effective;
/** Values of each, from closed to open, and what holds where nobody says anything. */
const scales = {
  subnetConnectivity: { values: [false, true], otherwise: false },
  internet: { values: ["none", "out"], otherwise: "none" },
  broadcast: { values: ["off", "on"], otherwise: "on" },
} as const satisfies { readonly [name in Name]: { readonly values: readonly unknown[]; readonly otherwise: unknown } };
export const opennessNames = Object.keys(scales) as readonly Name[];

const rank = (name: Name, value: Openness[Name]): number => (scales[name].values as readonly unknown[]).indexOf(value);

/** `x.policy` or `x.defaults`, without what is not said. */
export function opennessOf(values: AttributeValues, prefix: "x.policy" | "x.defaults"): Openness {
  const said = opennessNames.flatMap((name): [Name, unknown][] => {
    const value = values.flag(`${prefix}.${name}`) ?? values.text(`${prefix}.${name}`);
    return value === undefined ? [] : [[name, value]];
  });
  const resolvers = values.texts(`${prefix}.resolvers`)?.map(ipv4);
  return Object.freeze({
    ...(Object.fromEntries(said) as Openness),
    ...(resolvers === undefined ? {} : { resolvers }),
  });
}

/** @param bound what the parent lets it have; empty: no word of anybody's. */
export function effectiveOpenness(own: Openness, bound: Openness): Effective {
  const pick = <N extends Name>(name: N): Effective[N] => {
    const [said, most] = [own[name], bound[name]];
    const value = isLooser(name, said, most) ? most : (said ?? most ?? scales[name].otherwise);
    return value as Effective[N];
  };
  return {
    subnetConnectivity: pick("subnetConnectivity"),
    internet: pick("internet"),
    broadcast: pick("broadcast"),
  };
}

/** Does a cell ask for more than it may have? */
export const isLooser = (name: Name, said: Openness[Name], most: Openness[Name]): boolean =>
  said !== undefined && most !== undefined && rank(name, said) > rank(name, most);

/** Of the resolvers that a cell may ask, those that it wants; who may ask nobody gets none by naming one. */
export const effectiveResolvers = (own: Openness, bound: Openness): readonly Ipv4[] =>
  (bound.resolvers ?? []).filter((each) => own.resolvers?.includes(each) !== false);

/**
 * What child cells may have: the cell's own word for them, and never more than it may have itself.
 * @param bound null: it is the root cell, which nobody bounds, and which alone declares resolvers
 */
export function boundOfChildren(defaults: Openness, bound: Openness | null): Openness {
  const both = opennessNames.flatMap((name): [Name, unknown][] => {
    const [said, most] = [defaults[name], bound?.[name]];
    const value = said === undefined || isLooser(name, said, most) ? (most ?? said) : said;
    return value === undefined ? [] : [[name, value]];
  });
  const resolvers = bound === null ? (defaults.resolvers ?? []) : effectiveResolvers(defaults, bound);
  const more = resolvers.length === 0 ? {} : { resolvers: Object.freeze([...resolvers]) };
  return Object.freeze({ ...(Object.fromEntries(both) as Openness), ...more });
}
