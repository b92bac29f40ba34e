import type { Cell } from "../../../model/cell/cell.ts";
import { ownUsage } from "../../../model/check/check-limits.ts";
import { maximumCount } from "../../../model/json/reader.ts";
import type { InUse } from "../../documents/cells.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { sameJson, toJson } from "../../outbox.ts";
import { actualOf, type ControllerState, cellManager, keptMiBOf } from "../state.ts";

/*
 * What a cell uses, as its parent hears it: beside what it was granted, which it has whether it uses it or not. A machine is in use from when a host was
 * told to run it until that host says that it has ended, so also while nobody can say anything of it; volumes count by their sizes, with what stays of deleted ones. Those of child
 * cells are in it. It is a present amount, and no total: who adds it up over time (`core/tenancy/quotas/usage.ts`) hears it again after
 * every crash, and nothing is counted twice.
 *
 * A cell whose machines all start has one amount after the other, and each would be written down by two services above it. So another one is said at once, and
 * the next at the earliest some seconds later: each change counts that much late at most.
 */
export const inUseTimer = "in-use";
const everyMs = 5_000;
export const nothingInUse: InUse = { vms: 0, memoryMiB: 0, cpus: 0, storageMiB: 0 };
/** What others say may be anything that a reader takes, and so is the sum: never more than one takes. */
const sum = (one: InUse, other: InUse): InUse => ({
  vms: added(one.vms, other.vms),
  memoryMiB: added(one.memoryMiB, other.memoryMiB),
  cpus: added(one.cpus, other.cpus),
  storageMiB: added(one.storageMiB, other.storageMiB),
});
const added = (one: number, other: number): number => Math.min(one + other, maximumCount);

const declared = new WeakMap<Cell, number>();
function storageIn(cell: Cell): number {
  const known = declared.get(cell) ?? ownUsage(cell).storageMiB;
  declared.set(cell, known);
  return known;
}

/** With its child cells. Null: not all of them were heard since this start; what was said last goes on. */
function amountNow(state: ControllerState): InUse | null {
  const { cell, indexes } = state;
  const storageMiB = added(cell === null ? 0 : storageIn(cell), keptMiBOf(state) ?? 0);
  let all: InUse = { ...indexes.running, storageMiB };
  for (const uid of state.grants.keys()) {
    const quota = actualOf(actualCell, state, cellManager, `cell/${uid}`)?.quota ?? null;
    if (quota === null || quota.uses === null) return null;
    // One of a version before says nothing, and uses nothing as far as anybody knows.
    all = sum(all, quota.uses ?? nothingInUse);
  }
  return all;
}

/** What is to be said now. */
export function inUse(state: ControllerState): InUse | null {
  const { said, now, outbox } = state;
  const amount = amountNow(state);
  if (sameJson(said.amount === null ? null : toJson(said.amount), amount === null ? null : toJson(amount)))
    return said.amount;
  if (amount === null || said.amount === null || now.ms >= said.untilMs) {
    said.amount = amount;
    said.untilMs = now.ms + everyMs;
  } else if (!said.isTimed) {
    said.isTimed = true;
    outbox.effects.push({ kind: "timer", name: inUseTimer, afterMs: said.untilMs - now.ms });
  }
  return said.amount;
}
export const inUseDue = ({ said }: Pick<ControllerState, "said">): void => {
  said.isTimed = false;
};
