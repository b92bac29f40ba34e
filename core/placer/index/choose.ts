import type { HostName } from "../../../model/cell/identifiers.ts";
import { preferenceOf } from "../../../model/cell/tenants/dedication/implicit.ts";
import { asksForTags, markWishes, mayStandTagged } from "../../../model/cell/tenants/dedication/marks.ts";
import { offeringOf } from "../../../model/cell/tenants/pools/offerings.ts";
import { isObject, type Json } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type Asker, implicitOf, noUse, poolOf } from "../candidate.ts";
import { dedicationGroup, whyNoGroup } from "../filters/dedication.ts";
import { crowdAt, niceAt } from "../filters/wishes.ts";
import {
  type Asked,
  classFilters,
  implicitRanks,
  isBetter,
  isOfOthers,
  judge,
  othersRank,
  packsAt,
  type Ranked,
} from "../judge.ts";
import { roomFor } from "../machine-memory.ts";
import { askedOf } from "../place.ts";
import { isForSystem } from "../room/system-hosts.ts";
import { type HostClass, type HostEntry, type Indexed, type Open, refresh } from "./classes.ts";
import { standingFor } from "./occupancy.ts";
import { isBeside, specialHosts } from "./special.ts";

const mostShapes = 4096;
/** Asked for by nobody whose wishes say nothing of it. */
const noRoom = (): never => {
  throw new Error("one that asks for more is looked for at each host");
};
const marksAsked = (placement: Json): Json =>
  isObject(placement) && markWishes.some((wish) => placement[wish] !== undefined)
    ? markWishes.map((wish) => placement[wish] ?? null)
    : null;

function shapeOf({ index, ratios }: Indexed, { request, asker, mayClaim }: Asked): readonly Open[] {
  const { placement, restart, cpuSpeedMHz } = request;
  const mode = implicitOf(placement);
  const who = asker.isSystem ? "" : (asker.account ?? "?");
  const pool = poolOf(placement);
  const pooled = pool === null ? [] : [pool, request.cell, offeringOf(placement), request.image ?? null];
  // Of its groups those of dedicated hosts alone: who is in the others says nothing of a class, and there are many.
  const group = dedicationGroup(request, asker);
  const [marks, whose] = [marksAsked(placement), group === null ? "" : `${group.kind} ${group.path}`];
  const written = marks === null && pool === null ? "" : JSON.stringify([marks, ...pooled]);
  const flags = `${asker.isSystem} ${restart === true} ${mayClaim}`;
  const key = `${who}|${flags} ${mode} ${cpuSpeedMHz} ${request.networkMode ?? ""}|${whose}|${written}`;
  const shape = index.shapes.get(key) ?? { seen: 0, open: [] };
  if (shape.seen === 0) {
    if (index.shapes.size >= mostShapes) index.shapes.clear();
    index.shapes.set(key, shape);
  }
  for (; shape.seen < index.classes.length; shape.seen += 1) {
    const each = index.classes[shape.seen] as HostClass;
    const { rule } = each.like;
    if (isOfOthers(each.like, request, asker)) continue;
    const candidate = { ...each.like, use: noUse() };
    if (classFilters.some((filter) => filter(candidate, request, ratios, asker) !== null)) continue;
    const standing = standingFor(each.occupancy, asker.account);
    if (!asker.isSystem && each.occupancy.strangers) continue;
    if (asker.isSystem) {
      shape.open.push({ class: each, isOthers: othersRank(standing === "strangers", rule), asked: 0, held: 0 });
      continue;
    }
    if (!mayClaim && isForSystem(each.like, each.occupancy.strict.length > 0)) continue;
    const preference = preferenceOf(standing, mode);
    if (preference === null) continue;
    const wishes = { isExplicit: group !== null, isImplicit: mode !== null };
    if (asksForTags(placement) && !mayStandTagged({ isDedicated: rule !== undefined, ...wishes, standing })) continue;
    shape.open.push({ class: each, isOthers: 0, ...implicitRanks(mode !== null, preference) });
  }
  return shape.open;
}

