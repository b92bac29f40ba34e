import { type HostName, peerName } from "../../../model/cell/identifiers.ts";
import type { PlacedTerms } from "../../documents/pools.ts";
import {
  type Asker,
  cpusFor,
  type HostView,
  memoryFor,
  noUse,
  type Ratios,
  ratiosAt,
  takenMiB,
  type UsageTable,
} from "../candidate.ts";
import type { HostTable } from "../tables.ts";
import { keyOf, type Occupancy, occupancyOf } from "./occupancy.ts";
import { Ordered, orderOf } from "./ordered.ts";

/*
 * Which host a VM gets, by looking at few. Hosts that no filter and no rank tells apart but by their room form a class, in which they stand by
 * free memory; which classes a request may have, and how good each is, is worked out once for its shape. The few hosts of which the
 * request itself says something (where others of its groups are, where it ran, which it would rather avoid) are judged one by one
 * as `place` judges all of them, and the best of both is the same host: a property holds the two together.
 *
 * Classes are never taken away, so that a shape has to look only at those that came since; when there are far more than hosts, all begins
 * anew. Rejected: a heap for each class, in which a host whose room has changed would have to be looked for.
 */
export interface HostEntry {
  readonly view: HostView;
  readonly host: HostName;
  readonly freeMiB: number;
  readonly order: number;
  readonly freeCpus: number;
  readonly class: HostClass;
}
export interface HostClass {
  /** One of its hosts as it was when the class was made, for filters that look at nothing in which those of a class differ. */
  readonly like: HostView & { readonly actual: NonNullable<HostView["actual"]> };
  readonly occupancy: Occupancy;
  readonly machineMiB: number;
  readonly hosts: Ordered<HostEntry>;
}
/** A class that a kind of request may have, and its rank. */
export interface Open {
  readonly class: HostClass;
  readonly isOthers: number;
  readonly asked: number;
  readonly held: number;
}
interface Shape {
  /** So many classes were looked at. */
  seen: number;
  readonly open: Open[];
}
export interface PlacerIndex {
  entries: Map<HostName, HostEntry>;
  classes: HostClass[];
  byKey: Map<string, HostClass>;
  shapes: Map<string, Shape>;
  /** Of each host its place among all by name. */
  ranks: ReadonlyMap<HostName, number>;
  /** By their text. */
  terms: Map<string, PlacedTerms>;
  /** Whose cells are has changed. */
  isStale: boolean;
}
export const createIndex = (ranks: PlacerIndex["ranks"] = new Map()): PlacerIndex => ({
  entries: new Map(),
  classes: [],
  byKey: new Map(),
  shapes: new Map(),
  ranks,
  terms: new Map(),
  isStale: false,
});
const spareClasses = 1024;

export interface Indexed {
  readonly index: PlacerIndex;
  readonly hosts: HostTable;
  readonly usage: UsageTable;
  readonly ratios: Ratios;
}

/** Takes in what has changed since the last decision. */
export function refresh(indexed: Indexed, accountOf: Asker["accountOf"]): void {
  const { index, hosts, usage } = indexed;
  const isNew = (host: HostName): boolean => !index.ranks.has(host);
  const isMore = hosts.changed.size > 0 && [...hosts.changed].some(isNew);
  if (isMore || index.isStale || index.classes.length > 2 * hosts.size + spareClasses) {
    const all = [...hosts.values()].map(({ host }) => host);
    Object.assign(index, createIndex(all.some(isNew) ? ranksOf(all) : index.ranks));
    for (const host of all) hosts.changed.add(host);
  }
  for (const changed of [hosts.changed, usage.changed]) {
    for (const host of changed) enter(indexed, host, accountOf);
    changed.clear();
  }
}

/** Of all that a class may ever have: a host that is in none of these has all begin anew. */
export const ranksOf = (hosts: readonly HostName[]): PlacerIndex["ranks"] =>
  new Map(hosts.toSorted().map((host, rank) => [host, rank]));

function enter({ index, hosts, usage, ratios }: Indexed, host: HostName, accountOf: Asker["accountOf"]): void {
  const before = index.entries.get(host);
  if (before !== undefined) {
    before.class.hosts.remove(before);
    index.entries.delete(host);
  }
  const view = hosts.get(peerName(`host.${host}`));
  if (view === undefined || !view.reachable || view.actual === null) return;
  const { actual } = view;
  const use = usage.get(host) ?? noUse();
  const own = ratiosAt(view.pooled, ratios);
  const occupancy = occupancyOf(use, view.rule, accountOf);
  const isAsBefore = before?.view === view && isSame(before.class.occupancy, occupancy);
  const free = memoryFor(actual, own) - takenMiB(actual, use);
  const entry: HostEntry = {
    view,
    host,
    freeMiB: free,
    order: orderOf(free, index.ranks.get(host) ?? 0),
    freeCpus: cpusFor(actual, own) - use.cpus,
    class: isAsBefore ? before.class : classOf(index, { ...view, actual }, occupancy),
  };
  entry.class.hosts.add(entry);
  index.entries.set(host, entry);
}

const isSame = (one: Occupancy, other: Occupancy): boolean => one === other || keyOf(one) === keyOf(other);
function classOf(index: PlacerIndex, like: HostClass["like"], occupancy: Occupancy): HostClass {
  const { actual, closed, rule, pooled, marks } = like;
  const machineMiB = actual.machineMiB ?? 0;
  const whose = rule === undefined ? "" : `${rule.level} ${rule.to.kind} ${rule.to.path}`;
  // Hosts of a pool differ by their names alone, which no filter looks at.
  const pool = pooled === undefined ? "" : JSON.stringify({ ...pooled.pool, name: "" });
  const key = `${pool}|${actual.state} ${closed ?? ""} ${actual.cpuSpeedMHz} ${machineMiB} ${actual.networkMode ?? ""} ${whose}|${keyOf(occupancy)}${marks === undefined ? "" : JSON.stringify(marks)}`;
  const known = index.byKey.get(key);
  if (known !== undefined) return known;
  const made: HostClass = { like, occupancy, machineMiB, hosts: new Ordered() };
  index.byKey.set(key, made);
  index.classes.push(made);
  return made;
}
