import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { Balance, Move, Rebalance, RebalanceGoal } from "../../../model/contract/operator/placement.ts";
import { rootCell } from "../../documents/cells.ts";
import { type HostView, memoryFor, noUse, type Reservation, ratiosAt, takenMiB, vmsAt } from "../candidate.ts";
import { type Asked, judge } from "../judge.ts";
import { machineShares } from "../machine-memory.ts";
import { askerOf } from "../owners.ts";
import { askedOf } from "../place.ts";
import type { PlacerState } from "../state.ts";
import type { Sliced } from "./sliced.ts";
import { anew, shift } from "./thought.ts";

/*
 * Moves after which the hosts are used more evenly, fewer of them are used, or one of them is empty. They are made one after the other in thought, each
 * where the rules that place allow it then, and nothing follows from them: whoever likes the plan moves the VMs. `check-moves.ts` looks at each plan
 * anew, by facts and rules of its own.
 *
 * Where few ways of standing can be told apart all that can be reached are looked at, so that the plan is the best there is and has the fewest
 * moves for it. Else, evenly: from the fullest hosts to the emptiest, the larger VMs first, as long as that helps. Packed: hosts from
 * the emptiest are emptied onto the fullest that take their VMs, each wholly or not at all. One host: the same, with as many as find a place. Rejected: the best plan for
 * any size. It is bin packing, and what it gains beside this are few hosts of a thousand.
 */
export interface RebalanceAsked {
  readonly goal: RebalanceGoal;
  /** Of "empty". */
  readonly host: HostName | null;
}
/** Where VMs stand in fewer ways all are looked at. */
export const fewWays = 1024;
/** Looked at for each VM, of many hosts. */
const mostTried = 48;
const mostMoves = 20_000;
/** What takes a small part of the time in which a host is looked at. */
const littleAs = 0.1;

interface Work {
  readonly state: PlacerState;
  readonly asked: RebalanceAsked;
  readonly views: readonly HostView[];
  /** VMs that may go elsewhere, where they are now. */
  readonly at: Map<Uid, Reservation>;
  readonly byHost: Map<HostName, Set<Uid>>;
  readonly moves: Move[];
}

/** @param state in thought: in it the moves are made */
export function* rebalance(state: PlacerState, asked: RebalanceAsked, ways = fewWays): Sliced<Rebalance> {
  const work = yield* workOf(state, asked);
  const before = yield* balanceOf(work);
  if (work.views.length ** work.at.size <= ways) yield* searchAll(work);
  else if (asked.goal === "even") yield* even(work);
  else if (asked.goal === "pack") yield* pack(work);
  else if (asked.host !== null) yield* empty(work, asked.host, false);
  const after = yield* balanceOf(work);
  const left =
    asked.host === null ? [] : [...(work.state.usage.get(asked.host)?.reservations.values() ?? [])].map(nameOf);
  return { ...asked, moves: work.moves, before, after, left: left.sort() };
}
const nameOf = ({ cell, path }: Pick<Reservation, "cell" | "path">): string =>
  [cell, ...path.split("/").slice(1)].join("/");

function* workOf(state: PlacerState, asked: RebalanceAsked): Sliced<Work> {
  const { reservations, wanted, leaving, next } = state;
  const at = new Map<Uid, Reservation>();
  const byHost = new Map<HostName, Set<Uid>>();
  const views = [...state.hosts.values()].filter(({ reachable, actual }) => reachable && actual !== null);
  const known = new Set(views.map(({ host }) => host));
  for (const reservation of reservations.values()) {
    const { vm, host, cell, off } = reservation;
    const document = wanted.get(vm)?.document;
    yield littleAs;
    if (document === undefined || document.on !== undefined || off === true || !known.has(host)) continue;
    // What leaves its host goes where room is kept for it; and the cloud's own VMs stand well where they are.
    if (leaving.has(vm) || next.has(vm) || (cell === rootCell && asked.goal !== "empty")) continue;
    if (asked.goal === "empty" && host !== asked.host) continue;
    at.set(vm, reservation);
    byHost.set(host, (byHost.get(host) ?? new Set()).add(vm));
  }
  return { state, asked, views, at, byHost, moves: [] };
}

