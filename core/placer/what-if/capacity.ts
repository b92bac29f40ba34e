import { type HostName, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { Capacity, Failures } from "../../../model/contract/operator/placement.ts";
import type { DesiredPlacement, HostRefusal } from "../../documents/vocabulary.ts";
import {
  type Asker,
  cpusFor,
  type HostView,
  implicitOf,
  memoryFor,
  noteTaken,
  noUse,
  ratiosAt,
  release,
  reserve,
  takenMiB,
} from "../candidate.ts";
import { whyNoGroup } from "../filters/dedication.ts";
import { choose } from "../index/choose.ts";
import { type Asked, judge } from "../judge.ts";
import { machineShares } from "../machine-memory.ts";
import { askerOf } from "../owners.ts";
import { askedOf } from "../place.ts";
import { inOrderOfStart } from "../room/loss.ts";
import { claimsLeft, holdsStrict, isForSystem, leftToSystem } from "../room/system-hosts.ts";
import type { PlacerState } from "../state.ts";
import type { Sliced } from "./sliced.ts";
import { anew, thought } from "./thought.ts";

/*
 * How many more of a VM fit. Its copies ask alike, so that what one host takes of them does not hang on what others have, but for groups:
 * of "host anti-affinity" each host takes one, and of "host affinity" of which nobody has a place all go to one host. So a host is judged once
 * by the rules that place, and the rest is a division. Brute force over small clouds, one copy after the other, is the oracle.
 *
 * After lost hosts: their VMs of this Placer have been started again on the others, in the order and at the hosts where they would be. Which
 * hosts are worst nobody can say without trying, so all sets of so many are tried where these are few, and of many those that lose most room.
 *
 * It is worked out in slices. Without losses each host is counted as it is when its turn comes; with them in a copy, as all was at one moment.
 */
/** Sets of lost hosts of which all are tried, and of how many if there are more. */
const [fewSets, triedOfMany] = [256, 4] as const;
/** A host is chosen in the time in which so many are looked at. */
const chosenAs = 8;

/** @param document of a VM that is there, or one like those; which host it has and which incarnation it is does not matter */
export function* capacityOf(
  real: PlacerState,
  { client, document }: { readonly client: PeerName; readonly document: DesiredPlacement },
  failures: number,
): Sliced<Capacity> {
  const state = failures === 0 ? real : yield* thought(real, true);
  const asker = askerOf(state, client);
  const copy: DesiredPlacement = {
    ...anew(document),
    vm: "capacity" as Uid,
    path: `${document.path}-copy` as never,
    incarnation: 1,
  };
  const said = whyNoGroup(copy, asker);
  if (said !== null) return { more: 0, hosts: 0, runsOut: null, away: [], said };
  const counted = yield* countAll(state, copy, asker);
  const whole = sumOf(counted.values(), copy, state, asker);
  if (failures === 0) return whole;
  return { ...whole, failures: yield* worstOf(state, copy, asker, counted, failures) };
}

interface Count {
  readonly more: number;
  readonly lacks: "memory" | "cpus" | "hosts" | null;
  readonly kept: HostRefusal["kind"] | null;
  /** The first of them makes the host its account's alone. */
  readonly claims?: true;
}

function* countAll(state: PlacerState, copy: DesiredPlacement, asker: Asker): Sliced<Map<HostName, Count>> {
  const asked = askedOf(state.usage, copy, state.ratios, asker);
  const counted = new Map<HostName, Count>();
  for (const view of state.hosts.values()) {
    const count = countAt(view, asked);
    if (count !== null) counted.set(view.host, count);
    yield 1;
  }
  return counted;
}

/** How many copies one host takes; null: it is others'. */
function countAt(view: HostView, asked: Asked): Count | null {
  const { request, usage, memberships, asker } = asked;
  const judged = judge(view, asked);
  if (judged === null) return null;
  if ("why" in judged) {
    const { kind = "other" as never } = judged;
    const lacks = kind === "memory" || kind === "cpus" ? kind : null;
    return { more: 0, lacks, kept: lacks === null ? kind : null };
  }
  const actual = view.actual as NonNullable<HostView["actual"]>;
  const use = usage.get(view.host) ?? noUse();
  const ratios = ratiosAt(view.pooled, asked.ratios);
  const eachMiB = request.memoryMiB + machineShares(request.memoryMiB) * (actual.machineMiB ?? 0);
  const memory = Math.floor((memoryFor(actual, ratios) - takenMiB(actual, use)) / eachMiB);
  const cpus = Math.floor((cpusFor(actual, ratios) - use.cpus) / request.cpus);
  const isClaim = implicitOf(request.placement) === "strict" && isForSystem(view, holdsStrict(use));
  const claims: Pick<Count, "claims"> = isClaim && !asker.isSystem ? { claims: true } : {};
  if (memberships.some(({ kind }) => kind === "host anti-affinity") && Math.min(memory, cpus) > 1)
    return { more: 1, lacks: "hosts", kept: null, ...claims };
  return { more: Math.min(memory, cpus), lacks: memory <= cpus ? "memory" : "cpus", kept: null, ...claims };
}

/** Without those of the last hosts, which are left to the cloud's own VMs; of the others such as take most. */
function withinClaims(counts: Iterable<Count>, state: PlacerState): readonly Count[] {
  const all = [...counts];
  if (!all.some(({ claims }) => claims === true)) return all;
  all.sort((one, other) => other.more - one.more);
  let left = claimsLeft(state);
  return all.map((count): Count => {
    if (count.claims !== true) return count;
    left -= 1;
    return left >= 0 ? count : { more: 0, lacks: null, kept: leftToSystem.kind };
  });
}

function sumOf(all: Iterable<Count>, copy: DesiredPlacement, state: PlacerState, asker: Asker): Capacity {
  const counts = withinClaims(all, state);
  const [lacks, away] = [new Map<NonNullable<Count["lacks"]>, number>(), new Map<string, number>()];
  let [more, hosts] = [0, 0];
  const isAtOne = standsAtOne(copy, state, asker);
  for (const count of counts) {
    if (count.kept != null) away.set(count.kept, (away.get(count.kept) ?? 0) + 1);
    if (count.lacks !== null) lacks.set(count.lacks, (lacks.get(count.lacks) ?? 0) + 1);
    if (count.more === 0) continue;
    more = isAtOne ? Math.max(more, count.more) : more + count.more;
    hosts = isAtOne ? 1 : hosts + 1;
  }
  const [most = null] = [...lacks].sort(([a, one], [b, other]) => other - one || (a < b ? 1 : -1));
  const kept = [...away].map(([kind, of]) => ({ kind, hosts: of })).sort((one, other) => other.hosts - one.hosts);
  return { more, hosts, runsOut: most?.[0] ?? null, away: kept };
}
/** Whether all of them go where the first one goes. */
const standsAtOne = (copy: DesiredPlacement, { usage, ratios }: PlacerState, asker: Asker): boolean =>
  askedOf(usage, copy, ratios, asker).memberships.some(
    ({ kind, homes }) => kind === "host affinity" && homes.size === 0,
  );

function* worstOf(
  state: PlacerState,
  copy: DesiredPlacement,
  asker: Asker,
  counted: ReadonlyMap<HostName, Count>,
  failures: number,
): Sliced<Failures> {
  const living = [...state.hosts.values()].filter(({ reachable, actual }) => reachable && actual !== null);
  const size = Math.min(failures, living.length);
  const roomOf = ({ host, actual }: HostView): number =>
    (counted.get(host)?.more ?? 0) * copy.memoryMiB +
    (actual === null ? 0 : takenMiB(actual, state.usage.get(host) ?? noUse()));
  const rooms = new Map(living.map((view) => [view, roomOf(view)]));
  const roomIn = (view: HostView): number => rooms.get(view) ?? 0;
  const fullest = living.sort((one, other) => roomIn(other) - roomIn(one) || (one.host < other.host ? -1 : 1));
  const every = choices(fullest.length, size) <= fewSets;
  const sets = every
    ? subsets(fullest, size)
    : Array.from({ length: Math.min(triedOfMany, fullest.length - size + 1) }, (_, at) => fullest.slice(at, at + size));
  let worst: Failures | null = null;
  for (const set of sets) {
    const after = yield* without(state, set, copy, asker, counted);
    if (worst === null || after.more < worst.more || (after.more === worst.more && after.stranded > worst.stranded))
      worst = { hosts: size, ...after, lost: set.map(({ host }) => host).sort(), every };
  }
  return worst ?? { hosts: 0, more: 0, lost: [], stranded: 0, every };
}

/** What fits once these are lost and their VMs have started elsewhere. The state is as before afterwards. */
function* without(
  state: PlacerState,
  lost: readonly HostView[],
  copy: DesiredPlacement,
  asker: Asker,
  counted: ReadonlyMap<HostName, Count>,
): Sliced<Pick<Failures, "more" | "stranded">> {
  const { hosts, usage } = state;
  const undo: (() => void)[] = [];
  const changed = new Set(lost.map(({ host }) => host));
  const homeless = inOrderOfStart(
    state,
    lost.map(({ host }) => host),
  );
  for (const view of lost) {
    const peer = peerName(`host.${view.host}`);
    const { reservations, taken } = usage.get(view.host) ?? noUse();
    const [there, said] = [[...reservations.values()], [...taken]];
    for (const each of there) release(usage, each);
    for (const [vm] of said) noteTaken(usage, view.host, vm, null);
    hosts.set(peer, { ...view, reachable: false });
    undo.push(() => {
      for (const each of there) reserve(usage, each);
      for (const [vm, share] of said) noteTaken(usage, view.host, vm, share);
      hosts.set(peer, view);
    });
  }
  let stranded = 0;
  for (const { reservation, wanted } of homeless) {
    const request = { ...anew(wanted.document), restart: true as const };
    const chosen = choose(state, request, askerOf(state, wanted.client));
    yield chosenAs;
    if (chosen === null) {
      stranded += 1;
      continue;
    }
    const placed = { ...reservation, host: chosen.host };
    changed.add(chosen.host);
    reserve(usage, placed);
    undo.push(() => release(usage, placed));
  }
  const asked = askedOf(usage, copy, state.ratios, asker);
  const counts = new Map(counted);
  // Where others of its groups are says something of hosts where they are not, too, if it has to be beside them.
  const isBound = asked.memberships.some(({ kind }) => kind === "host affinity");
  for (const view of hosts.values()) {
    if (!isBound && !changed.has(view.host)) continue;
    yield 1;
    const count = countAt(view, asked);
    if (count === null) counts.delete(view.host);
    else counts.set(view.host, count);
  }
  const { more } = sumOf(counts.values(), copy, state, asker);
  for (const back of undo.reverse()) back();
  return { more, stranded };
}

function choices(of: number, size: number): number {
  let number = 1;
  for (let at = 1; at <= size; at += 1) number = (number * (of - size + at)) / at;
  return number;
}
function subsets<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  if (size === 0) return [[]];
  return all.flatMap((first, at) => subsets(all.slice(at + 1), size - 1).map((rest) => [first, ...rest]));
}