/** The best host of a class of which the request says nothing. */
function bestOf(
  { hosts, machineMiB, like: { pooled } }: HostClass,
  { request, wishes }: Asked,
  isJudged: (host: HostName) => boolean,
): HostEntry | null {
  const isRoom = ({ freeMiB }: HostEntry): boolean => request.memoryMiB <= roomFor(freeMiB, machineMiB);
  const takes = ({ host, freeCpus }: HostEntry): boolean => freeCpus >= request.cpus && !isJudged(host);
  if (packsAt(pooled, wishes).packs === true) {
    // From the fullest on.
    for (let at = hosts.buckets.length - 1; at >= 0; at -= 1) {
      const bucket = hosts.buckets[at] as HostEntry[];
      // Where the emptiest has no room none has, and of hosts that are packed most are full.
      if (!isRoom(bucket[0] as HostEntry)) continue;
      for (let place = bucket.length - 1; place >= 0; place -= 1) {
        const entry = bucket[place] as HostEntry;
        if (isRoom(entry) && takes(entry)) return firstLike(hosts.buckets, at, entry, takes);
      }
    }
    return null;
  }
  for (const bucket of hosts.buckets)
    for (const entry of bucket) {
      if (!isRoom(entry)) return null;
      if (takes(entry)) return entry;
    }
  return null;
}

/** The first by name of those as full as one that is taken; there may be thousands, as of empty ones, and the first of them is mostly taken, too. */
function firstLike(
  buckets: readonly (readonly HostEntry[])[],
  from: number,
  found: HostEntry,
  takes: (entry: HostEntry) => boolean,
): HostEntry {
  let first = from;
  while (first > 0 && buckets[first - 1]?.at(-1)?.freeMiB === found.freeMiB) first -= 1;
  for (let at = first; at <= from; at += 1)
    for (const entry of buckets[at] ?? []) if (entry.freeMiB === found.freeMiB && takes(entry)) return entry;
  return found;
}

/** The host that `place` would choose among all; null: it would refuse, and say why. */
export function choose(indexed: Indexed, request: DesiredPlacement, asker: Asker): Ranked | null {
  if (whyNoGroup(request, asker) !== null) return null;
  refresh(indexed, asker.accountOf);
  const { index, usage, ratios } = indexed;
  const asked: Asked = askedOf(usage, request, ratios, asker);
  const { wishes } = asked;
  // How much more it could have each host says for itself.
  const {
    hosts: special,
    isAll,
    spread,
  } = wishes.asksMore ? { hosts: new Set(index.entries.keys()), isAll: true, spread: null } : specialHosts(asked);
  let best: Ranked | null = null;
  const look = (host: HostName): void => {
    const view = index.entries.get(host)?.view;
    const judged = view === undefined ? null : judge(view, asked);
    if (judged !== null && !("why" in judged) && (best === null || isBetter(judged, best))) best = judged;
  };
  for (const host of special) look(host);
  if (isAll) return best;
  const isJudged = (host: HostName): boolean => special.has(host) || (spread !== null && isBeside(asked, host));
  // Of groups that it would rather stand beside nobody is there.
  let besides = 0;
  for (const { kind, homes } of asked.memberships)
    if (kind === "non-strict host affinity" && homes.size > 0) besides += 1;
  for (const { class: each, isOthers, asked: wish, held } of shapeOf(indexed, asked)) {
    const entry = bestOf(each, asked, isJudged);
    if (entry === null) continue;
    const { host, freeMiB, view } = entry;
    const ranked: Ranked = {
      host,
      boot: view.actual?.boot,
      avoided: false,
      isOthers,
      asked: wish,
      held,
      ...niceAt(wishes, { host, marks: view.marks }, request, noRoom),
      crowd: crowdAt(wishes, view.marks),
      besides,
      freeMiB,
      ...packsAt(view.pooled, wishes),
    };
    if (best === null || isBetter(ranked, best)) best = ranked;
  }
  if (spread === null) return best;
  const bound = crowdBelow(best, asked, besides);
  if (bound === 0) return best;
  const homes = new Set<HostName>();
  for (const { host } of spread) if (!special.has(host)) homes.add(host);
  for (const host of homes)
    if (bound === null || crowdAt(wishes, index.entries.get(host)?.view.marks) < bound) look(host);
  return best;
}

/**
 * Of hosts where others of its `x.placement.spread` are, those alone can be better than the best of all others that stand in a place with fewer of
 * them; 0: none can, as of nearly all that spread, of which each would otherwise look at all before it. Null: by another rank one could.
 */
function crowdBelow(best: Ranked | null, { wishes }: Asked, besides: number): number | null {
  if (best === null || best.avoided || best.isOthers > 0 || best.asked > 0 || best.besides > besides) return null;
  return wishes.nice.length > (best.so?.length ?? 0) ? null : best.crowd;
}
