import type { Uid } from "../../../model/cell/identifiers.ts";
import { isActive, lossTypes, type OrderlyType, orderlyTypes, steps, type WorkItem } from "../item.ts";

/* Items of what is done in order (`orderly.ts`): the records `work/<vm>/<incarnation>`. */

export interface OrderlyItem extends WorkItem {
  readonly type: OrderlyType;
}
export interface Orderly {
  /** By VM. */
  readonly active: Map<Uid, OrderlyItem>;
  /** Those that have ended, by their keys; with those of another version that could not be read. */
  readonly ended: Map<string, WorkItem>;
  /** By their keys: what another version has written, in this list and in that of lost hosts. Until the start, which says so. */
  readonly unread: Map<string, WorkItem>;
}
export const createOrderly = (): Orderly => ({ active: new Map(), ended: new Map(), unread: new Map() });

const has = (all: readonly string[], name: string): boolean => all.includes(name);
/** Whether this version knows what stands in a record `item/…`. */
export const isReadable = ({ type, step }: WorkItem): boolean => has(lossTypes, type) && has(steps, step);

export function restoreOrderly(orderly: Orderly, key: string, item: WorkItem): void {
  const isEnded = has(steps, item.step) && !isActive(item.step);
  if (isEnded) orderly.ended.set(key, item);
  else if (has(orderlyTypes, item.type) && has(steps, item.step)) orderly.active.set(item.vm, item as OrderlyItem);
  else orderly.unread.set(key, item);
}
