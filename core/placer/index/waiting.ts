import type { Uid } from "../../../model/cell/identifiers.ts";
import { askerOf } from "../owners.ts";
import type { PlacerState, Wanted } from "../state.ts";
import { choose } from "./choose.ts";

/*
 * Who of those that wait is tried again when something has changed. What is said of one that waits is a sentence for each host, so of many
 * hosts and many that wait it is not said anew of all with each change: one is, now and then, in turn. All others are asked about at the
 * index, and of those that ask alike only the smallest that has found nothing.
 */
export const manyHosts = 128;
/** With each so manieth change what is said of one is said anew. */
export const saidAnew = 8;

/** The least that a kind of request has found no host for. */
interface Least {
  readonly memoryMiB: number;
  readonly cpus: number;
}

/** Begins a round over those that wait, and says who is to be tried in it. */
export function whoIsTried(state: PlacerState): (wanted: Wanted) => boolean {
  state.retries += 1;
  if (state.hosts.size <= manyHosts) return () => true;
  const turn = inTurn(state);
  const failed = new Map<string, Least[]>();
  return (wanted) => {
    const { client, document } = wanted;
    if (!state.refused.has(document.vm) || document.vm === turn) return true;
    const key = kindOf(state, wanted);
    const least = key === null ? [] : (failed.get(key) ?? []);
    if (least.some(({ memoryMiB, cpus }) => document.memoryMiB >= memoryMiB && document.cpus >= cpus)) return false;
    if (choose(state, document, askerOf(state, client)) !== null) return true;
    if (key !== null) failed.set(key, [...least, document]);
    return false;
  };
}

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
