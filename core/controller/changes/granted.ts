import type { Uid } from "../../../model/cell/identifiers.ts";
import { type LimitKey, type Limits, limitKeys } from "../../../model/contract/tenancy/quotas.ts";
import { TrackedMap, type Tracking } from "./tracked.ts";

export type Sum = { readonly [Key in LimitKey]: number };
/** What a child of the root cell adds. */
interface Part {
  readonly account: string;
  /** What it was granted; null: nothing yet. */
  readonly amount: Limits | null;
}
/** Of a path: a limit is said of an account, or of a domain that accounts are below. */
export interface Below {
  readonly sum: Sum;
  /** Cells, also those that were granted nothing: of the account of this very path, and of all below it. */
  readonly own: number;
  readonly all: number;
}
const noSum: Sum = Object.fromEntries(limitKeys.map((key) => [key, 0])) as unknown as Sum;
const nothing: Below = { sum: noSum, own: 0, all: 0 };

/**
 * What was granted below each path, kept from pass to pass: what a cell has anew is added to its own account and to the domains above it, and
 * no other cell is looked at. Amounts are whole numbers, so that what is taken off is what was added.
 */
export class Granted {
  readonly #below: TrackedMap<string, Below>;
  readonly #parts = new Map<Uid, Part>();
  /** Of whole hosts, by child; whoever has none is not in it. */
  readonly units: TrackedMap<Uid, number>;
  /** Limits that were said of, and are no more. */
  readonly ended = new Set<string>();

  constructor(tracking: Tracking) {
    this.#below = new TrackedMap(tracking);
    this.units = new TrackedMap(tracking);
  }
  at(path: string): Below {
    return this.#below.get(path) ?? nothing;
  }
  /** Null: it is nobody's, or has gone. */
  part(child: Uid, part: Part | null): void {
    const before = this.#parts.get(child);
    // All are looked at again now and then.
    if (before !== undefined && part !== null && isSame(before, part)) return;
    if (before !== undefined) this.#add(before, -1);
    if (part === null) this.#parts.delete(child);
    else {
      this.#parts.set(child, part);
      this.#add(part, 1);
    }
  }
  /** To be added up anew. */
  clear(): void {
    this.#parts.clear();
    this.#below.clear();
  }

  #add({ account, amount }: Part, by: 1 | -1): void {
    for (let at = account.length; at > 0; at = account.lastIndexOf("/", at - 1)) {
      const path = account.slice(0, at);
      const { sum, own, all } = this.#below.peek(path) ?? nothing;
      if (all + by === 0) this.#below.delete(path);
      else
        this.#below.set(path, {
          sum: amount === null ? sum : plus(sum, amount, by),
          own: path === account ? own + by : own,
          all: all + by,
        });
    }
  }
}
const isSame = (one: Part, other: Part): boolean =>
  one.account === other.account &&
  (one.amount === null) === (other.amount === null) &&
  limitKeys.every((key) => one.amount?.[key] === other.amount?.[key]);
const plus = (sum: Sum, amount: Limits, by: 1 | -1): Sum =>
  Object.fromEntries(limitKeys.map((key) => [key, sum[key] + by * (amount[key] ?? 0)])) as unknown as Sum;
