import { isObject, type Json, type JsonObject } from "../../../json/json.ts";
import { type Dedications, namesOf, type Owner, ownerIn, type Resource, type Tree } from "./dedication.ts";

/** What the document of the root cell says of places and owners, and of which accounts its cells are: for whoever reads it over the interface. */
export interface Written {
  readonly tree: Tree;
  readonly dedications: Dedications;
  /** Names of the elements of `root/dedications`, by resource. */
  readonly names: ReadonlyMap<string, string>;
  /** Accounts of cells, by name. */
  readonly accounts: ReadonlyMap<string, string>;
}
const text = (component: JsonObject, name: string): string | undefined => {
  const value = component[name];
  return typeof value === "string" ? value : undefined;
};
const below = (component: Json | undefined): readonly (readonly [string, JsonObject])[] =>
  isObject(component)
    ? Object.entries(component).flatMap(([name, value]) =>
        isObject(value) && name !== "$state" && !name.startsWith("x.") ? [[name, value] as const] : [],
      )
    : [];

/** @param model of the cell `root`, with or without states */
export function writtenIn(model: Json): Written {
  const cell = isObject(model) && isObject(model.root) ? model.root : {};
  const tree = new Map<string, Resource>();
  for (const [zone, pods] of below(cell.places)) {
    tree.set(zone, { level: "zone", above: null });
    for (const [pod, clusters] of below(pods)) {
      tree.set(`${zone}/${pod}`, { level: "pod", above: zone });
      for (const [cluster] of below(clusters))
        tree.set(`${zone}/${pod}/${cluster}`, { level: "cluster", above: `${zone}/${pod}` });
    }
  }
  for (const [host, written] of below(cell.hosts))
    tree.set(host, { level: "host", above: text(written, "x.cluster") ?? null });
  const [dedications, names] = [new Map<string, Owner>(), new Map<string, string>()];
  for (const [name, written] of below(cell.dedications)) {
    const [of, to, account] = [text(written, "x.of"), text(written, "x.to"), text(written, "x.account")];
    if (of === undefined || to === undefined) continue;
    dedications.set(of, ownerIn(to, account));
    names.set(of, name);
  }
  return { tree, dedications, names, accounts: accountsIn(cell) };
}
function accountsIn(component: JsonObject): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of below(component)) {
    const account = text(value, "x.account");
    if (value["x.type"] === "CellController" && account !== undefined)
      found.set(text(value, "x.name") ?? name, account);
    else for (const each of accountsIn(value)) found.set(...each);
  }
  return found;
}

/** Whose a cell's machines are; those of a child cell are the account's of the outermost, which stands last in its name. */
export const accountOf = ({ accounts }: Pick<Written, "accounts">, cell: string): string =>
  accounts.get(cell.slice(cell.lastIndexOf(".") + 1)) ?? "ROOT/operator";

/** A label that no other dedication has. */
export function freeName(of: string, { names }: Pick<Written, "names">): string {
  const [taken, wanted] = [new Set(names.values()), of.replaceAll("/", "-").slice(0, 50)];
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    if (!taken.has(name)) return name;
  }
}
/** The element that gives a resource to an owner. */
export function dedicationElement(of: string, to: Owner): JsonObject {
  const { domain, account } = namesOf(to);
  const inside: JsonObject = account === undefined ? {} : { "x.account": account };
  return { "x.type": "Dedication", "x.of": of, "x.to": domain, ...inside };
}
