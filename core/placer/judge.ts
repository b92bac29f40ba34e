import type { HostName } from "../../model/cell/identifiers.ts";
import { type Membership, softRank } from "../../model/cell/tenants/affinity/affinity.ts";
import type { DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
import {
  type Asker,
  besidesAt,
  type Candidate,
  type Filter,
  type HostView,
  implicitOf,
  memoryFor,
  noUse,
  type Ratios,
  takenMiB,
  type Usage,
  useWithout,
} from "./candidate.ts";
import { affinity } from "./filters/affinity.ts";
import { capacity } from "./filters/capacity.ts";
import { dedication, isHidden } from "./filters/dedication.ts";
import { groups } from "./filters/groups.ts";
import { hostState } from "./filters/host-state.ts";
import { implicit, implicitRank, isHeld } from "./filters/implicit.ts";
import { isOutside, pool, shownName } from "./filters/pool.ts";
import { speed } from "./filters/speed.ts";

const filters: readonly Filter[] = [hostState, pool, dedication, implicit, affinity, groups, speed, capacity];

/** What is asked for, with all that one decision looks up once. */
export interface Asked {
  readonly request: DesiredPlacement;
  readonly usage: Usage;
  readonly ratios: Ratios;
  readonly asker: Asker;
  readonly memberships: readonly Membership[];
  readonly avoid: ReadonlySet<string>;
}

/** A host that passes, by what the best of several is chosen. */
export interface Ranked {
  readonly host: HostName;
  readonly boot: number | undefined;
  readonly avoided: boolean;
  /** Of the cloud's own VMs: at what is nobody's (0), dedicated (1), or held (2). */
  readonly isOthers: number;
  /** What asks for implicit dedication looks at that before it spreads; what does not, after. */
  readonly asked: number;
  readonly held: number;
  readonly besides: number;
  readonly freeMiB: number;
}
export function isBetter(a: Ranked, b: Ranked): boolean {
  if (a.avoided !== b.avoided) return b.avoided;
  if (a.isOthers !== b.isOthers) return a.isOthers < b.isOthers;
  if (a.asked !== b.asked) return a.asked < b.asked;
  if (a.besides !== b.besides) return a.besides < b.besides;
  if (a.held !== b.held) return a.held < b.held;
  return a.freeMiB > b.freeMiB || (a.freeMiB === b.freeMiB && a.host < b.host);
}

/** One host: how good it is, or why it is not taken; null: it is others', and nothing is said of it. */
export function judge(
  { host, reachable, actual, died = null, closed, rule, pooled }: HostView,
  { request, usage, ratios, asker, memberships, avoid }: Asked,
): Ranked | HostRefusal | null {
  if (isOutside(pooled, request, asker) || (rule !== undefined && isHidden({ rule }, asker))) return null;
  if (!reachable || actual === null) {
    const why = died === null ? "not reachable" : `declared dead at ${died}`;
    return { host: shownName(host, pooled), kind: "unreachable", why, lifts: "the host answers again" };
  }
  const use = useWithout(usage.get(host) ?? noUse(), request.vm);
  const candidate: Candidate = {
    ...{ actual, use },
    ...(closed === undefined ? {} : { closed }),
    ...(rule === undefined ? {} : { rule }),
    ...(pooled === undefined ? {} : { pooled }),
    ...(memberships.length === 0 ? {} : { groups: memberships }),
  };
  for (const filter of filters) {
    const refusal = filter(candidate, request, ratios, asker);
    if (refusal !== null) return { host: shownName(host, pooled), ...refusal };
  }
  const implicitly = implicitRank(use, request, asker);
  const asks = implicitOf(request.placement) !== null;
  return {
    host,
    boot: actual.boot,
    avoided: avoid.has(host),
    isOthers: !asker.isSystem ? 0 : isHeld(use, request, asker) ? 2 : rule === undefined ? 0 : 1,
    asked: asks ? implicitly : 0,
    held: asks ? 0 : implicitly,
    besides: besidesAt(use, request) + softRank(memberships, host),
    freeMiB: memoryFor(actual, ratios) - takenMiB(actual, use),
  };
}
