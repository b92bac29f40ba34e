import type { ByRule, Refusing } from "../../../model/cause/cause.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import type { ActualPlacement, DesiredPlacement, HostRefusal, Leave } from "../../documents/vocabulary.ts";
import type { Reservation } from "../candidate.ts";

/*
 * What a Placer says of hosts that refuse a VM: of so many each one, and of more how many each rule keeps away, with a host for each rule. A
 * document of one sentence for each host of thousands would be written for each VM that waits, and read by nobody. Each one is told whoever
 * asks for it (`GET /placement/try`).
 */
export const mostTold = 16;

export function toldOf(refusals: readonly HostRefusal[]): Refusing {
  if (refusals.length <= mostTold) return { refusals };
  const rules = new Set<string>();
  const firsts = new Set<HostRefusal>();
  for (const each of refusals) {
    const { kind = "other" } = each;
    if (rules.has(kind)) continue;
    rules.add(kind);
    if (firsts.size < mostTold) firsts.add(each);
  }
  for (const each of refusals) if (firsts.size < mostTold) firsts.add(each);
  return { refusals: refusals.filter((each) => firsts.has(each)), counts: countsOf(refusals) };
}

/** How many hosts each rule keeps away; the one that keeps most first. */
export function countsOf(refusals: readonly HostRefusal[]): readonly ByRule[] {
  const counts = new Map<string, number>();
  for (const { kind = "other" } of refusals) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, hosts]) => ({ kind, hosts })).sort((one, other) => other.hosts - one.hosts);
}

/** Names of some: of thousands few are named, since it is said of each VM, and anew with each host that is heard. */
export function someOf<T>(all: ReadonlySet<T>, nameOf: (one: T) => string): string {
  const named: string[] = [];
  for (const one of all) if (named.push(nameOf(one)) === mostNamed) break;
  const others = all.size - named.length;
  return others > 0 ? `${named.join(", ")} and ${others} more` : named.join(", ");
}
const mostNamed = 8;

/** One for all that have a place: it is kept with what was said of each. */
export const noRefusals: ActualPlacement["refusals"] = [];
export const toActual = (
  phase: ActualPlacement["phase"],
  reason: string | null,
  incarnation: number,
  host: HostName | null,
  refusals: ActualPlacement["refusals"],
): ActualPlacement => ({ phase, reason, incarnation, host, refusals });

/** What is said of one that has a place, which may have more there than is asked for. */
export function placedActual(
  { incarnation, host, boot, terms, nice, memoryMiB, cpus, off, crossed }: Reservation,
  asked: DesiredPlacement | undefined,
  leave: Leave | undefined,
): ActualPlacement {
  const isMore = asked !== undefined && off !== true && (memoryMiB > asked.memoryMiB || cpus > asked.cpus);
  // As of a reservation: what few have is one `...`.
  const few = {
    ...(nice === undefined ? {} : { nice }),
    ...(isMore ? { given: { memoryMiB, cpus } } : {}),
    ...(leave === undefined ? {} : { leave }),
    ...(crossed === undefined ? {} : { crossed }),
  };
  return {
    phase: "ready",
    reason: null,
    incarnation,
    host,
    refusals: noRefusals,
    ...(boot === undefined ? {} : { boot }),
    ...(terms === undefined ? {} : { terms }),
    ...few,
  };
}
