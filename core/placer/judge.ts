import type { HostName } from "../../model/cell/identifiers.ts";
import { type Membership, softRank } from "../../model/cell/tenants/affinity/affinity.ts";
import type { DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
import {
  type Asker,
  besidesAt,
  type Candidate,
  cpusFor,
  type Filter,
  freeMiB,
  type HostView,
  implicitOf,
  memoryFor,
  noUse,
  type Ratios,
  ratiosAt,
  takenMiB,
  type Usage,
  useWithout,
} from "./candidate.ts";
import { affinity } from "./filters/affinity.ts";
import { allowed } from "./filters/allowed.ts";
import { capacity } from "./filters/capacity.ts";
import { dedication, isHidden } from "./filters/dedication.ts";
import { hostState } from "./filters/host-state.ts";
import { implicitRank, isHeld } from "./filters/implicit.ts";
import { marks, tagged } from "./filters/marks.ts";
import { networkMode } from "./filters/network-mode.ts";
import { isOutside, pool, shownName } from "./filters/pool.ts";
import { speed } from "./filters/speed.ts";
import { together } from "./filters/together.ts";
import { type Amounts, crowdAt, type Given, niceAt, type Wishes } from "./filters/wishes.ts";
import { holdsStrict, isForSystem, leftToSystem } from "./room/system-hosts.ts";

/** Of these each host of a class says the same (`index/`): they look neither at its room nor at who is there. A further one is either of the two. */
export const classFilters: readonly Filter[] = [hostState, pool, allowed, dedication, marks, networkMode, speed];
const filters: readonly Filter[] = [
  hostState,
  together,
  allowed,
  marks,
  tagged,
  affinity,
  networkMode,
  speed,
  capacity,
];

/** What is asked for, with all that one decision looks up once. */
export interface Asked {
  readonly request: DesiredPlacement;
  readonly usage: Usage;
  readonly ratios: Ratios;
  readonly asker: Asker;
  readonly memberships: readonly Membership[];
  readonly wishes: Wishes;
  readonly avoid: ReadonlySet<string>;
  /** False: it would make a host its account's alone, and as many as that are left to the cloud's own VMs. */
  readonly mayClaim: boolean;
}

/** A host that passes, by what the best of several is chosen. */
export interface Ranked extends Given {
  readonly host: HostName;
  readonly boot: number | undefined;
  readonly avoided: boolean;
  /** Of the cloud's own VMs: at what is nobody's (0), dedicated (1), or held (2). */
  readonly isOthers: number;
  /** What asks for implicit dedication looks at that before it spreads; what does not, after. */
  readonly asked: number;
  readonly held: number;
  /** How much the nice wishes weigh that are so there: the more the better. */
  readonly nice: number;
  /** How many of its `x.placement.spread` are in the same place as the host, where it spreads over places. */
  readonly crowd: number;
  readonly besides: number;
  readonly freeMiB: number;
  /** The fullest host is the best, as the owner of its pool or the VM wants it; absent: the emptiest. */
  readonly packs?: true;
}
export function isBetter(a: Ranked, b: Ranked): boolean {
  if (a.avoided !== b.avoided) return b.avoided;
  if (a.isOthers !== b.isOthers) return a.isOthers < b.isOthers;
  if (a.asked !== b.asked) return a.asked < b.asked;
  if (a.nice !== b.nice) return a.nice > b.nice;
  if (a.crowd !== b.crowd) return a.crowd < b.crowd;
  if (a.besides !== b.besides) return a.besides < b.besides;
  if (a.held !== b.held) return a.held < b.held;
  if (a.freeMiB === b.freeMiB) return a.host < b.host;
  return a.packs === true ? a.freeMiB < b.freeMiB : a.freeMiB > b.freeMiB;
}

/** It is others', and nothing is said of it. */
export const isOfOthers = ({ rule, pooled }: HostView, request: DesiredPlacement, asker: Asker): boolean =>
  isOutside(pooled, request, asker) || (rule !== undefined && isHidden({ rule }, asker));
/** Of the cloud's own VMs: how much rather they stand elsewhere. */
export const othersRank = (isHeldThere: boolean, rule: HostView["rule"]): number =>
  isHeldThere ? 2 : rule === undefined ? 0 : 1;
/** One pool is asked for at a time, and its owner's word goes before the VM's, so that hosts which are compared have one rule. */
export const packsAt = (pooled: HostView["pooled"], { packs }: Wishes): Pick<Ranked, "packs"> =>
  (pooled?.pool?.fill ?? (packs ? "pack" : "spread")) === "pack" ? { packs: true } : {};
/** Where the rank of implicit dedication counts. */
export const implicitRanks = (asks: boolean, rank: number): Pick<Ranked, "asked" | "held"> => ({
  asked: asks ? rank : 0,
  held: asks ? 0 : rank,
});

/** One host: how good it is, or why it is not taken; null: it is others', and nothing is said of it. */
export function judge(
  view: HostView,
  { request, usage, ratios, asker, memberships, wishes, avoid, mayClaim }: Asked,
): Ranked | HostRefusal | null {
  const { host, reachable, actual, died = null, closed, rule, pooled, marks: said } = view;
  if (isOfOthers(view, request, asker)) return null;
  if (!reachable || actual === null) {
    const why = died === null ? "not reachable" : `declared dead at ${died}`;
    return { host: shownName(host, pooled), kind: "unreachable", why, lifts: "the host answers again" };
  }
  const use = useWithout(usage.get(host) ?? noUse(), request.vm);
  const candidate: Candidate = {
    actual,
    use,
    ...(closed === undefined ? {} : { closed }),
    ...(rule === undefined ? {} : { rule }),
    ...(pooled === undefined ? {} : { pooled }),
    ...(said === undefined ? {} : { marks: said }),
    ...(memberships.length === 0 ? {} : { groups: memberships }),
  };
  const own = ratiosAt(pooled, ratios);
  for (const filter of filters) {
    const refusal = filter(candidate, request, own, asker);
    if (refusal !== null) return { host: shownName(host, pooled), ...refusal };
  }
  if (!mayClaim && isForSystem(view, holdsStrict(use))) return { host, ...leftToSystem };
  const room = (): Amounts => ({
    memoryMiB: freeMiB(actual, use, own),
    cpus: cpusFor(actual, own) - use.cpus,
  });
  return {
    host,
    boot: actual.boot,
    avoided: avoid.has(host),
    isOthers: asker.isSystem ? othersRank(isHeld(use, request, asker), rule) : 0,
    ...implicitRanks(implicitOf(request.placement) !== null, implicitRank(use, request, asker)),
    ...niceAt(wishes, { host, marks: said }, request, room),
    crowd: crowdAt(wishes, said),
    besides: besidesAt(use, request) + softRank(memberships, host),
    freeMiB: memoryFor(actual, own) - takenMiB(actual, use),
    ...packsAt(pooled, wishes),
  };
}
