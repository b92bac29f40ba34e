import type { Openness } from "../cell/cell.ts";
import type { AttributeValues } from "../cell/elements.ts";

/**
 * What is open without a rule. A cell's own word counts up to what its parent lets it have (`x.defaults`), and a cell that
 * says nothing takes that; the root cell's `x.defaults` are the installation's. A cell may always be stricter. Where a parent
 * has no word of its own, its parent's holds; where nobody has, a cell may say what it likes, since it could write the same
 * as rules.
 */
export type Effective = Required<Openness>;
type Name = keyof Openness;
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
  return Object.freeze(Object.fromEntries(said) as Openness);
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

/** What child cells may have: the cell's own word for them, and never more than it may have itself. */
export function boundOfChildren(defaults: Openness, bound: Openness): Openness {
  const both = opennessNames.flatMap((name): [Name, unknown][] => {
    const [said, most] = [defaults[name], bound[name]];
    const value = said === undefined || isLooser(name, said, most) ? (most ?? said) : said;
    return value === undefined ? [] : [[name, value]];
  });
  return Object.freeze(Object.fromEntries(both) as Openness);
}
