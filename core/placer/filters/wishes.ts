import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Membership } from "../../../model/cell/tenants/affinity/affinity.ts";
import type { Marks } from "../../../model/cell/tenants/dedication/marks.ts";
import { isSo, type NiceWish, niceOf } from "../../../model/cell/tenants/wishes/nice.ts";
import { fillOf, placeIn, type SpreadLevel, spreadOverOf } from "../../../model/cell/tenants/wishes/standing.ts";
import { isObject } from "../../../model/json/json.ts";
import type { PlacedAmounts } from "../../documents/pools.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type Asker, spreadOf, type Usage } from "../candidate.ts";
import { membershipsIn } from "../groups.ts";

/** What a request asks for by which no host is refused, looked up once for a decision. */
export interface Wishes {
  readonly nice: readonly NiceWish[];
  /** Those that nice wishes name. */
  readonly groups: ReadonlyMap<string, Membership>;
  /** It may get more than it has to have: which host gives how much each says for itself. */
  readonly asksMore: boolean;
  /** Null: it spreads over hosts alone, or not at all. */
  readonly crowds: Crowds | null;
  readonly packs: boolean;
}
interface Crowds {
  readonly level: Exclude<SpreadLevel, "host">;
  /** How many others of its `x.placement.spread` are in each place. */
  readonly at: ReadonlyMap<string, number>;
}
export type Amounts = PlacedAmounts;
/** What a place gives beyond what has to be had. */
export interface Given {
  /** Absent: nothing more. */
  readonly given?: Amounts;
  /** Names of the nice wishes that are so there; absent: it has none that is. */
  readonly so?: readonly string[];
}

const nothing: Wishes = { nice: [], groups: new Map(), asksMore: false, crowds: null, packs: false };
export function wishesOf(usage: Usage, request: DesiredPlacement, asker: Asker): Wishes {
  const { placement } = request;
  const isAsked =
    isObject(placement) &&
    (placement.nice !== undefined || placement.fill !== undefined || placement.spreadOver !== undefined);
  if (!isAsked) return nothing;
  const nice = niceOf(placement);
  const names = nice.flatMap(({ wants }) => (wants.kind === "group" ? [wants.group] : []));
  return {
    nice,
    groups: new Map(membershipsIn(usage, request, names, asker).map((each) => [each.name, each])),
    asksMore: nice.some(({ wants }) => wants.kind === "memory" || wants.kind === "cpus"),
    crowds: crowdsOf(usage, request, asker),
    packs: fillOf(placement) === "pack",
  };
}
function crowdsOf({ cells }: Usage, { vm, cell, placement }: DesiredPlacement, asker: Asker): Crowds | null {
  const [level, group] = [spreadOverOf(placement), spreadOf(placement)];
  if (level === "host" || group === null) return null;
  const at = new Map<string, number>();
  for (const { vm: other, host } of cells.get(cell)?.bySpread.get(group) ?? []) {
    if (other === vm) continue;
    const place = placeIn(asker.clusterOf(host), level);
    at.set(place, (at.get(place) ?? 0) + 1);
  }
  return { level, at };
}

/** How many others are in the place of such a host. */
export const crowdAt = ({ crowds }: Wishes, marks: Marks | undefined): number =>
  crowds === null ? 0 : (crowds.at.get(placeIn(marks?.cluster, crowds.level)) ?? 0);

/**
 * How good a host is by the wishes that are so there, and what it gives by them.
 *
 * @param room what the VM could have there at most; it has what it has to have
 */
export function niceAt(
  { nice, groups, asksMore }: Wishes,
  { host, marks }: { readonly host: HostName; readonly marks: Marks | undefined },
  { memoryMiB, cpus }: Amounts,
  room: () => Amounts,
): { readonly nice: number } & Given {
  if (nice.length === 0) return noNice;
  const there = { host, marks, groups, ...(asksMore ? room() : { memoryMiB, cpus }) };
  const so = nice.filter((wish) => isSo(wish, there));
  const most = (kind: "memory" | "cpus", least: number): number =>
    Math.max(least, ...so.map(({ wants }) => (wants.kind === kind ? wants.to : 0)));
  const given = { memoryMiB: most("memory", memoryMiB), cpus: most("cpus", cpus) };
  const isMore = given.memoryMiB > memoryMiB || given.cpus > cpus;
  if (so.length === 0) return noNice;
  return {
    nice: so.reduce((sum, { weight }) => sum + weight, 0),
    so: so.map(({ name }) => name),
    ...(isMore ? { given } : {}),
  };
}
const noNice = { nice: 0 } as const;

/** The request where it gets no more than it has to have, as where room is kept for others. */
export function withoutMore(request: DesiredPlacement): DesiredPlacement {
  const { placement } = request;
  const more = new Set(niceOf(placement).flatMap(({ name, wants }) => ("to" in wants ? [name] : [])));
  if (more.size === 0 || !isObject(placement) || !isObject(placement.nice)) return request;
  const { nice, ...rest } = placement;
  const left = Object.entries(nice).filter(([name]) => !more.has(name));
  return { ...request, placement: left.length === 0 ? rest : { ...rest, nice: Object.fromEntries(left) } };
}
