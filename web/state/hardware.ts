import type { InstallationStatus } from "../../model/api.ts";
import {
  type DedicationRefused,
  type Dedications,
  dedicate,
  type Guest,
  type Level,
  type Owner,
  type Resource,
  type Tree,
  upFrom,
} from "../../model/cell/tenants/dedication/dedication.ts";
import { isObject, type Json, type JsonObject } from "../../model/json/json.ts";

/** Zones, pods, clusters and hosts as the root cell's model has them, and whose they are. */
export interface Hardware {
  readonly tree: Tree;
  readonly dedications: Dedications;
  /** Names of the elements `root/dedications/NAME`, by what is dedicated. */
  readonly names: ReadonlyMap<string, string>;
  /** Accounts of cells, by their names. */
  readonly accounts: ReadonlyMap<string, string>;
}
const text = (component: JsonObject, name: string): string | undefined => {
  const value = component[name];
  return typeof value === "string" ? value : undefined;
};
const below = (component: Json | undefined): readonly (readonly [string, JsonObject])[] =>
  isObject(component)
    ? Object.entries(component).flatMap(([name, value]) =>
        isObject(value) && !name.startsWith("$") && !name.startsWith("x.") ? [[name, value] as const] : [],
      )
    : [];

/** @param model of the root cell, as `GET /cells/root/model` has it */
export function hardwareIn(model: Json): Hardware {
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
    const owner: Owner =
      account === undefined ? { kind: "domain", path: to } : { kind: "account", path: `${to}/${account}` };
    dedications.set(of, owner);
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

/** One line for each place: a cluster stands below its pod, a host below its cluster. */
export interface PlaceLine {
  readonly place: string;
  readonly level: Level;
  /** How deep it stands. */
  readonly depth: number;
  readonly owner: Owner | null;
  /** Whose it is for what it stands in; null: for nothing. */
  readonly above: { readonly place: string; readonly owner: Owner } | null;
}
export function linesOf({ tree, dedications }: Hardware): readonly PlaceLine[] {
  const inside = Map.groupBy([...tree], ([, { above }]) => (above !== null && tree.has(above) ? above : null));
  const order = new Intl.Collator("en", { numeric: true });
  const from = (above: string | null, depth: number): readonly PlaceLine[] =>
    [...(inside.get(above) ?? [])]
      .sort(([one], [other]) => order.compare(one, other))
      .flatMap(([place, { level }]) => {
        const upper = [...upFrom(tree, place)].slice(1).find((each) => dedications.has(each));
        const owner = upper === undefined ? undefined : dedications.get(upper);
        const own = {
          place,
          level,
          depth,
          owner: dedications.get(place) ?? null,
          above: upper === undefined || owner === undefined ? null : { place: upper, owner },
        };
        return [own, ...from(place, depth + 1)];
      });
  return from(null, 0);
}

/** VMs of accounts at hosts, as far as hosts say what runs there; those of the management are nobody's. */
export function guestsOf({ accounts }: Hardware, status: InstallationStatus | null): readonly Guest[] {
  return (status?.hosts ?? []).flatMap(({ host, machines = [] }) =>
    machines
      .filter(({ cell }) => cell !== "root")
      .map(({ cell, path }) => ({
        host,
        vm: [cell, ...path.split("/").slice(1)].join("/"),
        account: accounts.get(cell.slice(cell.lastIndexOf(".") + 1)) ?? "ROOT/operator",
      })),
  );
}

/** What would come of it, before anybody says it. */
export type Foreseen =
  | { readonly isAllowed: true; readonly released: readonly string[] }
  | { readonly isAllowed: false; readonly refused: DedicationRefused };
export function foreseen(
  { tree, dedications }: Hardware,
  place: string,
  to: Owner,
  guests: readonly Guest[],
): Foreseen {
  const outcome = dedicate(tree, dedications, place, to, guests);
  return outcome.ok ? { isAllowed: true, released: outcome.released } : { isAllowed: false, refused: outcome.refused };
}

/** The element that says so, and a name for it that no other has. */
export function dedicationElement(
  { names }: Hardware,
  place: string,
  { kind, path }: Owner,
): { readonly name: string; readonly element: JsonObject } {
  const taken = new Set(names.values());
  const wanted = place.replaceAll("/", "-").slice(0, 50);
  let name = wanted;
  for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
  const slash = path.lastIndexOf("/");
  const owner =
    kind === "domain" ? { "x.to": path } : { "x.to": path.slice(0, slash), "x.account": path.slice(slash + 1) };
  return { name, element: { "x.type": "Dedication", "x.of": place, ...owner } };
}