/** What it asks for, where all stand now; null: nobody knows. */
function askedFor({ state }: Work, { vm }: Reservation): Asked | null {
  const wanted = state.wanted.get(vm);
  if (wanted === undefined) return null;
  return askedOf(state.usage, anew(wanted.document), state.ratios, askerOf(state, wanted.client));
}
/** Whether the rules allow it there now. */
function mayGo(asked: Asked | null, to: HostView): boolean {
  const judged = asked === null ? null : judge(to, asked);
  return judged !== null && !("why" in judged);
}
function go(work: Work, reservation: Reservation, to: HostName): void {
  const { vm: uid, host: from, memoryMiB } = reservation;
  put(work, reservation, to);
  work.moves.push({ uid, vm: nameOf(reservation), from, to, memoryMiB });
}
function put({ state, at, byHost }: Work, reservation: Reservation, to: HostName): void {
  const { vm, host } = reservation;
  at.set(vm, shift(state.usage, reservation, to));
  byHost.get(host)?.delete(vm);
  byHost.set(to, (byHost.get(to) ?? new Set()).add(vm));
}

const shareAt = ({ state: { usage, ratios } }: Work, { host, actual, pooled }: HostView): number => {
  const most = actual === null ? 0 : memoryFor(actual, ratiosAt(pooled, ratios));
  return actual === null || most === 0 ? 0 : takenMiB(actual, usage.get(host) ?? noUse()) / most;
};
/** How much of a host's memory one machine takes. */
function shareOf({ state: { ratios } }: Work, { memoryMiB }: Reservation, { actual, pooled }: HostView): number {
  const most = actual === null ? 0 : memoryFor(actual, ratiosAt(pooled, ratios));
  return most === 0 ? 1 : (memoryMiB + machineShares(memoryMiB) * (actual?.machineMiB ?? 0)) / most;
}
const isOpen = ({ actual, closed }: HostView): boolean => actual?.state === "up" && closed === undefined;
const isUsed = ({ state }: Work, { host }: HostView): boolean => vmsAt(state.usage.get(host) ?? noUse()) > 0;

function* balanceOf(work: Work): Sliced<Balance> {
  const shares: number[] = [];
  let hostsInUse = 0;
  for (const view of work.views) {
    if (isOpen(view)) shares.push(shareAt(work, view));
    if (isUsed(work, view)) hostsInUse += 1;
    yield 1;
  }
  const percent = (share: number): number => Math.round(share * 1000) / 10;
  const mean = shares.reduce((sum, each) => sum + each, 0) / Math.max(1, shares.length);
  const variance = shares.reduce((sum, each) => sum + (each - mean) ** 2, 0) / Math.max(1, shares.length);
  return {
    hostsInUse,
    fullestPercent: percent(Math.max(0, ...shares)),
    deviationPercent: percent(Math.sqrt(variance)),
  };
}

/** The less the better. */
function badness(work: Work): number {
  const { goal, host } = work.asked;
  if (goal === "pack") return work.views.filter((view) => isUsed(work, view)).length;
  if (goal === "empty") return host === null ? 0 : (work.byHost.get(host)?.size ?? 0);
  return work.views.filter(isOpen).reduce((sum, view) => sum + shareAt(work, view) ** 2, 0);
}
const [clearly, least] = [1e-9, 0] as const;

function* searchAll(work: Work): Sliced<void> {
  const vms = [...work.at.keys()].sort();
  const key = (): string => vms.map((vm) => work.at.get(vm)?.host).join();
  const first = badness(work);
  let best: { readonly bad: number; readonly way: readonly Step[] } = { bad: first, way: [] };
  const seen = new Set([key()]);
  // Nearer ones first, so that of two that are as good the one with fewer moves stays.
  const queue: (readonly Step[])[] = [[]];
  for (const way of queue) {
    if (best.bad === least) break;
    const back = way.map((step) => replay(work, step)).reverse();
    for (const vm of vms)
      for (const view of work.views) {
        const reservation = work.at.get(vm) as Reservation;
        yield 1;
        if (view.host === reservation.host || !mayGo(askedFor(work, reservation), view)) continue;
        const undo = replay(work, { vm, to: view.host });
        const reached = key();
        if (!seen.has(reached)) {
          seen.add(reached);
          const longer = [...way, { vm, to: view.host }];
          const bad = badness(work);
          if (bad < best.bad - clearly) best = { bad, way: longer };
          queue.push(longer);
        }
        replay(work, undo);
      }
    for (const step of back) replay(work, step);
  }
  for (const { vm, to } of best.way) go(work, work.at.get(vm) as Reservation, to);
}
interface Step {
  readonly vm: Uid;
  readonly to: HostName;
}
/** @returns the step back */
function replay(work: Work, { vm, to }: Step): Step {
  const reservation = work.at.get(vm) as Reservation;
  put(work, reservation, to);
  return { vm, to: reservation.host };
}

