import { type HostName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { rootCell } from "../../documents/cells.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { cpusFor, freeMiB, groupsOf, implicitOf, noUse, ratiosAt } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import type { PlacerState, Wanted } from "../state.ts";
import { choose } from "./choose.ts";

/*
 * Who of those that wait is tried again when something has changed. What is said of one that waits is a sentence for each host, so of many
 * hosts and many that wait it is not said anew of all with each change: one is, now and then, in turn. All others are asked about at the
 * index, and of those that ask alike only the smallest that has found nothing. Where single hosts have changed alone, as by the end of a VM, nobody is
 * asked about for whom none of these has room: every other host refuses him as it did, or the end of one VM would look for places for all kinds that wait.
 */
export const manyHosts = 128;
/** With each so manieth change what is said of one is said anew. */
export const saidAnew = 8;

/** The least that a kind of request has found no host for. */
interface Least {
  readonly memoryMiB: number;
  readonly cpus: number;
}

/** With more hosts that have changed than these all are asked about as if every one had. */
const mostChanged = 16;

/** In the order in which those that wait get what becomes free: the root cell's first, the others by priority, and of those that are alike who has waited longest. */
export function waitingInOrder({ waiting, wanted }: Pick<PlacerState, "waiting" | "wanted">): readonly Wanted[] {
  const all = [...waiting].flatMap((vm) => wanted.get(vm) ?? []);
  return all.sort((one, other) => rankOf(other) - rankOf(one));
}
const rankOf = ({ document: { cell, priority = 0 } }: Wanted): number =>
  cell === rootCell ? Number.MAX_SAFE_INTEGER : priority;

/** Begins a round over those that wait, and says who is to be tried in it. @param isAll something else has changed than what is known of single hosts */
export function whoIsTried(state: PlacerState, isAll: boolean): (wanted: Wanted) => boolean {
  state.retries += 1;
  const changed = new Set([...state.hosts.untried, ...state.usage.untried]);
  state.hosts.untried.clear();
  state.usage.untried.clear();
  if (state.hosts.size <= manyHosts) return () => true;
  const mayFit = isAll ? () => true : roomIn(state, changed);
  const turn = inTurn(state);
  const failed = new Map<string, Least[]>();
  return (wanted) => {
    const { client, document } = wanted;
    if (!state.refused.has(document.vm) || document.vm === turn) return true;
    if (!mayFit(document)) return false;
    const key = kindOf(state, wanted);
    const least = key === null ? [] : (failed.get(key) ?? []);
    if (least.some(({ memoryMiB, cpus }) => document.memoryMiB >= memoryMiB && document.cpus >= cpus)) return false;
    if (choose(state, document, askerOf(state, client)) !== null) return true;
    if (key !== null) failed.set(key, [...least, document]);
    return false;
  };
}

/** Whether one of the hosts that have changed may have room for a request. What a round itself changes counts in it, and in the next one. */
function roomIn(state: PlacerState, changed: ReadonlySet<HostName>): (document: DesiredPlacement) => boolean {
  const { hosts, usage, ratios } = state;
  let [known, memoryMiB, cpus] = [-1, 0, 0];
  const look = (): void => {
    known = hosts.untried.size + usage.untried.size;
    [memoryMiB, cpus] = [0, 0];
    for (const host of new Set([...changed, ...hosts.untried, ...usage.untried])) {
      const { actual = null, pooled } = hosts.get(peerName(`host.${host}`)) ?? {};
      if (actual === null) continue;
      const [use, own] = [usage.get(host) ?? noUse(), ratiosAt(pooled, ratios)];
      memoryMiB = Math.max(memoryMiB, freeMiB(actual, use, own));
      cpus = Math.max(cpus, cpusFor(actual, own) - use.cpus);
    }
  };
  return (document) => {
    if (changed.size + hosts.untried.size + usage.untried.size > mostChanged) return true;
    if (known !== hosts.untried.size + usage.untried.size) look();
    return (document.memoryMiB <= memoryMiB && document.cpus <= cpus) || !isByHost(state, document);
  };
}

/** Whether each host takes or refuses it by what is known of that host alone, and none has room of its own for it. */
function isByHost({ spareHosts, next, usage }: PlacerState, document: DesiredPlacement): boolean {
  const { vm, placement, at } = document;
  if (spareHosts > 0 || at !== undefined || next.has(vm) || usage.placesOf.has(vm)) return false;
  const known = byHost.get(document);
  if (known !== undefined) return known;
  const found = groupsOf(placement).length === 0 && implicitOf(placement) !== "strict";
  byHost.set(document, found);
  return found;
}
const byHost = new WeakMap<DesiredPlacement, boolean>();

function inTurn({ refused, retries }: PlacerState): Uid | null {
  if (retries % saidAnew !== 0 || refused.size === 0) return null;
  let left = (retries / saidAnew) % refused.size;
  for (const vm of refused) if (left-- === 0) return vm;
  return null;
}

/** Requests of one kind find the same hosts but for their room; null: of this one something is known that is not of others. */
function kindOf({ usage }: PlacerState, { client, document }: Wanted): string | null {
  const { vm, cell, placement, avoid, restart, cpuSpeedMHz } = document;
  if (usage.placesOf.has(vm) || (usage.cells.get(cell)?.keepingApart.size ?? 0) > 0) return null;
  return JSON.stringify([client, placement, avoid, restart, cpuSpeedMHz]);
}