const largestFirst = (one: Reservation, other: Reservation): number =>
  other.memoryMiB - one.memoryMiB || (one.vm < other.vm ? -1 : 1);
const vmsOf = ({ byHost, at }: Work, host: HostName): readonly Reservation[] =>
  [...(byHost.get(host) ?? [])].map((vm) => at.get(vm) as Reservation).sort(largestFirst);

/** From the fullest to the emptiest, until of no host a VM can go to one that stays emptier. */
function* even(work: Work): Sliced<void> {
  const open = work.views.filter(isOpen);
  const shares = new Map(open.map((view) => [view.host, shareAt(work, view)]));
  const usedOf = ({ host }: HostView): number => shares.get(host) ?? 0;
  const stuck = new Set<HostName>();
  // Nearly in order from then on.
  const ordered = [...open];
  while (work.moves.length < mostMoves) {
    ordered.sort((one, other) => usedOf(one) - usedOf(other));
    yield ordered.length * littleAs;
    const from = ordered.findLast(({ host }) => !stuck.has(host));
    if (from === undefined) return;
    if (!(yield* lighten(work, from, ordered.slice(0, mostTried), shares))) stuck.add(from.host);
  }
}
function* lighten(work: Work, from: HostView, to: readonly HostView[], shares: Map<HostName, number>): Sliced<boolean> {
  for (const reservation of vmsOf(work, from.host)) {
    const asked = askedFor(work, reservation);
    for (const view of to) {
      yield littleAs;
      if (view.host === from.host) continue;
      const [here, there] = [shares.get(from.host) ?? 0, shares.get(view.host) ?? 0];
      const [hereThen, thereThen] = [here - shareOf(work, reservation, from), there + shareOf(work, reservation, view)];
      // So that the sum of squares falls, and it ends.
      if (there >= here || hereThen ** 2 + thereThen ** 2 >= here ** 2 + there ** 2 - 1e-6) continue;
      yield 1;
      if (!mayGo(asked, view)) continue;
      go(work, reservation, view.host);
      shares.set(from.host, shareAt(work, from)).set(view.host, shareAt(work, view));
      return true;
    }
  }
  return false;
}

function* pack(work: Work): Sliced<void> {
  const used = work.views.filter((view) => isUsed(work, view)).map((view) => ({ view, share: shareAt(work, view) }));
  for (const {
    view: { host },
  } of used.sort((one, other) => one.share - other.share)) {
    const all = [...(work.state.usage.get(host)?.reservations.keys() ?? [])];
    yield 1;
    // One that has to stay keeps the host in use, whatever goes.
    if (all.length > 0 && all.every((vm) => work.at.has(vm))) yield* empty(work, host, true);
  }
}

/** @param wholly else nothing goes */
function* empty(work: Work, host: HostName, wholly: boolean): Sliced<void> {
  const back: Step[] = [];
  const count = work.moves.length;
  const targets: { readonly view: HostView; share: number }[] = [];
  for (const view of work.views) {
    yield littleAs;
    if (view.host !== host && isOpen(view) && (!wholly || isUsed(work, view)))
      targets.push({ view, share: shareAt(work, view) });
  }
  targets.sort((one, other) => other.share - one.share);
  for (const reservation of vmsOf(work, host)) {
    const asked = askedFor(work, reservation);
    let [tried, found]: [number, (typeof targets)[number] | null] = [0, null];
    for (const target of targets) {
      yield littleAs;
      const room = (1 - target.share) * (target.view.actual?.memoryMiB ?? 0);
      if (room < reservation.memoryMiB) continue;
      if (tried > mostTried) break;
      tried += 1;
      yield 1;
      if (!mayGo(asked, target.view)) continue;
      found = target;
      break;
    }
    if (found !== null) {
      back.push({ vm: reservation.vm, to: host });
      go(work, reservation, found.view.host);
      found.share = shareAt(work, found.view);
    } else if (wholly) {
      for (const step of back.reverse()) replay(work, step);
      work.moves.length = count;
      return;
    }
  }
}
